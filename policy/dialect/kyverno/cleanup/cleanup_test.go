package cleanup_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/cleanup"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

const (
	head       = "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: old}\n"
	namespaced = "apiVersion: kyverno.io/v2\nkind: CleanupPolicy\nmetadata: {name: old, namespace: shop}\n"
	daily      = "  schedule: 0 3 * * *\n"
	pods       = "  match: {any: [{resources: {kinds: [Pod]}}]}\n"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// maps are the ConfigMaps of a cluster.
type maps struct{}

func (maps) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	if namespace+"/"+name != "shop/settings" {
		return nil, errors.New("there is none")
	}
	return map[string]any{"data": map[string]any{"app": "web"}}, nil
}

func compiler(t testing.TB) *cleanup.Compiler {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cleanup.New(cleanup.Options{Context: rulecontext.Options{Engine: engine, Lookup: maps{}}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compile(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := compiler(t).Compile([]byte(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decide(t testing.TB, p *policy.Policy, s *policy.Subject) string {
	t.Helper()
	return policytest.Deletion(t, p, policy.Case{Subject: s, Find: func([]policy.Extractor) ([]policy.Image, error) {
		return []policy.Image{{Container: "app", Role: "container", Pointer: "/spec/containers/0/image", Ref: image.MustParse("nginx:1")}}, nil
	}})
}

// TestDecide: each deleted object has a twin that is kept, by one difference.
func TestDecide(t *testing.T) {
	const (
		pod   = "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {a: b}}}"
		other = "{apiVersion: v1, kind: Pod, metadata: {name: api, namespace: shop, labels: {app: api}}}"
		node  = "{apiVersion: v1, kind: Node, metadata: {name: web, labels: {app: web}}}"
		space = "{apiVersion: v1, kind: Namespace, metadata: {name: web, labels: {app: web}}}"
	)
	matching := func(resources string) string { return "  match: {any: [{resources: {" + resources + "}}]}\n" }
	where := func(key, operator, value string) string {
		return fmt.Sprintf("  conditions: {all: [{key: %q, operator: %s, value: %q}]}\n", key, operator, value)
	}
	for _, c := range []struct{ reason, spec, object, want string }{
		{"a kind", pods, pod, "pass"},
		{"another kind", pods, node, ""},
		{"a kind of another group", pods, strings.Replace(pod, "v1", "example.com/v1", 1), ""},
		{"a kind with a group", matching("kinds: [apps/v1/Deployment]"), strings.NewReplacer("v1", "apps/v1", "Pod", "Deployment").Replace(pod), "pass"},
		{"a kind of another version", matching("kinds: [apps/v1beta1/Deployment]"), strings.NewReplacer("v1", "apps/v1", "Pod", "Deployment").Replace(pod), ""},
		{"a name", matching("kinds: [Pod], names: ['w*']"), pod, "pass"},
		{"another name", matching("kinds: [Pod], names: ['w*']"), other, ""},
		{"a namespace", matching("kinds: [Pod], namespaces: [shop]"), pod, "pass"},
		{"another namespace", matching("kinds: [Pod], namespaces: [bank]"), pod, ""},
		{"a label", matching("kinds: [Pod], selector: {matchLabels: {app: web}}"), pod, "pass"},
		{"another label", matching("kinds: [Pod], selector: {matchLabels: {app: web}}"), other, ""},
		{"an annotation", matching("kinds: [Pod], annotations: {a: b}"), pod, "pass"},
		{"no annotation", matching("kinds: [Pod], annotations: {a: b}"), other, ""},
		{"labels of the namespace", matching("kinds: [Pod], namespaceSelector: {matchLabels: {env: test}}"), pod, "pass"},
		{"other labels of it", matching("kinds: [Pod], namespaceSelector: {matchLabels: {env: prod}}"), pod, ""},
		{"an object without one", matching("kinds: [Node], namespaceSelector: {matchLabels: {env: test}}"), node, ""},
		{"an object in no namespace", matching("kinds: [Node]"), node, "pass"},
		{"a Namespace by its labels", matching("kinds: [Namespace], selector: {matchLabels: {app: web}}"), space, "pass"},
		{"an exclusion", pods + "  exclude: {any: [{resources: {names: [web]}}]}\n", pod, ""},
		{"an exclusion of another", pods + "  exclude: {any: [{resources: {names: [web]}}]}\n", other, "pass"},
		{"an exclusion by namespaces of an object in none", matching("kinds: [Node]") + "  exclude: {any: [{resources: {namespaceSelector: {matchLabels: {env: prod}}}}]}\n", node, ""},
		{"such an exclusion of every kind", matching("kinds: [Node]") + "  exclude: {any: [{resources: {kinds: ['*'], namespaceSelector: {matchLabels: {env: prod}}}}]}\n", node, ""},
		{"and of another kind", matching("kinds: [Node]") + "  exclude: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {env: prod}}}}]}\n", node, "pass"},
		{"all", "  match: {all: [{resources: {kinds: [Pod]}}, {resources: {names: [web]}}]}\n", pod, "pass"},
		{"not all", "  match: {all: [{resources: {kinds: [Pod]}}, {resources: {names: [web]}}]}\n", other, ""},
		{"a condition", pods + where("{{ target.metadata.name }}", "Equals", "web"), pod, "pass"},
		{"which does not hold", pods + where("{{ target.metadata.name }}", "Equals", "web"), other, "skip: spec.conditions: conditions not met"},
		{"which has no value", pods + where("{{ target.metadata.annotations.a }}", "NotEquals", "c"), other, "indeterminate: : spec.conditions"},
		{"the twin of that", pods + where("{{ target.metadata.annotations.a }}", "NotEquals", "c"), pod, "pass"},
		{"with a default", pods + where("{{ target.metadata.annotations.a || 'none' }}", "Equals", "none"), other, "pass"},
		{"the namespace", pods + where("{{ request.namespace }}", "Equals", "shop"), pod, "pass"},
		{"images", pods + where("{{ images.containers.app.tag }}", "Equals", "1"), pod, "pass"},
		{"other images", pods + where("{{ images.containers.app.tag }}", "Equals", "2"), pod, "skip"},
		{"a context", "  context: [{name: wanted, configMap: {name: settings, namespace: shop}}]\n" + pods + where("{{ target.metadata.name }}", "Equals", "{{ wanted.data.app }}"), pod, "pass"},
		{"a context, and another object", "  context: [{name: wanted, configMap: {name: settings, namespace: shop}}]\n" + pods + where("{{ target.metadata.name }}", "Equals", "{{ wanted.data.app }}"), other, "skip"},
		{"a context that cannot be read", "  context: [{name: wanted, configMap: {name: none, namespace: shop}}]\n" + pods + where("{{ target.metadata.name }}", "Equals", "{{ wanted.data.app }}"), pod, "indeterminate"},
		{"a context that reads the object", "  context: [{name: own, variable: {jmesPath: target.metadata.name}}]\n" + pods + where("{{ own }}", "Equals", "web"), pod, "pass"},
		{"a wildcard of the object", pods + where("web", "Equals", "{{ target.metadata.labels.app }}"), strings.Replace(other, "api}", "'*'}", 1), "indeterminate"},
		{"any", pods + "  conditions: {any: [{key: a, operator: Equals, value: b}, {key: a, operator: Equals, value: a}]}\n", pod, "pass"},
		{"not any", pods + "  conditions: {any: [{key: a, operator: Equals, value: b}]}\n", pod, "skip"},
		{"no conditions", pods + "  conditions: {}\n", pod, "pass"},
	} {
		p := compile(t, head+"spec:\n"+daily+c.spec)
		if got := decide(t, p, policytest.Stored(t, c.object)); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestUnknown: unknown data of an object keep it.
func TestUnknown(t *testing.T) {
	for _, c := range []struct{ reason, spec, want string }{
		{"a selector of namespaces", "  match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {env: test}}}}]}\n", "indeterminate: : spec.match"},
		{"an exclusion by them", pods + "  exclude: {any: [{resources: {namespaceSelector: {matchLabels: {env: prod}}}}]}\n", "indeterminate: : spec.exclude"},
	} {
		s := policytest.Stored(t, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}")
		s.NamespaceLabels, s.NamespaceKnown = nil, false
		if got := decide(t, compile(t, head+"spec:\n"+daily+c.spec), s); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q", c.reason, got)
		}
	}
	p := compile(t, head+"spec:\n"+daily+pods)
	for reason, change := range map[string]func(*policy.Subject){
		"no object":     func(s *policy.Subject) { s.Object = policy.Content{} },
		"images alone":  func(s *policy.Subject) { s.Bare = true },
		"a subresource": func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" },
		"a document":    func(s *policy.Subject) { s.Document = true },
	} {
		s := policytest.Stored(t, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}")
		change(s)
		if got := decide(t, p, s); got != "" {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

// TestNamespaced: a policy of a namespace neither selects nor reads beyond it.
func TestNamespaced(t *testing.T) {
	p := compile(t, namespaced+"spec:\n"+daily+pods)
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}": "pass",
		"{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: bank}}": "",
		"{apiVersion: v1, kind: Pod, metadata: {name: web}}":                  "",
	} {
		if got := decide(t, p, policytest.Stored(t, text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if targets := p.Deletions[0].Targets(); p.Namespace != "shop" || !slices.Equal(targets[0].Namespaces, []string{"shop"}) {
		t.Errorf("%s: %+v", p.Namespace, targets)
	}
	for reason, c := range map[string][2]string{
		"another namespace":    {"  match: {any: [{resources: {kinds: [Pod], namespaces: [bank]}}]}\n", "spec.match: names other namespaces"},
		"kinds in none":        {"  match: {any: [{resources: {kinds: [Node]}}]}\n", "spec.match: selects kinds that are in no namespace"},
		"a ConfigMap":          {"  context: [{name: a, configMap: {name: a, namespace: bank}}]\n" + pods, "spec.context[0].configMap.namespace"},
		"a path":               {"  context: [{name: a, apiCall: {urlPath: /api/v1/namespaces/bank/pods}}]\n" + pods, "spec.context[0].apiCall.urlPath"},
		"global context entry": {"  context: [{name: a, globalReference: {name: a}}]\n" + pods, "spec.context[0].globalReference"},
	} {
		if _, err := compiler(t).Compile([]byte(namespaced+"spec:\n"+daily+c[0]), "test.yaml"); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %s", reason, err, c[1])
		}
	}
}

// TestTerms has the fields that a controller reads.
func TestTerms(t *testing.T) {
	p := compile(t, head+"spec:\n  deletionPropagationPolicy: Foreground\n"+daily+"  match: {any: [{resources: {kinds: [Pod, Event, v1/Namespace, apps/v1/Deployment, Cluster]}}]}\n")
	d := p.Deletions[0]
	if d.Name() != "old" || d.Propagation() != "Foreground" || d.Labels() != "" || !d.Next(now()).Equal(now().Add(15*time.Hour)) {
		t.Errorf("%s, %s, %s", d.Name(), d.Propagation(), d.Next(now()))
	}
	var kinds []string
	for _, target := range d.Targets() {
		kinds = append(kinds, target.Group+"/"+target.Version+"/"+target.Kind+target.Subresource)
	}
	if want := []string{"/*/Pod", "/*/Event", "/v1/Namespace", "apps/v1/Deployment", "*/*/Cluster"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "names the kind Cluster without its group") {
		t.Error(p.Warnings)
	}
	if len(p.Targets)+len(p.Validations)+len(p.Mutations)+len(p.Rules) != 0 || p.IsEmpty() {
		t.Errorf("it takes part in admission: %+v", p)
	}
}

// TestRefused refuses documents with the path of the mistake.
func TestRefused(t *testing.T) {
	compile(t, strings.Replace(head, "/v2", "/v2beta1", 1)+"spec:\n"+daily+pods+"status: {lastExecutionTime: null}\n")
	user := func(field string) string { return "  match: {any: [{resources: {kinds: [Pod]}, " + field + "}]}\n" }
	where := func(key string) string {
		return pods + "  conditions: {all: [{key: \"" + key + "\", operator: Equals, value: a}]}\n"
	}
	for _, c := range []struct{ reason, text, want string }{
		{"another version", strings.Replace(head, "/v2", "/v1", 1) + "spec:\n" + daily + pods, "is no cleanup policy"},
		{"no name", strings.Replace(head, "name: old", "labels: {}", 1) + "spec:\n" + daily + pods, "metadata.name: is empty"},
		{"a misspelt annotation", strings.Replace(head, "name: old", "name: old, annotations: {quaymaster.dev/none: a}", 1) + "spec:\n" + daily + pods, "metadata.annotations"},
		{"no schedule", head + "spec:\n" + pods, "spec.schedule: is empty"},
		{"no such schedule", head + "spec:\n  schedule: invalid-schedule\n" + pods, "spec.schedule: \"invalid-schedule\" is no schedule"},
		{"another propagation", head + "spec:\n  deletionPropagationPolicy: None\n" + daily + pods, "spec.deletionPropagationPolicy: unknown value"},
		{"an unknown field", head + "spec:\n  rules: []\n" + daily + pods, "spec.rules: unknown field"},
		{"no match", head + "spec:\n" + daily, "spec.match: is empty"},
		{"the old form", head + "spec:\n" + daily + "  match: {resources: {kinds: [Pod]}}\n", "spec.match: the old form"},
		{"the old form of exclude", head + "spec:\n" + daily + pods + "  exclude: {resources: {names: [a]}}\n", "spec.exclude: the old form"},
		{"users", head + "spec:\n" + daily + user("subjects: [{kind: User, name: a}]"), "spec.match.any[0].subjects: a schedule and no request"},
		{"roles", head + "spec:\n" + daily + user("roles: [a]"), "spec.match.any[0].roles: a schedule"},
		{"cluster roles", head + "spec:\n" + daily + user("clusterRoles: [a]"), "spec.match.any[0].clusterRoles: a schedule"},
		{"excluded users", head + "spec:\n" + daily + pods + "  exclude: {all: [{clusterRoles: [a]}]}\n", "spec.exclude.all[0].clusterRoles: a schedule"},
		{"operations", head + "spec:\n" + daily + "  match: {any: [{resources: {kinds: [Pod], operations: [DELETE]}}]}\n", "spec.match.any[0].resources.operations: a schedule"},
		{"no kind", head + "spec:\n" + daily + "  match: {any: [{resources: {names: [a]}}]}\n", "spec.match: a policy that deletes objects names their kinds"},
		{"a kind in one of two", head + "spec:\n" + daily + "  match: {any: [{resources: {kinds: [Pod]}}, {resources: {names: [a]}}]}\n", "names their kinds"},
		{"every kind", head + "spec:\n" + daily + "  match: {any: [{resources: {kinds: ['*']}}]}\n", "names their kinds"},
		{"some kinds", head + "spec:\n" + daily + "  match: {any: [{resources: {kinds: ['Pod*']}}]}\n", "names their kinds"},
		{"a subresource", head + "spec:\n" + daily + "  match: {any: [{resources: {kinds: [Pod/status]}}]}\n", "spec.match: Pod/status: a subresource"},
		{"a kind that is not stored", head + "spec:\n" + daily + "  match: {any: [{resources: {kinds: [TokenReview]}}]}\n", "no stored objects of the kind TokenReview"},
		{"Namespaces by the labels of their namespace", head + "spec:\n" + daily + "  match: {any: [{resources: {kinds: [Namespace], namespaceSelector: {matchLabels: {a: b}}}}]}\n", "spec.match.any[0].resources.namespaceSelector: selects no Namespace"},
		{"everything is excluded", head + "spec:\n" + daily + pods + "  exclude: {any: [{resources: {kinds: [Pod]}}]}\n", "spec.exclude: leaves out everything"},
		{"conditions in a list", head + "spec:\n" + daily + pods + "  conditions: [{key: a, operator: Equals, value: b}]\n", "spec.conditions: want any, all or both"},
		{"an unknown operator", head + "spec:\n" + daily + pods + "  conditions: {all: [{key: a, operator: Is, value: b}]}\n", "spec.conditions"},
		{"the object of a request", head + "spec:\n" + daily + where("{{ request.object.metadata.name }}"), "spec.conditions.all[0]: a variable reads request.object"},
		{"the requester", head + "spec:\n" + daily + where("{{ serviceAccountName }}"), "spec.conditions.all[0]: a variable reads serviceAccountName"},
		{"an undefined name", head + "spec:\n" + daily + where("{{ tarket.metadata.name }}"), "spec.conditions"},
		{"a context of images", head + "spec:\n  context: [{name: a, imageRegistry: {reference: nginx}}]\n" + daily + pods, "spec.context[0].imageRegistry: is not supported"},
		{"a context of a request", head + "spec:\n  context: [{name: a, variable: {jmesPath: request.userInfo}}]\n" + daily + pods, "spec.context[0]: a variable reads request.userInfo"},
		{"a context without a source", head + "spec:\n  context: [{name: a}]\n" + daily + pods, "spec.context[0]"},
	} {
		if _, err := compiler(t).Compile([]byte(c.text), "test.yaml"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}

// TestBroken: a policy that does not compile has no rule.
func TestBroken(t *testing.T) {
	c, why := compiler(t), errors.New("no schedule")
	p := c.Broken([]byte(namespaced+"spec: 1\n"), "test.yaml", why)
	if p == nil || p.ID() != "CleanupPolicy/shop/old" || !errors.Is(p.Broken, why) || !p.IsEmpty() || !p.AuditOnly || !c.OnlyBackground(nil) {
		t.Errorf("%+v", p)
	}
	if p := c.Broken([]byte("\t"), "test.yaml", why); p != nil {
		t.Errorf("%+v", p)
	}
	if _, err := cleanup.New(cleanup.Options{}); err == nil {
		t.Error("no engine")
	}
}

// FuzzCompile: no document and no object ends the process, and a policy of a namespace deletes nothing
// beyond it.
func FuzzCompile(f *testing.F) {
	f.Add(namespaced+"spec:\n"+daily+pods, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}")
	f.Add(head+"spec:\n"+daily+pods+"  conditions: {all: [{key: '{{ target.metadata.name }}', operator: Equals, value: web}]}\n", "{metadata: {name: web}}")
	f.Add(head+"spec: {schedule: '* * * * *', match: {all: [{}]}, exclude: {any: [{resources: {kinds: ['*']}}]}}", "{a: 1}")
	c := compiler(f)
	f.Fuzz(func(t *testing.T, text, object string) { policytest.DeletesWithin(t, c, text, object) })
}

func Example() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	compiler, err := cleanup.New(cleanup.Options{Context: rulecontext.Options{Engine: engine}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := compiler.Compile([]byte(`
apiVersion: kyverno.io/v2
kind: CleanupPolicy
metadata: {name: finished, namespace: shop}
spec:
  schedule: 0 3 * * *
  match: {any: [{resources: {kinds: [Pod]}}]}
  conditions: {all: [{key: "{{ target.status.phase }}", operator: Equals, value: Succeeded}]}
`), "finished.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := map[string]any{"status": map[string]any{"phase": "Succeeded"}}
	decided := p.Deletions[0].Decide(context.Background(), policy.Case{Subject: &policy.Subject{
		Object: policy.ContentOf(pod), Version: "v1", Kind: "Pod", Namespace: "shop",
	}})
	fmt.Println(decided.Result)
	// Output: pass
}
