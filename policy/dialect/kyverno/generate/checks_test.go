package generate_test

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
)

const (
	ofMaps      = "name: r\nmatch: {any: [{resources: {kinds: [ConfigMap]}}]}\n"
	patched     = ", patchStrategicMerge: {spec: {a: b}}}"
	madeObject  = "apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {}"
	trigger     = "{apiVersion: v1, kind: ConfigMap, metadata: {name: metrics-address, namespace: observability}, data: {main: 'http://new:9090'}}"
	inDoubt     = "{all: [{key: 2h, operator: AnyIn, value: 1h-5Gi}]}"
	unanswered  = "{all: [{key: '{{ request.nowhere }}', operator: Equals, value: a}]}"
	neverHolds  = "{any: []}"
	noCondition = "{all: [{key: a, operator: Is, value: b}]}"
)

// compileRule compiles a rule of either kind.
func compileRule(t testing.TB, namespace, text string) error {
	t.Helper()
	r, w := parse(t, text)
	var err error
	if w.Mutate != nil {
		_, err = generate.CompileTargets(options(t, namespace), generate.Settings{}, r, w.Mutate)
	} else {
		_, err = generate.CompileGenerate(options(t, namespace), generate.Settings{}, r, w.Generate)
	}
	return err
}

func TestCompileRefusesToo(t *testing.T) {
	target := func(fields string) string {
		return ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Pod, " + fields + "}]" + patched
	}
	loop := func(fields string) string {
		return ofMaps + "generate: {foreach: [{" + fields + ", " + madeObject + "}]}"
	}
	for _, c := range []struct{ reason, namespace, rule, path string }{
		{"a misspelt field of a mutation", "", ofMaps + "mutate: {target: [], patchStrategicMerge: {a: b}}", "spec.rules[0].mutate.target"},
		{"deletions by a user, in match", "", "name: r\nmatch: {all: [{resources: {kinds: [Pod], operations: [CREATE, DELETE]}, clusterRoles: [edit]}]}\nmutate: {targets: [{apiVersion: v1, kind: Pod}]" + patched, "spec.rules[0].match.all[0].resources.operations[1]: the operation DELETE of a rule about other objects that reads the requester"},
		{"deletions by a user, in a variable", "", "name: r\nmatch: {any: [{resources: {kinds: [Pod], operations: [DELETE]}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {by: '{{request.userInfo.username}}'}}}", "spec.rules[0].match.any[0].resources.operations[0]: the operation DELETE"},
		{"deletions and connections", "", "name: r\nmatch: {any: [{resources: {kinds: [Pod], operations: [DELETE, CONNECT]}}]}\ngenerate: {" + madeObject + "}", "spec.rules[0].match.any[0].resources.operations[1]: the operation CONNECT"},
		{"connections", "", "name: r\nmatch: {resources: {kinds: [Pod], operations: [CONNECT]}}\ngenerate: {" + madeObject + "}", "spec.rules[0].match.resources.operations[0]"},
		{"a context that is none", "", ofMaps + "context: [{name: a, variable: {}}]\ngenerate: {" + madeObject + "}", "spec.rules[0].context[0].variable"},
		{"preconditions that are none", "", ofMaps + "preconditions: " + noCondition + "\ngenerate: {" + madeObject + "}", "spec.rules[0].preconditions"},
		{"a misspelt field of a target", "", target("nam: a"), "spec.rules[0].mutate.targets[0].nam"},
		{"triggers of many kinds", "", "name: r\nmatch: {any: [{resources: {kinds: [Config*]}}]}\ngenerate: {" + madeObject + "}", "spec.rules[0].match"},
		{"a target's name", "", target("name: '{{ a. }}'"), "spec.rules[0].mutate.targets[0].name"},
		{"a target's namespace", "", target("namespace: '{{ a. }}'"), "spec.rules[0].mutate.targets[0].namespace"},
		{"a target's labels", "", target("selector: {matchLabels: {a: '{{ a. }}'}}"), "spec.rules[0].mutate.targets[0].selector"},
		{"a target's context", "", target("context: [{name: a, variable: {}}]"), "spec.rules[0].mutate.targets[0].context[0].variable"},
		{"a target's preconditions that never hold", "", target("preconditions: " + neverHolds), "spec.rules[0].mutate.targets[0].preconditions.any"},
		{"a target's kind in the plural", "", ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Pods}]" + patched, "spec.rules[0].mutate.targets[0].kind: \"Pods\" is no kind"},
		{"a target's kind in another case", "", ofMaps + "mutate: {targets: [{apiVersion: apps/v1, kind: Statefulset}]" + patched, "write StatefulSet"},
		{"a target's kind in another group", "", ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Deployment}]" + patched, "the core group (v1) has no Deployment"},
		{"a target's kind in a group of Kubernetes", "", ofMaps + "mutate: {targets: [{apiVersion: batch/v1, kind: Deployment}]" + patched, "the group batch has no Deployment"},
		{"a target's apiVersion with a kind", "", ofMaps + "mutate: {targets: [{apiVersion: apps/v1/Deployment, kind: Deployment}]" + patched, "spec.rules[0].mutate.targets[0].apiVersion: "},
		{"a target's name that no object has", "", target("name: a/b"), "spec.rules[0].mutate.targets[0].name"},
		{"a target's namespace that none has", "", target("namespace: Prod"), "spec.rules[0].mutate.targets[0].namespace"},
		{"a target of the cluster in a namespace", "", ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Namespace, namespace: b}]" + patched, "spec.rules[0].mutate.targets[0].namespace: a Namespace is in no namespace"},
		{"a target of the cluster, of a Policy", "b", ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Node}]" + patched, "spec.rules[0].mutate.targets[0].namespace: a Node is in no namespace"},
		{"a target's name of nothing", "", target("name: '{{ requst.object.data.main }}'"), "spec.rules[0].mutate.targets[0].name: a variable reads requst"},
		{"a target's namespace of nothing", "", target("namespace: '{{ nowhere }}'"), "spec.rules[0].mutate.targets[0].namespace: a variable reads nowhere"},
		{"a target's labels of nothing", "", target("selector: {matchLabels: {a: '{{ nowhere }}'}}"), "spec.rules[0].mutate.targets[0].selector: a variable reads nowhere"},
		{"a target's name of its own context", "", target("context: [{name: x, variable: {value: y}}], name: '{{ x }}'"), "spec.rules[0].mutate.targets[0].name: a variable reads x"},
		{"an object's kind in the plural", "", ofMaps + "generate: {apiVersion: v1, kind: ConfigMaps, name: a, namespace: b, data: {}}", "spec.rules[0].generate.kind: \"ConfigMaps\" is no kind"},
		{"an object's name of nothing", "", ofMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: '{{ nowhere }}', namespace: b, data: {}}", "spec.rules[0].generate.name: a variable reads nowhere"},
		{"an object's namespace of nothing", "", ofMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{ nowhere }}', data: {}}", "spec.rules[0].generate.namespace: a variable reads nowhere"},
		{"an object's data of nothing", "", ofMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {a: \"{{ nowhere || '' }}\"}}}", "spec.rules[0].generate.data: a variable reads nowhere"},
		{"an element without a loop", "", ofMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: '{{ element }}', namespace: b, data: {}}", "spec.rules[0].generate.name: a variable reads element"},
		{"too many targets", "", ofMaps + "mutate: {targets: [" + strings.Repeat("{apiVersion: v1, kind: Pod}, ", 51) + "]" + patched, "spec.rules[0].mutate.targets"},
		{"a target without a version", "", ofMaps + "mutate: {targets: [{kind: Pod}]" + patched, "spec.rules[0].mutate.targets[0].apiVersion"},
		{"a namespace that is no expression", "", ofMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{ a. }}', data: {}}", "spec.rules[0].generate.namespace"},
		{"data that is no expression", "", ofMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {a: '{{ a. }}'}}", "spec.rules[0].generate.data"},
		{"an object without its namespace", "", ofMaps + "generate: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: a, data: {}}", "spec.rules[0].generate.namespace: is missing"},
		{"an object without its namespace, in a loop", "", ofMaps + "generate: {foreach: [{list: request.a, apiVersion: v1, kind: Secret, name: a, data: {}}]}", "spec.rules[0].generate.foreach[0].namespace: is missing"},
		{"an object of the cluster in a namespace", "", ofMaps + "generate: {apiVersion: v1, kind: Namespace, name: a, namespace: b, data: {}}", "spec.rules[0].generate.namespace: a Namespace is in no namespace"},
		{"no kind", "", ofMaps + "generate: {apiVersion: v1, name: a, namespace: b, data: {}}", "spec.rules[0].generate.kind"},
		{"a kind with a wildcard", "", ofMaps + "generate: {apiVersion: v1, kind: Config*, name: a, namespace: b, data: {}}", "spec.rules[0].generate.kind"},
		{"too many loops", "", ofMaps + "generate: {foreach: [" + strings.Repeat("{list: request.a, "+madeObject+"}, ", 51) + "]}", "spec.rules[0].generate.foreach"},
		{"loops and a kind", "", ofMaps + "generate: {kind: Pod, foreach: [{list: request.a, " + madeObject + "}]}", "spec.rules[0].generate"},
		{"loops and a name", "", ofMaps + "generate: {name: a, foreach: [{list: request.a, " + madeObject + "}]}", "spec.rules[0].generate"},
		{"loops and a namespace", "", ofMaps + "generate: {namespace: a, foreach: [{list: request.a, " + madeObject + "}]}", "spec.rules[0].generate"},
		{"loops and data", "", ofMaps + "generate: {data: {}, foreach: [{list: request.a, " + madeObject + "}]}", "spec.rules[0].generate"},
		{"loops and a clone", "", ofMaps + "generate: {clone: {name: a}, foreach: [{list: request.a, " + madeObject + "}]}", "spec.rules[0].generate"},
		{"loops and a list of clones", "", ofMaps + "generate: {cloneList: {kinds: [v1/Secret]}, foreach: [{list: request.a, " + madeObject + "}]}", "spec.rules[0].generate"},
		{"a loop without a list", "", ofMaps + "generate: {foreach: [{" + madeObject + "}]}", "spec.rules[0].generate.foreach[0].list"},
		{"a list that is no expression", "", loop("list: 'a b'"), "spec.rules[0].generate.foreach[0].list"},
		{"a loop's context", "", loop("list: request.a, context: [{name: x, variable: {}}]"), "spec.rules[0].generate.foreach[0].context[0].variable"},
		{"a loop's preconditions", "", loop("list: request.a, preconditions: " + noCondition), "spec.rules[0].generate.foreach[0].preconditions"},
		{"a loop's preconditions that never hold", "", loop("list: request.a, preconditions: " + neverHolds), "spec.rules[0].generate.foreach[0].preconditions"},
	} {
		if err := compileRule(t, c.namespace, c.rule); err == nil || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.path)
		}
	}
}

