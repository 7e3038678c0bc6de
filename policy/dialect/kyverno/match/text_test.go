package match_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// TestMatchesNothing: a selector that can match nothing by its text is an error with its
// path, in a match and in an exclude; a twin with one thing else is none.
func TestMatchesNothing(t *testing.T) {
	one := func(more string) string { return "any: [{resources: {kinds: [Pod], " + more + "}}]" }
	expressions := func(list string) string { return one("selector: {matchExpressions: [" + list + "]}") }
	for _, c := range []struct{ text, twin, want string }{
		{one("names: ['']"), one("names: [web]"), "any[0].resources.names[0]: is empty"},
		{one("name: ''"), one("name: web"), "any[0].resources.name: is empty"},
		{one("name: a, names: [b]"), one("names: [a, b]"), "any[0].resources.name: Kyverno takes name or names"},
		{one("names: [a/b]"), "any: [{resources: {kinds: [ClusterRole], names: ['system:node']}}]", "any[0].resources.names[0]: \"a/b\" matches no name"},
		{one("names: ['{{request.name}}']"), one("names: ['*']"), "any[0].resources.names[0]: "},
		{one("namespaces: ['']"), one("namespaces: ['*']"), "any[0].resources.namespaces[0]: is empty"},
		{one("namespaces: [Prod]"), one("namespaces: [prod]"), "any[0].resources.namespaces[0]: \"Prod\" matches no namespace"},
		{one("namespaces: ['!kube-*']"), one("namespaces: ['kube-*']"), "any[0].resources.namespaces[0]: "},
		{one("namespaces: ['-a']"), one("namespaces: ['*-a']"), "any[0].resources.namespaces[0]: "},
		{one("annotations: {'': b}"), one("annotations: {'*': b}"), "any[0].resources.annotations: has an empty key"},
		{one("annotations: {'a b': c}"), one("annotations: {'A.example/b_c': c}"), "any[0].resources.annotations[a b]: "},
		{one("annotations: {'example.com/': c}"), one("annotations: {'example.com/*': c}"), "any[0].resources.annotations[example.com/]: "},
		{one("names: [web, 'api, db']"), one("names: [web, 'api-*', db.1]"), "any[0].resources.names: \"api, db\" matches no name"},
		{one("names: [' web']"), one("names: [web-]"), "any[0].resources.names: "},
		{"any: [{resources: {kinds: [ConfigMap, Namespace], names: ['^a$']}}]", "any: [{resources: {kinds: [ConfigMap, Namespace], names: ['a']}}]", "any[0].resources.names: \"^a$\" matches no name"},
		{"any: [{resources: {kinds: [Secret], names: ['a ']}}]", "any: [{resources: {kinds: [Secret, RoleBinding], names: ['a b']}}]", "\"a \" matches no name"},
		{"any: [{resources: {kinds: [networking.k8s.io/v1/Ingress], names: [Web]}}]", "any: [{resources: {kinds: [IPAddress, '*'], names: ['::1', Web]}}]", "\"Web\" matches no name"},
		{one("names: [Web]"), "any: [{resources: {kinds: [Pod, ClusterRole], names: [Web]}}]", "any[0].resources.names: "},
		{one("name: '!web'"), "any: [{resources: {kinds: [Role], name: '!web'}}]", "any[0].resources.names: "},
		{"any: [{resources: {kinds: [Deployment/scale, Job], names: [a_b]}}]", "any: [{resources: {kinds: ['*'], names: [a_b]}}]", "any[0].resources.names: "},
		{one("selector: {}"), one("namespaceSelector: {}"), "any[0].resources.selector: has no requirement"},
		{one("selector: {matchLabels: {'a b': c}}"), one("selector: {matchLabels: {a: c}}"), "any[0].resources.selector.matchLabels[a b]: "},
		{one("selector: {matchLabels: {a: 'b c'}}"), one("selector: {matchLabels: {a: 'b?c'}}"), "any[0].resources.selector.matchLabels[a]: "},
		{expressions("{key: 'a*', operator: Exists}"), expressions("{key: a, operator: Exists}"), "matchExpressions[0].key: "},
		{expressions("{key: a, operator: In, values: ['b*']}"), expressions("{key: a, operator: In, values: [b]}"), "matchExpressions[0].values[0]: "},
		{expressions("{key: a, operator: In, values: [b]}, {key: a, operator: NotIn, values: [b]}"), expressions("{key: a, operator: In, values: [b, c]}, {key: a, operator: NotIn, values: [b]}"), "no labels meet it: a is to be In b and NotIn b"},
		{expressions("{key: a, operator: NotIn, values: [b]}, {key: a, operator: In, values: [b]}"), expressions("{key: a, operator: NotIn, values: [b]}, {key: b, operator: In, values: [b]}"), "no labels meet it"},
		{expressions("{key: a, operator: In, values: [b]}, {key: a, operator: In, values: [c]}"), expressions("{key: a, operator: In, values: [b]}, {key: a, operator: In, values: [b, c]}"), "no labels meet it"},
		{expressions("{key: a, operator: Exists}, {key: a, operator: DoesNotExist}"), expressions("{key: a, operator: Exists}, {key: b, operator: DoesNotExist}"), "no labels meet it"},
		{expressions("{key: a, operator: DoesNotExist}, {key: a, operator: In, values: [b]}"), expressions("{key: a, operator: DoesNotExist}, {key: a, operator: NotIn, values: [b]}"), "no labels meet it"},
		{one("selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: NotIn, values: [b]}]}"), one("selector: {matchLabels: {a: 'b*'}, matchExpressions: [{key: a, operator: NotIn, values: [b]}]}"), "no labels meet it"},
		{one("namespaceSelector: {matchLabels: {a: '*'}, matchExpressions: [{key: a, operator: DoesNotExist}]}"), one("namespaceSelector: {matchLabels: {a: '*'}, matchExpressions: [{key: a, operator: Exists}]}"), "namespaceSelector: no labels meet it"},
		{one("selector: {matchLabels: {a: 'b c*'}}"), one("selector: {matchLabels: {a: 'b-c*'}}"), "matchLabels[a]: \"b c*\" is no value of a label"},
		{one("selector: {matchLabels: {a: '-*'}}"), one("selector: {matchLabels: {a: '*-a'}}"), "matchLabels[a]: "},
		{one("selector: {matchLabels: {'a b*': c}}"), one("selector: {matchLabels: {'*.example/*': c}}"), "matchLabels[a b*]: "},
		{one("annotations: {'a b*': c}"), one("annotations: {'A.example/b*': 'c d'}"), "annotations[a b*]: "},
		{one("selector: {matchLabels: {a: 'b*'}, matchExpressions: [{key: a, operator: In, values: [c, d]}]}"), one("selector: {matchLabels: {a: 'b*'}, matchExpressions: [{key: a, operator: In, values: [c, b1]}]}"), "no labels meet it: a is to be In b* and In c, d"},
		{one("selector: {matchLabels: {a: 'b*'}, matchExpressions: [{key: a, operator: In, values: [b1]}, {key: a, operator: NotIn, values: [b1]}]}"), one("selector: {matchLabels: {'*': 'b*'}, matchExpressions: [{key: a, operator: In, values: [c]}]}"), "no labels meet it"},
		{"any: [{subjects: [{kind: User}]}]", "any: [{subjects: [{kind: User, name: ann}]}]", "any[0].subjects[0].name: is empty"},
		{"any: [{subjects: [{kind: Group, name: ''}]}]", "any: [{subjects: [{kind: Group, name: dev}]}]", "any[0].subjects[0].name: is empty"},
		{"any: [{subjects: [{kind: ServiceAccount, name: ci}]}]", "any: [{subjects: [{kind: ServiceAccount, name: ci, namespace: build}]}]", "any[0].subjects[0].namespace: is empty"},
		{"any: [{subjects: [{kind: ServiceAccount, name: 'system:serviceaccount:a:b', namespace: a}]}]", "any: [{subjects: [{kind: User, name: 'system:serviceaccount:a:b'}]}]", "any[0].subjects[0].name: "},
		{"any: [{subjects: [{kind: ServiceAccount, name: CI, namespace: build}]}]", "any: [{subjects: [{kind: ServiceAccount, name: 'ci-*', namespace: '*'}]}]", "any[0].subjects[0].name: "},
		{"any: [{subjects: [{kind: ServiceAccount, name: ci, namespace: 'build, test'}]}]", "any: [{subjects: [{kind: User, name: 'CI, build'}]}]", "any[0].subjects[0].name: "},
		{"any: [{roles: [editor]}]", "any: [{roles: ['a:editor']}]", "any[0].roles[0]: \"editor\": want NAMESPACE:NAME"},
		{"any: [{roles: ['a:b:c']}]", "any: [{roles: ['a:*']}]", "any[0].roles[0]: "},
		{"any: [{roles: ['']}]", "any: [{roles: ['*:b']}]", "any[0].roles[0]: "},
		{"any: [{roles: [':b']}]", "any: [{roles: ['a:b']}]", "any[0].roles[0]: "},
		{"any: [{clusterRoles: ['']}]", "any: [{clusterRoles: ['*']}]", "any[0].clusterRoles[0]: is empty"},
		{"resources: {kinds: [Pod]}\nroles: [a]", "resources: {kinds: [Pod]}\nroles: ['a:b']", "roles[0]: "},
		{"all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Service]}}]", "all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Service, Pod]}}]", "all[1]: no object has the kinds of this filter and those of all[0]"},
		{"all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod/exec]}}]", "all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod/ephemeralcontainers]}}]", "all[1]: no object has the kinds"},
		{"all: [{resources: {kinds: [apps/v1/Deployment]}}, {resources: {kinds: [example.com/v1/Deployment]}}]", "all: [{resources: {kinds: [apps/v1/Deployment]}}, {resources: {kinds: ['*/v1/D*']}}]", "all[1]: no object has the kinds"},
		{"all: [{resources: {names: ['a*']}}, {resources: {names: ['b*', c]}}]", "all: [{resources: {names: ['a*']}}, {resources: {names: ['b*', '*c']}}]", "all[1]: no object has the names"},
		{"all: [{resources: {namespaces: ['a*']}}, {resources: {namespaces: [b]}}]", "all: [{resources: {namespaces: ['a*']}}, {resources: {namespaces: [ab]}}]", "all[1]: no object has the namespaces"},
		{"all: [{resources: {annotations: {a: b}}}, {resources: {annotations: {a: 'c*'}}}]", "all: [{resources: {annotations: {a: b}}}, {resources: {annotations: {b: 'c*'}}}]", "all[1]: no object has the annotations"},
		{"all: [{resources: {selector: {matchLabels: {a: 'b*'}}}}, {resources: {selector: {matchLabels: {a: 'c*'}}}}]", "all: [{resources: {selector: {matchLabels: {a: 'b*'}}}}, {resources: {selector: {matchLabels: {a: '*c'}}}}]", "all[1]: no object has the labels"},
		{"all: [{resources: {names: [a]}}, {resources: {names: [b]}}]", "all: [{resources: {names: [a]}}, {resources: {names: ['?']}}]", "all[1]: no object has the names"},
		{"all: [{resources: {namespaces: [a]}}, {roles: ['a:b']}, {resources: {namespaces: [b]}}]", "all: [{resources: {namespaces: [a]}}, {roles: ['a:b']}, {resources: {namespaces: [b, a]}}]", "all[2]: no object has the namespaces of this filter and those of all[0]"},
		{"all: [{resources: {operations: [CREATE]}}, {resources: {operations: [DELETE]}}]", "all: [{resources: {operations: [CREATE]}}, {resources: {operations: [DELETE, CREATE]}}]", "all[1]: no object has the operations"},
		{"all: [{resources: {selector: {matchLabels: {a: b}}}}, {resources: {selector: {matchLabels: {a: c}}}}]", "all: [{resources: {selector: {matchLabels: {a: b}}}}, {resources: {selector: {matchLabels: {b: c}}}}]", "all[1]: no object has the labels"},
	} {
		for _, path := range []string{"match", "exclude"} {
			if _, err := match.Compile(document(t, c.text), path); err == nil || !strings.Contains(err.Error(), path+".") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.text, err, c.want)
			}
			if _, err := match.Compile(document(t, c.twin), path); err != nil {
				t.Errorf("%s: %v", c.twin, err)
			}
		}
	}
}

