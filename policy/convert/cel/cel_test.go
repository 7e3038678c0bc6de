package cel_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/workload"
)

const readOnly = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: read-only, labels: {team: shop}}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: read-only
    match: {any: [{resources: {kinds: [Pod]}}]}
    exclude: {any: [{resources: {namespaces: [kube-system, "infra-*"]}}]}
    validate:
      message: Containers are read-only.
      pattern: {spec: {=(hostNetwork): false, containers: [{securityContext: {readOnlyRootFilesystem: true}}]}}
`

// TestWritten: policies are written as a person would have.
func TestWritten(t *testing.T) {
	for _, name := range []string{"read-only", "changes", "comments"} {
		source := readOnly
		if name != "read-only" {
			text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			source = string(text)
		}
		result := convertText(t, source, cel.Options{})
		text, err := cel.YAML(result.Policies)
		if err != nil || len(result.Problems) > 0 {
			t.Fatal(err, result.Problems)
		}
		golden := filepath.Join("testdata", name+".golden.yaml")
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(golden, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != string(want) {
			t.Errorf("got\n%s", text)
		}
	}
}

// TestUpdates: an update of a pod that violated the rule before is admitted, if the excuse is kept; so for a
// controller, and nowhere in an excluded namespace.
func TestUpdates(t *testing.T) {
	source := sourcePolicy(t, []byte(readOnly))
	kept := compiledResults(t, convertText(t, readOnly, cel.Options{}).Policies)
	dropped := convertText(t, readOnly, cel.Options{ExistingViolations: cel.Drop})
	strict := compiledResults(t, dropped.Policies)
	if len(dropped.Dropped) != 1 || dropped.Dropped[0] != "read-only/read-only" {
		t.Errorf("the report lists %v", dropped.Dropped)
	}
	specs := []string{
		"{containers: [{name: a, image: a, securityContext: {readOnlyRootFilesystem: true}}]}",
		"{containers: [{name: a, image: a}]}", "{containers: [{name: b, image: b}]}",
		"{hostNetwork: true, containers: [{name: a, image: a, securityContext: {readOnlyRootFilesystem: true}}]}", "{containers: []}",
	}
	for _, namespace := range []string{"shop", "kube-system", "infra-a", "infra"} {
		for _, head := range []string{"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: NS}, spec: SPEC}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: NS}, spec: {template: {spec: SPEC}}}",
			"{apiVersion: v1, kind: ReplicationController, metadata: {name: a, namespace: NS}, spec: {template: {spec: SPEC}}}",
			"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: NS}, spec: {jobTemplate: {spec: {template: {spec: SPEC}}}}}"} {
			object := func(spec string) map[string]any {
				return policytest.Object(t, strings.NewReplacer("SPEC", spec, "NS", namespace).Replace(head))
			}
			for _, now := range specs {
				s := creation(object(now))
				same(t, "creation of "+now, s, source, kept, strict)
				for _, before := range specs {
					s := creation(object(now))
					s.Operation, s.OldObject = "UPDATE", policy.ContentOf(object(before))
					same(t, "update of "+before+" to "+now, s, source, kept, nil)
					violates, _ := admits(t, creation(object(now)), source)
					if got, _ := admits(t, s, strict...); got != violates {
						t.Errorf("without the excuse, an update of %s to %s is admitted: %t", before, now, got)
					}
				}
			}
		}
	}
}

func same(t *testing.T, what string, s *policy.Subject, source *policy.Policy, results ...[]*policy.Policy) {
	t.Helper()
	want, _ := admits(t, s, source)
	for _, r := range results {
		if got, why := admits(t, s, r...); r != nil && got != want {
			t.Errorf("%s in %s: %t, was %t: %s", what, s.Namespace, got, want, why)
		}
	}
}

// TestUpdatesOutsideOfTemplates: an update that leaves the template alone is excused, and one of nothing is not.
func TestUpdatesOutsideOfTemplates(t *testing.T) {
	source := sourcePolicy(t, []byte(readOnly))
	kept := compiledResults(t, convertText(t, readOnly, cel.Options{}).Policies)
	for _, head := range []string{"apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}, spec: {replicas: N, template: {spec: {containers: [{name: a, image: a}]}}}",
		"batch/v1, kind: CronJob, metadata: {name: a, namespace: shop, generation: N}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: a}]}}}}}"} {
		for after, admitted := range map[string]bool{"1": false, "2": true} {
			object := func(n string) map[string]any {
				return policytest.Object(t, strings.Replace("{apiVersion: "+head+"}", "N", n, 1))
			}
			s := creation(object(after))
			s.Operation, s.OldObject = "UPDATE", policy.ContentOf(object("1"))
			same(t, head+" to "+after, s, source, kept)
			if got, _ := admits(t, s, kept...); got != admitted {
				t.Errorf("an update of %s to %s is admitted: %t", head, after, got)
			}
		}
	}
}

// TestAnyPattern: one of several patterns is enough.
func TestAnyPattern(t *testing.T) {
	text := strings.Replace(readOnly, "pattern: {spec: {=(hostNetwork): false, ", "anyPattern: [{spec: {hostNetwork: true}}, {spec: {", 1)
	text = strings.Replace(text, "true}}]}}\n", "true}}]}}]\n", 1)
	source, made := sourcePolicy(t, []byte(text)), compiledResults(t, convertText(t, text, cel.Options{}).Policies)
	for spec, want := range map[string]bool{
		"{hostNetwork: true, containers: [{name: a}]}": true, "{containers: [{name: a}]}": false, "{hostNetwork: false}": false, "{containers: []}": true,
		"{containers: [{name: a, securityContext: {readOnlyRootFilesystem: true}}]}": true,
	} {
		s := creation(policytest.Object(t, "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, spec: "+spec+"}"))
		same(t, spec, s, source, made)
		if got, _ := admits(t, s, source); got != want {
			t.Errorf("%s is admitted: %t", spec, got)
		}
	}
}

// TestRefused: a part without a form is refused with its path, whole or in part.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ old, new, path string }{
		{"kinds: [Pod]}", "kinds: [Pod]}, clusterRoles: [edit]", "spec.rules[0].match.any[0].clusterRoles"},
		{"kinds: [Pod]", "kinds: [policy/v1/Widget]", "spec"}, // the group is of Kubernetes, which has no such resource
		{"kinds: [Pod]", "kinds: ['Pod*']", "spec.rules[0].match.any[0].resources.kinds[0]"},
		{"kinds: [Pod]", "kinds: [Matrix]", "spec.rules[0].match.any[0].resources.kinds[0]"},
		{"    validate:", "    preconditions: {all: [{key: a, operator: Equals, value: a}]}\n    validate:", "spec.rules[0].preconditions"},
		{"Containers are", "'{{ random(`1`) }}' #", "spec.rules[0].validate.message"},
		{"false, containers", "'{{ request.operation }}', containers", "spec.rules[0].validate.pattern.spec.=(hostNetwork)"},
		{"true}", "true, <(privileged): false}", "spec.rules[0].validate.pattern.spec.containers[0].securityContext.<(privileged)"},
		{"=(hostNetwork): false", "terminationGracePeriodSeconds: 1h-10h", "spec.rules[0].validate.pattern.spec.terminationGracePeriodSeconds"},
	} {
		text := strings.Replace(readOnly, c.old, c.new, 1)
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) == 0 || len(result.Policies) > 0 || !strings.Contains(result.Problems[0].Path, c.path) {
			t.Errorf("%s: %v", c.new, result.Problems)
		}
	}
	second := readOnly + "  - {name: other, match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {patchStrategicMerge: {metadata: {$patch: delete}}}}\n"
	if whole := convertText(t, second, cel.Options{}); len(whole.Problems) != 1 || len(whole.Policies) != 0 {
		t.Errorf("whole: %v", whole)
	}
	if part := convertText(t, second, cel.Options{Partial: true}); len(part.Problems) != 1 || len(part.Policies) != 1 {
		t.Errorf("in part: %v", part)
	}
}

// TestSamples converts real policies, and evaluates source and result on the objects beside them.
func TestSamples(t *testing.T) {
	folder := os.Getenv("QUAYMASTER_SAMPLES")
	if folder == "" {
		t.Skip("QUAYMASTER_SAMPLES names no folder")
	}
	all, carried, checks := 0, 0, 0
	refused := map[string]int{}
	err := filepath.Walk(folder, func(file string, _ os.FileInfo, err error) error {
		text, readErr := os.ReadFile(file)
		if err != nil || readErr != nil || filepath.Ext(file) != ".yaml" || !strings.Contains(string(text), "kind: ClusterPolicy") {
			return err
		}
		objects, foreign := workload.ReadDocuments(strings.NewReader(string(text)), file)
		if foreign != nil || len(objects) != 1 || !strings.Contains(string(text), "validate:") {
			return nil //nolint:nilerr // a file that is no manifest
		}
		all++
		result, err := cel.Convert(objects, cel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Problems) > 0 {
			_, path, _ := strings.Cut(result.Problems[0].Path, ": ")
			refused[path[strings.LastIndex(path, ".")+1:]+": "+result.Problems[0].Found]++
			return nil
		}
		carried++
		checks += compareBeside(t, file, sourcePolicy(t, text), compiledResults(t, result.Policies))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d policies are converted; %d verdicts are equal; refused: %v", carried, all, checks, refused)
	if carried == 0 || checks == 0 {
		t.Error("nothing is converted and compared")
	}
}

// compareBeside compares the verdicts about the objects in the folder of a file and below.
func compareBeside(t *testing.T, file string, source *policy.Policy, made []*policy.Policy) (equal int) {
	err := filepath.Walk(filepath.Dir(file), func(name string, _ os.FileInfo, err error) error {
		text, readErr := os.ReadFile(name)
		if err != nil || readErr != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		objects, foreign := workload.ReadDocuments(strings.NewReader(string(text)), name)
		if foreign != nil {
			return nil //nolint:nilerr // a file that is no manifest
		}
		for _, o := range objects {
			s := creation(o.Content())
			want, why := admits(t, s, source)
			got, instead := admits(t, s, made...)
			if got != want && strings.Contains(instead, "is not converted here") {
				continue // a former version of a controller: docs/convert-to-cel.md
			}
			if got != want {
				t.Errorf("%s about %s in %s: %t (%s), was %t (%s)", file, s.Name, name, got, instead, want, why)
				continue
			}
			equal++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return equal
}

// TestPreconditions: preconditions in CEL are conditions of the match; names that are missing are given.
func TestPreconditions(t *testing.T) {
	const text = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {validationFailureAction: Enforce, rules: [
  {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, celPreconditions: [{name: runs, expression: "has(object.spec.runtimeClassName)"}, {expression: "object.metadata.name != 'a'"}],
   validate: {message: not so, cel: {variables: [{name: v, expression: "true"}], expressions: [{expression: "false"}]}}}]}}`
	source, made := sourcePolicy(t, []byte(text)), compiledResults(t, convertText(t, text, cel.Options{}).Policies)
	for _, spec := range []string{"{runtimeClassName: a}", "{}"} {
		for _, object := range []string{"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, spec: SPEC}", "{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: shop}, spec: SPEC}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: shop}, spec: {template: {spec: SPEC}}}"} {
			same(t, object+spec, creation(policytest.Object(t, strings.ReplaceAll(object, "SPEC", spec))), source, made)
		}
	}
	refused := convertText(t, strings.Replace(text, "object.metadata.name != 'a'", "variables.v", 1), cel.Options{})
	if len(refused.Problems) != 1 || !strings.HasSuffix(refused.Problems[0].Path, "spec.rules[0].celPreconditions[1]") {
		t.Errorf("a variable: %v", refused.Problems)
	}
}