func TestCompileAccepts(t *testing.T) {
	for _, c := range []struct{ reason, namespace, rule string }{
		{"as many targets as may be", "", ofMaps + "mutate: {targets: [" + strings.Repeat("{apiVersion: v1, kind: Pod}, ", 50) + "]" + patched},
		{"as many loops as may be", "", ofMaps + "generate: {foreach: [" + strings.Repeat("{list: request.a, "+madeObject+"}, ", 50) + "]}"},
		{"a Policy's own namespace", "b", ofMaps + "generate: {" + madeObject + "}"},
		{"a namespace that is not known until evaluation", "b", ofMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.namespace}}', data: {}}"},
		{"a target in a Policy's own namespace", "b", ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Pod, namespace: b}]" + patched},
		{"a target in a namespace", "", ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Pod, namespace: b}]" + patched},
		{"a target with name, namespace and labels of the trigger", "", ofMaps + "context: [{name: x, variable: {value: y}}]\nmutate: {targets: [{apiVersion: v1, kind: Pod, name: '{{ request.object.data.main }}', namespace: '{{ request.namespace }}', selector: {matchLabels: {a: '{{ x }}'}}}]" + patched},
		{"a target by patterns", "", ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Pod, name: 'web-*', namespace: 'shop-?'}]" + patched},
		{"a target of the cluster", "", ofMaps + "mutate: {targets: [{apiVersion: v1, kind: Namespace, name: a}]" + patched},
		{"a target of a custom kind in the plural", "", ofMaps + "mutate: {targets: [{apiVersion: example.org/v1, kind: Pods, namespace: b}]" + patched},
		{"an element in a loop", "", ofMaps + "generate: {foreach: [{list: request.object.data, context: [{name: x, variable: {value: y}}], apiVersion: v1, kind: ConfigMap, name: '{{ element }}', namespace: '{{ x }}', data: {data: {a: '{{ elementIndex }}'}}}]}"},
		{"an object of the cluster", "", ofMaps + "generate: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: a, data: {}}"},
		{"a kind that only the cluster knows", "", ofMaps + "generate: {apiVersion: example.org/v1, kind: Secret, name: a, data: {}}"},
		{"a group in a version", "", ofMaps + "generate: {apiVersion: apps/v1, kind: Deployment, name: a, namespace: b, data: {}}"},
		{"creations and updates", "", "name: r\nmatch: {all: [{resources: {kinds: [Pod], operations: [CREATE, UPDATE]}}]}\ngenerate: {" + madeObject + "}"},
	} {
		if err := compileRule(t, c.namespace, c.rule); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		reason, fields string
		settings       generate.Settings
		want           policy.Terms
	}{
		{"no settings", madeObject, generate.Settings{}, policy.Terms{}},
		{"by the policy", madeObject, generate.Settings{Existing: true, Apply: true}, policy.Terms{Existing: true, Apply: true}},
		{"by the rule", "generateExisting: false, synchronize: true, orphanDownstreamOnPolicyDelete: true, " + madeObject, generate.Settings{Existing: true}, policy.Terms{Synchronize: true, Orphan: true}},
		{"by the rule alone", "generateExisting: true, " + madeObject, generate.Settings{}, policy.Terms{Existing: true}},
		{"of two loops", "foreach: [{list: request.a, " + madeObject + "}, {list: request.a, " + madeObject + "}]", generate.Settings{}, policy.Terms{}},
	} {
		r, w := parse(t, ofMaps+"generate: {"+c.fields+"}")
		g, err := generate.CompileGenerate(options(t, ""), c.settings, r, w.Generate)
		if err != nil {
			t.Fatal(err)
		}
		c.want.Kinds = []policy.ObjectKind{{APIVersion: "v1", Kind: "ConfigMap"}}
		if got := g.Terms(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.reason, got, c.want)
		}
	}
	for _, c := range []struct {
		fields         string
		settings, want bool
	}{{"", false, false}, {"", true, true}, {"mutateExistingOnPolicyUpdate: true, ", false, true}, {"mutateExistingOnPolicyUpdate: false, ", true, false}} {
		r, w := parse(t, ofMaps+"mutate: {"+c.fields+"targets: [{apiVersion: v1, kind: Pod}]"+patched)
		a, err := generate.CompileTargets(options(t, ""), generate.Settings{OnPolicyUpdate: c.settings}, r, w.Mutate)
		if err != nil {
			t.Fatal(err)
		}
		if a.OnPolicyChange() != c.want {
			t.Errorf("%q under %t: %t", c.fields, c.settings, a.OnPolicyChange())
		}
	}
}

