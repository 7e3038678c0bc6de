package pattern_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/lang/pattern"
)

type object = map[string]any

// readAll reads the documents of a YAML file.
func readAll(t *testing.T, path string) []object {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var documents []object
	for _, part := range regexp.MustCompile(`(?m)^---.*$`).Split(string(text), -1) {
		var document object
		if err := yaml.Unmarshal([]byte(part), &document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if document != nil {
			documents = append(documents, document)
		}
	}
	return documents
}

// at follows keys; a missing value is nil.
func at(value any, keys ...string) any {
	for _, key := range keys {
		members, _ := value.(object)
		value = members[key]
	}
	return value
}

func items(value any) []any {
	list, _ := value.([]any)
	return list
}

// patterns are those of a validate rule.
func patterns(t *testing.T, rule any) []*pattern.Pattern {
	t.Helper()
	all := items(at(rule, "validate", "anyPattern"))
	if one := at(rule, "validate", "pattern"); one != nil {
		all = append(all, one)
	}
	var compiled []*pattern.Pattern
	for _, raw := range all {
		p, err := pattern.Compile(newEngine(t), raw)
		if err != nil {
			t.Fatal(err)
		}
		compiled = append(compiled, p)
	}
	return compiled
}

// pod is what a rule for pods sees of a controller.
func pod(resource any) any {
	for _, template := range [][]string{{"spec", "jobTemplate", "spec", "template"}, {"spec", "template"}} {
		if found := at(resource, template...); found != nil {
			return found
		}
	}
	return resource
}

// TestSamples judges the resources of test suites with their rules' patterns,
// any of which must hold.
func TestSamples(t *testing.T) {
	samples := os.Getenv("QUAYMASTER_SAMPLES")
	if samples == "" {
		t.Skip("QUAYMASTER_SAMPLES is not set")
	}
	suites, err := filepath.Glob(filepath.Join(samples, "kyverno-tests", "*", "*", ".kyverno-test", "kyverno-test.yaml"))
	if err != nil || len(suites) == 0 {
		t.Fatalf("no suites in %s: %v", samples, err)
	}
	checks := 0
	for _, suite := range suites {
		dir := filepath.Dir(suite)
		rules := map[any][]*pattern.Pattern{}
		resources := map[any]any{}
		forPods := map[any]bool{}
		manifest := readAll(t, suite)[0]
		for _, file := range items(manifest["policies"]) {
			for _, policy := range readAll(t, filepath.Join(dir, file.(string))) {
				for _, rule := range items(at(policy, "spec", "rules")) {
					rules[at(rule, "name")] = patterns(t, rule)
					for _, filter := range items(at(rule, "match", "any")) {
						forPods[at(rule, "name")] = slices.Contains(items(at(filter, "resources", "kinds")), any("Pod"))
					}
				}
			}
		}
		for _, file := range items(manifest["resources"]) {
			for _, resource := range readAll(t, filepath.Join(dir, file.(string))) {
				resources[at(resource, "metadata", "name")] = resource
			}
		}
		for _, result := range items(manifest["results"]) {
			want, judges := map[any]string{"pass": "held", "fail": "fail", "skip": "skip"}[at(result, "result")], rules[at(result, "rule")]
			if len(judges) == 0 {
				continue
			}
			for _, name := range items(at(result, "resources")) {
				checks++
				resource := resources[name]
				if forPods[at(result, "rule")] {
					resource = pod(resource)
				}
				if got := anyOf(judges, resource); got != want {
					t.Errorf("%s: %v on %v: %s, want %s", suite, at(result, "rule"), name, got, want)
				}
			}
		}
	}
	if checks == 0 {
		t.Error("no check was made")
	}
	t.Logf("%d checks in %d suites", checks, len(suites))
}

func anyOf(patterns []*pattern.Pattern, resource any) string {
	var outcomes []string
	for _, p := range patterns {
		outcomes = append(outcomes, outcome(p.Match(nil, resource)))
	}
	for _, first := range []string{"error", "held", "fail", "partly"} {
		if slices.Contains(outcomes, first) {
			return first
		}
	}
	return "skip"
}

// TestSeedPolicies compiles all patterns of the seed policies.
func TestSeedPolicies(t *testing.T) {
	samples := os.Getenv("QUAYMASTER_SAMPLES")
	if samples == "" {
		t.Skip("QUAYMASTER_SAMPLES is not set")
	}
	files, err := filepath.Glob(filepath.Join(samples, "seed-policies", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no policies in %s: %v", samples, err)
	}
	count := 0
	for _, file := range files {
		for _, document := range readAll(t, file) {
			for _, rule := range items(at(document, "spec", "rules")) {
				count += len(patterns(t, rule))
				for _, each := range items(at(rule, "validate", "foreach")) {
					count += len(patterns(t, object{"validate": each}))
				}
			}
		}
	}
	t.Logf("%d patterns in %d files", count, len(files))
}
