package generate_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

const addressRule = `
name: address
match: {any: [{resources: {kinds: [ConfigMap], names: [metrics-address], namespaces: [observability], operations: [CREATE, UPDATE]}}]}
mutate:
  targets:
  - apiVersion: keda.sh/v1alpha1
    kind: ScaledObject
    preconditions:
      all:
      - {key: '{{ target.metadata.annotations."example.com/central" || '''' }}', operator: Equals, value: "true"}
  foreach:
  - list: target.spec.triggers[]
    preconditions: {all: [{key: "{{ element.type || '' }}", operator: Equals, value: prometheus}]}
    patchesJson6902: |-
      - path: /spec/triggers/{{elementIndex}}/metadata/serverAddress
        op: add
        value: "{{ request.object.data.main }}"
`

const addressMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: metrics-address, namespace: observability}, data: {main: "http://new:9090"}}`

func TestAlter(t *testing.T) {
	const scaled = `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: shop, annotations: {example.com/central: "true"}}
spec:
  triggers:
  - {type: cron, metadata: {start: "1"}}
  - {type: prometheus, metadata: {serverAddress: "http://old:9090", query: q}}
`
	for name, test := range map[string]struct {
		rule, trigger, target string
		result                policy.Result
		want, reason          string // want is empty where nothing changes
	}{
		"the address follows": {rule: addressRule, trigger: addressMap, target: scaled, result: policy.Pass, want: strings.ReplaceAll(scaled, "http://old:9090", "http://new:9090")},
		"a correct value stays": {rule: addressRule, trigger: addressMap,
			target: strings.ReplaceAll(scaled, "http://old:9090", "http://new:9090"), result: policy.Pass},
		"a target that does not ask for it stays": {rule: addressRule, trigger: addressMap,
			target: strings.ReplaceAll(scaled, `"true"`, `"false"`), result: policy.Skipped, reason: "preconditions not met"},
		"undecided where the address is not there": {rule: addressRule, trigger: strings.ReplaceAll(addressMap, "main", "other"),
			target: scaled, result: policy.Indeterminate, reason: "main"},
		"a merge": {trigger: addressMap, target: scaled, result: policy.Pass, want: scaled + "  paused: http://new:9090\n",
			rule: `{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {targets: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject}], patchStrategicMerge: {spec: {paused: "{{request.object.data.main}}"}}}}`},
		"a merge with a condition that does not hold": {trigger: addressMap, target: scaled, result: policy.Skipped,
			rule: `{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {targets: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject}], patchStrategicMerge: {metadata: {(name): other}, spec: {paused: "x"}}}}`},
		"a context of the target": {trigger: addressMap, target: scaled, result: policy.Pass, want: scaled + "  paused: web in shop\n",
			rule: `{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {targets: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject,
				context: [{name: where, variable: {jmesPath: target.metadata.namespace}}]}], patchStrategicMerge: {spec: {paused: "{{target.metadata.name}} in {{where}}"}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			selected := alteration(t, "", test.rule).Existing(t.Context(), policy.Case{Subject: subject(t, test.trigger, policy.User{})})
			if selected.Result != policy.Pass {
				t.Fatalf("result %q: %v", selected.Result, selected.Reasons)
			}
			target := decoded(t, test.target)
			got := selected.Alter(t.Context(), selected.Selections[0], target)
			if got.Result != test.result {
				t.Fatalf("result %q, want %q: %v", got.Result, test.result, got.Reasons)
			}
			if test.reason != "" && (len(got.Reasons) == 0 || !strings.Contains(got.Reasons[0].Message, test.reason)) {
				t.Errorf("reasons %v do not contain %q", got.Reasons, test.reason)
			}
			if !reflect.DeepEqual(target, decoded(t, test.target)) {
				t.Error("the target itself was changed")
			}
			if test.want == "" {
				if got.Object != nil {
					t.Errorf("changed into %v", got.Object)
				}
				return
			}
			if !reflect.DeepEqual(got.Object, decoded(t, test.want)) {
				t.Errorf("changed into %v\nwant %v", got.Object, decoded(t, test.want))
			}
			if again := selected.Alter(t.Context(), selected.Selections[0], got.Object); again.Object != nil || again.Result != policy.Pass {
				t.Errorf("a second time it is %q and changes it into %v", again.Result, again.Object)
			}
		})
	}
}

