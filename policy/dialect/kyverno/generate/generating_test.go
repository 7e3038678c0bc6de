package generate_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

// written is a rule as a policy has it.
type written struct {
	Name          string                 `json:"name"`
	Match         match.Document         `json:"match"`
	Exclude       *match.Document        `json:"exclude"`
	Context       []rulecontext.Document `json:"context"`
	Preconditions any                    `json:"preconditions"`
	Generate      any                    `json:"generate"`
	Mutate        any                    `json:"mutate"`
	Properties    map[string]string      `json:"reportProperties"`
}

func options(t testing.TB, namespace string) rulecontext.Options {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	return rulecontext.Options{Engine: engine, Namespace: namespace, Lookup: configMaps{}}
}

// configMaps is what a cluster has in these tests.
type configMaps struct{}

func (configMaps) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	if namespace == "kube-system" && name == "sidecar-default" {
		return map[string]any{"data": map[string]any{"duration": "720h0m0s"}}, nil
	}
	return nil, errors.New("not found")
}

func parse(t testing.TB, text string) (generate.Rule, written) {
	t.Helper()
	var w written
	if err := yaml.UnmarshalStrict([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return generate.Rule{
		Name: w.Name, Path: "spec.rules[0]", Match: w.Match, Exclude: w.Exclude, Context: w.Context, Preconditions: w.Preconditions, ReportProperties: w.Properties,
	}, w
}

func decoded(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func generation(t testing.TB, namespace, text string) policy.Generation {
	t.Helper()
	r, w := parse(t, text)
	g, err := generate.CompileGenerate(options(t, namespace), generate.Settings{}, r, w.Generate)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func alteration(t testing.TB, namespace, text string) policy.Alteration {
	t.Helper()
	r, w := parse(t, text)
	a, err := generate.CompileTargets(options(t, namespace), generate.Settings{}, r, w.Mutate)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// subject is an object on its way in.
func subject(t testing.TB, text string, user policy.User) *policy.Subject {
	t.Helper()
	s := policytest.Subject(decoded(t, text))
	s.Operation, s.User = "CREATE", user
	return s
}

const bindingRule = `
name: owner
match: {any: [{resources: {kinds: [Namespace]}}]}
exclude: {any: [{clusterRoles: [cluster-admin]}]}
generate:
  apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  name: "{{request.userInfo.username}}-owns"
  namespace: "{{request.object.metadata.name}}"
  synchronize: true
  data:
    metadata:
      annotations: {example.com/owner: "{{request.userInfo.username}}"}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
    subjects: [{kind: User, name: "{{request.userInfo.username}}"}]
`

const certificateRule = `
name: certificate
match: {any: [{resources: {kinds: [Pod], operations: [CREATE], selector: {matchLabels: {sidecar: "true"}}}}]}
preconditions: {all: [{key: "{{ instance }}", operator: NotEquals, value: ""}]}
context:
- name: instance
  variable: {value: '{{ request.object.metadata.labels.app || '''' }}'}
- name: config
  configMap: {name: sidecar-default, namespace: kube-system}
generate:
  apiVersion: cert-manager.io/v1
  kind: Certificate
  name: sidecar-{{instance}}
  namespace: "{{request.object.metadata.namespace}}"
  synchronize: true
  data:
    metadata:
      labels: {app: "{{instance}}"}
      ownerReferences: "{{request.object.metadata.ownerReferences || null}}"
    spec:
      secretName: sidecar-{{instance}}-tls
      duration: "{{config.data.duration || '1h'}}"
      renewBefore: "{{config.data.renewBefore || '10m'}}"
`

func TestGenerate(t *testing.T) {
	alice := policy.User{Name: "alice", Groups: []string{"dev"}, RolesKnown: true, ClusterRoles: []string{"edit"}}
	admin := policy.User{Name: "root", RolesKnown: true, ClusterRoles: []string{"cluster-admin"}}
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}"
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, labels: {sidecar: "true", app: web}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u1}]}}`
	for name, test := range map[string]struct {
		rule, object string
		user         policy.User
		result       policy.Result
		want         []string
		reason       string
	}{
		"a binding for the namespace's creator": {rule: bindingRule, object: namespace, user: alice, result: policy.Pass, want: []string{`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: alice-owns, namespace: team-a, annotations: {example.com/owner: alice}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, name: alice}]
`}},
		"none for a user excluded by a role":  {rule: bindingRule, object: namespace, user: admin},
		"undecided where roles are not known": {rule: bindingRule, object: namespace, user: policy.User{Name: "alice"}, result: policy.Indeterminate, reason: "roles"},
		"none for another kind":               {rule: bindingRule, object: pod, user: alice},
		"a certificate with the owner of pods": {rule: certificateRule, object: pod, result: policy.Pass, want: []string{`
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: sidecar-web
  namespace: shop
  labels: {app: web}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u1}]