// TestOtherNamespaces: a Policy that names other namespaces than its own would match
// nothing.
func TestOtherNamespaces(t *testing.T) {
	for text, good := range map[string]bool{
		"any: [{resources: {kinds: [Pod], namespaces: [prod]}}]":                              true,
		"any: [{resources: {kinds: [Pod], namespaces: [test]}}]":                              false,
		"any: [{resources: {kinds: [Pod], namespaces: [test]}}, {resources: {kinds: [Pod]}}]": true,
		"all: [{resources: {kinds: [Pod], namespaces: ['t*']}}, {resources: {kinds: [Pod]}}]": false,
		"resources: {kinds: [Pod], namespaces: [test, 'p*']}":                                 true,
	} {
		if _, err := match.CompileSelection(document(t, text), nil, "rule", "prod"); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "rule.match: names other namespaces than prod") {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := match.CompileSelection(document(t, text), nil, "rule", ""); err != nil {
			t.Errorf("%s: of the cluster: %v", text, err)
		}
	}
}

// TestPolicyOfClusterKinds: a Policy about kinds that are in no namespace would match nothing.
func TestPolicyOfClusterKinds(t *testing.T) {
	for text, good := range map[string]bool{
		"any: [{resources: {kinds: [Node]}}]":                                              false,
		"any: [{resources: {kinds: [Namespace]}}]":                                         false,
		"any: [{resources: {kinds: [Namespace, Pod]}}]":                                    true,
		"any: [{resources: {kinds: [ClusterRole]}}, {resources: {kinds: [StorageClass]}}]": false,
		"any: [{resources: {kinds: [ClusterRole]}}, {resources: {kinds: [Role]}}]":         true,
		"all: [{resources: {kinds: [Node]}}, {resources: {names: [a]}}]":                   false,
		"any: [{resources: {kinds: ['*']}}]":                                               true,
		"any: [{resources: {kinds: [example.org/v1/Node]}}]":                               true,
	} {
		if _, err := match.CompileSelection(document(t, text), nil, "rule", "prod"); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "rule.match: selects kinds that are in no namespace") {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := match.CompileSelection(document(t, text), nil, "rule", ""); err != nil {
			t.Errorf("%s: of the cluster: %v", text, err)
		}
	}
}