func TestSelections(t *testing.T) {
	const head = "name: r\nmatch: {any: [{resources: {kinds: [ConfigMap]}}]}\n"
	const patch = ", patchStrategicMerge: {spec: {a: b}}}"
	for name, test := range map[string]struct {
		namespace, rule string
		want            policy.Selection
		labels          map[string]string // that it matches
		result          policy.Result
		reason          string
	}{
		"by the trigger": {rule: head + `mutate: {targets: [{apiVersion: apps/v1, kind: Deployment, namespace: "{{request.object.data.main}}", name: "web-*"}]` + patch,
			want: policy.Selection{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "http://new:9090", Name: "web-*"}},
		"by labels": {rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, selector: {matchLabels: {of: "{{request.object.metadata.name}}"}, matchExpressions: [{key: tier, operator: In, values: [a, b]}, {key: old, operator: DoesNotExist}]}}]` + patch,
			want: policy.Selection{APIVersion: "v1", Kind: "Pod", Query: "of=metrics-address,tier in (a,b),!old"}, labels: map[string]string{"of": "metrics-address", "tier": "a"}},
		"by a wildcard in labels, which the API server does not know": {rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, selector: {matchLabels: {a: "b*", c: d}}}]` + patch,
			want: policy.Selection{APIVersion: "v1", Kind: "Pod", Query: "c=d"}, labels: map[string]string{"a": "bcd", "c": "d"}},
		"of a Policy in its namespace": {namespace: "observability", rule: head + "mutate: {targets: [{apiVersion: v1, kind: Pod}]" + patch,
			want: policy.Selection{APIVersion: "v1", Kind: "Pod", Namespace: "observability"}},
		"of a Policy in another": {namespace: "observability", rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, namespace: "{{request.object.data.main}}"}]` + patch,
			result: policy.Indeterminate, reason: "cannot change objects of"},
		"of a name that is empty": {rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, name: "{{request.object.data.none || ''}}"}]` + patch,
			result: policy.Indeterminate, reason: "every object"},
		"of a name with a wildcard of the policy's": {rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, name: "{{request.object.metadata.name}}-*"}]` + patch,
			want: policy.Selection{APIVersion: "v1", Kind: "Pod", Name: "metrics-address-*"}},
		"of a name with a wildcard of the trigger's": {rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, name: "{{request.object.data.main && '*'}}"}]` + patch,
			result: policy.Indeterminate, reason: "that a variable brought"},
		"of a namespace with a wildcard of the trigger's": {rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, namespace: "a{{request.object.data.main && '?'}}"}]` + patch,
			result: policy.Indeterminate, reason: "that a variable brought"},
		"of labels with a wildcard of the trigger's": {rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, selector: {matchLabels: {of: "{{request.object.data.main && '*'}}"}}}]` + patch,
			result: policy.Indeterminate, reason: "the trigger may have brought it"},
		"of a namespace that is empty": {rule: head + `mutate: {targets: [{apiVersion: v1, kind: Pod, namespace: "{{request.object.data.none || ''}}"}]` + patch,
			result: policy.Indeterminate, reason: "every namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			got := alteration(t, test.namespace, test.rule).Existing(t.Context(), policy.Case{Subject: subject(t, addressMap, policy.User{})})
			if test.result != "" {
				if got.Result != test.result || !strings.Contains(got.Reasons[0].Message, test.reason) {
					t.Errorf("%q, %v; want %q about %q", got.Result, got.Reasons, test.result, test.reason)
				}
				return
			}
			if got.Result != policy.Pass || len(got.Selections) != 1 {
				t.Fatalf("%q, %v", got.Result, got.Reasons)
			}
			one := got.Selections[0]
			if test.labels != nil {
				if !one.Labels.Matches(test.labels) || one.Labels.Matches(nil) {
					t.Error("the labels do not select")
				}
				one.Labels = nil
			}
			if one != test.want {
				t.Errorf("selection %+v, want %+v", one, test.want)
			}
		})
	}
}

func TestNeedsRequester(t *testing.T) {
	const matching = "name: r\nmatch: {any: [{resources: {kinds: [Namespace]}}]}\n"
	const made = "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {k: \"%s\"}}}"
	value := func(text string) string { return matching + strings.ReplaceAll(made, "%s", text) }
	for name, test := range map[string]struct {
		rule string
		want bool
	}{
		"the username":                  {value("{{request.userInfo.username}}"), true},
		"the username in brackets":      {value("{{ request . userInfo }}"), true},
		"roles":                         {value("{{request.roles}}"), true},
		"the service account":           {value("{{serviceAccountName}}"), true},
		"the request as a whole":        {value("{{ to_string(request) }}"), true},
		"a member that is not known":    {value("{{ request.{{request.object.x}} }}"), true},
		"a role that excludes":          {bindingRule, true},
		"in a context":                  {value("{{x}}") + "\ncontext: [{name: x, variable: {jmesPath: request.userInfo.username}}]", true},
		"in preconditions":              {value("x") + "\npreconditions: {all: [{key: \"{{request.clusterRoles}}\", operator: Equals, value: a}]}", true},
		"the object":                    {value("{{request.object.metadata.name}}"), false},
		"the namespace":                 {value("{{ request.namespace }}"), false},
		"a word that only looks alike":  {value("{{ request.object.spec.requests }} of requests"), false},
		"a context of the object":       {value("{{x}}") + "\ncontext: [{name: x, variable: {jmesPath: request.object.metadata.name}}]", false},
		"a certificate":                 {certificateRule, false},
		"text that has nothing with it": {value("a request"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := generation(t, "", test.rule).NeedsRequester(); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
