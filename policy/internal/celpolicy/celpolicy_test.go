package celpolicy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/internal/celpolicy"
)

func read[T any](t testing.TB, text string) *T {
	t.Helper()
	var out T
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestView shows a pod template as the object.
func TestView(t *testing.T) {
	template := celpolicy.Template{"spec", "template"}
	for _, c := range []struct{ reason, object, want string }{
		{"its specification and metadata", "{metadata: {name: web, labels: {own: mine}}, spec: {replicas: 1, template: {metadata: {labels: {a: b}}, spec: {c: d}}}}", "map[metadata:map[labels:map[a:b] name:web] spec:map[c:d]]"},
		{"never its name", "{metadata: {name: web, namespace: shop}, spec: {template: {metadata: {name: other, generateName: x}}}}", "map[metadata:map[name:web namespace:shop]]"},
		{"nothing without it", "{metadata: {name: web}, spec: {replicas: 1}}", "map[metadata:map[name:web]]"},
		{"whatever it is", "{metadata: 1, spec: {template: 2}}", "map[metadata:map[]]"},
	} {
		object := *read[map[string]any](t, c.object)
		before := fmt.Sprint(object)
		if got := fmt.Sprint(template.View(object)); got != c.want {
			t.Errorf("%s: %s", c.reason, got)
		}
		if fmt.Sprint(object) != before {
			t.Errorf("%s: the object is another", c.reason)
		}
	}
	if got := template.Pointer("/spec/containers"); got != "/spec/template/spec/containers" || template.Pointer("/kind") != "/kind" || celpolicy.Template(nil).Pointer("/spec") != "/spec" {
		t.Error(got)
	}
}

const aboutPods = "{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}"

// TestFollowers are the rules that follow from one about pods as such.
func TestFollowers(t *testing.T) {
	for _, c := range []struct{ reason, match, controllers, want string }{
		{"all", aboutPods, "", "autogen-p autogen-cronjobs-p"},
		{"those that are named", aboutPods, "{controllers: [jobs, cronjobs, jobs]}", "autogen-p autogen-cronjobs-p"},
		{"one kind", aboutPods, "{controllers: [cronjobs]}", "autogen-cronjobs-p"},
		{"none", aboutPods, "{controllers: []}", ""},
		{"an unknown one", aboutPods, "{controllers: [jobs, pods]}", "spec.autogen.podControllers.controllers[1]: unknown controller"},
		{"labels", strings.Replace(aboutPods, "}]}", "}], objectSelector: {matchLabels: {a: b}}}", 1), "", ""},
		{"namespaces", strings.Replace(aboutPods, "}]}", "}], namespaceSelector: {matchLabels: {a: b}}}", 1), "", ""},
		{"an empty selector", strings.Replace(aboutPods, "}]}", "}], namespaceSelector: {}}", 1), "", "autogen-p autogen-cronjobs-p"},
		{"exclusions", strings.Replace(aboutPods, "}]}", "}], excludeResourceRules: [{resources: [pods]}]}", 1), "", ""},
		{"names", strings.Replace(aboutPods, "[pods]", "[pods], resourceNames: [a]", 1), "", ""},
		{"other kinds", strings.Replace(aboutPods, "[pods]", "[pods, services]", 1), "", ""},
		{"subresources", strings.Replace(aboutPods, "[pods]", "[pods/exec]", 1), "", ""},
		{"nothing", "{}", "", ""},
	} {
		var autogen *v1alpha1.PodControllersGenerationConfiguration
		if c.controllers != "" {
			autogen = read[v1alpha1.PodControllersGenerationConfiguration](t, c.controllers)
		}
		followers, err := celpolicy.Followers("p", read[admission.MatchResources](t, c.match), autogen)
		var names []string
		for _, f := range followers {
			names = append(names, f.Name)
			if matched, err := f.Match.Matches(&policy.Subject{Version: "v1", Kind: "Pod", Operation: "CREATE"}); matched || err != nil {
				t.Errorf("%s: %s matches pods: %v", c.reason, f.Name, err)
			}
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
}

// TestReadBroken reads what can be read.
func TestReadBroken(t *testing.T) {
	roughly := func(doc *admission.MatchResources) ([]policy.Target, bool) { return constraint.Rough(doc, nil) }
	const spec = "spec:\n  matchConstraints: " + aboutPods + "\n"
	pod := policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Operation: "CREATE"}
	asked := pod
	asked.User.Name = "ann"
	elsewhere := pod
	elsewhere.Namespace = "other"
	for _, c := range []struct {
		reason, text string
		subject      policy.Subject
		speaks       bool
	}{
		{"what it names", "kind: ValidatingPolicy\n" + spec, pod, true},
		{"another operation", "kind: ValidatingPolicy\n" + spec, policy.Subject{Version: "v1", Kind: "Service", Operation: "CREATE"}, false},
		{"not at admission", "kind: ValidatingPolicy\n" + spec + "  evaluation: {admission: {enabled: false}}\n", asked, false},
		{"and otherwise", "kind: ValidatingPolicy\n" + spec + "  evaluation: {admission: {enabled: false}}\n", pod, true},
		{"documents", "kind: ValidatingPolicy\nspec: {evaluation: {mode: JSON}}\n", policy.Subject{Document: true}, true},
		{"no objects", "kind: ValidatingPolicy\nspec: {evaluation: {mode: JSON}}\n", pod, false},
		{"its namespace", "kind: NamespacedValidatingPolicy\nmetadata: {namespace: shop}\n" + spec, pod, true},
		{"another namespace", "kind: NamespacedValidatingPolicy\nmetadata: {namespace: shop}\n" + spec, elsewhere, false},
	} {
		p, broken := celpolicy.ReadBroken([]byte(c.text), "a.yaml", errors.New("broken"), roughly)
		speaks, skip := broken.Speaks(&c.subject)
		if speaks != c.speaks || speaks == (skip != "") || p.Broken == nil || p.Name == "" {
			t.Errorf("%s: %v %s %+v", c.reason, speaks, skip, p)
		}
	}
	if p, _ := celpolicy.ReadBroken([]byte("{"), "", errors.New("broken"), roughly); p != nil {
		t.Error("no document stands for something")
	}
	p, _ := celpolicy.ReadBroken([]byte("spec: {failurePolicy: Ignore, validationActions: [Audit]}"), "", errors.New("broken"), roughly)
	if !p.FailOpen || !p.AuditOnly {
		t.Errorf("%+v", p)
	}
}

func ExampleTemplate_View() {
	deployment := map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"hostNetwork": true}}},
	}
	fmt.Println(celpolicy.Template{"spec", "template"}.View(deployment))
	// Output: map[metadata:map[name:web] spec:map[hostNetwork:true]]
}