spec: {secretName: sidecar-web-tls, duration: 720h0m0s, renewBefore: 10m}
`}},
		"a certificate without owners, where the pod has none": {rule: certificateRule, result: policy.Pass,
			object: `{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, labels: {sidecar: "true", app: web}}}`, want: []string{`
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: sidecar-web, namespace: shop, labels: {app: web}}
spec: {secretName: sidecar-web-tls, duration: 720h0m0s, renewBefore: 10m}
`}},
		"skipped where the precondition is not met": {rule: certificateRule, result: policy.Skipped, reason: "preconditions not met",
			object: `{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, labels: {sidecar: "true"}}}`},
		"none where a label is missing": {rule: certificateRule,
			object: `{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, labels: {app: web}}}`},
		"undecided where a ConfigMap is gone": {rule: strings.ReplaceAll(certificateRule, "sidecar-default", "gone"), object: pod, result: policy.Indeterminate, reason: "not found"},
		"undecided where the name is empty": {result: policy.Indeterminate, reason: "empty", object: namespace,
			rule: `{name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {apiVersion: v1, kind: ConfigMap, name: "{{ request.object.metadata.labels.x || '' }}", namespace: a, data: {data: {a: b}}}}`},
		"undecided where the name is no text": {result: policy.Indeterminate, reason: "want a string", object: namespace,
			rule: `{name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {apiVersion: v1, kind: ConfigMap, name: "{{ request.object.metadata }}", namespace: a, data: {data: {a: b}}}}`},
		"undecided where a variable is not there": {result: policy.Indeterminate, reason: "nowhere", object: namespace,
			rule: `{name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: a, data: {data: {a: "{{ request.object.nowhere }}"}}}}`},
		"data cannot rename the object": {result: policy.Pass, object: namespace,
			rule: `{name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {apiVersion: v2, kind: Secret, metadata: {name: x, namespace: y}, data: {k: v}}}}`,
			want: []string{"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {k: v}}"}},
		"one for each element that meets the precondition": {result: policy.Pass,
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {zones: "a,b,c"}}`,
			rule: `{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, generate: {foreach: [{list: "split(request.object.data.zones, ',')",
				context: [{name: upper, variable: {jmesPath: to_upper(element)}}],
				preconditions: {all: [{key: "{{element}}", operator: NotEquals, value: b}]},
				apiVersion: v1, kind: ConfigMap, name: "zone-{{element}}-{{elementIndex}}", namespace: ns, data: {data: {zone: "{{upper}}"}}}]}}`,
			want: []string{
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: zone-a-0, namespace: ns}, data: {zone: A}}`,
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: zone-c-2, namespace: ns}, data: {zone: C}}`,
			}},
		"none at all where one of several cannot be made": {result: policy.Indeterminate, reason: "empty",
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {zones: "a,b,"}}`,
			rule: `{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, generate: {foreach: [{list: "split(request.object.data.zones, ',')",
				apiVersion: v1, kind: ConfigMap, name: "{{element}}", namespace: ns, data: {}}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := generation(t, "", test.rule).Generate(t.Context(), policy.Case{Subject: subject(t, test.object, test.user)})
			if got.Result != test.result {
				t.Fatalf("result %q, want %q: %v", got.Result, test.result, got.Reasons)
			}
			if test.reason != "" && (len(got.Reasons) == 0 || !strings.Contains(got.Reasons[0].Message, test.reason)) {
				t.Errorf("reasons %v do not contain %q", got.Reasons, test.reason)
			}
			if len(got.Objects) != len(test.want) {
				t.Fatalf("objects %v, want %d", got.Objects, len(test.want))
			}
			for i, want := range test.want {
				if !reflect.DeepEqual(got.Objects[i].Object, decoded(t, want)) {
					t.Errorf("object %v\nwant %v", got.Objects[i].Object, decoded(t, want))
				}
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	const matching = "name: r\nmatch: {any: [{resources: {kinds: [Namespace]}}]}\n"
	const within = "name: r\nmatch: {any: [{resources: {kinds: [ConfigMap]}}]}\n"
	for name, test := range map[string]struct {
		namespace, rule, path string
	}{
		"a misspelt field":            {rule: matching + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {}, synchronise: true}", path: "spec.rules[0].generate.synchronise"},
		"data that is text":           {rule: matching + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: text}", path: "spec.rules[0].generate.data"},
		"data that is no object":      {rule: matching + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: text}", path: "spec.rules[0].generate.data"},
		"no name":                     {rule: matching + "generate: {apiVersion: v1, kind: ConfigMap, namespace: b, data: {}}", path: "spec.rules[0].generate.name"},
		"no apiVersion":               {rule: matching + "generate: {kind: ConfigMap, name: a, namespace: b, data: {}}", path: "spec.rules[0].generate.apiVersion"},
		"a variable as kind":          {rule: matching + `generate: {apiVersion: v1, kind: "{{request.object.kind}}", name: a, namespace: b, data: {}}`, path: "spec.rules[0].generate.kind"},
		"a subresource":               {rule: matching + "generate: {apiVersion: v1, kind: Pod/status, name: a, namespace: b, data: {}}", path: "spec.rules[0].generate.kind"},
		"loops and an object":         {rule: matching + "generate: {apiVersion: v1, foreach: [{list: request.a, apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {}}]}", path: "spec.rules[0].generate"},
		"an expression that is none":  {rule: matching + `generate: {apiVersion: v1, kind: ConfigMap, name: "{{ a. }}", namespace: b, data: {}}`, path: "spec.rules[0].generate.name"},
		"triggers of every kind":      {rule: "name: r\nmatch: {any: [{resources: {kinds: ['*']}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {}}", path: "spec.rules[0].match"},
		"a subresource as trigger":    {rule: "name: r\nmatch: {any: [{resources: {kinds: [Pod/exec]}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {}}", path: "spec.rules[0].match"},
		"another namespace":           {namespace: "own", rule: within + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: other, data: {}}", path: "spec.rules[0].generate.namespace"},
		"no namespace, in a Policy":   {namespace: "own", rule: within + "generate: {apiVersion: v1, kind: Namespace, name: a, data: {}}", path: "spec.rules[0].generate.namespace"},
		"no targets":                  {rule: matching + "mutate: {targets: [], patchStrategicMerge: {a: b}}", path: "spec.rules[0].mutate.targets"},
		"no patch":                    {rule: matching + "mutate: {targets: [{apiVersion: v1, kind: Pod}]}", path: "spec.rules[0].mutate"},
		"a target of any kind":        {rule: matching + "mutate: {targets: [{apiVersion: v1, kind: '*'}], patchStrategicMerge: {a: b}}", path: "spec.rules[0].mutate.targets[0].kind"},
		"a target in another place":   {namespace: "own", rule: within + "mutate: {targets: [{apiVersion: v1, kind: Pod, namespace: other}], patchStrategicMerge: {a: b}}", path: "spec.rules[0].mutate.targets[0].namespace"},
		"a selector that is none":     {rule: matching + "mutate: {targets: [{apiVersion: v1, kind: Pod, selector: {matchExpressions: [{key: a, operator: Is}]}}], patchStrategicMerge: {a: b}}", path: "spec.rules[0].mutate.targets[0].selector.matchExpressions[0].operator"},
		"preconditions that are none": {rule: matching + "mutate: {targets: [{apiVersion: v1, kind: Pod, preconditions: {all: [{key: a, operator: Is, value: b}]}}], patchStrategicMerge: {a: b}}", path: "spec.rules[0].mutate.targets[0].preconditions"},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := parse(t, test.rule)
			var err error
			if w.Mutate != nil {
				_, err = generate.CompileTargets(options(t, test.namespace), generate.Settings{}, r, w.Mutate)
			} else {
				_, err = generate.CompileGenerate(options(t, test.namespace), generate.Settings{}, r, w.Generate)
			}
			if err == nil {
				t.Fatal("no error")
			}
			if !slicesContainPath(err, test.path) {
				t.Errorf("error %v is not at %s", err, test.path)
			}
		})
	}
}

// slicesContainPath reports whether one of the joined errors stands at a path.
func slicesContainPath(err error, path string) bool {
	if at, ok := err.(*field.Error); ok { //nolint:errorlint // the outermost path counts
		return at.Path == path
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if slicesContainPath(one, path) {
				return true
			}
		}
	}
	return false
}