func FuzzKinds(f *testing.F) {
	for _, seed := range []string{"*", "*/*", "Pod/*", "*/scale", "*.scale", "scale", "apps/v1/Deployment/scale", "*/*/scale", "v1.demo/v1/Demo", "a/b/c/d/e", "./", "{{a}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		block, err := match.Compile(document(t, "{}"), "match")
		if err != nil || !block.Empty() {
			t.Fatal(err)
		}
		doc := document(t, "any: [{resources: {kinds: [Pod]}}]")
		doc.Any[0].Resources.Kinds[0] = text
		block, err = match.Compile(doc, "match")
		if err != nil {
			return
		}
		// The targets of a rule include every object that it selects.
		for _, s := range []string{"", "exec", "scale", "status", "ephemeralcontainers"} {
			subject := is("", "v1", "Pod", s)
			if block.Matches(subject, match.Selecting).True() && !match.MayMatch(block.TargetsAt([]string{"CREATE"}), subject) {
				t.Errorf("%q selects Pod/%s and has no target for it", text, s)
			}
		}
	})
}

// TestContradictionOnce: the reason names each requirement once.
func TestContradictionOnce(t *testing.T) {
	s := match.Selector{MatchLabels: map[string]string{"a": "b"}}
	if err := s.Validate("selector"); err != nil {
		t.Errorf("without a contradiction: %v", err)
	}
	var both match.Selector
	if err := yaml.Unmarshal([]byte("{matchLabels: {a: b}, matchExpressions: [{key: a, operator: DoesNotExist}]}"), &both); err != nil {
		t.Fatal(err)
	}
	const want = "no labels meet it: a is to be In b and DoesNotExist"
	if err := both.Validate("selector"); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
