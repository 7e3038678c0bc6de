package deleting_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/deleting"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

const (
	head       = "apiVersion: policies.kyverno.io/v1\nkind: DeletingPolicy\nmetadata: {name: old}\n"
	namespaced = "apiVersion: policies.kyverno.io/v1\nkind: NamespacedDeletingPolicy\nmetadata: {name: old, namespace: shop}\n"
	daily      = "  schedule: 0 3 * * *\n"
	pods       = "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods]}]}\n"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func compile(t testing.TB, text string, change ...func(*kyvernocel.Options)) *policy.Policy {
	t.Helper()
	p, err := try(text, change...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func try(text string, change ...func(*kyvernocel.Options)) (*policy.Policy, error) {
	options := kyvernocel.Options{Now: now}
	for _, c := range change {
		c(&options)
	}
	return deleting.New(options).Compile([]byte(text), "test.yaml")
}

func decide(t testing.TB, p *policy.Policy, s *policy.Subject) string {
	t.Helper()
	return policytest.Deletion(t, p, policy.Case{Subject: s})
}

// TestDecide: each deleted object has a twin that is kept, by one difference.
func TestDecide(t *testing.T) {
	const (
		pod    = "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, labels: {app: web}}}"
		other  = "{apiVersion: v1, kind: Pod, metadata: {name: api, namespace: shop, labels: {app: api}}}"
		space  = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {env: test}}}"
		spaces = "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [namespaces]}]}\n"
	)
	where := func(expressions ...string) string {
		text := "  conditions:\n"
		for i, e := range expressions {
			text += fmt.Sprintf("  - {name: c%d, expression: %q}\n", i, e)
		}
		return text
	}
	with := func(more string) string { return strings.Replace(pods, "]}\n", "], "+more+"}\n", 1) }
	for _, c := range []struct{ reason, spec, object, want string }{
		{"the kind", pods, pod, "pass"},
		{"another kind", pods, strings.Replace(pod, "Pod", "Service", 1), ""},
		{"a condition", pods + where("object.metadata.name == 'web'"), pod, "pass"},
		{"which does not hold", pods + where("object.metadata.name == 'web'"), other, "skip: spec.conditions[0].expression: the condition does not hold"},
		{"which has an error", pods + where("object.metadata.annotations.a == 'b'"), pod, "indeterminate: spec.conditions[0].expression"},
		{"an error next to one that holds", pods + where("object.metadata.name == 'web'", "object.metadata.annotations.a == 'b'"), pod, "indeterminate: spec.conditions[1].expression"},
		{"an error before one that does not hold", pods + where("object.metadata.annotations.a == 'b'", "object.metadata.name == 'x'"), pod, "skip: spec.conditions[1].expression"},
		{"a variable", pods + "  variables: [{name: app, expression: object.metadata.labels.app}]\n" + where("variables.app == 'web'"), pod, "pass"},
		{"a variable of another value", pods + "  variables: [{name: app, expression: object.metadata.labels.app}]\n" + where("variables.app == 'web'"), other, "skip"},
		{"a variable with an error", pods + "  variables: [{name: app, expression: object.metadata.annotations.app}]\n" + where("variables.app == 'web'"), pod, "indeterminate"},
		{"the labels of the namespace", pods + where("namespaceObject.metadata.labels.env == 'test'"), pod, "pass"},
		{"other labels of it", pods + where("namespaceObject.metadata.labels.env == 'prod'"), pod, "skip"},
		{"labels", with("objectSelector: {matchLabels: {app: web}}"), pod, "pass"},
		{"other labels", with("objectSelector: {matchLabels: {app: web}}"), other, ""},
		{"the namespace's labels", with("namespaceSelector: {matchLabels: {env: test}}"), pod, "pass"},
		{"other labels of the namespace", with("namespaceSelector: {matchLabels: {env: prod}}"), pod, ""},
		{"names", strings.Replace(pods, "[pods]", "[pods], resourceNames: [web]", 1), pod, "pass"},
		{"other names", strings.Replace(pods, "[pods]", "[pods], resourceNames: [web]", 1), other, ""},
		{"an operation is not read", strings.Replace(pods, "[pods]", "[pods], operations: [DELETE]", 1), pod, "pass"},
		{"an exclusion", with("excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], resourceNames: [web]}]"), pod, ""},
		{"an exclusion of another name", with("excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], resourceNames: [api]}]"), pod, "pass"},
		{"an exclusion by an operation", with("excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [pods], resourceNames: [web]}]"), pod, ""},
		{"a Namespace", spaces, space, "pass"},
		{"a Namespace by its labels", spaces + where("namespaceObject.metadata.labels.env == 'test'"), space, "pass"},
		{"and by others", spaces + where("namespaceObject.metadata.labels.env == 'prod'"), space, "skip"},
		{"a document", where("object.items[0].key == 'a'"), "{items: [{key: a}]}", "pass"},
		{"another document", where("object.items[0].key == 'a'"), "{items: [{key: b}]}", "skip"},
		{"a document, with constraints", pods + where("object.metadata.name == 'a'"), "{metadata: {name: a}}", "pass"},
		{"an object, without constraints", where("true"), pod, ""},
	} {
		p := compile(t, head+"spec:\n"+daily+c.spec)
		if got := decide(t, p, policytest.Stored(t, c.object)); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestUnknownNamespace: unknown labels of a namespace keep an object.
func TestUnknownNamespace(t *testing.T) {
	s := policytest.Stored(t, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}")
	s.NamespaceLabels, s.NamespaceKnown = nil, false
	for reason, spec := range map[string]string{
		"selector":  strings.Replace(pods, "]}\n", "], namespaceSelector: {matchLabels: {env: test}}}\n", 1),
		"condition": pods + "  conditions: [{name: a, expression: \"namespaceObject.metadata.labels.env == 'test'\"}]\n",
	} {
		if got := decide(t, compile(t, head+"spec:\n"+daily+spec), s); !strings.HasPrefix(got, "indeterminate") {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

// TestCallerOfDecide: the operation and the user of a subject mean nothing.
func TestCallerOfDecide(t *testing.T) {
	p := compile(t, head+"spec:\n"+daily+pods)
	s := policytest.Stored(t, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}")
	s.Operation, s.User = "DELETE", policy.User{Name: "ann"}
	if got := decide(t, p, s); got != "pass" {
		t.Error(got)
	}
	for reason, change := range map[string]func(*policy.Subject){
		"no object":      func(s *policy.Subject) { s.Object = policy.Content{} },
		"images alone":   func(s *policy.Subject) { s.Bare = true },
		"a subresource":  func(s *policy.Subject) { s.Subresource = "status" },
		"another object": func(s *policy.Subject) { s.Kind = "Service" },
	} {
		changed := *s
		change(&changed)
		if got := decide(t, p, &changed); got != "" {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

// TestTerms has the fields that a controller reads.
func TestTerms(t *testing.T) {
	p := compile(t, head+"spec:\n  deletionPropagationPolicy: Orphan\n"+daily+
		strings.Replace(pods, "[pods]}]", "[pods, services]}], objectSelector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}", 1))
	d := p.Deletions[0]
	if d.Name() != "old" || d.Propagation() != "Orphan" || d.Labels() != "a=b,c" || !d.Next(now()).Equal(now().Add(15*time.Hour)) {
		t.Errorf("%s, %s, %s, %s", d.Name(), d.Propagation(), d.Labels(), d.Next(now()))
	}
	var kinds []string
	for _, target := range d.Targets() {
		kinds = append(kinds, fmt.Sprint(target.Group, target.Version, target.Kind, target.Subresource, target.Namespaces, target.Operations))
	}
	if want := []string{"v1Pod[] []", "v1Service[] []"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
	if len(p.Targets)+len(p.Validations)+len(p.Mutations)+len(p.Rules) != 0 || p.IsEmpty() {
		t.Errorf("it takes part in admission: %+v", p)
	}
	if plain := compile(t, head+"spec:\n"+daily+pods).Deletions[0]; plain.Labels() != "" || plain.Propagation() != "" {
		t.Errorf("%q, %q", plain.Labels(), plain.Propagation())
	}
}

// TestSelectorOfNamespaces: Namespaces are selected by their own labels, and as in Kubernetes other
// objects in no namespace in any case, of which the policy warns.
func TestSelectorOfNamespaces(t *testing.T) {
	of := func(resource string) *policy.Policy {
		return compile(t, head+"spec:\n"+daily+strings.Replace(strings.Replace(pods, "pods", resource, 1), "]}\n", "], namespaceSelector: {matchLabels: {kind: old}}}\n", 1))
	}
	for _, c := range []struct {
		resource, object, want string
		warnings               int
	}{
		{"namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {kind: old}}}", "pass", 0},
		{"namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {kind: new}}}", "", 0},
		{"nodes", "{apiVersion: v1, kind: Node, metadata: {name: a}}", "pass", 1},
		{"pods", "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}}", "", 0},
	} {
		p, s := of(c.resource), policytest.Stored(t, c.object)
		if got := decide(t, p, s); got != c.want || len(p.Warnings) != c.warnings {
			t.Errorf("%s: %q, want %q; %q", c.object, got, c.want, p.Warnings)
		}
	}
}

// place records which namespaces a policy reads.
type place struct {
	cel.Resources
	read []string
}

func (p *place) Get(_ context.Context, of cel.ResourceRef) (map[string]any, error) {
	p.read = append(p.read, of.Namespace)
	return map[string]any{"data": map[string]any{"on": "true"}}, nil
}

// TestNamespaced: a policy of a namespace neither selects nor reads beyond it.
func TestNamespaced(t *testing.T) {
	inside, outside := policytest.Stored(t, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}"), policytest.Stored(t, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: bank}}")
	p := compile(t, namespaced+"spec:\n"+daily+pods)
	if got := decide(t, p, inside); got != "pass" {
		t.Error(got)
	}
	if got := decide(t, p, outside); got != "" {
		t.Error(got)
	}
	if targets := p.Deletions[0].Targets(); !slices.Equal(targets[0].Namespaces, []string{"shop"}) {
		t.Errorf("%+v", targets)
	}
	var from place
	reading := func(o *kyvernocel.Options) { o.Outside.Resources = &from }
	const reads = "  conditions: [{name: a, expression: \"resource.Get('v1', 'configmaps', 'settings').data.on == 'true'\"}]\n"
	if got := decide(t, compile(t, namespaced+"spec:\n"+daily+pods+reads, reading), inside); got != "pass" || !slices.Equal(from.read, []string{"shop"}) {
		t.Errorf("%s, of %q", got, from.read)
	}
	for reason, spec := range map[string]string{
		"another namespace":       pods + strings.Replace(reads, "'configmaps', ", "'configmaps', 'bank', ", 1),
		"HTTP":                    pods + "  conditions: [{name: a, expression: \"http.Get('http://a').b == 'c'\"}]\n",
		"global context":          pods + "  conditions: [{name: a, expression: \"globalContext.Get('a', '') == 'c'\"}]\n",
		"kinds in no namespace":   strings.Replace(pods, "pods", "nodes", 1),
		"Namespaces":              strings.Replace(pods, "pods", "namespaces", 1),
		"nothing that it matches": "",
	} {
		if _, err := try(namespaced+"spec:\n"+daily+spec, reading); err == nil {
			t.Errorf("%s: compiles", reason)
		}
	}
}

// later serves no kinds yet.
type later struct{}

func (later) Named(string, string) []constraint.Resource { return nil }

// TestRefused refuses documents with the path of the mistake.
func TestRefused(t *testing.T) {
	widgets := strings.NewReplacer("['']", "[example.com]", "pods", "widgets").Replace(pods)
	if p := compile(t, head+"spec:\n"+daily+widgets, func(o *kyvernocel.Options) { o.Kinds = constraint.Later(later{}) }); len(p.Unserved) != 1 || !p.Deletions[0].Targets()[0].Unserved {
		t.Errorf("%+v", p)
	}
	if p := compile(t, head+"spec:\n"+daily); len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "deletes nothing in a cluster") {
		t.Error(p.Warnings)
	}
	if p := compile(t, head+"spec:\n"+daily+widgets); len(p.Deletions[0].Targets()) != 0 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "the kind is not known") {
		t.Errorf("%+v", p)
	} else if got := decide(t, p, policytest.Stored(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: shop}}")); got != "pass" {
		t.Error(got)
	} else if got := decide(t, p, policytest.Stored(t, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a, namespace: shop}}")); got != "" {
		t.Error(got)
	}
	for _, c := range []struct{ reason, text, want string }{
		{"no schedule", head + "spec:\n" + pods, "spec.schedule: is empty"},
		{"no such schedule", head + "spec:\n  schedule: never\n" + pods, `spec.schedule: "never" is no schedule`},
		{"an unknown zone", head + "spec:\n  schedule: TZ=Mars/Base 0 3 * * *\n" + pods, "spec.schedule: the time zone"},
		{"another propagation", head + "spec:\n  deletionPropagationPolicy: None\n" + daily + pods, "spec.deletionPropagationPolicy: unknown value"},
		{"an unknown field", head + "spec:\n  evaluation: {}\n" + daily + pods, "spec.evaluation: unknown field"},
		{"another kind", strings.Replace(head, "DeletingPolicy", "MutatingPolicy", 1) + "spec:\n" + daily + pods, "is no DeletingPolicy"},
		{"every resource", head + "spec:\n" + daily + strings.Replace(pods, "pods", "'*'", 1), "spec.matchConstraints.resourceRules[0].resources[0]: \"*\": a policy that deletes objects names"},
		{"a subresource", head + "spec:\n" + daily + strings.Replace(pods, "pods", "pods/status", 1), "spec.matchConstraints.resourceRules[0].resources[0]: \"pods/status\": a subresource"},
		{"no resource", head + "spec:\n" + daily + "  matchConstraints: {}\n", "spec.matchConstraints.resourceRules: is empty"},
		{"a misspelt resource", head + "spec:\n" + daily + strings.Replace(pods, "pods", "podz", 1), "spec.matchConstraints.resourceRules[0].resources[0]"},
		{"a request", head + "spec:\n" + daily + pods + "  conditions: [{name: a, expression: \"request.operation == 'DELETE'\"}]\n", "undeclared reference to 'request'"},
		{"an old object", head + "spec:\n" + daily + pods + "  conditions: [{name: a, expression: \"oldObject == null\"}]\n", "undeclared reference to 'oldObject'"},
		{"a condition that is none", head + "spec:\n" + daily + pods + "  conditions: [{name: a, expression: \"'a'\"}]\n", "spec.conditions[0].expression"},
		{"a condition without a name", head + "spec:\n" + daily + pods + "  conditions: [{expression: \"true\"}]\n", "spec.conditions[0].name: is empty"},
		{"a field that no pod has", head + "spec:\n" + daily + pods + "  conditions: [{name: a, expression: \"object.spec.replicas == 1\"}]\n", "spec.conditions[0].expression"},
		{"a variable that is none", head + "spec:\n" + daily + pods + "  variables: [{name: a, expression: \"object.\"}]\n", "spec.variables[0].expression"},
	} {
		if _, err := try(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}

// TestBroken: a policy that does not compile has no rule, and none at admission.
func TestBroken(t *testing.T) {
	c := deleting.New(kyvernocel.Options{})
	why := errors.New("no schedule")
	p := c.Broken([]byte(head+"spec:\n"+pods), "test.yaml", why)
	if p == nil || p.Name != "old" || !errors.Is(p.Broken, why) || !p.IsEmpty() || !p.AuditOnly || len(p.Targets) > 0 || !c.OnlyBackground(nil) {
		t.Errorf("%+v", p)
	}
	if p := c.Broken([]byte("\t"), "test.yaml", why); p != nil {
		t.Errorf("%+v", p)
	}
}

// FuzzCompile: no document and no object ends the process, and a policy of a namespace deletes nothing
// beyond it.
func FuzzCompile(f *testing.F) {
	f.Add(namespaced+"spec:\n"+daily+pods, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}")
	f.Add(head+"spec:\n"+daily+pods+"  conditions: [{name: a, expression: \"object.metadata.name == 'web'\"}]\n", "{apiVersion: v1, kind: Pod}")
	f.Add(head+"spec: {schedule: '* * * * *', deletionPropagationPolicy: Orphan, matchConstraints: {resourceRules: [{}]}}", "{a: 1}")
	c := deleting.New(kyvernocel.Options{Now: now})
	f.Fuzz(func(t *testing.T, text, object string) { policytest.DeletesWithin(t, c, text, object) })
}

func Example() {
	p, err := deleting.New(kyvernocel.Options{}).Compile([]byte(`
apiVersion: policies.kyverno.io/v1
kind: DeletingPolicy
metadata: {name: finished-pods}
spec:
  schedule: 0 3 * * *
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  conditions: [{name: finished, expression: "object.status.phase == 'Succeeded'"}]
`), "finished-pods.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	rule := p.Deletions[0]
	pod := map[string]any{"status": map[string]any{"phase": "Succeeded"}}
	decided := rule.Decide(context.Background(), policy.Case{Subject: &policy.Subject{Object: policy.ContentOf(pod), Version: "v1", Kind: "Pod"}})
	fmt.Println(decided.Result, rule.Next(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
	// Output: pass 2026-03-02 03:00:00 +0000 UTC
}
