package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

// altered are the objects that policies change for a trigger, as JSON by their former states, or the errors.
func altered(t testing.TB, trigger *policy.Subject, objects []map[string]any, policies ...*policy.Policy) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range policies {
		for _, a := range p.Alterations {
			selected := a.Existing(t.Context(), policy.Case{Subject: trigger})
			if selected.Result == policy.Indeterminate {
				out["all"] = "error"
			}
			for _, by := range selected.Selections {
				for _, object := range objects {
					metadata, _ := object["metadata"].(map[string]any)
					namespace, _ := metadata["namespace"].(string)
					name, _ := metadata["name"].(string)
					labels := map[string]string{}
					written, _ := metadata["labels"].(map[string]any)
					for key, value := range written {
						labels[key], _ = value.(string)
					}
					isOther := by.APIVersion != object["apiVersion"] || by.Kind != object["kind"] || by.Namespace != "" && !wildcard.Match(by.Namespace, namespace) ||
						by.Name != "" && !wildcard.Match(by.Name, name) || by.Labels != nil && !by.Labels.Matches(labels)
					if isOther {
						continue
					}
					before, err := json.Marshal(object)
					if err != nil {
						t.Fatal(err)
					}
					made := selected.Alter(t.Context(), by, maps.Clone(object))
					after, err := json.Marshal(made.Object)
					if err != nil {
						t.Fatal(err)
					}
					switch {
					case made.Result == policy.Indeterminate:
						out[string(before)] = "error"
					case made.Object != nil:
						out[string(before)] = string(after)
					}
				}
			}
		}
	}
	return out
}

