package kyvernocel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
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
	template := kyvernocel.Template{"spec", "template"}
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
	if got := fmt.Sprint(kyvernocel.Template(nil).View(map[string]any{"kind": "List"})); got != "map[kind:List]" {
		t.Error("an object that is seen as it is:", got)
	}
	if template.View(nil) != nil {
		t.Error("a missing object becomes an object")
	}
	for from, want := range map[string]string{
		"/spec/containers": "/spec/template/spec/containers", "/spec": "/spec/template/spec", "/metadata": "/spec/template/metadata",
		"/kind": "/kind", "/specs/a": "/specs/a",
	} {
		if got := template.Pointer(from); got != want || kyvernocel.Template(nil).Pointer(from) != from {
			t.Errorf("%s: %s", from, got)
		}
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
		{"the first of all", aboutPods, "{controllers: [daemonsets]}", "autogen-p"},
		{"named very often", aboutPods, "{controllers: [" + strings.Repeat("jobs, ", 1000) + "jobs]}", "autogen-p"},
		{"default controllers", aboutPods, "{}", "autogen-p autogen-cronjobs-p"},
		{"an operation that there is not", strings.Replace(aboutPods, "CREATE", "create", 1), "", "spec.matchConstraints.resourceRules[0].operations[0]"},
		{"labels by expressions", strings.Replace(aboutPods, "}]}", "}], objectSelector: {matchExpressions: [{key: a, operator: Exists}]}}", 1), "", ""},
		{"any group", strings.Replace(aboutPods, "['']", "['*']", 1), "", ""},
		{"any version", strings.Replace(aboutPods, "[v1]", "['*']", 1), "", ""},
		{"two rules", strings.Replace(aboutPods, "}]}", "}, {apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]}", 1), "", ""},
		{"an unknown one", aboutPods, "{controllers: [jobs, pods]}", "spec.autogen.podControllers.controllers[1]: unknown controller"},
		{"labels", strings.Replace(aboutPods, "}]}", "}], objectSelector: {matchLabels: {a: b}}}", 1), "", ""},
		{"namespaces", strings.Replace(aboutPods, "}]}", "}], namespaceSelector: {matchLabels: {a: b}}}", 1), "", "autogen-p autogen-cronjobs-p"},
		{"namespaces by expressions", strings.Replace(aboutPods, "}]}", "}], namespaceSelector: {matchExpressions: [{key: a, operator: DoesNotExist}]}}", 1), "", "autogen-p autogen-cronjobs-p"},
		{"a selector of namespaces that matches none", strings.Replace(aboutPods, "}]}", "}], namespaceSelector: {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: DoesNotExist}]}}", 1), "", "spec.matchConstraints.namespaceSelector"},
		{"a custom resource", aboutPods, "{controllers: [jobs, jobsets.v1alpha2.jobset.x-k8s.io]}", "spec.autogen.podControllers.controllers[1]: unknown controller"},
		{"an empty selector", strings.Replace(aboutPods, "}]}", "}], namespaceSelector: {}}", 1), "", "autogen-p autogen-cronjobs-p"},
		{"exclusions", strings.Replace(aboutPods, "}]}", "}], excludeResourceRules: [{resources: [pods]}]}", 1), "", ""},
		{"names", strings.Replace(aboutPods, "[pods]", "[pods], resourceNames: [a]", 1), "", ""},
		{"other kinds", strings.Replace(aboutPods, "[pods]", "[pods, services]", 1), "", ""},
		{"a subresource of pods alone", strings.Replace(aboutPods, "[pods]", "[pods/ephemeralcontainers]", 1), "", ""},
		{"pods and ephemeral containers", strings.Replace(aboutPods, "[pods]", "[pods, pods/ephemeralcontainers]", 1), "", ""},
		{"ephemeral containers and pods, twice", strings.Replace(aboutPods, "[pods]", "[pods/ephemeralcontainers, pods, pods, pods/ephemeralcontainers]", 1), "", ""},
		{"pods twice", strings.Replace(aboutPods, "[pods]", "[pods, pods]", 1), "", ""},
		{"ephemeral containers and another subresource", strings.Replace(aboutPods, "[pods]", "[pods, pods/ephemeralcontainers, pods/exec]", 1), "", ""},
		{"all subresources of pods", strings.Replace(aboutPods, "[pods]", "[pods, pods/*]", 1), "", ""},
		{"kinds", aboutPods, "{controllers: [Deployment, CronJob]}", "autogen-p autogen-cronjobs-p"},
		{"plural kinds", aboutPods, "{controllers: [Deployments]}", "autogen-p"},
		{"replication controllers", aboutPods, "{controllers: [replicationcontrollers]}", "autogen-p"},
		{"a kind that is no controller", aboutPods, "{controllers: [Pod]}", "spec.autogen.podControllers.controllers[0]: unknown controller"},
		{"subresources", strings.Replace(aboutPods, "[pods]", "[pods/exec]", 1), "", ""},
		{"nothing", "{}", "", ""},
	} {
		var autogen *v1alpha1.PodControllersGenerationConfiguration
		if c.controllers != "" {
			autogen = read[v1alpha1.PodControllersGenerationConfiguration](t, c.controllers)
		}
		followers, err := kyvernocel.Followers("p", read[admission.MatchResources](t, c.match), autogen)
		var names []string
		for _, f := range followers {
			if matched, err := f.Match.Matches(&policy.Subject{Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers", Operation: "CREATE"}); matched || err != nil {
				t.Errorf("%s: %s matches ephemeral containers: %v", c.reason, f.Name, err)
			}
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
	if followers, err := kyvernocel.Followers("p", nil, nil); len(followers) > 0 || err != nil {
		t.Error("of no match:", followers, err)
	}
}

// TestFollowersMatch: a generated rule matches the controllers that the policy names, without their
// subresources.
func TestFollowersMatch(t *testing.T) {
	replicas := policy.Subject{Version: "v1", Kind: "ReplicationController", Operation: "CREATE"}
	deployment := policy.Subject{Group: "apps", Version: "v1", Kind: "Deployment", Operation: "CREATE"}
	scale := deployment
	scale.Subresource = "scale"
	for _, c := range []struct {
		controllers string
		subject     policy.Subject
		want        bool
	}{
		{"{controllers: [ReplicationController]}", replicas, true},
		{"{controllers: [deployments, replicationcontrollers]}", replicas, true},
		{"{controllers: [deployments]}", replicas, false},
		{"{}", replicas, false},
		{"{controllers: [Deployment]}", deployment, true},
		{"{controllers: [Deployments]}", deployment, true},
		{"{controllers: [Job]}", deployment, false},
		{"{controllers: [Deployment]}", scale, false},
	} {
		match := read[admission.MatchResources](t, aboutPods)
		followers, err := kyvernocel.Followers("p", match, read[v1alpha1.PodControllersGenerationConfiguration](t, c.controllers))
		if err != nil {
			t.Fatal(err)
		}
		if matched, err := followers[0].Match.Matches(&c.subject); matched != c.want || err != nil {
			t.Errorf("%s: %s/%s: %t, %v", c.controllers, c.subject.Kind, c.subject.Subresource, matched, err)
		}
	}
}

// TestFollowersInNamespaces: a generated rule matches in the namespaces of the rule about pods.
func TestFollowersInNamespaces(t *testing.T) {
	for _, c := range []struct {
		reason, selector string
		labels           map[string]string
		known            bool
		want             string
	}{
		{"a selected namespace", "{matchLabels: {team: a}}", map[string]string{"team": "a"}, true, "true"},
		{"another namespace", "{matchLabels: {team: a}}", map[string]string{"team": "b"}, true, "false"},
		{"a namespace without the label", "{matchLabels: {team: a}}", nil, true, "false"},
		{"a namespace that is not exempt", "{matchExpressions: [{key: exempt, operator: DoesNotExist}]}", nil, true, "true"},
		{"an exempt namespace", "{matchExpressions: [{key: exempt, operator: DoesNotExist}]}", map[string]string{"exempt": ""}, true, "false"},
		{"unknown labels", "{matchLabels: {team: a}}", nil, false, "indeterminate"},
		{"no selector", "{}", nil, false, "true"},
	} {
		match := strings.Replace(aboutPods, "}]}", "}], namespaceSelector: "+c.selector+"}", 1)
		followers, err := kyvernocel.Followers("p", read[admission.MatchResources](t, match), nil)
		if err != nil || len(followers) != 2 {
			t.Fatal(c.reason, followers, err)
		}
		for i, of := range []policy.Subject{{Group: "apps", Kind: "Deployment"}, {Group: "batch", Kind: "CronJob"}} {
			of.Version, of.Namespace, of.Name, of.Operation = "v1", "shop", "web", "CREATE"
			of.NamespaceMeta = policy.NamespaceMeta{NamespaceLabels: c.labels, NamespaceKnown: c.known}
			matched, err := followers[i].Match.Matches(&of)
			got := strconv.FormatBool(matched)
			if err != nil {
				got = "indeterminate"
			}
			if got != c.want {
				t.Errorf("%s: %s: %s %v", c.reason, of.Kind, got, err)
			}
		}
	}
}

// TestReadBroken reads what can be read.
func TestReadBroken(t *testing.T) {
	roughly := kyvernocel.Roughly{Targets: func(doc *admission.MatchResources) ([]policy.Target, bool) { return constraint.Rough(doc, nil) }}
	const spec = "spec:\n  matchConstraints: " + aboutPods + "\n"
	const widgets = "spec: {matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}}\n"
	pod := policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Operation: "CREATE"}
	asked := pod
	asked.User.Name = "ann"
	elsewhere := pod
	elsewhere.Namespace = "other"
	for _, c := range []struct {
		reason, text string
		subject      policy.Subject
		matches      bool
	}{
		{"a resource that it names", "kind: ValidatingPolicy\n" + spec, pod, true},
		{"another operation", "kind: ValidatingPolicy\n" + spec, policy.Subject{Version: "v1", Kind: "Service", Operation: "CREATE"}, false},
		{"not at admission", "kind: ValidatingPolicy\n" + spec + "  evaluation: {admission: {enabled: false}}\n", asked, false},
		{"and otherwise", "kind: ValidatingPolicy\n" + spec + "  evaluation: {admission: {enabled: false}}\n", pod, true},
		{"documents", "kind: ValidatingPolicy\nspec: {evaluation: {mode: JSON}}\n", policy.Subject{Shape: policy.Shape{Document: true}}, true},
		{"no objects", "kind: ValidatingPolicy\nspec: {evaluation: {mode: JSON}}\n", pod, false},
		{"its namespace", "kind: NamespacedValidatingPolicy\nmetadata: {namespace: shop}\n" + spec, pod, true},
		{"another namespace", "kind: NamespacedValidatingPolicy\nmetadata: {namespace: shop}\n" + spec, elsewhere, false},
		{"a resource of which no kind is known", "kind: ValidatingPolicy\n" + widgets, policy.Subject{Group: "example.com", Version: "v1", Kind: "Widget", Operation: "CREATE"}, true},
		{"another kind of its group", "kind: ValidatingPolicy\n" + widgets, policy.Subject{Group: "example.com", Version: "v1", Kind: "Gadget", Operation: "CREATE"}, false},
		{"its match cannot be read", "kind: ValidatingPolicy\n" + strings.Replace(spec, "[pods]", "[podz]", 1), pod, true},
	} {
		p, broken := kyvernocel.ReadBroken([]byte(c.text), "a.yaml", errors.New("broken"), roughly)
		matches, skip := broken.Matches(&c.subject)
		if matches != c.matches || matches == (skip != "") || p.Broken == nil || p.Name == "" {
			t.Errorf("%s: %v %s %+v", c.reason, matches, skip, p)
		}
	}
	if p, _ := kyvernocel.ReadBroken([]byte("{"), "", errors.New("broken"), roughly); p != nil {
		t.Error("a policy without a document")
	}
	for size, want := range map[int]bool{field.MaxDocument: true, field.MaxDocument + 1: false} {
		if p, _ := kyvernocel.ReadBroken([]byte("spec: {}\n#"+strings.Repeat("a", size-10)), "", errors.New("broken"), roughly); (p != nil) != want {
			t.Errorf("a document of %d bytes: %v", size, p != nil)
		}
	}
}

// TestBrokenPolicy: a field that cannot be read of a broken policy has its strictest value.
func TestBrokenPolicy(t *testing.T) {
	roughly := kyvernocel.Roughly{Targets: func(doc *admission.MatchResources) ([]policy.Target, bool) { return constraint.Rough(doc, nil) }}
	const usual = " Pod Pod/ephemeralcontainers Deployment StatefulSet DaemonSet ReplicaSet Job CronJob"
	about := func(resources string) string {
		return "{matchConstraints: {objectSelector: {matchLabels: {a: b}}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [" + resources + "]}]}}"
	}
	for _, c := range []struct{ reason, spec, want string }{
		{"nothing", "{}", "false false" + usual},
		{"it fails open", "{failurePolicy: Ignore}", "true false" + usual},
		{"it does not", "{failurePolicy: ignore}", "false false" + usual},
		{"actions that admit", "{validationActions: [Audit, Warn]}", "false true" + usual},
		{"one that denies", "{validationActions: [Audit, Deny]}", "false false" + usual},
		{"an unknown one", "{validationActions: [Warn, Wrn]}", "false false" + usual},
		{"one that is no text", "{validationActions: [Audit, 7]}", "false false" + usual},
		{"none", "{validationActions: []}", "false false" + usual},
		{"no list of them", "{validationActions: Audit}", "false false" + usual},
		{"a match that cannot be read", "{matchConstraints: {resourceRules: 7}}", "false false" + usual},
		{"a resource that it names", about("services"), "false false Service"},
		{"without what a cluster needs to be mended", about("pods, namespaces, nodes"), "false false Pod Pod/ephemeralcontainers"},
		{"with what follows from pods", "{matchConstraints: " + aboutPods + "}", "false false Pod Pod/ephemeralcontainers" + usual},
		{"without what does not follow from pods with ephemeral containers", "{matchConstraints: " + strings.Replace(aboutPods, "[pods]", "[pods, pods/ephemeralcontainers]", 1) + "}", "false false Pod Pod/ephemeralcontainers Pod/ephemeralcontainers"},
		{"without what does not follow from a subresource", "{matchConstraints: " + strings.Replace(aboutPods, "[pods]", "[pods/ephemeralcontainers]", 1) + "}", "false false Pod/ephemeralcontainers"},
		{"with a controller that it names", "{autogen: {podControllers: {controllers: [replicationcontrollers]}}}", "false false" + strings.Replace(usual, " Deployment", " ReplicationController Deployment", 1)},
		{"with an unknown controller", "{autogen: {podControllers: {controllers: [rollouts]}}}", "false false" + usual},
		{"documents", "{evaluation: {mode: JSON}}", "false false"},
		{"objects", "{evaluation: {mode: Kubernetes}}", "false false" + usual},
		{"not at admission", "{evaluation: {admission: {enabled: false}}}", "false false"},
		{"at admission", "{evaluation: {admission: {enabled: true}}}", "false false" + usual},
		{"an evaluation that cannot be read", "{evaluation: 7}", "false false" + usual},
	} {
		p, broken := kyvernocel.ReadBroken([]byte("kind: ValidatingPolicy\nmetadata: {name: a}\nspec: "+c.spec+"\n"), "a.yaml", errors.New("broken"), roughly)
		got := fmt.Sprint(p.FailOpen, p.AuditOnly)
		for _, target := range p.Targets {
			got += " " + strings.TrimSuffix(target.Kind+"/"+target.Subresource, "/")
		}
		if got != c.want || p.Name != "a" || broken.OnlyDocuments() != (c.reason == "documents") {
			t.Errorf("%s: %s %s, want %s", c.reason, p.Name, got, c.want)
		}
	}
	if p, _ := kyvernocel.ReadBroken([]byte("spec: {}"), "", errors.New("broken"), roughly); p.Name != "unnamed-"+p.Hash[:8] {
		t.Errorf("a document without a name: %q", p.Name)
	}
}

// TestMayMatch: the subjects that a broken policy may match.
func TestMayMatch(t *testing.T) {
	type target = func(*policy.Target)
	type subject = func(*policy.Subject)
	bare := func(change subject) subject {
		return func(s *policy.Subject) { s.Bare, s.Operation = true, ""; change(s) }
	}
	for _, c := range []struct {
		reason  string
		target  target
		subject subject
		want    bool
	}{
		{"a kind that it names", func(*policy.Target) {}, func(*policy.Subject) {}, true},
		{"another group", func(*policy.Target) {}, func(s *policy.Subject) { s.Group = "extensions" }, false},
		{"any group", func(t *policy.Target) { t.Group = "*" }, func(s *policy.Subject) { s.Group = "extensions" }, true},
		{"another version", func(*policy.Target) {}, func(s *policy.Subject) { s.Version = "v2" }, false},
		{"a body that its subresource receives", func(t *policy.Target) { t.Subresource = "scale" }, func(s *policy.Subject) { s.Group, s.Kind, s.Subresource = "autoscaling", "Scale", "scale" }, true},
		{"a body that another subresource receives", func(t *policy.Target) { t.Subresource = "status" }, func(s *policy.Subject) { s.Group, s.Kind, s.Subresource = "autoscaling", "Scale", "scale" }, false},
		{"any version", func(t *policy.Target) { t.Version = "*" }, func(s *policy.Subject) { s.Version = "v2" }, true},
		{"another kind", func(*policy.Target) {}, func(s *policy.Subject) { s.Kind = "StatefulSet" }, false},
		{"any kind", func(t *policy.Target) { t.Kind = "*" }, func(s *policy.Subject) { s.Kind = "StatefulSet" }, true},
		{"any kind but what a cluster needs to be mended", func(t *policy.Target) { t.Group, t.Kind = "*", "*" }, func(s *policy.Subject) { s.Group, s.Kind = "", "Node" }, false},
		{"a subresource", func(t *policy.Target) { t.Subresource = "scale" }, func(s *policy.Subject) { s.Subresource = "scale" }, true},
		{"any subresource", func(t *policy.Target) { t.Subresource = "*" }, func(s *policy.Subject) { s.Subresource = "scale" }, true},
		{"a subresource that it does not name", func(*policy.Target) {}, func(s *policy.Subject) { s.Subresource = "scale" }, false},
		{"and nothing but the subresource", func(t *policy.Target) { t.Subresource = "scale" }, func(*policy.Subject) {}, false},
		{"images alone, which may be ephemeral", func(t *policy.Target) { t.Subresource = "ephemeralcontainers" }, bare(func(*policy.Subject) {}), true},
		{"an object that is not", func(t *policy.Target) { t.Subresource = "ephemeralcontainers" }, func(*policy.Subject) {}, false},
		{"images alone of another subresource", func(t *policy.Target) { t.Subresource = "exec" }, bare(func(*policy.Subject) {}), false},
		{"an update", func(*policy.Target) {}, func(s *policy.Subject) { s.Operation = "UPDATE" }, true},
		{"a deletion", func(*policy.Target) {}, func(s *policy.Subject) { s.Operation = "DELETE" }, false},
		{"a deletion that it names", func(t *policy.Target) { t.Operations = []string{"DELETE"} }, func(s *policy.Subject) { s.Operation = "DELETE" }, true},
		{"and nothing but deletions", func(t *policy.Target) { t.Operations = []string{"DELETE"} }, func(*policy.Subject) {}, false},
		{"images alone, by whatever operation they come", func(t *policy.Target) { t.Operations = []string{"UPDATE"} }, bare(func(*policy.Subject) {}), true},
		{"its namespace", func(t *policy.Target) { t.Namespaces = []string{"shop"} }, func(*policy.Subject) {}, true},
		{"another one", func(t *policy.Target) { t.Namespaces = []string{"other"} }, func(*policy.Subject) {}, false},
		{"no namespace", func(t *policy.Target) { t.Namespaces = []string{"shop"} }, func(s *policy.Subject) { s.Namespace = "" }, false},
		{"images alone of an unknown namespace", func(t *policy.Target) { t.Namespaces = []string{"shop"} }, bare(func(s *policy.Subject) { s.Namespace = "" }), true},
		{"images alone of another namespace", func(t *policy.Target) { t.Namespaces = []string{"other"} }, bare(func(*policy.Subject) {}), false},
		{"a document", func(*policy.Target) {}, func(s *policy.Subject) { s.Kind = "" }, false},
	} {
		about := policy.Target{Group: "apps", Version: "v1", Kind: "Deployment"}
		s := policy.Subject{Group: "apps", Version: "v1", Kind: "Deployment", Operation: "CREATE", Namespace: "shop"}
		c.target(&about)
		c.subject(&s)
		_, broken := kyvernocel.ReadBroken([]byte("spec: {}"), "", errors.New("broken"), kyvernocel.Roughly{Targets: func(*admission.MatchResources) ([]policy.Target, bool) {
			return []policy.Target{about}, true
		}})
		if got, skip := broken.Matches(&s); got != c.want || got == (skip != "") {
			t.Errorf("%s: %v %s", c.reason, got, skip)
		}
	}
}

func scopeOf(t testing.TB) *cel.Scope {
	t.Helper()
	scope, err := kyvernocel.NewScope(func() (*cel.Env, error) { return cel.NewEnv(cel.Options{Variables: kyvernocel.OfObject()}) })
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// outcome is what a text or an error comes to.
func outcome(text string, err error) string {
	if err != nil {
		return err.Error()
	}
	return text
}

// TestSettings reads the fields that every policy has.
func TestSettings(t *testing.T) {
	for _, c := range []struct{ reason, spec, want string }{
		{"no settings", "{}", "false 0s false"},
		{"failing closed", "{failurePolicy: Fail}", "false 0s false"},
		{"an empty failure policy", "{failurePolicy: ''}", "false 0s false"},
		{"failing open", "{failurePolicy: Ignore}", "true 0s false"},
		{"another failure policy", "{failurePolicy: ignore}", "spec.failurePolicy: unknown value"},
		{"a webhook without settings", "{webhookConfiguration: {}}", "false 0s false"},
		{"the shortest time", "{webhookConfiguration: {timeoutSeconds: 1}}", "false 1s false"},
		{"a shorter one", "{webhookConfiguration: {timeoutSeconds: 0}}", "spec.webhookConfiguration.timeoutSeconds: want 1 to 30 seconds, found 0"},
		{"the longest time", "{webhookConfiguration: {timeoutSeconds: 30}}", "false 30s false"},
		{"a longer one", "{webhookConfiguration: {timeoutSeconds: 31}}", "spec.webhookConfiguration.timeoutSeconds: want 1 to 30 seconds, found 31"},
		{"objects", "{evaluation: {mode: Kubernetes}}", "false 0s false"},
		{"documents", "{evaluation: {mode: JSON}}", "false 0s true"},
		{"neither", "{evaluation: {mode: Envoy}}", "spec.evaluation.mode: unknown value"},
	} {
		spec := read[v1alpha1.ValidatingPolicySpec](t, c.spec)
		var p policy.Policy
		isJSON, err := kyvernocel.Settings{FailurePolicy: spec.FailurePolicy, Webhook: spec.WebhookConfiguration, Mode: spec.EvaluationMode()}.Apply(&p)
		if got := outcome(fmt.Sprint(p.FailOpen, p.Timeout, isJSON), err); !strings.HasPrefix(got, c.want) || p.Unscanned != "" {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
	var p policy.Policy
	if _, err := (kyvernocel.Settings{Mode: "Kubernetes", Unscanned: true}).Apply(&p); err != nil || p.Unscanned == "" {
		t.Errorf("objects that are there are scanned: %+v %v", p, err)
	}
}

// TestActionOf takes the strictest of the actions.
func TestActionOf(t *testing.T) {
	for text, want := range map[string]string{
		"[]": "Enforce", "[Deny]": "Enforce", "[Warn]": "Warn", "[Audit]": "Audit",
		"[Warn, Audit]": "Warn", "[Audit, Warn]": "Warn", "[Deny, Warn]": "Enforce", "[Warn, Deny]": "Enforce", "[Deny, Audit]": "Enforce", "[Audit, Deny]": "Enforce",
		"[Audit, Shout]": "spec.validationActions[1]: unknown action",
	} {
		action, err := kyvernocel.ActionOf(*read[[]admission.ValidationAction](t, text))
		if got := outcome(string(action), err); !strings.HasPrefix(got, want) || err != nil && action != "" {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestAskedAtAdmission(t *testing.T) {
	for _, c := range []struct {
		reason  string
		subject policy.Subject
		want    bool
	}{
		{"a user", policy.Subject{User: policy.User{Name: "ann"}}, true},
		{"a user without a name", policy.Subject{User: policy.User{Groups: []string{"dev"}}}, true},
		{"images alone", policy.Subject{Shape: policy.Shape{Bare: true}}, true},
		{"nobody", policy.Subject{}, false},
	} {
		if got := kyvernocel.AskedAtAdmission(&c.subject); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// TestConditions compiles conditions, and refuses those that mean nothing.
func TestConditions(t *testing.T) {
	scope := scopeOf(t)
	many := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("{name: c%d, expression: 'true'}", i))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	for _, c := range []struct{ reason, conditions, want string }{
		{"none", "[]", "0"},
		{"as many as there may be", many(64), "64"},
		{"one more", many(65), "at: 65 are more than 64"},
		{"a name with a prefix", "[{name: a.example/b, expression: 'true'}]", "1"},
		{"no name", "[{expression: 'true'}]", "at[0].name"},
		{"a name of several words", "[{name: a b, expression: 'true'}]", "1"},
		{"an empty name", "[{name: '', expression: 'true'}]", "at[0].name"},
		{"a name twice", "[{name: a, expression: 'true'}, {name: a, expression: 'true'}]", "at[1].name"},
		{"no truth", "[{name: a, expression: '1'}]", "at[0].expression"},
		{"a known member of a request", "[{name: a, expression: request.name == 'a'}]", "1"},
		{"all of it", "[{name: a, expression: '[request].size() == 1'}]", "1"},
		{"the options of a request", "[{name: a, expression: request.options == null}]", "1"},
		{"a known member of a namespace", "[{name: a, expression: namespaceObject.metadata.name == 'a'}]", "1"},
		{"an unknown member of it", "[{name: a, expression: namespaceObject.status.phase == 'a'}]", "at[0].expression: namespaceObject.status is not known here"},
		{"an object has any member", "[{name: a, expression: object.options == null}]", "1"},
	} {
		list, err := kyvernocel.CompileConditions(scope, *read[[]admission.MatchCondition](t, c.conditions), "at")
		if got := outcome(fmt.Sprint(len(list)), err); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
	for conditions, want := range map[string]string{
		"": "true", "true": "true", "true; true": "true", "true; false": "false", "false; true": "false",
		"object.none == 1; false": "false", "false; object.none == 1": "false", "object.none == 1; true": "no such key: none",
		"true; object.none == 1": "no such key: none", "object.none == 1; object.other == 1": "no such key: none",
	} {
		var docs []admission.MatchCondition
		for i, text := range strings.FieldsFunc(conditions, func(r rune) bool { return r == ';' }) {
			docs = append(docs, admission.MatchCondition{Name: fmt.Sprint("c", i), Expression: text})
		}
		list, err := kyvernocel.CompileConditions(scope, docs, "at")
		if err != nil {
			t.Fatal(err)
		}
		seen := &kyvernocel.Seen{Subject: &policy.Subject{Object: policy.ContentOf(map[string]any{})}}
		held, err := list.Hold(t.Context(), scope.NewActivation(cel.Inputs{More: seen}))
		if got := outcome(fmt.Sprint(held), err); !strings.Contains(got, want) || err != nil && held {
			t.Errorf("%s: %s, want %s", conditions, got, want)
		}
	}
}

func TestDeclare(t *testing.T) {
	for n, want := range map[int]string{200: "", 201: "spec.variables: 201 are more than 200"} {
		var docs []admission.Variable
		for i := range n {
			docs = append(docs, admission.Variable{Name: fmt.Sprint("v", i), Expression: "1"})
		}
		if got := outcome("", kyvernocel.Declare(scopeOf(t), docs)); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%d: %s", n, got)
		}
	}
	err := kyvernocel.Declare(scopeOf(t), []admission.Variable{{Name: "a", Expression: "1"}, {Name: "b", Expression: "nothing"}})
	if err == nil || !strings.HasPrefix(err.Error(), "spec.variables[1].expression") {
		t.Error(err)
	}
	down := errors.New("no language")
	if _, err := kyvernocel.NewScope(func() (*cel.Env, error) { return nil, down }); !errors.Is(err, down) {
		t.Error("a language that cannot be made:", err)
	}
}

func TestCheckReason(t *testing.T) {
	for _, c := range []struct{ reason, validation, want string }{
		{"no reason", "{}", ""},
		{"an empty reason", "{reason: ''}", ""},
		{"one of Kubernetes'", "{reason: Forbidden}", ""},
		{"another", "{reason: Because}", "at.reason: unknown reason"},
		{"the longest message", "{message: '" + strings.Repeat("x", kyvernocel.MaxMessage) + "'}", ""},
		{"a longer one", "{message: '" + strings.Repeat("x", kyvernocel.MaxMessage+1) + "'}", "at.message: 5121 bytes are more than 5120"},
	} {
		if got := outcome("", kyvernocel.CheckReason(*read[admission.Validation](t, c.validation), "at")); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
}

// TestAnnotations compiles annotations and evaluates them.
func TestAnnotations(t *testing.T) {
	scope := scopeOf(t)
	many := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("{key: k%d, valueExpression: \"'a'\"}", i))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	for _, c := range []struct{ reason, annotations, want string }{
		{"none", "[]", "0"},
		{"as many as there may be", many(200), "200"},
		{"one more", many(201), "spec.auditAnnotations: 201 are more than 200"},
		{"no key", "[{valueExpression: \"'a'\"}]", "spec.auditAnnotations[0].key"},
		{"an invalid key", "[{key: a b, valueExpression: \"'a'\"}]", "spec.auditAnnotations[0].key"},
		{"a key twice", "[{key: a, valueExpression: \"'a'\"}, {key: a, valueExpression: \"'a'\"}]", "spec.auditAnnotations[1].key"},
		{"no text", "[{key: a, valueExpression: '1'}]", "spec.auditAnnotations[0].valueExpression"},
	} {
		list, err := kyvernocel.CompileAnnotations(scope, *read[[]admission.AuditAnnotation](t, c.annotations))
		if got := outcome(fmt.Sprint(len(list.Programs())), err); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
	text := "[{key: text, valueExpression: string(object.name)}, {key: none, valueExpression: \"''\"}, {key: no, valueExpression: 'null'}, {key: wrong, valueExpression: string(object.none)}]"
	list, err := kyvernocel.CompileAnnotations(scope, *read[[]admission.AuditAnnotation](t, text))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{3, kyvernocel.MaxMessage, kyvernocel.MaxMessage + 1} {
		object := map[string]any{"name": strings.Repeat("x", size)}
		want := strings.Repeat("x", min(size, kyvernocel.MaxMessage))
		if size > kyvernocel.MaxMessage {
			want += "..."
		}
		words, errs := list.Words(t.Context(), scope.NewActivation(cel.Inputs{More: &kyvernocel.Seen{Subject: &policy.Subject{Object: policy.ContentOf(object)}}}))
		if reasons := kyvernocel.AnnotationReasons(errs); len(reasons) != 1 || reasons[0].Path != "spec.auditAnnotations" || !strings.Contains(reasons[0].Message, "no such key: none") {
			t.Errorf("%d bytes: %v", size, reasons)
		}
		if len(words) != 2 || words["text"] != want || !strings.HasPrefix(words["wrong"], "cannot be evaluated: ") {
			t.Errorf("%d bytes: %.100v", size, words)
		}
	}
	if words, errs := kyvernocel.Annotations(nil).Words(t.Context(), nil); words != nil || errs != nil {
		t.Error("none say", words, errs)
	}
}

func TestShorten(t *testing.T) {
	exact, long := strings.Repeat("x", 200), strings.Repeat("x", 201)
	if kyvernocel.Shorten(exact) != exact || kyvernocel.Shorten(long) != exact+"..." {
		t.Error(kyvernocel.Shorten(exact), kyvernocel.Shorten(long))
	}
}

// TestUnsupported: a field without support is refused with its path.
func TestUnsupported(t *testing.T) {
	err := kyvernocel.Unsupported("spec.a", "a choice")
	if problem, ok := errors.AsType[*field.Error](err); !ok || problem.Path != "spec.a" || !strings.Contains(err.Error(), "a choice is not supported in this version") {
		t.Error(err)
	}
}

// TestNewPolicy reads the head of a document.
func TestNewPolicy(t *testing.T) {
	const version, kind = "policies.kyverno.io/v1", "ValidatingPolicy"
	for _, c := range []struct{ reason, version, kind, metadata, data, want string }{
		{"a policy of the cluster", version, kind, "{name: a}", "", "ValidatingPolicy/a false false false"},
		{"which is in no namespace", version, kind, "{name: a, namespace: shop}", "", "ValidatingPolicy/a false false false"},
		{"a policy of a namespace", version, "Namespaced" + kind, "{name: a, namespace: shop}", "", "NamespacedValidatingPolicy/shop/a false false false"},
		{"of the default one", version, "Namespaced" + kind, "{name: a}", "", "NamespacedValidatingPolicy/default/a false false false"},
		{"another API", "kyverno.io/v1", kind, "{name: a}", "", "kyverno.io/v1 ValidatingPolicy is no ValidatingPolicy"},
		{"another kind", version, "MutatingPolicy", "{name: a}", "", "policies.kyverno.io/v1 MutatingPolicy is no ValidatingPolicy"},
		{"no name", version, kind, "{labels: {}}", "", "metadata.name: is empty"},
		{"annotations that cannot be read", version, kind, "{name: a, annotations: {b: 1}}", "", "metadata: "},
		{"how long verified claims are valid", version, kind, "{name: a, annotations: {'" + policy.StaleAnnotation + "': 1h}}", "", "ValidatingPolicy/a true false false"},
		{"which is no time", version, kind, "{name: a, annotations: {'" + policy.StaleAnnotation + "': ever}}", "", "metadata.annotations[" + policy.StaleAnnotation + "]"},
		{"no score", version, kind, "{name: a, annotations: {policies.kyverno.io/scored: 'false'}}", "", "ValidatingPolicy/a false true false"},
		{"a score", version, kind, "{name: a, annotations: {policies.kyverno.io/scored: 'true'}}", "", "ValidatingPolicy/a false false false"},
		{"the label that disables reports", version, kind, "{name: a, labels: {reports.kyverno.io/disabled: ''}}", "", "ValidatingPolicy/a false false false true"},
		{"another label", version, kind, "{name: a, labels: {reports.kyverno.io/enabled: 1}}", "", "ValidatingPolicy/a false false false false"},
		{"the words of an expression are no expression", version, kind, "{name: a}", "request.userInfo", "ValidatingPolicy/a false false false"},
	} {
		metadata, err := yaml.YAMLToJSON([]byte(c.metadata))
		if err != nil {
			t.Fatal(err)
		}
		head := kyvernocel.Head{APIVersion: c.version, Kind: c.kind, Metadata: json.RawMessage(metadata)}
		var got string
		p, err := head.NewPolicy([]byte(c.data), kind, "a.yaml")
		if err == nil {
			got = fmt.Sprint(p.ID(), p.StaleIfError != nil, p.Unscored, p.Unscanned != "", p.Unreported)
			got = strings.Replace(got, p.ID(), p.ID()+" ", 1)
		}
		got = outcome(got, err)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestNamespaced: a policy of a namespace keeps to it, and does not reach out.
func TestNamespaced(t *testing.T) {
	for namespace, want := range map[string]int{"": 0, "shop": 1} {
		targets := kyvernocel.Confine([]policy.Target{{Kind: "Pod"}, {Kind: "Job"}}, namespace)
		for _, target := range targets {
			if len(target.Namespaces) != want || want == 1 && target.Namespaces[0] != namespace {
				t.Errorf("%q: %+v", namespace, target)
			}
		}
	}
	if all, one := kyvernocel.Reach(false), kyvernocel.Reach(true); !all.HTTP || !all.GlobalContext || all.Namespaced || one.HTTP || one.GlobalContext || !one.Namespaced {
		t.Errorf("%+v %+v", all, one)
	}
}

// TestReasons: the reasons for which an expression has no value.
func TestReasons(t *testing.T) {
	unknown := func(gaps ...error) error { return &cel.UnknownError{Gaps: gaps} }
	down := &image.Error{Kind: image.Unavailable, Op: "resolve", On: "a", Err: errors.New("down")}
	for _, c := range []struct {
		reason string
		err    error
		faulty bool
		want   []policy.Code
	}{
		{"its own", errors.New("no such key"), true, []policy.Code{policy.PolicyError}},
		{"the time is over", fmt.Errorf("ended: %w", context.DeadlineExceeded), false, []policy.Code{policy.TimedOut}},
		{"the client disconnected", context.Canceled, false, []policy.Code{policy.CannotProve}},
		{"an unknown value", unknown(errors.New("not known here")), false, []policy.Code{policy.PolicyError}},
		{"a registry's", unknown(down), false, []policy.Code{policy.Unavailable}},
		{"the time is over while looking", unknown(context.DeadlineExceeded), false, []policy.Code{policy.TimedOut}},
		{"several", unknown(down, errors.New("not known here")), false, []policy.Code{policy.Unavailable, policy.PolicyError}},
	} {
		reasons, faulty := kyvernocel.Reasons(c.err, "at")
		var codes []policy.Code
		for _, r := range reasons {
			codes = append(codes, r.Code)
			if r.Path != "at" {
				t.Errorf("%s: at %s", c.reason, r.Path)
			}
		}
		if !slices.Equal(codes, c.want) || faulty != c.faulty {
			t.Errorf("%s: %v %v, want %v", c.reason, codes, faulty, c.want)
		}
	}
}

// TestSeen: expressions distinguish unknown members of a subject from absent ones.
func TestSeen(t *testing.T) {
	scope := scopeOf(t)
	object := map[string]any{"metadata": map[string]any{"name": "web"}, "image": "a:1"}
	full := policy.Subject{
		Object: policy.ContentOf(object), Version: "v1", Kind: "Pod", Namespace: "shop", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"team": "a"}},
		Operation: "CREATE", User: policy.User{Name: "ann", Groups: []string{"dev"}},
	}
	hidden, outside, gone := full, full, full
	hidden.NamespaceKnown, hidden.NamespaceLabels = false, nil
	outside.Namespace = ""
	gone.Object, gone.OldObject = policy.Content{}, full.Object
	bare := policy.Subject{Shape: policy.Shape{Bare: true}, Version: "v1", Kind: "Pod", Namespace: "shop"}
	lost := policy.Subject{Shape: policy.Shape{Bare: true}, Version: "v1", Kind: "Pod"}
	asked, custom, attach, optionless, empty := full, full, full, full, full
	optionless.Request = policy.RequestFrom([]byte(`{"uid": "u1", "userInfo": {"username": "eve"}}`))
	empty.Request = policy.RequestFrom([]byte(`{"uid": "u1", "options": null, "dryRun": null, "userInfo": {"username": "eve"}}`))
	asked.Request = policy.RequestFrom([]byte(`{"uid": "u1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "options": {"fieldManager": "ci"}, "userInfo": {"username": "eve"}}`))
	custom.Group, custom.Kind = "example.test", "Widget"
	attach.Subresource, attach.Object = "attach", policy.ContentOf(map[string]any{"apiVersion": "v1", "kind": "PodAttachOptions"})
	for _, c := range []struct {
		reason, expression string
		subject            policy.Subject
		want               string
	}{
		{"the object", "object.metadata.name == 'web'", full, "true"},
		{"where only images are known", "object.metadata.name == 'web'", bare, "asks for object;"},
		{"an object that is no more", "object == null && oldObject.metadata.name == 'web'", gone, "true"},
		{"no old object", "oldObject == null", full, "true"},
		{"an unknown old object", "oldObject == null", bare, "asks for oldObject;"},
		{"the operation", "request.operation == 'CREATE'", full, "true"},
		{"an unknown operation", "request.operation == 'CREATE'", bare, "request.operation is not known here"},
		{"the user", "request.userInfo.username == 'ann' && request.userInfo.groups == ['dev']", full, "true"},
		{"an unknown member of the user", "request.userInfo.uid == ''", full, "request.userInfo.uid is not known here"},
		{"whether there is a user", "has(request.userInfo)", full, "true"},
		{"an unknown user", "has(request.userInfo)", bare, "request.userInfo is not known here"},
		{"a member of the request", "'operation' in dyn(request)", full, "true"},
		{"the user that the API server names", "request.userInfo.username == 'eve' && !has(request.userInfo.uid)", asked, "true"},
		{"the options that came", "request.options.fieldManager == 'ci' && !has(request.options.dryRun)", asked, "true"},
		{"options that are null", "request.options == null && has(request.options) && !request.dryRun", empty, "true"},
		{"a member of null options", "has(request.options.fieldManager)", empty, "false"},
		{"a default for a member of null options", "request.?options.?fieldManager.orValue('') == 'ci'", empty, "false"},
		{"a request without options", "request.options == null", optionless, "true"},
		{"options that are not null", "request.options == null", asked, "false"},
		{"no dry run", "!request.dryRun", asked, "true"},
		{"no subresource", "has(request.subResource) || 'subResource' in dyn(request) || request.?requestSubResource.hasValue()", asked, "false"},
		{"nor where no request came", "has(request.subResource) || 'subResource' in dyn(request) || request.?requestSubResource.hasValue()", full, "false"},
		{"which is no empty one", "request.subResource == ''", asked, "no such key: subResource"},
		{"a default for none", "request.?subResource.orValue('none') == 'none'", full, "true"},
		{"a subresource", "has(request.subResource) && request.subResource == 'attach'", attach, "true"},
		{"where only images are known", "has(request.subResource)", bare, "request.subResource is not known here"},
		{"options that did not come", "!has(request.options)", full, "request.options is not known here"},
		{"a dry run where no request came", "request.dryRun", full, "request.dryRun is not known here"},
		{"an unknown part that decides nothing", "request.operation == 'CREATE' || request.dryRun", full, "true"},
		{"the resource of a custom kind", "request.resource.resource == 'widgets'", custom, "request.resource.resource is not known here"},
		{"and its group", "request.resource.group == 'example.test' && request.kind.kind == 'Widget'", custom, "true"},
		{"the kind of a subresource", "request.kind.kind == 'PodAttachOptions' && request.resource.resource == 'pods'", attach, "true"},
		{"an unknown member", "'operation' in dyn(request)", bare, "request.operation is not known here"},
		{"the kind", "request.kind.kind == 'Pod' && request.resource.resource == 'pods'", full, "true"},
		{"of images alone", "request.kind.kind == 'Pod' && request.resource.resource == 'pods'", bare, "true"},
		{"the namespace", "request.namespace == 'shop' && namespaceObject.metadata.name == 'shop'", full, "true"},
		{"of images alone, too", "request.namespace == 'shop' && namespaceObject.metadata.name == 'shop'", bare, "true"},
		{"which may not be known", "request.namespace == ''", lost, "request.namespace is not known here"},
		{"nor is the object of the namespace", "namespaceObject == null", lost, "the object's namespace"},
		{"an object in none", "namespaceObject == null && !has(request.namespace)", outside, "true"},
		{"no namespace", "request.namespace != 'shop'", outside, "no such key: namespace"},
		{"its labels", "namespaceObject.metadata.labels.team == 'a'", full, "true"},
		{"a label that it does not have", "'zone' in namespaceObject.metadata.labels", full, "false"},
		{"unknown labels", "'zone' in namespaceObject.metadata.labels", hidden, "namespaceObject.metadata.labels is not known here"},
		{"its annotations", "namespaceObject.metadata.annotations['a'] == 'b'", full, "namespaceObject.metadata.annotations is not known here"},
		{"whether it has annotations", "!has(namespaceObject.metadata.annotations)", full, "namespaceObject.metadata.annotations is not known here"},
		{"another member of its metadata", "namespaceObject.metadata.UID == 'a'", full, "namespaceObject.metadata.UID is not known here"},
		{"annotations that decide nothing", "namespaceObject.metadata.labels.team == 'a' || has(namespaceObject.metadata.annotations)", full, "true"},
		{"another text", "object.image == 'a@b'", full, "true"},
		{"that was not there before", "oldObject.image == 'a:1'", gone, "true"},
	} {
		p, err := scope.Compile("at", c.expression, celgo.BoolType)
		if err != nil {
			t.Fatal(c.reason, err)
		}
		pinned := map[string]string{"/image": "a@b"}
		for _, inputs := range []cel.Inputs{
			{More: &kyvernocel.Seen{Subject: &c.subject, Pinned: pinned}}, {Variables: kyvernocel.Variables(&c.subject, nil, pinned)},
		} {
			held, err := p.Bool(t.Context(), scope.NewActivation(inputs))
			_, unknown := errors.AsType[*cel.UnknownError](err)
			if got := outcome(fmt.Sprint(held), err); !strings.Contains(got, c.want) || unknown != (err != nil && !strings.HasPrefix(c.want, "no such key")) {
				t.Errorf("%s: %s, want %s", c.reason, got, c.want)
			}
		}
	}
	seen := &kyvernocel.Seen{Subject: &full, Template: kyvernocel.Template{"spec", "template"}}
	if value, ok := seen.Value(kyvernocel.OldObjectName); value != nil || !ok {
		t.Error("a template of an absent object:", value)
	}
	if _, ok := seen.Value("other"); ok {
		t.Error("a variable that is not defined")
	}
	request, _ := seen.Value(kyvernocel.RequestName)
	for member, known := range map[string]bool{"operation": true, "options": false} { // an optional member is known or unknown, never absent
		if value, found := request.(traits.Mapper).Find(types.String(member)); !found || types.IsError(value) == known {
			t.Errorf("request.%s: %v, found %t", member, value, found)
		}
	}
}

// TestOwnNamespace is namespaceObject of a request for a Namespace: null in Kubernetes, and
// the stored Namespace in Kyverno. Its new labels are the requester's.
func TestOwnNamespace(t *testing.T) {
	scope := scopeOf(t)
	labelled := func(team string) policy.Content {
		return policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "shop", "labels": map[string]any{"team": team}, "annotations": map[string]any{"by": team}}})
	}
	created := policy.Subject{
		Version: "v1", Kind: "Namespace", Namespace: "shop", Name: "shop", Operation: "CREATE", Object: labelled("new"),
		NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"team": "new"}},
	}
	updated, deleted, lost, finalized, file, other := created, created, created, created, created, created
	updated.Operation, updated.OldObject = "UPDATE", labelled("old")
	deleted.Operation, deleted.Object, deleted.OldObject = "DELETE", policy.Content{}, labelled("old")
	lost.Operation = "UPDATE"
	finalized.Operation, finalized.Subresource, finalized.OldObject = "UPDATE", "finalize", labelled("old")
	file.Namespace, file.NamespaceKnown = "", false
	other.Group, other.Object = "example.test", labelled("none")
	const team, none = "namespaceObject.metadata.labels.team == 'old'", "namespaceObject == null"
	for _, c := range []struct {
		reason, expression string
		subject            policy.Subject
		kyverno, own       string
	}{
		{"an update", team, updated, "true", "no such"},
		{"and its annotations", "namespaceObject.metadata.annotations.by == 'old'", updated, "true", "no such"},
		{"and not its new label", "namespaceObject.metadata.labels.team == 'new'", updated, "false", "no such"},
		{"a deletion", team, deleted, "true", "no such"},
		{"a creation", none, created, "true", "true"},
		{"in none for Kubernetes", none, updated, "false", "true"},
		{"an update of which the old object is missing", none, lost, "the stored Namespace is not known", "true"},
		{"a subresource that brings the Namespace", team, finalized, "true", "no such"},
		{"a file", none, file, "true", "true"},
		{"a kind of another group with the name", "namespaceObject.metadata.labels.team == 'new'", other, "true", "true"},
	} {
		p, err := scope.Compile("at", c.expression, celgo.BoolType)
		if err != nil {
			t.Fatal(c.reason, err)
		}
		for _, language := range []struct {
			inputs cel.Inputs
			want   string
		}{
			{cel.Inputs{More: &kyvernocel.Seen{Subject: &c.subject}}, c.kyverno},
			{cel.Inputs{Variables: kyvernocel.Variables(&c.subject, nil, nil)}, c.own},
		} {
			held, err := p.Bool(t.Context(), scope.NewActivation(language.inputs))
			if got := outcome(fmt.Sprint(held), err); !strings.Contains(got, language.want) {
				t.Errorf("%s: %s, want %s", c.reason, got, language.want)
			}
		}
	}
}

// TestPartialRequest: an expression over a request of which some members are unknown is
// indeterminate where it depends on one of them, in either polarity.
func TestPartialRequest(t *testing.T) {
	scope, err := kyvernocel.NewScope(func() (*cel.Env, error) { return cel.NewEnv(cel.Options{Variables: kyvernocel.OfObject()}) })
	if err != nil {
		t.Fatal(err)
	}
	part := policy.Subject{
		Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web", Operation: "CREATE", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true},
		User: policy.User{Name: "ann", Groups: []string{"dev"}}, Object: policy.ContentOf(map[string]any{"large": []any{9007199254740993.0}}),
	}
	whole := part
	whole.Request = policy.RequestFrom([]byte(`{"userInfo": {"username": "ann", "groups": ["dev"], "extra": {"k": ["v"]}}, "options": {"a": "b"}}`))
	const known = "{'username': dyn('ann'), 'groups': dyn(['dev']), 'extra': dyn({'k': ['v']})}"
	for _, c := range []struct {
		reason, expression string
		part, whole        string // unknown, true or false
	}{
		{"a request equal to a map", "dyn(request) == dyn({'uid': 'u'})", "unknown", "false"},
		{"a map equal to a request", "dyn({'uid': 'u'}) == dyn(request)", "unknown", "false"},
		{"unequal", "dyn({'uid': 'u'}) != dyn(request)", "unknown", "true"},
		{"a request equal to itself", "request == request", "unknown", "true"},
		{"a known member that differs", "dyn(request) == dyn({'operation': 'DELETE'})", "false", "false"},
		{"the same unequal", "dyn(request) != dyn({'operation': 'DELETE'})", "true", "true"},
		{"a request equal to a text", "dyn(request) == dyn('a')", "false", "false"},
		{"the user equal to a map", "dyn(request.userInfo) == dyn(" + known + ")", "unknown", "true"},
		{"the user unequal to a map", "dyn(request.userInfo) != dyn(" + known + ")", "unknown", "false"},
		{"the user in a list", "dyn(request.userInfo) in [dyn(" + known + ")]", "unknown", "true"},
		{"no such user in a list", "!(dyn(request.userInfo) in [dyn({'username': 'ann'})])", "unknown", "true"},
		{"lists of users", "[dyn(request.userInfo)] == [dyn(" + known + ")]", "unknown", "true"},
		{"maps of users", "{'a': dyn(request.userInfo)} != {'a': dyn(" + known + ")}", "unknown", "false"},
		{"optional users", "optional.of(dyn(request.userInfo)) == optional.of(dyn(" + known + "))", "unknown", "true"},
		{"a set of users", "sets.contains([dyn(request.userInfo)], [dyn(" + known + ")])", "unknown", "true"},
		{"its size", "size(dyn(request.userInfo)) == 3", "unknown", "true"},
		{"the size as a method", "dyn(request.userInfo).size() < 9", "unknown", "true"},
		{"each member of the user", "dyn(request.userInfo).all(k, k != 'uid')", "unknown", "true"},
		{"some member of the user", "dyn(request.userInfo).exists(k, k == 'uid')", "unknown", "false"},
		{"one member of the user", "dyn(request.userInfo).exists_one(k, true)", "unknown", "false"},
		{"filtered members", "size(dyn(request.userInfo).filter(k, true)) == 3", "unknown", "true"},
		{"mapped members", "dyn(request).map(k, 1).size() > 0", "unknown", "true"},
		{"members with values", "dyn(request.userInfo).all(k, v, v != 'root')", "unknown", "true"},
		{"members that are bound", "cel.bind(u, dyn(request.userInfo), u.exists(k, k == 'uid'))", "unknown", "false"},
		{"members of an element", "[dyn(request.userInfo)].all(u, u.all(k, k != 'uid'))", "unknown", "true"},
		{"members where they do not decide", "true || dyn(request).all(k, false)", "true", "true"},
		{"groups that are known", "request.userInfo.groups.all(g, g == 'dev') && size(request.userInfo.groups) == 1", "true", "true"},
		{"extra", "'k' in request.userInfo.extra", "unknown", "true"},
		{"no extra", "!('z' in request.userInfo.extra)", "unknown", "true"},
		{"each extra", "request.userInfo.extra.all(k, k == 'k')", "unknown", "true"},
		{"options", "has(request.options)", "unknown", "true"},
		{"optional options", "request.?options.hasValue()", "unknown", "true"},
		{"a name of no member", "'foo' in dyn(request)", "unknown", "false"},
		{"a resource of which all is known", "dyn(request.resource) == dyn({'group': '', 'version': 'v1', 'resource': 'pods'})", "true", "true"},
		{"its members", "size(dyn(request.resource)) == 3 && dyn(request.resource).all(k, k != 'kind')", "true", "true"},
		{"the known members of a namespace", "dyn(namespaceObject) == dyn({'metadata': {'name': 'shop'}})", "unknown", "unknown"},
		{"the members of a namespace", "dyn(namespaceObject).all(k, k == 'metadata')", "unknown", "unknown"},
		{"an inexact number in a list", "object.large == [1]", "unknown", "unknown"},
		{"unequal to one", "object.large != [1]", "unknown", "unknown"},
		{"in a list with one", "1 in object.large", "unknown", "unknown"},
		{"lists of different sizes", "object.large == [1, 2]", "false", "false"},
	} {
		p, err := scope.Compile("at", c.expression, celgo.BoolType)
		if err != nil {
			t.Error(c.reason, err)
			continue
		}
		for subject, want := range map[*policy.Subject]string{&part: c.part, &whole: c.whole} {
			held, err := p.Bool(t.Context(), scope.NewActivation(cel.Inputs{More: &kyvernocel.Seen{Subject: subject}}))
			got := fmt.Sprint(held)
			if _, unknown := errors.AsType[*cel.UnknownError](err); unknown {
				got = "unknown"
			} else if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s (whole %t): %s is %s, want %s", c.reason, subject == &whole, c.expression, got, want)
			}
		}
	}
}

// TestIsOfObject: the variables that are of the object or its request.
func TestIsOfObject(t *testing.T) {
	for variable, want := range map[string]bool{"object": true, "oldObject": true, "request": true, "namespaceObject": true, "images": false} {
		if kyvernocel.IsOfObject(cel.Read{Variable: variable}) != want {
			t.Error(variable)
		}
	}
}

func ExampleTemplate_View() {
	deployment := map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"hostNetwork": true}}},
	}
	fmt.Println(kyvernocel.Template{"spec", "template"}.View(deployment))
	// Output: map[metadata:map[name:web] spec:map[hostNetwork:true]]
}

// TestBounded: a text is cut at a whole character.
func TestBounded(t *testing.T) {
	whole := strings.Repeat("ü", kyvernocel.MaxMessage/2)
	for text, want := range map[string]string{
		whole: whole, "x" + whole: "x" + whole[:kyvernocel.MaxMessage-2] + "...", "": "",
	} {
		if got := kyvernocel.Bounded(text); got != want {
			t.Errorf("%d bytes: %q at the end", len(text), got[max(0, len(got)-9):])
		}
	}
}
