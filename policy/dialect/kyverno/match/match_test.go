package match_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

func compile(tb testing.TB, text string) match.Block {
	tb.Helper()
	block, err := read(tb, text)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return block
}

func read(tb testing.TB, text string) (match.Block, error) {
	tb.Helper()
	return match.CompileSelecting(document(tb, text), "match")
}

func document(tb testing.TB, text string) match.Document {
	tb.Helper()
	var doc match.Document
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return doc
}

func subject(kind string, change func(*policy.Subject)) *policy.Subject {
	s := &policy.Subject{
		Version: "v1", Kind: kind, Namespace: "prod", Name: "web", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"env": "prod"}}, Operation: "CREATE",
		Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}, "annotations": map[string]any{"a": "b"}}}),
		User:   policy.User{Name: "ann", Groups: []string{"dev"}, RolesKnown: true, Roles: []string{"prod:writer"}, ClusterRoles: []string{"view"}},
	}
	if change != nil {
		change(s)
	}
	return s
}

// TestMatches has a yes and a no for each thing that a block can ask.
func TestMatches(t *testing.T) {
	resources := func(more string) string { return "any: [{resources: {kinds: [Pod], " + more + "}}]" }
	for _, c := range []struct{ yes, no, reason string }{
		{"any: [{resources: {kinds: [Pod]}}]", "any: [{resources: {kinds: [Service]}}]", "the kind"},
		{"any: [{resources: {kinds: [v1/Pod]}}]", "any: [{resources: {kinds: ['*/v2*/Pod']}}]", "the version"},
		{"any: [{resources: {kinds: ['*/*/Pod']}}]", "any: [{resources: {kinds: [example.com/*/Pod]}}]", "the group"},
		{"any: [{resources: {kinds: ['P?d']}}]", "any: [{resources: {kinds: ['Q*']}}]", "a pattern"},
		{resources("names: [web]"), resources("names: [api]"), "the name"},
		{resources("name: 'w*'"), resources("name: 'a*'"), "the old name"},
		{resources("namespaces: [pro*]"), resources("namespaces: [test]"), "the namespace"},
		{resources("operations: [CREATE]"), resources("operations: [UPDATE]"), "the operation"},
		{resources("annotations: {a: '*'}"), resources("annotations: {a: c}"), "annotations"},
		{resources("selector: {matchLabels: {app: web}}"), resources("selector: {matchLabels: {app: api}}"), "labels"},
		{resources("selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}"), resources("selector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}"), "sets of labels"},
		{resources("selector: {matchExpressions: [{key: app, operator: Exists}]}"), resources("selector: {matchExpressions: [{key: app, operator: DoesNotExist}]}"), "labels that are there"},
		{resources("namespaceSelector: {matchLabels: {env: prod}}"), resources("namespaceSelector: {matchLabels: {env: test}}"), "the namespace's labels"},
		{"any: [{subjects: [{kind: User, name: ann}]}]", "any: [{subjects: [{kind: User, name: bob}]}]", "the user"},
		{"any: [{subjects: [{kind: Group, name: d*}]}]", "any: [{subjects: [{kind: Group, name: ops}]}]", "a group"},
		{"any: [{roles: ['prod:writer']}]", "any: [{roles: ['test:writer']}]", "a role"},
		{"any: [{clusterRoles: [view]}]", "any: [{clusterRoles: [edit]}]", "a cluster role"},
		{"any: [{resources: {kinds: [Service]}}, {resources: {kinds: [Pod]}}]", "any: [{resources: {kinds: [Service]}}, {resources: {kinds: [Secret]}}]", "one of two"},
		{"all: [{resources: {kinds: [Pod]}}, {resources: {names: [web]}}]", "all: [{resources: {kinds: [Pod]}}, {resources: {names: [api]}}]", "both"},
		{"resources: {kinds: [Pod]}", "resources: {kinds: [Service]}", "the old form"},
	} {
		for text, want := range map[string]bool{c.yes: true, c.no: false} {
			if got, err := compile(t, text).Matches(subject("Pod", nil), match.Selecting).Result(); got != want || err != nil {
				t.Errorf("%s: %s: %t, %v", c.reason, text, got, err)
			}
		}
	}
	if got, err := (match.Block{}).Matches(subject("Pod", nil), match.Selecting).Result(); got || err != nil {
		t.Error("an empty block matches")
	}
}