// TestMade: what becomes of one rule about one trigger.
func TestMade(t *testing.T) {
	one := func(fields string) string { return ofMaps + "generate: {" + fields + "}" }
	loop := func(fields string) string {
		return one("foreach: [{" + fields + ", apiVersion: v1, kind: ConfigMap, name: '{{element}}', namespace: b, data: {}}]")
	}
	for _, c := range []struct {
		reason, namespace, rule string
		result                  policy.Result
		says                    string
		want                    []string // metadata
	}{
		{"of the whole cluster", "", one("apiVersion: v1, kind: Namespace, name: a, data: {metadata: {namespace: x}}"), policy.Pass, "", []string{"map[name:a]"}},
		{"without data", "", one("apiVersion: v1, kind: ServiceAccount, name: a, namespace: b"), policy.Pass, "", []string{"map[name:a namespace:b]"}},
		{"of the whole cluster without data", "", one("apiVersion: v1, kind: Namespace, name: a"), policy.Pass, "", []string{"map[name:a]"}},
		{"without data and name", "", one("apiVersion: v1, kind: Namespace, name: '{{request.object.data.none || `\"\"`}}'"), policy.Indeterminate, "name: is empty", nil},
		{"nulls in lists", "", one("apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {metadata: {finalizers: [{c: null, d: e}, null]}}"), policy.Pass, "", []string{"map[finalizers:[map[d:e] <nil>] name:a namespace:b]"}},
		{"metadata that are none", "", one("apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {metadata: '{{request.object.data.main}}'}"), policy.Indeterminate, "data.metadata: want an object", nil},
		{"a namespace that is no text", "", one("apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.object.data}}', data: {}"), policy.Indeterminate, "generate.namespace: want a string", nil},
		{"a namespace that is not there", "", one("apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.object.nowhere}}', data: {}"), policy.Indeterminate, "nowhere", nil},
		{"a name that is not there", "", one("apiVersion: v1, kind: ConfigMap, name: '{{request.object.nowhere}}', namespace: a, data: {}"), policy.Indeterminate, "nowhere", nil},
		{"a name that is a number", "", one("apiVersion: v1, kind: ConfigMap, name: '{{length(request.object.data)}}', namespace: a, data: {}"), policy.Pass, "", []string{"map[name:1 namespace:a]"}},
		{"a Policy's own namespace", "observability", one("apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.namespace}}', data: {}"), policy.Pass, "", []string{"map[name:a namespace:observability]"}},
		{"another one", "observability", one("apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.object.data.main}}', data: {}"), policy.Indeterminate, "cannot generate into", nil},

		{"preconditions in doubt", "", ofMaps + "preconditions: " + inDoubt + "\ngenerate: {" + madeObject + "}", policy.Indeterminate, "preconditions", nil},
		{"preconditions that cannot be evaluated", "", ofMaps + "preconditions: " + unanswered + "\ngenerate: {" + madeObject + "}", policy.Indeterminate, "preconditions", nil},

		{"elements that are null", "", loop("list: \"[`null`, 'x']\""), policy.Pass, "", []string{"map[name:x namespace:b]"}},
		{"a list that is not there", "", loop("list: request.object.none"), policy.Indeterminate, "foreach[0].list", nil},
		{"an element in doubt", "", loop("list: \"['x']\", preconditions: " + inDoubt), policy.Indeterminate, "foreach[0].preconditions", nil},
		{"an element that cannot be evaluated", "", loop("list: \"['x']\", preconditions: " + unanswered), policy.Indeterminate, "foreach[0].preconditions", nil},
	} {
		got := generation(t, c.namespace, c.rule).Generate(t.Context(), policy.Case{Subject: subject(t, trigger, policy.User{})})
		var metadata []string
		for _, o := range got.Objects {
			metadata = append(metadata, fmt.Sprint(o.Object["metadata"]))
		}
		said := ""
		if len(got.Reasons) > 0 {
			said = got.Reasons[0].Message
		}
		if got.Result != c.result || !strings.Contains(said, c.says) || !reflect.DeepEqual(metadata, c.want) {
			t.Errorf("%s: %q %q %v; want %q %q %v", c.reason, got.Result, said, metadata, c.result, c.says, c.want)
		}
	}
}

