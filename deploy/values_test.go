package deploy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
)

var update = flag.Bool("update", false, "write the files made from values.yaml and the definitions")

const (
	chart       = "helm/quaymaster"
	chartValues = chart + "/values.yaml"
	chartSchema = chart + "/values.schema.json"
	chartPage   = "../docs/helm.md"
	tableStart  = "<!-- values: made from values.yaml -->\n"
	tableEnd    = "<!-- end of values -->\n"
)

// value is one of values.yaml.
type value struct {
	path, comment, usual string
	node                 *yaml.Node
}

// values returns those of values.yaml in their order; what holds others is not one.
func values(t *testing.T) []value {
	t.Helper()
	text, err := os.ReadFile(chartValues)
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var all []value
	last := ""
	var walk func(prefix string, node *yaml.Node)
	walk = func(prefix string, node *yaml.Node) {
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, content := node.Content[i], node.Content[i+1]
			path := prefix + key.Value
			comment := plain(key.HeadComment)
			if holds(path, content) {
				walk(path+".", content)
				continue
			}
			if comment == "" {
				comment = last
			}
			last = comment
			usual, err := inline(content)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, value{path: path, comment: comment, usual: usual, node: content})
		}
	}
	walk("", document.Content[0])
	return all
}

// plain is a comment without its marks, and without what stands before an empty line:
// that is about the file.
func plain(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	var words []string
	for line := range strings.SplitSeq(paragraphs[len(paragraphs)-1], "\n") {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return strings.Join(words, " ")
}

// holds reports whether a value holds others, which are listed in its place.
func holds(path string, node *yaml.Node) bool {
	_, whole := fragments()[path]
	return node.Kind == yaml.MappingNode && len(node.Content) > 0 && !whole
}

func inline(node *yaml.Node) (string, error) {
	var content any
	if err := node.Decode(&content); err != nil {
		return "", err
	}
	text, err := json.Marshal(content)
	return string(text), err
}

// fragments are the schemas of values that a default does not determine.
func fragments() map[string]string {
	const (
		free   = `{"type": "object"}`
		texts  = `{"type": "object", "additionalProperties": {"type": "string"}}`
		names  = `{"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}}`
		some   = `{"type": "array", "items": {"type": "object"}}`
		spread = `{"type": "string", "enum": ["ScheduleAnyway", "DoNotSchedule"]}`
		// created are rules of a role without verbs; "*" is refused.
		created = `{"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["apiGroups", "resources"], "properties": {` +
			`"apiGroups": {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", "maxLength": 253}}, ` +
			`"resources": {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253}}}}}`
		span = `{"type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$"}`
		port = `{"type": "integer", "minimum": 1, "maximum": 65535}`
		name = `{"type": "string", "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", "maxLength": 253}`
	)
	return map[string]string{
		"fullnameOverride":      `{"type": "string", "pattern": "^([a-z]([-a-z0-9]*[a-z0-9])?)?$", "maxLength": 40}`,
		"image.repository":      `{"type": "string", "minLength": 1, "pattern": "^[^@'\\s]+$"}`,
		"image.tag":             `{"type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9._-]*)?$"}`,
		"image.digest":          `{"type": "string", "pattern": "^(sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128})?$"}`,
		"image.pullPolicy":      `{"type": "string", "enum": ["Always", "IfNotPresent", "Never"]}`,
		"imagePullSecrets":      names,
		"policies.writeStatus":  `{"type": ["string", "boolean"], "enum": ["auto", "always", "never", true, false]}`,
		"replicas":              `{"type": "integer", "minimum": 1}`,
		"ownNamespace.images":   `{"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:/@\\[\\]-]*$", "maxLength": 512}, "maxItems": 100}`,
		"ownNamespace.previous": `{"type": "integer", "minimum": 0, "maximum": 10}`,
		"mode":                  `{"type": "string", "enum": ["enforce", "shadow"]}`,
		"failurePolicy":         `{"type": "string", "enum": ["", "Fail", "Ignore"]}`,
		"excludedNamespaces":    names,
		// They become names of volumes.
		"policies.configMaps":                      `{"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 54}}`,
		"policies.exceptionNamespaces":             `{"type": "array", "items": {"type": "string", "pattern": "^([*]|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$", "maxLength": 63}}`,
		"configuration":                            configurationSchema(),
		"pullSecrets.namespaces":                   names,
		"manifests.dryRuns":                        created,
		"manifests.dryRunNamespaces":               names,
		"serviceAccount.name":                      name,
		"serviceAccount.annotations":               texts,
		"certificates.mode":                        `{"type": "string", "enum": ["own", "certManager", "secret"]}`,
		"certificates.secretName":                  name,
		"certificates.certManager.issuerKind":      `{"type": "string", "minLength": 1}`,
		"certificates.certManager.issuerGroup":     `{"type": "string", "minLength": 1}`,
		"certificates.certManager.duration":        span,
		"certificates.certManager.renewBefore":     span,
		"resources":                                free,
		"controller.resources":                     free,
		"cleanup.resources":                        free,
		"cleanup.replicas":                         `{"type": "integer", "minimum": 1}`,
		"native.policies":                          `{"type": ["string", "boolean"], "enum": ["", "off", false, "requested", "auto"]}`,
		"native.resources":                         free,
		"native.replicas":                          `{"type": "integer", "minimum": 1}`,
		"ownNamespace.suffix":                      `{"type": "string", "enum": ["", ".static.k8s.io"]}`,
		"controller.replicas":                      `{"type": "integer", "minimum": 1}`,
		"spread.nodes":                             spread,
		"spread.zones":                             spread,
		"podDisruptionBudget.minAvailable":         `{"type": ["integer", "string"], "minimum": 1, "pattern": "^[0-9]+%$"}`,
		"terminationGracePeriodSeconds":            `{"type": "integer", "minimum": 35}`,
		"podLabels":                                texts,
		"podAnnotations":                           texts,
		"nodeSelector":                             texts,
		"tolerations":                              some,
		"affinity":                                 free,
		"extraEnv":                                 some,
		"extraVolumes":                             some,
		"extraVolumeMounts":                        some,
		"service.annotations":                      texts,
		"metrics.service.type":                     `{"type": "string", "enum": ["ClusterIP", "NodePort", "LoadBalancer"]}`,
		"metrics.service.port":                     port,
		"metrics.service.nodePort":                 `{"type": "integer", "minimum": 0, "maximum": 65535}`,
		"metrics.service.loadBalancerSourceRanges": `{"type": "array", "items": {"type": "string", "pattern": "^[0-9a-fA-F.:]+/[0-9]+$"}}`,
		"metrics.service.annotations":              texts,
		"metrics.serviceMonitor.interval":          span,
		"metrics.serviceMonitor.labels":            texts,
		"metrics.prometheusRule.labels":            texts,
		"metrics.grafanaDashboard.labels":          texts,
		"metrics.grafanaDashboard.annotations":     texts,
		"dashboard.ingress.annotations":            texts,
		"networkPolicy.endpointsFrom":              some,
		"networkPolicy.metricsFrom":                some,
		"networkPolicy.dashboardFrom":              some,
	}
}

// ofTheChart are the gateway's settings that values say in plain words, or that only
// the chart knows.
func ofTheChart() []string {
	return []string{
		"apiVersion", "kind", "namespace", "standalone", "mode", "roles", "kubernetes.kubeconfig", "kubernetes.context", "listen.address", "listen.plain",
		"webhooks.service", "webhooks.port", "webhooks.url", "webhooks.owner", "webhooks.excludedNamespaces", "webhooks.failurePolicy", "webhooks.breakGlass", "webhooks.disabled",
		"certificate.secret", "certificate.folder", "certificate.certificateFile", "certificate.keyFile", "certificate.caFile",
		"policies.selector", "policies.writeStatus", "policies.nativePolicies", "exceptions", "trust.cacheFolder", "scan.disabled", "cleanup.ttl",
		"dashboard",
	}
}

// configurationSchema is the schema of what configuration may hold: the gateway's
// settings but for the chart's.
func configurationSchema() string {
	text, err := json.Marshal(settings{leftOut: ofTheChart()}.schema(reflect.TypeFor[config.Configuration](), ""))
	if err != nil {
		panic(err) // of maps and texts
	}
	return string(text)
}

// settings makes schemas of the settings file.
type settings struct {
	leftOut []string
	// meanings are descriptions by path; may be nil.
	meanings map[string]string
}

func (s settings) schema(of reflect.Type, path string) map[string]any {
	made := s.plain(of, path)
	if meaning := s.meanings[path]; meaning != "" {
		made["description"] = meaning
	}
	return made
}

func (s settings) plain(of reflect.Type, path string) map[string]any {
	switch {
	case of == reflect.TypeFor[config.Duration]():
		return map[string]any{"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+$"}
	case of == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case of.Kind() == reflect.Pointer:
		return s.plain(of.Elem(), path)
	case of.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": s.schema(of.Elem(), path+"[]")}
	case of.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.schema(of.Elem(), path+"[]")}
	case of.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case of.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case of.Kind() == reflect.Struct:
		properties := map[string]any{}
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			at := strings.TrimPrefix(path+"."+name, ".")
			if name != "" && !slices.Contains(s.leftOut, at) {
				properties[name] = s.schema(field.Type, at)
			}
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case of.ConvertibleTo(reflect.TypeFor[int]()) && of.Kind() != reflect.Float32 && of.Kind() != reflect.Float64:
		return map[string]any{"type": "integer"}
	}
	return map[string]any{"type": "number"}
}