func TestIndeterminate(t *testing.T) {
	for _, c := range []struct {
		text   string
		change func(*policy.Subject)
	}{
		{"any: [{resources: {namespaceSelector: {matchLabels: {a: b}}}}]", func(s *policy.Subject) { s.NamespaceKnown = false }},
		{"any: [{roles: ['prod:a']}]", func(s *policy.Subject) { s.User.RolesKnown = false }},
		{"any: [{resources: {names: [web]}}]", func(s *policy.Subject) { s.Bare = true }},
	} {
		if got, err := compile(t, c.text).Matches(subject("Pod", c.change), match.Selecting).Result(); got || err == nil {
			t.Errorf("%s: %t, %v", c.text, got, err)
		}
	}
	nobody := subject("Pod", func(s *policy.Subject) { s.User = policy.User{} })
	user := compile(t, "any: [{subjects: [{kind: User, name: ann}]}]")
	if got, _ := user.Matches(nobody, match.Selecting).Result(); !got {
		t.Error("a rule about users does not apply without a requester")
	}
	if got, _ := user.Matches(nobody, match.Excluding).Result(); got {
		t.Error("users are excluded without a requester")
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{any: [{}]}", "match.any[0]: is empty"},
		{"{}", "match: is empty"},
		{"{any: [{resources: {kinds: [Pod]}}], all: [{resources: {kinds: [Pod]}}]}", "match: want one of"},
		{"{any: [{resources: {kinds: [Pod]}}], resources: {kinds: [Pod]}}", "match: want one of"},
		{"{any: [{resources: {kinds: [pods]}}]}", "match.any[0].resources.kinds[0]: "},
		{"{any: [{resources: {kinds: ['a/b/c/d/e']}}]}", "want [group/][version/]Kind[/subresource]"},
		{"{any: [{resources: {operations: [PATCH]}}]}", "match.any[0].resources.operations[0]: unknown operation"},
		{"{any: [{subjects: [{kind: Robot, name: a}]}]}", "match.any[0].subjects[0].kind: unknown kind"},
		{"{any: [{resources: {selector: {matchExpressions: [{key: a, operator: In}]}}}]}", "wants at least one value"},
		{"{any: [{resources: {selector: {matchExpressions: [{key: a, operator: Like}]}}}]}", "unknown operator"},
	} {
		if _, err := read(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestAboutPods(t *testing.T) {
	for _, c := range []struct {
		text        string
		pods, plain bool
	}{
		{"any: [{resources: {kinds: [Pod]}}]", true, true},
		{"any: [{resources: {kinds: [v1/Pod]}}, {resources: {kinds: [Service]}}]", true, true},
		{"any: [{resources: {kinds: [Pod, Service]}}]", true, false},
		{"any: [{resources: {kinds: [Service, Secret]}}]", false, true},
		{"any: [{resources: {kinds: [Pod], names: [a]}}]", true, false},
		{"any: [{resources: {kinds: [Pod], selector: {matchLabels: {a: b}}}}]", true, false},
		{"any: [{resources: {kinds: [Pod/exec]}}]", false, true},
		{"any: [{resources: {namespaces: [a]}}]", false, true},
	} {
		block := compile(t, c.text)
		if pods, plain := block.AboutPods(); pods != c.pods || plain != c.plain {
			t.Errorf("%s: pods %t, plain %t", c.text, pods, plain)
		}
	}
}

func TestForKinds(t *testing.T) {
	jobs := compile(t, "any: [{resources: {kinds: [Pod], namespaces: [prod]}}, {resources: {kinds: [Service]}}]").ForKinds([]string{"Job", "Deployment"}, false)
	for _, c := range []struct {
		group, kind string
		want        bool
	}{{"batch", "Job", true}, {"apps", "Deployment", true}, {"example.com", "Job", false}, {"", "Pod", false}, {"", "Service", false}} {
		s := subject(c.kind, func(s *policy.Subject) { s.Group = c.group })
		if got, err := jobs.Matches(s, match.Selecting).Result(); got != c.want || err != nil {
			t.Errorf("%s/%s: %t, %v", c.group, c.kind, got, err)
		}
	}
	excluded := compile(t, "any: [{resources: {kinds: [Pod], namespaces: [prod]}}, {resources: {kinds: [Deployment]}}]").ForKinds([]string{"Job", "Deployment"}, true)
	for kind, want := range map[string]bool{"Deployment": true, "Job": false} {
		s := subject(kind, func(s *policy.Subject) { s.Group, s.Namespace = match.GroupOf(kind), "test" })
		if got, err := excluded.Matches(s, match.Excluding).Result(); got != want || err != nil {
			t.Errorf("an exclusion, of a %s: %t, %v", kind, got, err)
		}
	}
}

func TestTargets(t *testing.T) {
	said := func(targets []policy.Target) string {
		text, err := json.Marshal(targets)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	block := compile(t, "any: [{resources: {kinds: [Service], namespaces: [a]}}]")
	for _, c := range []struct {
		targets []policy.Target
		want    string
	}{
		{block.Targets(), `"Operations":null,"Namespaces":["a"]`},
		{block.TargetsAt([]string{"DELETE"}), `"Operations":["DELETE"]`},
		{compile(t, "any: [{resources: {kinds: [Service], operations: [DELETE]}}]").Targets(), "null"},
		{compile(t, "any: [{resources: {kinds: [Service], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}}}}]").Targets(), `"Labelled":["a"]`},
		{compile(t, "any: [{resources: {kinds: [Service], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: 'a*'}}}}]").Targets(), `"Labelled":null`},
		{compile(t, "any: [{resources: {kinds: [Service], namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [a]}]}}}]").Targets(), `"Labelled":null`},
		{compile(t, "any: [{resources: {kinds: [Node], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}}}}]").Targets(), `"Labelled":null`},
		{compile(t, "any: [{resources: {kinds: [Service], operations: [DELETE]}}]").TargetsAt(nil), `"Operations":["DELETE"]`},
	} {
		if got := said(c.targets); !strings.Contains(got, c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if !match.MayMatch(block.Targets(), subject("Service", func(s *policy.Subject) { s.Namespace = "a" })) || match.MayMatch(block.Targets(), subject("Service", nil)) {
		t.Error("targets and subjects disagree")
	}
	if !match.MayMatch(match.PodTargets(nil), subject("Pod", nil)) || match.MayMatch(match.PodTargets(nil), subject("Service", nil)) {
		t.Error("pods are not what pods and their controllers are")
	}
}

func Example() {
	block, err := match.Compile(match.Document{Any: nil}, "spec.rules[0].exclude")
	fmt.Println(block.Empty(), err)
	// Output: true <nil>
}