// TestTargets: source and result change the same existing objects alike.
func TestTargets(t *testing.T) {
	mutations := mutating.New(kyvernocel.Options{})
	var objects []map[string]any
	for _, text := range []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop, labels: {team: x}}, data: {}}", "{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: shop}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: bank, annotations: {mode: on1}}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {team: other}}, spec: {selector: {}, template: {spec: {containers: [{name: c, image: c}, {name: d, image: d}]}}}}",
		"{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: s, namespace: shop}, spec: {triggers: [{type: prometheus, metadata: {}}, {type: cpu}]}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
	} {
		objects = append(objects, policytest.Object(t, text))
	}
	for _, c := range []struct{ reason, mutate, written string }{
		{"all of a kind", "targets: [{apiVersion: v1, kind: Secret}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "mutateExisting:\n      enabled: true\n"},
		{"one by name", "targets: [{apiVersion: v1, kind: Secret, name: a, namespace: shop}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "resourceNames:\n          - a\n"},
		{"names with a wildcard", "targets: [{apiVersion: v1, kind: Secret, name: 'a*', namespace: 's*'}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "startsWith('a')"},
		{"a namespace and a name of the trigger", "targets: [{apiVersion: v1, kind: Secret, name: '{{ request.object.metadata.name }}', namespace: '{{ request.object.metadata.namespace }}'}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "object.metadata.name == request.object.metadata.name"},
		{"labels", "targets: [{apiVersion: v1, kind: Secret, selector: {matchLabels: {team: x}}}], patchStrategicMerge: {metadata: {labels: {+(a): b}}}", "objectSelector:\n      matchLabels:\n        team: x\n"},
		{"no label", "targets: [{apiVersion: v1, kind: Secret, selector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}], patchStrategicMerge: {metadata: {labels: {+(a): b}}}", ""},
		{"a value of the trigger", "targets: [{apiVersion: v1, kind: Secret}], patchStrategicMerge: {metadata: {labels: {from: '{{ request.object.metadata.name }}'}}}", "request.object.metadata.name"},
		{"a condition on the target", "targets: [{apiVersion: v1, kind: Secret, preconditions: {all: [{key: '{{ target.metadata.namespace }}', operator: Equals, value: bank}]}}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "object.metadata.namespace == 'bank'"},
		{"an anchor", "targets: [{apiVersion: v1, kind: Secret}], patchStrategicMerge: {metadata: {labels: {(team): x, a: b}}}", "targetMatchConditions:\n    - name: team\n"},
		{"an entry of the context", "targets: [{apiVersion: v1, kind: Secret}], patchStrategicMerge: {metadata: {labels: {from: '{{ own }}'}}}}, context: [{name: own, variable: {jmesPath: request.object.metadata.name}}], exclude: {any: [{resources: {names: [zz]}}]", "expression: request.object.metadata.name\n"},
		{"two targets", "targets: [{apiVersion: v1, kind: Secret, name: b}, {apiVersion: apps/v1, kind: Deployment}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "name: test-2\n"},
		{"pointers", "targets: [{apiVersion: apps/v1, kind: Deployment}], patchesJson6902: '[{op: add, path: /metadata/annotations/a, value: b}]'", "has(object.metadata.annotations) ? [] : "},
		{"each container of the target", `targets: [{apiVersion: apps/v1, kind: Deployment}], foreach: [{list: 'target.spec.template.spec.containers', patchesJson6902: "[{op: add, path: '/spec/template/spec/containers/{{elementIndex}}/image', value: 'x/{{ element.image }}'}]"}]`, "object.spec.template.spec.containers.transformList(i, container,"},
		{"a cluster-scoped object", "targets: [{apiVersion: v1, kind: Namespace, name: '{{ request.object.metadata.namespace }}'}], patchStrategicMerge: {metadata: {labels: {a: b}}}", ""},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap], names: ['a*', kept]}}]},
  preconditions: {all: [{key: "{{ request.object.metadata.labels.off || '' }}", operator: NotEquals, value: "true"}]}, mutate: {%s}}]}}`, c.mutate)
		source, made, written := bothMutations(t, mutations, text)
		if !strings.Contains(strings.ReplaceAll(written, "''", "'"), c.written) {
			t.Errorf("%s:\n%s\nlacks %s", c.reason, written, c.written)
		}
		changes := 0
		for _, trigger := range []string{"{name: a, namespace: shop}", "{name: b, namespace: shop}", "{name: a2, namespace: bank}", "{name: kept, namespace: shop, labels: {off: 'true'}}"} {
			for _, operation := range []string{"CREATE", "UPDATE"} {
				s := creation(policytest.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: "+trigger+"}"))
				s.Operation = operation
				want, got := altered(t, s, objects, source), altered(t, s, objects, made...)
				changes += len(want)
				if !maps.Equal(want, got) {
					t.Errorf("%s: of %s\n got %s\nwant %s\n%s", c.reason, trigger, got, want, written)
				}
			}
		}
		if changes == 0 {
			t.Errorf("%s: nothing is changed\n%s", c.reason, written)
		}
	}
	for _, c := range []struct{ mutate, want string }{
		{"mutateExistingOnPolicyUpdate: true, targets: [{apiVersion: v1, kind: Secret}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "mutate.mutateExistingOnPolicyUpdate"},
		{"targets: [{apiVersion: v1, kind: Secret, selector: {matchLabels: {a: '*'}}}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "mutate.targets[0].selector.matchLabels"},
		{"targets: [{apiVersion: v1, kind: Secret, name: '{{ request.object.metadata.name }}*'}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "mutate.targets[0].name: a wildcard"},
		{"targets: [{apiVersion: v1, kind: Secret, name: '{{ request.oldObject.metadata.name }}'}], patchStrategicMerge: {metadata: {labels: {a: b}}}", "mutate: the old object"},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {%s}}]}}`, c.mutate)
		result := convertText(t, text, cel.Options{})
		if len(result.Policies) > 0 || !slices.ContainsFunc(result.Problems, func(p cel.Problem) bool { return strings.Contains(p.Error(), c.want) }) {
			t.Errorf("%s: %v", c.mutate, result.Problems)
		}
	}
}
