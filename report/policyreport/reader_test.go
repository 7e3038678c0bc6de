package policyreport_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// The reader here is written from what Policy Reporter takes of a report: it knows
// nothing of the package that made it.

type readReport struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace, UID string
		Labels, Annotations  map[string]string
		OwnerReferences      []struct{ APIVersion, Kind, Name, UID string }
	}
	Source  string
	Scope   *readResource
	Summary map[string]int
	Results []readResult
}

type readResource struct{ APIVersion, Kind, Namespace, Name, UID string }

type readResult struct {
	Source, Policy, Rule, Category, Severity, Result, Message string
	Scored                                                    bool
	Timestamp                                                 struct {
		Seconds int64
		Nanos   int32
	}
	Resources  []readResource
	Properties map[string]string

	report *readReport
}

type readResults []readResult

// read reads reports as a watcher does: each part is a report of its own.
func read(t testing.TB, parts []policyreport.Part) readResults {
	t.Helper()
	var all readResults
	for _, part := range parts {
		if part.Action == policyreport.Delete {
			continue
		}
		all = append(all, readOne(t, part.JSON).Results...)
	}
	return all
}

func readOne(t testing.TB, text []byte) *readReport {
	t.Helper()
	var one readReport
	if err := json.Unmarshal(text, &one); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i := range one.Results {
		one.Results[i].report = &one
	}
	return &one
}

// resource is what a result is about: the first of its resources, or the scope.
func (r readResult) resource() readResource {
	switch {
	case len(r.Resources) > 0:
		return r.Resources[0]
	case r.report.Scope != nil:
		return *r.report.Scope
	}
	return readResource{}
}

func (r readResult) category() string { return cmp.Or(r.Category, "Other") }

// id is Policy Reporter's identity of a result by default, and with a
// property among the fields where that is configured.
func (r readResult) id(fields ...string) string {
	if id, ok := r.Properties["resultID"]; ok {
		return id
	}
	h := fnv.New64a()
	of := r.report.Scope
	if of == nil && len(r.Resources) > 0 {
		of = &r.Resources[0]
	}
	if of != nil {
		fmt.Fprint(h, of.Name, of.UID)
	}
	fmt.Fprint(h, r.Policy, r.Rule, r.Result, r.Category, r.Message)
	for _, name := range fields {
		fmt.Fprint(h, r.Properties[name])
	}
	return strconv.FormatUint(h.Sum64(), 10)
}

// about returns a report's result for an object: the listed one, or the shared one.
func (rs readResults) about(scope report.Resource, of result.Result) (readResult, bool) {
	container := ""
	if of.Image != nil {
		container = of.Image.Container
	}
	var shared *readResult
	for i, r := range rs {
		if r.Policy != of.Policy.String() || strings.TrimPrefix(r.Rule, "autogen-") != strings.TrimPrefix(of.Rule, "autogen-") || r.Properties["container"] != container {
			continue
		}
		switch {
		case len(r.Resources) == 0:
			shared = &rs[i]
		case r.Resources[0].UID == of.Resource.UID:
			return r, true
		}
	}
	if shared == nil || scope.Kind == "Pod" && scope.UID != of.Resource.UID {
		return readResult{}, false
	}
	return *shared, true
}

// scene is what every reader should take without losing anything: pods that say the same
// and pods that do not, images of two containers, an author's properties.
func scene(t *testing.T, api policyreport.API) []policyreport.Part {
	t.Helper()
	image := func(text, container string) result.Result {
		r := word(t, text)
		r.Image = &result.Image{
			Container: container, Written: "ghcr.io/acme/web:1", Digest: "sha256:" + strings.Repeat("ab", 32),
			Signer: "key SHA256:1f2e3d", Evidence: "ghcr.io/acme/web@sha256:" + strings.Repeat("cd", 32),
		}
		r.Rule, r.Code, r.Policy.Severity, r.Policy.Category = "signed", policy.Unsigned, "high", "Supply Chain"
		r.Properties = map[string]string{"team": "payments", "signer": "not the author's to say", "": "nothing"}
		return r
	}
	results := append(words(t, "1 pod-a pass; 1 pod-b pass; 2 pod-c fail no; 2 pod-d fail no; 3 pod-e error; 3 pod-f skip; 3 pod-g warn; 0 owner pass"),
		image("1 pod-a fail unsigned", "web"), image("1 pod-a fail unsigned", "sidecar"), image("1 pod-b fail unsigned", "web"), image("1 pod-b pass", "sidecar"))
	r := policyreport.New(place(t, policyreport.ByWorkload, results[0], objectNamed("owner")), policyreport.Selection{})
	r.Merge(results)
	return encode(t, r, api)
}

