package cel_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/cleanup"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/deleting"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

const cleans = "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: old, labels: {team: shop}}\nspec:\n  schedule: 0 3 * * *\n"

// bothDeletions compiles a cleanup policy and its result.
func bothDeletions(t testing.TB, text string) (source, made *policy.Policy, written string) {
	t.Helper()
	result := convertText(t, text, cel.Options{})
	if len(result.Problems) > 0 || len(result.Policies) != 1 {
		t.Fatalf("%s: %v", text, result.Problems)
	}
	yaml, err := result.Policies[0].YAML()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := cleanup.New(cleanup.Options{Context: rulecontext.Options{Engine: engine}})
	if err != nil {
		t.Fatal(err)
	}
	source, err = compiler.Compile([]byte(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made, err = deleting.New(kyvernocel.Options{}).Compile(yaml, "test.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	return source, made, string(yaml)
}

// inCluster are objects of which each differs from another one in one thing.
func inCluster() []string {
	var all []string
	for _, meta := range []string{
		"name: web", "name: web, labels: {app: web}", "name: web, labels: {app: api}", "name: web, labels: {app: ''}", "name: api, annotations: {a: b}",
		"name: kept, labels: {app: web, keep: 'true'}", "name: web, labels: null", "name: bank",
	} {
		for _, namespace := range []string{"shop", "bank", "kube-system", "infra-a"} {
			for _, head := range []string{"v1, kind: Pod", "v1, kind: Event", "events.k8s.io/v1, kind: Event", "apps/v1, kind: Deployment", "apps/v1beta1, kind: Deployment"} {
				all = append(all, "{apiVersion: "+head+", metadata: {namespace: "+namespace+", "+meta+"}, spec: {replicas: 0}, status: {phase: Succeeded}}")
			}
		}
		for _, head := range []string{"v1, kind: Namespace", "v1, kind: Node", "rbac.authorization.k8s.io/v1, kind: ClusterRole"} {
			all = append(all, "{apiVersion: "+head+", metadata: {"+meta+"}}")
		}
	}
	return all
}

// TestCleanup: source and result delete the same objects.
func TestCleanup(t *testing.T) {
	where := func(key, operator, value string) string {
		return fmt.Sprintf("  conditions: {all: [{key: %q, operator: %s, value: %q}]}\n", key, operator, value)
	}
	matching := func(resources string) string { return "  match: {any: [{resources: {" + resources + "}}]}\n" }
	for _, c := range []struct {
		reason, spec, written string
		deleted               bool // some objects are
	}{
		{"a kind", matching("kinds: [Pod]"), "resources:\n          - pods\n", true},
		{"a kind of two groups", matching("kinds: [Event]"), "apiGroups:\n          - \"\"\n", true},
		{"a kind with its version", matching("kinds: [apps/v1/Deployment]"), "- v1\n", true},
		{"two kinds", "  match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Deployment]}}]}\n", "- deployments\n", true},
		{"a namespace", matching("kinds: [Pod], namespaces: [shop]"), "object.metadata.namespace == 'shop'", true},
		{"namespaces with a wildcard", matching("kinds: [Pod, Deployment], namespaces: ['infra-*', bank]"), "", true},
		{"a namespace of kinds in none", matching("kinds: [Pod, Node], namespaces: [shop]"), "object.metadata.?namespace.orValue('') == 'shop'", true},
		{"Namespaces by name", matching("kinds: [Namespace], namespaces: [bank]"), "object.metadata.?name.orValue('') == 'bank'", true},
		{"Namespaces and Pods by namespaces", matching("kinds: [Pod, Namespace], namespaces: [bank]"), "object.kind == 'Namespace'", true},
		{"names", matching("kinds: [Pod], names: ['b*', api]"), "", true},
		{"annotations", matching("kinds: [Pod], annotations: {a: b}"), "", true},
		{"a label that is not there", matching("kinds: [Pod], selector: {matchExpressions: [{key: keep, operator: DoesNotExist}]}"), "", true},
		{"labels of the namespace", matching("kinds: [Pod], namespaceSelector: {matchLabels: {env: test}}"), "namespaceObject", true},
		{"labels of the namespace of kinds in none", matching("kinds: [Node, Pod], namespaceSelector: {matchLabels: {env: test}}"), "", true},
		{"no labels of the namespace", matching("kinds: [Node, Pod], namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}"), "", false},
		{"excluded labels of the namespace", matching("kinds: [Pod, Node]") + "  exclude: {any: [{resources: {namespaceSelector: {matchLabels: {env: prod}}}}]}\n", "", true},
		{"excluded kinds and labels", matching("kinds: [Pod, Deployment]") + "  exclude: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {app: web}}}}]}\n", "", true},
		{"a label", matching("kinds: [Pod], selector: {matchLabels: {app: web}}"), "", true},
		{"an excluded namespace", matching("kinds: [Pod]") + "  exclude: {any: [{resources: {namespaces: [kube-system]}}]}\n", "!(object.metadata.namespace == 'kube-system')", true},
		{"a condition", matching("kinds: [Pod]") + where("{{ target.metadata.name }}", "Equals", "web"), "object.metadata.name == 'web'", true},
		{"a label", matching("kinds: [Pod]") + where("{{ target.metadata.labels.app || '' }}", "NotEquals", "web"), "", true},
		{"a label that may be missing", matching("kinds: [Pod]") + where("{{ target.metadata.labels.app }}", "Equals", "web"), "", true},
		{"an entry of the context", "  context: [{name: own, variable: {jmesPath: target.metadata.name}}]\n" + matching("kinds: [Pod]") + where("{{ own }}", "Equals", "web"), "variables.own == 'web'", true},
		{"the namespace in an entry", "  context: [{name: own, variable: {jmesPath: request.namespace}}]\n" + matching("kinds: [Pod]") + where("{{ own }}", "Equals", "shop"), "expression: object.metadata.namespace\n", true},
		{"a boolean", matching("kinds: [Pod]") + "  conditions: {all: [{key: \"{{ target.spec.hostNetwork || `false` }}\", operator: Equals, value: false}]}\n", "", true},
		{"a value that is missing", matching("kinds: [Pod]") + "  conditions: {all: [{key: '{{ target.spec.hostNetwork }}', operator: Equals, value: true}]}\n", "object.spec.hostNetwork == true", false},
		{"a state", matching("kinds: [Pod]") + where("{{ target.status.phase }}", "AnyIn", "Succeeded"), "object.status.phase", true},
		{"a number", matching("kinds: [Deployment]") + "  conditions: {all: [{key: '{{ target.spec.replicas }}', operator: Equals, value: 0}]}\n", "", true},
		{"all", matching("kinds: [Pod]") + "  conditions: {any: [{key: '{{ target.metadata.name }}', operator: Equals, value: bank}, {key: '{{ target.metadata.name }}', operator: Equals, value: web}], all: [{key: '{{ request.namespace }}', operator: NotEquals, value: shop}, {key: '{{ target.metadata.name }}', operator: NotEquals, value: bank}]}\n", "name: condition-3", true},
		{"how", matching("kinds: [Pod]") + "  deletionPropagationPolicy: Orphan\n", "deletionPropagationPolicy: Orphan\n", true},
	} {
		source, made, written := bothDeletions(t, cleans+c.spec)
		if !strings.Contains(written, c.written) {
			t.Errorf("%s:\n%s\nlacks %s", c.reason, written, c.written)
		}
		some := compareDeletions(t, c.reason, source, made)
		if some != c.deleted {
			t.Errorf("%s: some objects are deleted: %t\n%s", c.reason, some, written)
		}
		if a, b := source.Deletions[0], made.Deletions[0]; a.Propagation() != b.Propagation() || !a.Next(time.Unix(0, 0)).Equal(b.Next(time.Unix(0, 0))) {
			t.Errorf("%s: another schedule or way", c.reason)
		}
	}
	source, made, written := bothDeletions(t, strings.NewReplacer("ClusterC", "C", "v2", "v2beta1", "name: old", "name: old, namespace: shop").Replace(cleans)+matching("kinds: [Pod]"))
	if !strings.Contains(written, "kind: NamespacedDeletingPolicy\nmetadata:\n  name: old\n  namespace: shop\n  labels:\n    team: shop\n") ||
		!compareDeletions(t, "a namespace's own", source, made) {
		t.Error(written)
	}
}

// compareDeletions reports whether some objects are deleted, by both.
func compareDeletions(t testing.TB, reason string, source, made *policy.Policy) (some bool) {
	t.Helper()
	for _, text := range inCluster() {
		var got [2]bool
		var why [2]string
		for i, p := range []*policy.Policy{source, made} {
			why[i] = policytest.Deletion(t, p, policy.Case{Subject: policytest.Stored(t, text)})
			got[i] = strings.HasPrefix(why[i], "pass")
		}
		some = some || got[0]
		if got[0] != got[1] {
			t.Errorf("%s: %s is deleted: %t (%s), was %t (%s)", reason, text, got[1], why[1], got[0], why[0])
		}
	}
	return some
}

// TestCleanupRefused: what has no form is refused with its path.
func TestCleanupRefused(t *testing.T) {
	const pods = "  match: {any: [{resources: {kinds: [Pod]}}]}\n"
	for _, c := range []struct{ spec, want string }{
		{"  match: {any: [{resources: {kinds: [example.com/v1/Widget]}}]}\n", "spec.match: a custom kind"},
		{"  match: {any: [{resources: {kinds: [Pod], names: ['a?']}}]}\n", "spec.match.any[0].resources.names"},
		{pods + "  conditions: {all: [{key: '{{ target.metadata.name }}', operator: Equals, value: a}, {key: '{{ target.metadata.name | random(@) }}', operator: Equals, value: a}]}\n", "spec.conditions.all[1].key"},
		{pods + "  context: [{name: a, imageRegistry: {reference: nginx}}]\n", "imageRegistry"},
		{strings.Replace(pods, "Pod]", "Pod], operations: [DELETE]", 1), "operations"},
	} {
		result := convertText(t, cleans+c.spec, cel.Options{})
		if len(result.Policies) > 0 || len(result.Problems) != 1 || !strings.Contains(fmt.Sprint(result.Problems[0].Error()), c.want) {
			t.Errorf("%s: %v", c.spec, result.Problems)
		}
	}
}