// TestBudget: all loops of a rule have so many passes together.
func TestBudget(t *testing.T) {
	const rule = ofMaps + "generate: {foreach: [" +
		"{list: \"split(request.object.data.main, ',')\", " + madeObject + "}, {list: \"split(request.object.data.main, ',')\", " + madeObject + "}]}"
	for commas, want := range map[int]policy.Result{499: policy.Pass, 500: policy.Indeterminate} {
		object := strings.Replace(trigger, "http://new:9090", strings.Repeat("a,", commas)+"a", 1)
		got := generation(t, "", rule).Generate(t.Context(), policy.Case{Subject: subject(t, object, policy.User{})})
		if got.Result != want || want == policy.Indeterminate && len(got.Objects) > 0 {
			t.Errorf("%d of each: %q, %d objects, %v", commas+1, got.Result, len(got.Objects), got.Reasons)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := generation(t, "", rule).Generate(ctx, policy.Case{Subject: subject(t, trigger, policy.User{})}); got.Result != policy.Indeterminate || len(got.Objects) > 0 {
		t.Errorf("the time ends: %q, %v", got.Result, got.Objects)
	}
}

// TestRoom: what a rule copies of its trigger again and again is bounded, as it is all there
// at once; each object by itself may be as large as the API server takes.
func TestRoom(t *testing.T) {
	const rule = ofMaps + "generate: {foreach: [{list: \"split(request.object.metadata.annotations.to, ',')\", " +
		"apiVersion: v1, kind: ConfigMap, name: \"{{element}}\", namespace: team, data: {data: \"{{request.object.data}}\"}}]}"
	for _, c := range []struct {
		reason          string
		keys, bytes, to int
		want            policy.Result
	}{
		{"much to few", 10_000, 10, 15, policy.Pass},
		{"much to many", 10_000, 10, 30, policy.Indeterminate},
		{"long texts to few", 1, 1 << 20, 15, policy.Pass},
		{"long texts to many", 1, 1 << 20, 17, policy.Indeterminate},
		{"little to many", 10, 10, 1000, policy.Pass},
	} {
		data := map[string]any{}
		for i := range c.keys {
			data["k"+strconv.Itoa(i)] = strings.Repeat("x", c.bytes)
		}
		s := subject(t, trigger, policy.User{})
		s.Object = policy.ContentOf(map[string]any{
			"apiVersion": "v1", "kind": s.Kind, "data": data,
			"metadata": map[string]any{"name": s.Name, "namespace": s.Namespace, "annotations": map[string]any{"to": strings.Repeat("a,", c.to-1) + "a"}},
		})
		got := generation(t, "", rule).Generate(t.Context(), policy.Case{Subject: s})
		if got.Result != c.want || (len(got.Objects) == c.to) != (c.want == policy.Pass) {
			t.Errorf("%s: %q, %d objects, %v", c.reason, got.Result, len(got.Objects), got.Reasons)
		}
	}
}

// TestNotATrigger: deletions, connections and requests for subresources generate nothing.
func TestNotATrigger(t *testing.T) {
	g := generation(t, "", ofMaps+"generate: {"+madeObject+"}")
	for _, c := range []struct {
		reason  string
		change  func(*policy.Subject)
		result  policy.Result
		selects bool
	}{
		{"it is made", func(*policy.Subject) {}, policy.Pass, true},
		{"it is updated", func(s *policy.Subject) { s.Operation = "UPDATE" }, policy.Pass, true},
		{"it is deleted", func(s *policy.Subject) { s.Operation = "DELETE" }, "", false},
		{"it is connected to", func(s *policy.Subject) { s.Operation = "CONNECT" }, "", true},
		{"a subresource", func(s *policy.Subject) { s.Subresource = "status" }, "", false},
		{"nothing", func(s *policy.Subject) { s.Object = policy.Content{} }, "", true},
	} {
		s := subject(t, trigger, policy.User{})
		c.change(s)
		if got := g.Generate(t.Context(), policy.Case{Subject: s}); got.Result != c.result {
			t.Errorf("%s: %q %v", c.reason, got.Result, got.Reasons)
		}
		if got := g.Selects(s); got != c.selects {
			t.Errorf("%s: selected %t", c.reason, got)
		}
	}
	s := subject(t, trigger, policy.User{})
	s.Kind = "Secret"
	if g.Selects(s) {
		t.Error("another kind is selected")
	}
	pods := generation(t, "", strings.Replace(ofMaps, "[ConfigMap]", "[Pod]", 1)+"generate: {"+madeObject+"}")
	for subresource, want := range map[string]bool{"": true, "ephemeralcontainers": false} {
		s := subject(t, "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}}", policy.User{})
		s.Subresource = subresource
		if got := pods.Generate(t.Context(), policy.Case{Subject: s}); pods.Selects(s) != want || (got.Result == policy.Pass) != want {
			t.Errorf("subresource %q: %q, selected %t", subresource, got.Result, pods.Selects(s))
		}
	}
	edited := generation(t, "", strings.Replace(ofMaps, "[ConfigMap]}", "[ConfigMap]}, clusterRoles: [edit]", 1)+"generate: {"+madeObject+"}")
	for reason, user := range map[string]policy.User{
		"a role that is meant": {Name: "ann", RolesKnown: true, ClusterRoles: []string{"edit"}}, "unknown roles": {Name: "ann"}, "another role": {Name: "ann", RolesKnown: true},
	} {
		if got, want := edited.Selects(subject(t, trigger, user)), reason != "another role"; got != want {
			t.Errorf("%s: selected %t", reason, got)
		}
	}
	s = subject(t, trigger, policy.User{})
	s.Document = true
	if g.Selects(s) {
		t.Error("a document is selected")
	}
}

func TestTargetsOfAPolicy(t *testing.T) {
	pods := "name: r\nmatch: {any: [{resources: {kinds: [Pod]}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: own, data: {}}"
	for namespace, want := range map[string][]string{"": nil, "own": {"own"}} {
		targets := generation(t, namespace, pods).Targets()
		if len(targets) != 1 || targets[0].Subresource != "" || !reflect.DeepEqual(targets[0].Namespaces, want) {
			t.Errorf("%q: %+v", namespace, targets)
		}
	}
}

// TestSelectionsThatFail: a selection that cannot be evaluated selects no objects.
func TestSelectionsThatFail(t *testing.T) {
	for _, c := range []struct{ reason, target, says string }{
		{"a name that is not there", "name: '{{request.object.nowhere}}'", "nowhere"},
		{"a name that is no text", "name: '{{request.object.data}}'", "want a string"},
		{"a namespace that is not there", "namespace: '{{request.object.nowhere}}'", "nowhere"},
		{"labels that are not there", "selector: {matchLabels: {a: '{{request.object.nowhere}}'}}", "nowhere"},
		{"labels that are no text", "selector: {matchLabels: {a: '{{request.object.data}}'}}", "selector"},
		{"a label without a name", "selector: {matchExpressions: [{key: \"{{''}}\", operator: Exists}]}", "key: is empty"},
		{"a label's name with a wildcard of the trigger's", "selector: {matchLabels: {\"{{request.object.data.main && 'a*'}}\": b}}", "the trigger may have brought it"},
	} {
		a := alteration(t, "", ofMaps+"mutate: {targets: [{apiVersion: v1, kind: Pod, "+c.target+"}]"+patched)
		got := a.Existing(t.Context(), policy.Case{Subject: subject(t, trigger, policy.User{})})
		if got.Result != policy.Indeterminate || !strings.Contains(got.Reasons[0].Message, c.says) || len(got.Selections) > 0 {
			t.Errorf("%s: %q %v %v", c.reason, got.Result, got.Reasons, got.Selections)
		}
	}
}

func TestQueries(t *testing.T) {
	for selector, want := range map[string]string{
		"{matchExpressions: [{key: a, operator: NotIn, values: [b, c]}, {key: d, operator: Exists}]}": "a notin (b,c),d",
		"{matchLabels: {'a*': b, c: d}}": "c=d",
	} {
		a := alteration(t, "", ofMaps+"mutate: {targets: [{apiVersion: v1, kind: Pod, selector: "+selector+"}]"+patched)
		got := a.Existing(t.Context(), policy.Case{Subject: subject(t, trigger, policy.User{})})
		if got.Result != policy.Pass || got.Selections[0].Query != want {
			t.Errorf("%s: %q %v", selector, got.Result, got.Selections)
		}
	}
}

// TestAlterFails: a target that cannot be evaluated stays as it is.
func TestAlterFails(t *testing.T) {
	const target = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {}}"
	for _, c := range []struct {
		reason, preconditions string
		position              int
		result                policy.Result
	}{
		{"one that is meant", "{all: [{key: a, operator: Equals, value: a}]}", 0, policy.Pass},
		{"one in doubt", inDoubt, 0, policy.Indeterminate},
		{"one that cannot be evaluated", unanswered, 0, policy.Indeterminate},
		{"of no selector", "{all: [{key: a, operator: Equals, value: a}]}", 1, policy.Indeterminate},
		{"of no selector at all", "{all: [{key: a, operator: Equals, value: a}]}", -1, policy.Indeterminate},
	} {
		a := alteration(t, "", ofMaps+"mutate: {targets: [{apiVersion: v1, kind: Pod, preconditions: "+c.preconditions+"}]"+patched)
		selected := a.Existing(t.Context(), policy.Case{Subject: subject(t, trigger, policy.User{})})
		got := selected.Alter(t.Context(), policy.Selection{Position: c.position}, decoded(t, target))
		if got.Result != c.result || (got.Object != nil) != (c.result == policy.Pass) {
			t.Errorf("%s: %q %v %v", c.reason, got.Result, got.Reasons, got.Object)
		}
	}
	s := subject(t, trigger, policy.User{})
	s.Operation = "DELETE"
	a := alteration(t, "", ofMaps+"mutate: {targets: [{apiVersion: v1, kind: Pod}]"+patched)
	if got := a.Existing(t.Context(), policy.Case{Subject: s}); got.Result != "" || len(got.Selections) > 0 {
		t.Errorf("a deletion: %q %v", got.Result, got.Selections)
	}
}

// TestNamesOfRequester: expressions that may read the requester, and expressions that only
// look like it.
func TestNamesOfRequester(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{"{{ request.object.a }} {{ request.userInfo }}", true},
		{"{{ arequest.userInfo }}", false}, {"{{ _request.userInfo }}", false}, {"{{ -request.userInfo }}", false},
		{"{{ 0request.userInfo }}", false}, {"{{ 9request.userInfo }}", false}, {"{{ zrequest.userInfo }}", false}, {"{{ Arequest.userInfo }}", false}, {"{{ Zrequest.userInfo }}", false},
		{"request.userInfo.username", true}, {"request['userInfo']", true}, {"request . object", false}, {"request.\"object\".a", false},
		{"request.objects", true}, {"request.", true}, {"request", false}, {"a request, and so on", false},
		{"serviceAccountNamespace", true},
		{"0request.userInfo", false}, {"9request.userInfo", false}, {"-request.userInfo", false}, {"request-userInfo", false}, {".request.userInfo", true},
		{"{{ request.object.a }} of a request name", true},
		{"request.oldObject.a", false}, {"request.namespace", false}, {"request.name", false}, {"request.kind.kind", false},
		{"request.operation", false}, {"request.dryRun", false}, {"request.subResource", false},
	} {
		r, w := parse(t, ofMaps+"generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {k: x}}}")
		w.Generate.(map[string]any)["data"] = map[string]any{"data": []any{"x", map[string]any{"k": c.text}}}
		g, err := generate.CompileGenerate(options(t, ""), generate.Settings{}, r, w.Generate)
		if err != nil {
			if strings.Contains(c.text, "{{") {
				continue // no expression
			}
			t.Fatal(err)
		}
		if got := g.NeedsRequester(); got != c.want {
			t.Errorf("%s: %t", c.text, got)
		}
		w.Generate.(map[string]any)["data"] = map[string]any{c.text: "x"}
		g, err = generate.CompileGenerate(options(t, ""), generate.Settings{}, r, w.Generate)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.NeedsRequester(); got != c.want {
			t.Errorf("as a name, %s: %t", c.text, got)
		}
	}
	const maps = "{resources: {kinds: [ConfigMap]}"
	for match, want := range map[string]bool{
		"match: {any: [" + maps + ", subjects: [{kind: User, name: a}]}]}":                              true,
		"match: {any: [" + maps + "}]}\nexclude: {any: [{resources: {names: [a]}}]}":                    false,
		"match: {any: [" + maps + "}]}\nexclude: {any: [{clusterRoles: [a]}]}":                          true,
		"match: {any: [" + maps + ", clusterRoles: [a]}]}\nexclude: {any: [{resources: {names: [a]}}]}": true,
	} {
		if got := generation(t, "", "name: r\n"+match+"\ngenerate: {"+madeObject+"}").NeedsRequester(); got != want {
			t.Errorf("%s: %t", match, got)
		}
	}
}
