package match_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

func kinds(text string) string { return "any: [{resources: {kinds: ['" + text + "']}}]" }

// is makes a subject of a group, version, kind and subresource.
func is(group, version, kind, subresource string) *policy.Subject {
	return subject(kind, func(s *policy.Subject) { s.Group, s.Version, s.Subresource = group, version, subresource })
}

// TestKinds: each form of a kind matches exactly the kinds that it names.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		reason, kind string
		subject      *policy.Subject
		want         bool
	}{
		{"a version and a subresource", "v1/Pod/exec", is("", "v1", "Pod", "exec"), true},
		{"another version", "*/v2*/Pod/exec", is("", "v1", "Pod", "exec"), false},
		{"all four parts", "apps/v1/Deployment/scale", is("apps", "v1", "Deployment", "scale"), true},
		{"all four parts mean the subresource alone", "apps/v1/Deployment/scale", is("apps", "v1", "Deployment", ""), false},
		{"all four parts, of any group", "*/v1/Pod/exec", is("", "v1", "Pod", "exec"), true},
		{"the old form of a subresource", "Pod.status", is("", "v1", "Pod", "status"), true},
		{"the old form means the subresource alone", "Pod.status", is("", "v1", "Pod", ""), false},
		{"a version that begins with 0", "a/v0/Widget", is("a", "v0", "Widget", ""), true},
		{"a version that begins with 9", "a/v9/Widget", is("a", "v9", "Widget", ""), true},
		{"every kind", "*", is("", "v1", "Pod", ""), true},
		{"every kind, of which no subresource is one", "*", is("", "v1", "Pod", "status"), false},
		{"every kind, and containers that are added later", "*", is("", "v1", "Pod", "ephemeralcontainers"), true},
		{"everything, in two parts", "*/*", is("", "v1", "Pod", "status"), true},
		{"everything, in three", "*/*/*", is("", "v1", "Pod", "status"), true},
		{"everything, in the old form", "*.*", is("", "v1", "Pod", "exec"), true},
		{"everything, in four", "*/*/*/*", is("apps", "v1", "Deployment", ""), true},
		{"all of a kind", "Pod/*", is("", "v1", "Pod", "exec"), true},
		{"all of a kind, itself too", "Pod/*", is("", "v1", "Pod", ""), true},
		{"and of no other kind", "Pod/*", is("", "v1", "Service", "status"), false},
		{"a subresource of every kind", "*/scale", is("apps", "v1", "Deployment", "scale"), true},
		{"a subresource of every kind, and no object", "*/scale", is("apps", "v1", "Deployment", ""), false},
		{"a subresource of every kind, and no other", "*/scale", is("apps", "v1", "Deployment", "status"), false},
		{"a subresource of every kind, in the old form", "*.scale", is("apps", "v1", "Deployment", "scale"), true},
		{"a subresource of every kind, in three parts", "*/*/scale", is("apps", "v1", "Deployment", "scale"), true},
		{"a subresource of every kind, in four parts", "*/*/*/scale", is("", "v1", "Pod", "exec"), false},
		{"a subresource alone", "scale", is("apps", "v1", "StatefulSet", "scale"), true},
		{"a subresource alone, and no object", "scale", is("apps", "v1", "StatefulSet", ""), false},
		{"a subresource of a custom kind", "*/*/scale", is("autoscaling", "v1", "Scale", "scale"), true},
		{"a subresource of a version", "v1/*/status", is("", "v1", "Node", "status"), true},
		{"a custom kind in lower case", "example.com/v1/widget", is("example.com", "v1", "widget", ""), true},
		{"a custom kind in lower case alone", "widget", is("example.com", "v1", "widget", ""), true},
		{"a custom kind in lower case with a subresource", "widget/status", is("example.com", "v1", "widget", "status"), true},
		{"a custom kind named as a kind of Kubernetes", "example.com/v1/service", is("example.com", "v1", "service", ""), true},
		{"a subresource that another kind of that name has", "serving.example.com/v1/Service/scale", is("serving.example.com", "v1", "Service", "scale"), true},
		{"a custom kind named as the body of requests", "example.com/v1/Scale", is("example.com", "v1", "Scale", ""), true},
		{"a body that is an object, too", "Binding", is("", "v1", "Binding", ""), true},
		{"a kind of two groups", "events.k8s.io/v1/Event", is("events.k8s.io", "v1", "Event", ""), true},
		{"a kind that Kubernetes had in another group", "extensions/v1beta1/Ingress", is("extensions", "v1beta1", "Ingress", ""), true},
		{"a group that begins as a version does", "v1.demo/v1/Demo", is("v1.demo", "v1", "Demo", ""), true},
		{"a version that Kubernetes had", "apps/v1beta2/Deployment", is("apps", "v1beta2", "Deployment", ""), true},
		{"the second version of a kind", "autoscaling/v2/HorizontalPodAutoscaler", is("autoscaling", "v2", "HorizontalPodAutoscaler", ""), true},
		{"another version of a custom kind", "example.com/v2/Pod", is("example.com", "v2", "Pod", ""), true},
		{"a pattern for versions", "apps/v1*/Deployment", is("apps", "v1beta1", "Deployment", ""), true},
		{"a pattern for versions, of any group", "*/v*/Pod", is("", "v1", "Pod", ""), true},
		{"any version", "*/Pod", is("", "v1", "Pod", ""), true},
		{"every kind of a version, of which no subresource is one", "v1/*", is("", "v1", "Pod", "status"), false},
		{"every kind of a version itself", "v1/*", is("", "v1", "Pod", ""), true},
		{"containers that are added later are of the pod", "Pod", is("", "v1", "Pod", "ephemeralcontainers"), true},
		{"also where no kind is named", "v1/*", is("", "v1", "Pod", "ephemeralcontainers"), true},
		{"and no other object", "Service", is("", "v1", "Pod", "ephemeralcontainers"), false},

		{"the body of exec", "Pod/exec", is("", "v1", "PodExecOptions", "exec"), true},
		{"the body of exec is not that of attach", "Pod/attach", is("", "v1", "PodExecOptions", "exec"), false},
		{"nor does the body of exec match when it is sent to attach", "Pod/exec", is("", "v1", "PodExecOptions", "attach"), false},
		{"the body of a pod's proxy", "Pod/proxy", is("", "v1", "PodProxyOptions", "proxy"), true},
		{"the body of a service's proxy", "Pod/proxy", is("", "v1", "ServiceProxyOptions", "proxy"), false},
		{"the body of a pod's proxy, and the kind names services", "Service/proxy", is("", "v1", "PodProxyOptions", "proxy"), false},
		{"the body of exec, and the kind names another group", "example.com/v1/Pod/exec", is("", "v1", "PodExecOptions", "exec"), false},
		{"the body of exec, and the kind names another version", "*/v2*/Pod/exec", is("", "v1", "PodExecOptions", "exec"), false},
		{"the body of exec, and the kind names pods", "Pod", is("", "v1", "PodExecOptions", "exec"), false},
	} {
		if got, err := compile(t, kinds(c.kind)).Matches(c.subject, match.Selecting).Result(); got != c.want || err != nil {
			t.Errorf("%s: %s matches: %t, %v", c.reason, c.kind, got, err)
		}
	}
	for _, kind := range []string{
		"v*/Pod", "v1*/Pod", "v?/Deployment", "v*/Pod/exec", "v1beta*/Widget", // versions that are kinds or groups in Kyverno
		"Pod/", "/v1/Pod", "a/v1/Pod/b/c", "apps/Deployment/scale", // parts too few or too many
		"a/b/Pod", "a/1/Pod", "a/v/Pod", "a/v!/Pod", "a/!/Pod", "a/vx/Pod", "a/v1Beta1/Pod", // no versions
		"pods", "deployment", "Ingresses", "networkpolicies", "configmap", "v1/service", "Pod.status/exec", "Widget.example.com", "{{kind}}", // no kinds
		"Pod/foo", "v1/Pod/foo", "Pod/scale", "Pod/foo*", "ConfigMap/status", "Deployment/exec", "apps/v1/Deployment/approval", "Deployment/Scale", // no subresources
		"Apps/v1/Deployment",                                                          // no group
		"apps/v1/Pod", "batch/v1/Deployment/scale", "rbac.authorization.k8s.io/*/Pod", // not of the group
		"v2/Pod", "v1beta1/Pod", "v2/Pod/exec", "apps/v3/Deployment", "batch/v2/CronJob", "autoscaling/v3/HorizontalPodAutoscaler", // no versions of the kind
		"PodExecOptions", "v1/PodAttachOptions", "ServiceProxyOptions", "policy/v1/Eviction", "TokenRequest", "Scale", "PodExecOptions/exec", // bodies of requests
	} {
		if _, err := read(t, kinds(kind)); err == nil || !strings.Contains(err.Error(), "match.any[0].resources.kinds[0]: ") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for kind, custom := range map[string]bool{"Scale": true, "*/Eviction": true, "policy/v1/Eviction": false} {
		if _, err := read(t, kinds(kind)); err == nil || strings.Contains(err.Error(), "for a custom kind of that name write its group") != custom {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestExemptingKinds: a kind that Kyverno reads as another one, of which there are no objects, may
// select and not exempt.
func TestExemptingKinds(t *testing.T) {
	for kind, right := range map[string]string{
		"*/v1/Pod": "v1/Pod", "*/v*/Pod": "v*/Pod", "*/*/Widget": "*/Widget", "*/v1/*": "v1/*", "scale": "*/scale",
		"v10/Widget": "GROUP/v10/Widget", "v1beta10/Widget": "GROUP/v1beta10/Widget", "v10/Widget/scale": "GROUP/v10/Widget/scale",
		"v1/Pod": "", "*/Pod": "", "Pod": "", "apps/v1/Deployment": "", "*/*/scale": "", "*/scale": "", "Pod.status": "", "*/v1/Pod.status": "",
		"*/v1/Pod/status": "", "v1beta1/Widget": "", "v2/Widget": "", "ex.io/v10/Widget": "", "ex.io/v10/Widget/scale": "", "v2alpha1/Widget/scale": "", "v1/*": "", "widget": "",
	} {
		want := "match.any[0].resources.kinds[0]: \"" + kind + "\" is of another kind in Kyverno, where it exempts nothing: write " + right
		exempting := document(t, kinds(kind))
		if _, err := match.CompileSelecting(exempting, "match"); err != nil {
			t.Errorf("%s in a match: %v", kind, err)
		}
		if _, err := match.CompileExcepting(exempting, "match"); (err == nil) != (right == "") || err != nil && err.Error() != want {
			t.Errorf("%s in an exception: %v", kind, err)
		}
		_, err := match.CompileSelection(document(t, kinds("Secret")), &exempting, "rule", "")
		if (err == nil) != (right == "") || err != nil && !strings.Contains(err.Error(), "rule.exclude.any[0].resources.kinds[0]: ") {
			t.Errorf("%s in an exclude: %v", kind, err)
		}
	}
	for _, text := range []string{"all: [{resources: {kinds: ['*/v1/Pod']}}]", "resources: {kinds: ['*/v1/Pod']}"} {
		if _, err := match.CompileExcepting(document(t, text), "exclude"); err == nil {
			t.Errorf("%s exempts", text)
		}
	}
}

// TestMatchesMore: what a block asks of subjects that are not as usual.
func TestMatchesMore(t *testing.T) {
	resources := func(more string) string { return "any: [{resources: {" + more + "}}]" }
	namespace := func(group string) func(*policy.Subject) {
		return func(s *policy.Subject) { s.Kind, s.Group, s.Name = "Namespace", group, "team" }
	}
	bare := func(s *policy.Subject) { s.Bare = true }
	selecting := resources("namespaceSelector: {matchLabels: {env: prod}}")
	groups := func(s *policy.Subject) { s.User = policy.User{Groups: []string{"dev"}} }
	deleted := func(s *policy.Subject) { s.Object, s.OldObject = policy.Content{}, s.Object }
	generated := func(s *policy.Subject) {
		s.Name = ""
		s.Object = policy.ContentOf(map[string]any{"metadata": map[string]any{"generateName": "web-"}})
	}
	for _, c := range []struct {
		reason, text string
		change       func(*policy.Subject)
		want, errs   bool
	}{
		{"a Namespace is in itself", resources("namespaces: [team]"), namespace(""), true, false},
		{"and in no other", resources("namespaces: [prod]"), namespace(""), false, false},
		{"what another group calls so is where it is", resources("namespaces: [prod]"), namespace("example.com"), true, false},
		{"labels of namespaces select no Namespace, as in Kyverno", selecting, namespace(""), false, false},
		{"unless the rule names the kind", resources("kinds: [Namespace], namespaceSelector: {matchLabels: {env: prod}}"), namespace(""), true, false},
		{"but what another group calls so", selecting, namespace("example.com"), true, false},
		{"nor a cluster-scoped object", selecting, func(s *policy.Subject) { s.Namespace, s.NamespaceKnown = "", false }, false, false},

		{"a user with known groups, and another group", "any: [{subjects: [{kind: Group, name: ops}]}]", groups, false, false},
		{"a user with known groups", "any: [{subjects: [{kind: Group, name: dev}]}]", groups, true, false},
		{"one of all that is not known", "all: [{resources: {kinds: [Pod]}}, {roles: ['prod:a']}]", func(s *policy.Subject) { s.User.RolesKnown = false }, false, true},

		{"labels of a deleted object", resources("selector: {matchLabels: {app: web}}"), deleted, true, false},
		{"other labels of a deleted object", resources("selector: {matchLabels: {app: api}}"), deleted, false, false},
		{"what a name is made of", resources("names: [web-]"), generated, true, false},
		{"what a name can come of", resources("names: ['web-?????']"), generated, true, false},
		{"what another name is made of", resources("names: [api-]"), generated, false, false},

		{"a bare pod that is created", resources("kinds: [Pod], operations: [CREATE]"), bare, true, false},
		{"a bare pod of any kind", resources("kinds: ['v1/*']"), bare, true, false},
		{"a bare pod is no service", resources("kinds: [Service]"), bare, false, false},

		{"a label that is in no set", resources("selector: {matchExpressions: [{key: app, operator: In, values: [api]}]}"), nil, false, false},
		{"a label that is not there is not empty", resources("selector: {matchExpressions: [{key: gone, operator: In, values: ['']}]}"), nil, false, false},
		{"a label that is in no set, as is wanted", resources("selector: {matchExpressions: [{key: app, operator: NotIn, values: [api]}]}"), nil, true, false},
		{"a label that is not there is in no set", resources("selector: {matchExpressions: [{key: gone, operator: NotIn, values: ['']}]}"), nil, true, false},
		{"any value of a label that is not there", resources("selector: {matchLabels: {gone: '*'}}"), nil, false, false},
		{"a pattern for a label and its value", resources("selector: {matchLabels: {'a*': 'w*'}}"), nil, true, false},
		{"a pattern for a label, and another value", resources("selector: {matchLabels: {'a*': api}}"), nil, false, false},
		{"a value, and a pattern for another label", resources("selector: {matchLabels: {'x*': web}}"), nil, false, false},
	} {
		if got, err := compile(t, c.text).Matches(subject("Pod", c.change), match.Selecting).Result(); got != c.want || (err != nil) != c.errs {
			t.Errorf("%s: %s: %t, %v", c.reason, c.text, got, err)
		}
	}
	for _, expression := range []string{"key: a, operator: Exists, values: [b]", "key: '', operator: Exists"} {
		if _, err := read(t, resources("selector: {matchExpressions: [{"+expression+"}]}")); err == nil {
			t.Errorf("%s: no error", expression)
		}
	}
}

func TestSelectsUsers(t *testing.T) {
	for text, want := range map[string]bool{
		kinds("Pod"): false,
		"any: [{resources: {kinds: [Pod]}}, {roles: [a]}]":               true,
		"all: [{resources: {kinds: [Pod]}}, {clusterRoles: [a]}]":        true,
		"resources: {kinds: [Pod]}\nsubjects: [{kind: User, name: ann}]": true,
	} {
		var doc match.Document
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.SelectsUsers() != want {
			t.Errorf("%s selects users: %t", text, !want)
		}
	}
}

// TestOfPods: a rule that means something else for templates of pods is for pods alone.
func TestOfPods(t *testing.T) {
	for _, c := range []struct {
		match, exclude string
		want           bool
	}{
		{kinds("Pod"), "{}", true},
		{kinds("v1/Pod"), "{}", true},
		{kinds("*/v1/Pod"), "{}", true},
		{kinds("*/v2*/Pod"), "{}", false},
		{kinds("example.com/v1/Pod"), "{}", false},
		{"any: [{resources: {kinds: [Pod, Service]}}]", "{}", false},
		{"any: [{resources: {namespaces: [a]}}]", "{}", false},
		{"any: [{resources: {kinds: [Pod]}}, {resources: {namespaces: [a]}}]", "{}", true},
		{"any: [{resources: {namespaces: [a]}}, {resources: {kinds: [Pod]}}]", "{}", true},
		{"any: [{resources: {kinds: [Pod, v1/Pod]}}]", "{}", true},
		{"any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Service]}}]", "{}", true},
		{kinds("Service"), "{}", false},
		{kinds("Pod"), "any: [{resources: {kinds: [Pod], namespaces: [a]}}, {resources: {kinds: [Service]}}]", true},
		{kinds("Pod"), "any: [{resources: {kinds: [Service]}}]", false},
		{kinds("Pod"), "any: [{resources: {kinds: [Pod, Service], namespaces: [a]}}]", false},
		{kinds("Pod"), "any: [{resources: {names: [a]}}]", false},
		{kinds("Pod"), "any: [{resources: {namespaces: [a]}}]", true},
	} {
		var excluded match.Block
		if c.exclude != "{}" {
			excluded = compile(t, c.exclude)
		}
		if got := match.OfPods(compile(t, c.match), excluded); got != c.want {
			t.Errorf("%s but %s is about pods only: %t", c.match, c.exclude, got)
		}
	}
	if _, plain := compile(t, "any: [{resources: {kinds: [Pod], annotations: {a: b}}}]").AboutPods(); plain {
		t.Error("templates have the annotations of their pods")
	}
}

// TestForKindsFilters: ForKinds replaces pods and keeps filters that do not match pods.
func TestForKindsFilters(t *testing.T) {
	job := func(namespace string) *policy.Subject {
		s := is("batch", "v1", "Job", "")
		s.Namespace = namespace
		return s
	}
	config := is("", "v1", "ConfigMap", "")
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		want         bool
	}{
		{"the kind in place of pods", "any: [{resources: {kinds: [Pod], namespaces: [prod]}}]", job("prod"), true},
		{"and in the namespace that was meant", "any: [{resources: {kinds: [Pod], namespaces: [prod]}}]", job("test"), false},
		{"not in place of services", "any: [{resources: {kinds: [Pod], namespaces: [prod]}}, {resources: {kinds: [Service]}}]", job("test"), false},
		{"a filter without kinds stays", "any: [{resources: {kinds: [Pod], namespaces: [test]}}, {resources: {namespaces: [prod]}}]", job("prod"), true},
		{"for all kinds", "any: [{resources: {kinds: [Pod], namespaces: [test]}}, {resources: {namespaces: [prod]}}]", config, true},
		{"of all filters each must match still", "all: [{resources: {kinds: [Pod]}}, {resources: {kinds: ['*'], namespaces: [prod]}}]", job("test"), false},
		{"and may", "all: [{resources: {kinds: [Pod]}}, {resources: {kinds: ['*'], namespaces: [prod]}}]", job("prod"), true},
	} {
		if got, err := compile(t, c.text).ForKinds([]string{"Job"}, false).Matches(c.subject, match.Selecting).Result(); got != c.want || err != nil {
			t.Errorf("%s: %s: %t, %v", c.reason, c.text, got, err)
		}
	}
}

// TestTargetsOf: the targets of a block are as narrow as possible.
func TestTargetsOf(t *testing.T) {
	for _, c := range []struct{ reason, text, want string }{
		{"every kind, and no subresources", kinds("*"), "*/*/*/ */*/*/ephemeralcontainers"},
		{"a subresource of every kind", kinds("*/scale"), "*/*/*/scale"},
		{"a subresource alone", kinds("scale"), "*/*/*/scale"},
		{"the narrower first", "all: [{resources: {kinds: [Job]}}, {resources: {kinds: [Job, Service]}}]", "*/*/Job/"},
		{"the narrower last", "all: [{resources: {kinds: [Job, Service]}}, {resources: {kinds: [Job]}}]", "*/*/Job/"},
		{"no kinds, confined", "all: [{resources: {namespaces: [a]}}, {resources: {names: [b]}}]", "*/*/*/*"},
		{"a pod's subresource alone", kinds("Pod/exec"), "*/*/Pod/exec"},
		{"everything", kinds("*/*"), "*/*/*/*"},
		{"a pattern that pods do not fit", kinds("v1/S*"), "*/v1/S*/"},
		{"every kind, and containers that are added later", kinds("v1/*"), "*/v1/*/ */v1/*/ephemeralcontainers"},
	} {
		var got []string
		for _, target := range compile(t, c.text).Targets() {
			got = append(got, strings.Join([]string{target.Group, target.Version, target.Kind, target.Subresource}, "/"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %s", c.reason, got, c.want)
		}
	}
}

// TestJoinTargets: two that differ in anything are two.
func TestJoinTargets(t *testing.T) {
	one := policy.Target{Group: "g", Version: "v", Kind: "K", Subresource: "s", Operations: []string{"CREATE"}, Namespaces: []string{"a"}}
	if got := match.JoinTargets([]policy.Target{one}, []policy.Target{one}); len(got) != 1 {
		t.Errorf("the same twice: %+v", got)
	}
	for reason, change := range map[string]func(*policy.Target){
		"group": func(t *policy.Target) { t.Group = "" }, "version": func(t *policy.Target) { t.Version = "" },
		"kind": func(t *policy.Target) { t.Kind = "" }, "subresource": func(t *policy.Target) { t.Subresource = "" },
		"operations": func(t *policy.Target) { t.Operations = nil }, "namespaces": func(t *policy.Target) { t.Namespaces = nil },
	} {
		other := one
		change(&other)
		if got := match.JoinTargets([]policy.Target{one}, []policy.Target{other}); len(got) != 2 {
			t.Errorf("of another %s: %+v", reason, got)
		}
	}
}

// TestSent: the kind of a subresource's body is a target in addition, and is not registered
// at the API server.
func TestSent(t *testing.T) {
	target := func(group, version, kind, subresource string) policy.Target {
		return policy.Target{Group: group, Version: version, Kind: kind, Subresource: subresource}
	}
	exec := target("", "*", "PodExecOptions", "exec")
	for _, c := range []struct {
		of   policy.Target
		want []policy.Target // beside it
	}{
		{target("*", "*", "Pod", "exec"), []policy.Target{exec}},
		{target("*", "*", "Pod", "proxy"), []policy.Target{target("", "*", "PodProxyOptions", "proxy")}},
		{target("apps", "v1", "Deployment", "scale"), nil}, // a Scale may be of any kind: policy.Target.Means has it
		{target("*", "*", "Pod", ""), nil},
		{target("*", "*", "*", "*"), nil},
	} {
		with := match.WithSent([]policy.Target{c.of})
		if got := with[1:]; !reflect.DeepEqual(with[0], c.of) || len(got) != len(c.want) || len(got) > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("beside %+v: %+v, want %+v", c.of, got, c.want)
		}
		if got := match.WithoutSent(with); !reflect.DeepEqual(got, []policy.Target{c.of}) {
			t.Errorf("without bodies: %+v", got)
		}
	}
	for _, stays := range []policy.Target{
		target("apps", "*", "PodExecOptions", "exec"), target("", "v1", "PodExecOptions", "exec"),
		target("", "*", "Pod", "exec"), target("", "*", "PodExecOptions", "attach"),
	} {
		if got := match.WithoutSent([]policy.Target{stays, exec}); !reflect.DeepEqual(got, []policy.Target{stays}) {
			t.Errorf("%+v is not sent: %+v", stays, got)
		}
	}
}

func TestMayMatch(t *testing.T) {
	for _, c := range []struct {
		operations []string // of the target
		operation  string
		want       bool
	}{
		{nil, "CREATE", true}, {nil, "UPDATE", true}, {nil, "DELETE", false},
		{[]string{"DELETE"}, "DELETE", true}, {[]string{"DELETE"}, "CREATE", false},
	} {
		s := subject("Pod", func(s *policy.Subject) { s.Operation = c.operation })
		targets := []policy.Target{{Group: "*", Version: "*", Kind: "Pod", Operations: c.operations}}
		if got := match.MayMatch(targets, s); got != c.want {
			text, _ := json.Marshal(targets)
			t.Errorf("%s matches a %s: %t", text, c.operation, got)
		}
	}
}

// TestScopeOfKinds: namespaces beside kinds of the cluster alone match nothing, except where
// another API may have a kind of that name in namespaces.
func TestScopeOfKinds(t *testing.T) {
	for _, c := range []struct {
		reason, kinds string
		refused       bool
	}{
		{"a kind of the cluster", "[StorageClass]", true},
		{"two of them", "[ClusterRole, PersistentVolume]", true},
		{"one of them and one in namespaces", "[ClusterRole, Role]", false},
		{"a Namespace is selected by its own name", "[Namespace]", false},
		{"a name that a widely used API has in namespaces, too", "[IPAddress]", false},
		{"the same name of Kubernetes", "[networking.k8s.io/v1/IPAddress]", true},
		{"another spelling of that name", "[IpAddress]", false},
		{"a custom kind of the name", "[example.org/v1/StorageClass]", false},
	} {
		_, err := read(t, "any: [{resources: {kinds: "+c.kinds+", namespaces: [shop]}}]")
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), ".namespaces: ") {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}
