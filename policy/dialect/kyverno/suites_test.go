package kyverno_test

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/policy/set"
)

// suite is a file of Kyverno's CLI, as far as it is read here.
type suite struct {
	Policies, Resources []string
	Results             []expectation
}

type expectation struct {
	Policy, Rule, Kind, Result, PatchedResources string
	Resources                                    []string
}

// TestSuites holds the rules against the expectations of other projects, roughly: the
// command line's runner is the full measure.
func TestSuites(t *testing.T) {
	root := os.Getenv("QUAYMASTER_SAMPLES")
	if root == "" {
		t.Skip("set QUAYMASTER_SAMPLES")
	}
	files, err := filepath.Glob(filepath.Join(root, "kyverno-tests", "*", "*", ".kyverno-test", "kyverno-test.yaml"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d suites, %v", len(files), err)
	}
	checked := 0
	for _, file := range files {
		checked += runSuite(t, file)
	}
	t.Logf("%d suites, %d checks", len(files), checked)
}

func runSuite(t *testing.T, file string) int {
	t.Helper()
	var s suite
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	var compiled []*policy.Policy
	for _, name := range s.Policies {
		for _, doc := range documents(t, filepath.Join(dir, name)) {
			if !kyverno.Recognises(doc.apiVersion, doc.kind) {
				continue
			}
			p, err := newCompiler(t, nil).Compile(doc.text, name)
			if err != nil {
				t.Fatal(err)
			}
			compiled = append(compiled, p)
		}
	}
	set, err := set.New(compiled...)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	for _, name := range s.Resources {
		for _, doc := range documents(t, filepath.Join(dir, name)) {
			meta, _ := doc.object["metadata"].(map[string]any)
			name, _ := meta["name"].(string)
			objects[doc.kind+"/"+name] = doc.object
		}
	}
	checked := 0
	for _, e := range s.Results {
		for _, name := range e.Resources {
			object, ok := objects[e.Kind+"/"+name]
			if !ok {
				t.Errorf("%s: no %s %s", file, e.Kind, name)
				continue
			}
			got, changed, found := ruled(t, set, e, object)
			if !found {
				continue
			}
			checked++
			if got != e.Result {
				t.Errorf("%s: %s/%s on %s %s: %s, want %s", filepath.Base(filepath.Dir(dir)), e.Policy, e.Rule, e.Kind, name, got, e.Result)
			}
			if e.PatchedResources != "" {
				want := documents(t, filepath.Join(dir, e.PatchedResources))[0].object
				if !reflect.DeepEqual(changed, want) {
					t.Errorf("%s: %s: got %v\nwant %v", file, name, changed, want)
				}
			}
		}
	}
	return checked
}

// ruled returns the result of a rule for an object; false if no such rule applies to
// objects.
func ruled(t *testing.T, set *set.Set, e expectation, object map[string]any) (string, map[string]any, bool) {
	t.Helper()
	named := func(name string) bool {
		return name == e.Rule || name == "autogen-"+e.Rule || name == "autogen-cronjob-"+e.Rule
	}
	var ours bool
	for _, p := range set.Policies() {
		ours = ours || slices.ContainsFunc(p.Validations, func(v policy.Validation) bool { return named(v.Name()) }) ||
			slices.ContainsFunc(p.Mutations, func(m policy.Mutation) bool { return named(m.Name()) })
	}
	if !ours {
		return "", nil, false
	}
	subject := subjectOf(object)
	find := func(*policy.Subject) policy.Finder {
		return func([]policy.Extractor) ([]policy.Image, error) { return nil, nil }
	}
	changed, results := set.Mutate(t.Context(), subject, find)
	results = append(results, set.Validate(t.Context(), subject, find(subject))...)
	for _, r := range results {
		if r.Policy.Name == e.Policy && named(r.Rule) {
			switch {
			case r.Skip != "":
				return "skip", changed, true
			case r.Ruling.Result == policy.Indeterminate:
				return "error: " + r.Ruling.Reasons[0].Message, changed, true
			}
			return string(r.Ruling.Result), changed, true
		}
	}
	return "nothing", changed, true
}

// subjectOf is an object that is created.
func subjectOf(object map[string]any) *policy.Subject {
	s := policytest.Subject(object)
	s.Operation, s.NamespaceKnown, s.Namespace = "CREATE", true, cmp.Or(s.Namespace, "default")
	return s
}

type readDocument struct {
	apiVersion, kind string
	object           map[string]any
	text             []byte
}

func documents(t *testing.T, file string) []readDocument {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []readDocument
	for reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		d := readDocument{text: text}
		if err := yaml.Unmarshal(text, &d.object); err != nil {
			t.Fatal(err)
		}
		d.apiVersion, _ = d.object["apiVersion"].(string)
		d.kind, _ = d.object["kind"].(string)
		if len(d.object) > 0 {
			list = append(list, d)
		}
	}
}