// TestReportProperties: the author's words for reports have their variables resolved, of targets with
// the target.
func TestReportProperties(t *testing.T) {
	const words = "reportProperties: {team: a, of: '{{request.object.metadata.name}}', target: '{{target.metadata.name}}'}\n"
	made := generation(t, "", bindingRule+words).Generate(t.Context(), policy.Case{
		Subject: subject(t, "{apiVersion: v1, kind: Namespace, metadata: {name: team}}", policy.User{Name: "alice", RolesKnown: true}),
	})
	if made.Result != policy.Pass || made.Properties["team"] != "a" || made.Properties["of"] != "team" || made.Properties["target"] != "{{target.metadata.name}}" {
		t.Errorf("of generated objects: %+v", made)
	}
	selected := alteration(t, "", addressRule+words).Existing(t.Context(), policy.Case{Subject: subject(t, addressMap, policy.User{})})
	if selected.Result != policy.Pass || selected.Properties["of"] != "metrics-address" {
		t.Fatalf("of the trigger: %+v", selected)
	}
	for annotations, want := range map[string]policy.Result{"{example.com/central: 'true'}": policy.Pass, "{}": policy.Skipped} {
		target := decoded(t, "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web, namespace: shop, annotations: "+annotations+"}, spec: {triggers: [{type: prometheus, metadata: {serverAddress: old}}]}}")
		altered := selected.Alter(t.Context(), selected.Selections[0], target)
		if altered.Result != want || altered.Properties["team"] != "a" || altered.Properties["target"] != "web" {
			t.Errorf("of a target with %s: %+v", annotations, altered)
		}
	}
	r, w := parse(t, bindingRule+"reportProperties: {team: '{{ request.object( }}'}\n")
	if _, err := generate.CompileGenerate(options(t, ""), generate.Settings{}, r, w.Generate); err == nil || !strings.Contains(err.Error(), "reportProperties.team") {
		t.Errorf("a broken variable: %v", err)
	}
}