// TestReader: a client that expects what Policy Reporter does reads all of it, in both
// APIs, and takes no two results for one.
func TestReader(t *testing.T) {
	for _, api := range policyreport.APIs() {
		t.Run(string(api), func(t *testing.T) {
			parts := scene(t, api)
			one := readOne(t, parts[0].JSON)
			if one.APIVersion != string(api) || one.Metadata.Namespace != "shop" || one.Metadata.Labels["app.kubernetes.io/managed-by"] != "quaymaster" {
				t.Errorf("%+v", one.Metadata)
			}
			if (one.Source == "quaymaster") != (api == policyreport.OpenReports) {
				t.Errorf("the report's source is %q", one.Source)
			}
			if one.Scope == nil || one.Scope.Kind != "Deployment" || len(one.Metadata.OwnerReferences) != 1 || one.Metadata.OwnerReferences[0].UID != one.Scope.UID {
				t.Errorf("scope %+v, owners %+v", one.Scope, one.Metadata.OwnerReferences)
			}
			counts, ids, byConfiguration := map[string]int{"pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 0}, map[string]bool{}, map[string]bool{}
			for _, r := range one.Results {
				counts[r.Result]++
				ids[r.id()], byConfiguration[r.id("digest", "container")] = true, true
				if r.Source != "quaymaster" || r.Policy == "" || r.Rule == "" || r.Timestamp.Seconds < 1e9 || !r.Scored || len(r.Resources) > 1 || r.resource().Kind == "" {
					t.Errorf("%+v", r)
				}
				if want := map[string]string{"signed": "Supply Chain"}[r.Rule]; r.category() != cmp.Or(want, "Other") {
					t.Errorf("%s is of %s", r.Rule, r.category())
				}
			}
			if !maps.Equal(counts, one.Summary) {
				t.Errorf("the summary has %v for %v", one.Summary, counts)
			}
			if len(ids) != len(one.Results) || len(byConfiguration) != len(one.Results) {
				t.Errorf("%d and %d IDs of %d results:\n%s", len(ids), len(byConfiguration), len(one.Results), parts[0].JSON)
			}
		})
	}
}

// TestProperties: readers make labels of properties, so that they are few, always the
// same, and an author's words are none of ours.
func TestProperties(t *testing.T) {
	names := map[string]bool{}
	for _, r := range read(t, scene(t, policyreport.PolicyReports)) {
		for name, value := range r.Properties {
			names[name] = true
			if value == "" {
				t.Errorf("%s has an empty %s", r.Rule, name)
			}
		}
		if r.Rule == "signed" && r.Properties["signer"] != "key SHA256:1f2e3d" {
			t.Errorf("an author sets the signer: %v", r.Properties)
		}
	}
	want := []string{"container", "digest", "evidence", "image", "policyHash", "process", "reason", "resultID", "signer", "team"}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) {
		t.Errorf("properties %v, want %v", got, want)
	}
}

// TestSchemas: the reports are valid against the definitions of their kinds, and hold no
// field that an API server would drop.
func TestSchemas(t *testing.T) {
	schemas := map[string]map[string]any{}
	for _, file := range append(definitions(t), "../../test/e2e/testdata/reports.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var crd struct {
				Spec struct {
					Group    string
					Names    struct{ Kind string }
					Versions []struct {
						Name   string
						Schema struct{ OpenAPIV3Schema map[string]any }
					}
				}
			}
			if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, v := range crd.Spec.Versions {
				schemas[filepath.Base(file)+" "+crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = v.Schema.OpenAPIV3Schema
			}
		}
	}
	checked := 0
	for name, schema := range schemas {
		fields := strings.Fields(name)
		for _, api := range policyreport.APIs() {
			for _, part := range append(scene(t, api), clusterScene(t, api)...) {
				one := readOne(t, part.JSON)
				if one.APIVersion != fields[1] || one.Kind != fields[2] {
					continue
				}
				checked++
				var content any
				if err := json.Unmarshal(part.JSON, &content); err != nil {
					t.Fatal(err)
				}
				for _, fault := range faults(schema, content, "") {
					t.Errorf("%s: %s", name, fault)
				}
			}
		}
	}
	if checked < 4 {
		t.Errorf("%d reports were held against %v", checked, slices.Sorted(maps.Keys(schemas)))
	}
	wrong := map[string]any{"results": []any{map[string]any{"result": "maybe", "message": 1.0, "verdict": "no"}}}
	if got := faults(schemas["reports.yaml wgpolicyk8s.io/v1alpha2 PolicyReport"], wrong, ""); len(got) != 4 {
		t.Errorf("four faults: %v", got)
	}
}

func clusterScene(t *testing.T, api policyreport.API) []policyreport.Part {
	t.Helper()
	one := word(t, "1 pod-a fail no")
	one.Resource = report.Resource{APIVersion: "v1", Kind: "Namespace", Namespace: "shop", Name: "shop", UID: uid("shop")}
	r := policyreport.New(place(t, policyreport.ByWorkload, one, report.Resource{}), policyreport.Selection{CountPasses: true})
	passed := one
	passed.Rule, passed.Status = "other", result.Pass
	r.Merge([]result.Result{one, passed})
	return encode(t, r, api)
}

// definitions are those of OpenReports, from its module.
func definitions(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "*.yaml"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the definitions of OpenReports: %v, %v", files, err)
	}
	return files
}

// faults returns where a value is not as a structural schema wants it.
func faults(schema map[string]any, value any, path string) []string {
	var found []string
	of := func(name string) map[string]any { m, _ := schema[name].(map[string]any); return m }
	switch v := value.(type) {
	case map[string]any:
		if schema["type"] != "object" {
			return []string{path + " is an object"}
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				found = append(found, fmt.Sprintf("%s has no %s", path, name))
			}
		}
		for name, each := range v {
			inner, known := of("properties")[name].(map[string]any)
			if additional := of("additionalProperties"); !known && additional != nil {
				inner, known = additional, true
			}
			switch {
			case path == "" && name == "metadata":
			case !known:
				found = append(found, path+"."+name+" is unknown")
			default:
				found = append(found, faults(inner, each, path+"."+name)...)
			}
		}
	case []any:
		if schema["type"] != "array" {
			return []string{path + " is a list"}
		}
		for i, each := range v {
			found = append(found, faults(of("items"), each, fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		want := map[string]bool{"string": isA[string](v), "integer": isA[float64](v), "boolean": isA[bool](v)}
		kind, _ := schema["type"].(string)
		values, limited := schema["enum"].([]any)
		if !want[kind] || limited && !slices.Contains(values, v) {
			found = append(found, fmt.Sprintf("%s is %v", path, v))
		}
	}
	return found
}

func isA[T any](v any) bool { _, is := v.(T); return is }