// TestSettingsSchema: editors know the settings file, with what docs/configuration.md says of each
// setting. -update writes the schema.
func TestSettingsSchema(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	meanings := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.SplitN(strings.Trim(line, "| \n"), " | ", 3); len(cells) == 3 && strings.HasPrefix(cells[0], "`") {
			meanings[strings.Trim(cells[0], "`")] = strings.ReplaceAll(cells[2], `\|`, "|")
		}
	}
	made := settings{meanings: meanings}.schema(reflect.TypeFor[config.Configuration](), "")
	made["$schema"], made["title"], made["required"] = "http://json-schema.org/draft-07/schema#", "Settings of quaymaster serve", []string{"apiVersion", "kind"}
	properties := made["properties"].(map[string]any)
	properties["apiVersion"], properties["kind"] = map[string]any{"const": "quaymaster.dev/v1alpha1"}, map[string]any{"const": "Configuration"}
	content, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if described := strings.Count(string(content), `"description"`); described < len(meanings)*9/10 || len(meanings) < 100 {
		t.Errorf("%d of %d settings are described", described, len(meanings))
	}
	same(t, "schemas/quaymaster.dev/configuration_v1alpha1.json", append(content, '\n'))
}

// schemaFor is the schema of one default.
func schemaFor(t *testing.T, v value) any {
	t.Helper()
	if text, ok := fragments()[v.path]; ok {
		var fragment any
		if err := json.Unmarshal([]byte(text), &fragment); err != nil {
			t.Fatalf("%s: %v", v.path, err)
		}
		return fragment
	}
	types := map[string]string{"!!str": "string", "!!bool": "boolean"}
	kind, ok := types[v.node.Tag]
	if !ok {
		t.Fatalf("%s: the default %s does not determine a schema: add it to fragments", v.path, v.node.Tag)
	}
	return map[string]any{"type": kind}
}

// TestValuesSchema: values.schema.json knows each value and no other, and wants each: where
// an upgrade reuses the values of an older chart, one that is not there would mean off.
// -update writes it.
func TestValuesSchema(t *testing.T) {
	root := map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{
		// Helm's own, where the chart is a part of another one.
		"global": map[string]any{"type": "object"},
	}, "$schema": "http://json-schema.org/draft-07/schema#"}
	known := map[string]bool{}
	for _, v := range values(t) {
		known[v.path] = true
		at := root
		names := strings.Split(v.path, ".")
		for _, name := range names[:len(names)-1] {
			properties := at["properties"].(map[string]any)
			if properties[name] == nil {
				properties[name] = map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
				require(at, name)
			}
			at = properties[name].(map[string]any)
		}
		fragment := schemaFor(t, v).(map[string]any)
		fragment["description"] = v.comment
		at["properties"].(map[string]any)[names[len(names)-1]] = fragment
		require(at, names[len(names)-1])
	}
	for path := range fragments() {
		if !known[path] {
			t.Errorf("fragments: there is no value %s", path)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		t.Fatal(err)
	}
	same(t, chartSchema, text.Bytes())
}

func require(object map[string]any, name string) {
	names, _ := object["required"].([]string)
	object["required"] = append(names, name)
}

// TestValuesDocumentation: the table of docs/helm.md is values.yaml's. -update writes it.
func TestValuesDocumentation(t *testing.T) {
	page, err := os.ReadFile(chartPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableStart)
	_, after, closed := strings.Cut(rest, tableEnd)
	if !ok || !closed {
		t.Fatalf("%s: no place for the table", chartPage)
	}
	var table strings.Builder
	table.WriteString("| value | default | meaning |\n|---|---|---|\n")
	last := ""
	for _, v := range values(t) {
		comment := v.comment
		if comment == "" {
			t.Errorf("%s: %s has no comment", chartValues, v.path)
		}
		if comment == last {
			comment = "See above."
		}
		last = v.comment
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.path, strings.ReplaceAll(v.usual, "|", `\|`), strings.ReplaceAll(comment, "|", `\|`))
	}
	same(t, chartPage, []byte(before+tableStart+table.String()+tableEnd+after))
}

// TestCopiesAreTheSame: a chart can read nothing outside of its folder, so that it has copies of
// files elsewhere. -update makes them.
func TestCopiesAreTheSame(t *testing.T) {
	copies := map[string]string{
		"monitoring/alerts.yaml":    chart + "/files/alerts.yaml",
		"monitoring/dashboard.json": chart + "/files/dashboard.json",
	}
	for _, pattern := range []string{"crds/*.yaml", "crds/reports/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			to := "helm/quaymaster-crds/files/"
			if strings.HasPrefix(filepath.Base(file), "quaymaster.dev_") {
				to = chart + "/files/crds/"
			}
			copies[file] = to + filepath.Base(file)
		}
	}
	for from, to := range copies {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		same(t, to, content)
	}
	// Deleted files have no copies.
	there := []string{}
	for _, folder := range []string{chart + "/files", chart + "/files/crds", "helm/quaymaster-crds/files"} {
		files, err := filepath.Glob(folder + "/*.*")
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, files...)
	}
	if len(there) != len(copies) {
		t.Errorf("%d copies of %d files: %v", len(there), len(copies), there)
	}
}

// same compares a file with its expected content, or writes it.
func same(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not up to date: go test ./deploy -update", file)
	}
}
