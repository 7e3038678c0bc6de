package kyverno_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
)

// bare is a subject of which only an image and the namespace are known.
func bare(namespace string) *policy.Subject {
	return &policy.Subject{
		Version: "v1", Kind: "Pod", Namespace: namespace, Operation: "CREATE", Shape: policy.Shape{Bare: true},
		NamespaceMeta: policy.NamespaceMeta{NamespaceLabels: map[string]string{"env": "prod"}, NamespaceKnown: namespace != ""},
		Object: policy.ContentOf(map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": namespace},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "0", "image": "nginx"}}},
		}),
	}
}

const here = "error: only images and their namespace are known here, and the rule asks for "

// unknown drops what all such errors end with.
func unknown(said string) string {
	return strings.TrimSuffix(said, "; the admission webhook knows the whole object")
}

func TestBareMatch(t *testing.T) {
	const pods = "any: [{resources: {kinds: [Pod]}}]"
	for _, c := range []struct{ match, exclude, namespace, want, reason string }{
		{pods, "", "prod", "checks", "pods"},
		{"any: [{resources: {kinds: [Deployment]}}]", "", "prod", "skips", "another kind is no match"},
		{"any: [{resources: {kinds: [Deployment], selector: {matchLabels: {a: b}}}}]", "", "prod", "skips", "another kind, whatever its labels"},
		{"any: [{resources: {kinds: [Pod/ephemeralcontainers]}}]", "", "prod", "checks", "containers that are added later may be meant"},
		{"any: [{resources: {kinds: [Pod/exec]}}]", "", "prod", "skips", "a subresource that runs nothing"},
		{"any: [{resources: {kinds: [Pod], namespaces: [prod]}}]", "", "prod", "checks", "the namespace"},
		{"any: [{resources: {kinds: [Pod], namespaces: [test]}}]", "", "prod", "skips", "another namespace"},
		{"any: [{resources: {kinds: [Pod], namespaces: [prod]}}]", "", "", here + "the object's namespace", "an unknown namespace"},
		{"any: [{resources: {kinds: [Pod], namespaces: ['*']}}]", "", "", "checks", "any namespace"},
		{"any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {env: prod}}}}]", "", "prod", "checks", "the namespace's labels"},
		{"any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {env: test}}}}]", "", "prod", "skips", "other labels of the namespace"},
		{"any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {env: prod}}}}]", "", "", here + "the object's namespace", "labels of an unknown namespace"},
		{"any: [{resources: {kinds: [Pod], names: [web]}}]", "", "prod", here + "the object's name", "a name"},
		{"any: [{resources: {kinds: [Pod], names: ['*']}}]", "", "prod", "checks", "any name"},
		{"any: [{resources: {kinds: [Pod], annotations: {a: b}}}]", "", "prod", here + "the object's annotations", "an annotation"},
		{"any: [{resources: {kinds: [Pod], selector: {matchLabels: {a: b}}}}]", "", "prod", here + "the object's labels", "a label"},
		{"any: [{subjects: [{kind: User, name: ann}]}]", "", "prod", here + "the requester of the object", "a user"},
		{"any: [{roles: ['prod:dev']}]", "", "prod", here + "the requester of the object", "a role"},
		{"any: [{clusterRoles: [admin]}]", "", "prod", here + "the requester of the object", "a cluster role"},
		{"any: [{resources: {kinds: [Pod], names: [web]}}, {resources: {kinds: [Pod]}}]", "", "prod", "checks", "one filter that matches is enough"},
		{"all: [{resources: {kinds: [Pod], names: [web]}}, {resources: {kinds: ['S*']}}]", "", "prod", "skips", "one of all that does not is enough"},
		{"all: [{resources: {kinds: [Pod]}}, {subjects: [{kind: Group, name: dev}]}]", "", "prod", here + "the requester of the object", "one of all that is not known"},
		{"any: [{resources: {kinds: [Pod], operations: [UPDATE]}}]", "", "prod", "checks", "an update may be meant"},
		{"any: [{resources: {kinds: [Pod], operations: [DELETE]}}, {resources: {kinds: [Job]}}]", "", "prod", "skips", "nothing runs after a deletion"},
		{pods, "any: [{resources: {kinds: [Pod], operations: [UPDATE]}}]", "prod", "checks", "an exclusion of updates alone"},
		{pods, "any: [{resources: {kinds: [Pod], operations: [CREATE, UPDATE]}}]", "prod", "skips", "an exclusion of both"},
		{pods, "any: [{resources: {kinds: [Pod/ephemeralcontainers]}}]", "prod", "checks", "an exclusion of later containers alone"},
		{pods, "any: [{resources: {namespaces: [prod]}}]", "prod", "skips", "an excluded namespace"},
		{pods, "any: [{resources: {namespaces: [prod]}}]", "", here + "the object's namespace", "excluded by an unknown namespace"},
		{pods, "any: [{resources: {selector: {matchLabels: {a: b}}}}]", "prod", here + "the object's labels", "excluded by labels"},
		{pods, "any: [{subjects: [{kind: User, name: ann}]}]", "prod", here + "the requester of the object", "excluded by user"},
		{"any: [{resources: {kinds: [Pod], names: [web]}}]", "any: [{resources: {namespaces: [prod]}}]", "prod", "skips", "excluded, whatever else it asks"},
	} {
		p := compile(t, nil, "match:\n      any:\n      - resources:\n          kinds: [Pod]", "match: {"+c.match+"}\n    exclude: {"+c.exclude+"}")
		if got := unknown(applies(t, ruleOf(t, p, "signed"), bare(c.namespace))); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.reason, got, c.want)
		}
	}
}

// TestBareWithoutMatchingImages: a rule that matches none of the images is skipped,
// whatever else it requires.
func TestBareWithoutMatchingImages(t *testing.T) {
	for _, c := range []struct{ images, want, reason string }{
		{`"docker.io/library/nginx*"`, here + "the object's name", "the rule names the image"},
		{`"ghcr.io/*"`, "nothing", "the rule names another image"},
		{`"{{ request.namespace }}.example/*"`, here + "the object's name", "the pattern depends on a variable"},
	} {
		text := strings.NewReplacer("kinds: [Pod]", "names: [web]", `["*"]`, "["+c.images+"]").Replace(minimal)
		p, err := newCompiler(t, nil).Compile([]byte(text), "test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := unknown(applies(t, ruleOf(t, p, "signed"), bare("prod"))); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.reason, got, c.want)
		}
	}
}

// TestBareFindsElsewhere: the images in fields of the rule's own (imageExtractors) are not
// known.
func TestBareFindsElsewhere(t *testing.T) {
	for _, c := range []struct{ extractors, want, reason string }{
		{"", "nothing", "the rule names another image"},
		{"imageExtractors: {Pod: [{path: /spec/image}]}\n    ", here + "images at places of its own (imageExtractors)", "it may be elsewhere"},
	} {
		text := strings.NewReplacer(`["*"]`, "['ghcr.io/*']", "verifyImages:", c.extractors+"verifyImages:").Replace(minimal)
		p, err := newCompiler(t, nil).Compile([]byte(text), "test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := unknown(applies(t, ruleOf(t, p, "signed"), bare("prod"))); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.reason, got, c.want)
		}
	}
}

func TestBareReads(t *testing.T) {
	lookup := configMaps{"default/keys": {"prod": "yes"}}
	when := func(key string) string {
		return "preconditions: {all: [{key: \"" + key + "\", operator: Equals, value: 'yes'}]}"
	}
	from := func(variable string) string {
		return "context: [{name: found, variable: {" + variable + "}}]\n    " + when("{{ found }}")
	}
	const keys = "context: [{name: keys, configMap: {name: keys}}]\n    "
	for _, c := range []struct{ rule, namespace, want, reason string }{
		{when("{{ request.namespace == 'prod' && 'yes' }}"), "prod", "checks", "the namespace"},
		{when("{{ request.namespace == 'prod' && 'yes' }}"), "", here + "the object's namespace", "an unknown namespace"},
		{when("{{ request.object.metadata.namespace == 'prod' && 'yes' }}"), "prod", "checks", "the namespace, read from the object"},
		{when("{{ request.object.metadata.namespace == 'prod' && 'yes' }}"), "", here + "the object's namespace", "a namespace that the object does not say"},
		{when("{{ request.operation != 'DELETE' && 'yes' }}"), "prod", "checks", "the operation"},
		{when("{{ request.operation == 'UPDATE' && 'yes' }}"), "prod", "checks", "updates alone, which it may be"},
		{when("{{ request.operation == 'CREATE' && 'yes' }}"), "prod", "checks", "creations alone, which it may be"},
		{when("{{ request.operation == 'DELETE' && 'yes' }}"), "prod", "skips", "deletions alone, which it is not"},
		{from("jmesPath: \"request.operation == 'UPDATE' && 'yes'\""), "prod", here + "request.operation", "the operation, in a variable of the policy's own"},
		{when("{{ request.object.kind == 'Pod' && 'yes' }}"), "prod", "checks", "the kind"},
		{when("{{ request.kind.kind == 'Pod' && 'yes' }}"), "prod", "checks", "the kind, read from the request"},
		{when("{{ request.object.metadata.labels.sign || 'yes' }}"), "prod", here + "request.object.metadata.labels", "a label, with a default"},
		{when("{{ request.object.metadata.{a: labels}.a || 'yes' }}"), "prod", here + "request.object.metadata.labels", "a label in a hash"},
		{when("{{ request.object.spec.hostNetwork || 'yes' }}"), "prod", here + "request.object.spec", "the specification"},
		{when("{{ request | object | spec || 'yes' }}"), "prod", here + "request.object.spec", "through pipes"},
		{when("{{ [request][0].object.spec || 'yes' }}"), "prod", here + "request", "through a list"},
		{when("{{ *.object.spec || 'yes' }}"), "prod", here + "the whole context", "through all members"},
		{when("{{ values(@)[].object.spec || 'yes' }}"), "prod", here + "the whole context", "all there is"},
		{when("{{ to_string(request) }}"), "prod", here + "request", "all of the request"},
		{when("{{ request.*.name || 'yes' }}"), "prod", here + "request", "all members of the request"},
		{when("{{ request.\\\"object\\\".spec || 'yes' }}"), "prod", here + "request.object.spec", "a quoted name"},
		{when("{{ request.userInfo.username || 'yes' }}"), "prod", here + "request.userInfo", "the user"},
		{when("{{ request.roles || 'yes' }}"), "prod", here + "request.roles", "the user's roles"},
		{when("{{ request.oldObject || 'yes' }}"), "prod", here + "request.oldObject", "the former state"},
		{when("{{ request.name || 'yes' }}"), "prod", here + "request.name", "the name"},
		{when("{{ serviceAccountName || 'yes' }}"), "prod", here + "serviceAccountName", "the account that asks"},
		{when("{{ images.initContainers || 'yes' }}"), "prod", here + "images", "in which roles the images stand"},
		{when("{{ request.{{ 'name' }} || 'yes' }}"), "prod", here + "request.{{...}}", "a name that is made up"},
		{when("{{ @.{{ 'request' }}.name || 'yes' }}"), "prod", here + "the whole context", "a name of the whole context that is made up"},
		{when("{{ request.namespace == '{{ request.object.metadata.name || 'prod' }}' && 'yes' }}"), "prod", here + "request.object.metadata.name", "a variable in a variable"},
		{when("{{ to_upper('{{ request.namespace }}') == 'PROD' && 'yes' }}"), "prod", "checks", "a variable in a variable that is known"},
		{when("{{ `{\\\"a\\\": {{ request.dryRun }}}`.a || 'yes' }}"), "prod", here + "request.dryRun", "a variable in a literal"},
		{when("{{ sort_by([{n: request.namespace}], &n)[0].n == 'prod' && 'yes' }}"), "prod", "checks", "an expression that takes one"},
		{when("\\\\{{ request.name }}"), "prod", "skips", "escaped, and so text"},
		{keys + when("{{ keys.data.{{ request.namespace }} }}"), "prod", "checks", "a ConfigMap, by the namespace"},
		{"context: [{name: keys, configMap: {name: '{{ request.name }}'}}]\n    " + when("{{ keys.data.prod }}"), "prod", here + "request.name", "a ConfigMap, by a name"},
		{from("jmesPath: \"request.object.spec.nodeName || 'yes'\""), "prod", here + "request.object.spec", "a variable of the policy's own"},
		{from("jmesPath: \"request.namespace && 'yes'\""), "prod", "checks", "a variable that is known"},
		{from("value: '{{ request.name }}', default: 'yes'"), "prod", here + "request.name", "a variable with a default"},
		{from("value: {request: {name: 'yes'}}, jmesPath: request.name"), "prod", "checks", "a variable's own value"},
		{"imageExtractors: {Pod: [{path: /spec/image}]}", "prod", here + "images at places of its own (imageExtractors)", "images elsewhere"},
		{"imageExtractors: {Deployment: [{path: /spec/image}]}", "prod", "checks", "images elsewhere, in another kind"},
		{"context: [{name: found, variable: {jmesPath: request.name}}]", "prod", "checks", "a name, in a variable that is not read"},
	} {
		p := compile(t, lookup, "    verifyImages:", "    "+c.rule+"\n    verifyImages:")
		if got := unknown(applies(t, ruleOf(t, p, "signed"), bare(c.namespace))); got != c.want {
			t.Errorf("%s: %s\nwant %s\nin %s", c.reason, got, c.want, c.rule)
		}
	}
}

// TestBareLate holds that conditions on statements count too, and that members of
// a statement are its own.
func TestBareLate(t *testing.T) {
	for _, c := range []struct{ key, want, reason string }{
		{"{{ builder.id }}", "checks", "a member of the statement"},
		{"{{ request.object.spec.nodeName || 'x' }}", here + "request.object.spec", "the object beside the statement"},
		{"{{ element }}", "checks", "a member of the statement, by that name"},
	} {
		p := compile(t, nil, "      attestors:\n", "      attestations:\n      - type: https://slsa.dev/provenance/v1\n        conditions: [{all: [{key: \""+c.key+
			"\", operator: Equals, value: x}]}]\n        attestors: [{entries: [{keyless: {issuer: a, subject: b}}]}]\n      attestors:\n")
		if got := unknown(applies(t, ruleOf(t, p, "signed"), bare("prod"))); got != c.want {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
}

func TestBareAction(t *testing.T) {
	p := compile(t, nil, "spec:\n", "spec:\n  validationFailureActionOverrides: [{action: Enforce, namespaces: [prod]}]\n")
	r := ruleOf(t, p, "signed")
	for _, c := range []struct {
		namespace string
		want      policy.Action
	}{{"prod", policy.Enforce}, {"test", policy.Audit}} {
		if got := only(t, r, bare(c.namespace), "nginx").Action; got != c.want {
			t.Errorf("in %s: %s", c.namespace, got)
		}
	}
	if got := applies(t, r, bare("")); !strings.HasPrefix(got, strings.Replace(here, "error", "indeterminate", 1)+"the object's namespace (validationFailureActionOverrides)") {
		t.Errorf("the namespace is not known: %s", got)
	}
}

// TestBareNamespaced holds that a Policy is not asked about what may be in another
// namespace than its own.
func TestBareNamespaced(t *testing.T) {
	text := strings.NewReplacer("ClusterPolicy", "Policy", "name: minimal", "name: minimal\n  namespace: prod").Replace(minimal)
	p, err := newCompiler(t, nil).Compile([]byte(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := applies(t, ruleOf(t, p, "signed"), bare("prod")); got != "checks" {
		t.Errorf("in its namespace: %s", got)
	}
	if got := applies(t, ruleOf(t, p, "signed"), bare("")); !strings.HasPrefix(got, here+"the object's namespace") {
		t.Errorf("an unknown namespace: %s", got)
	}
}

func TestBareBroken(t *testing.T) {
	for _, c := range []struct{ match, namespace, want, reason string }{
		{"any: [{resources: {kinds: [Pod], namespaces: [prod]}}]", "prod", "error: broken", "its namespace"},
		{"any: [{resources: {kinds: [Pod], namespaces: [prod]}}]", "test", "skips", "another namespace"},
		{"any: [{resources: {kinds: [Pod], namespaces: [prod]}}]", "", "error: broken", "an unknown namespace"},
		{"any: [{resources: {kinds: [Pod], operations: [UPDATE]}}]", "prod", "error: broken", "an update may be meant"},
		{"any: [{resources: {kinds: [Service]}}]", "prod", "skips", "another kind"},
	} {
		text := strings.Replace(minimal, "match:\n      any:\n      - resources:\n          kinds: [Pod]", "match: {"+c.match+"}", 1)
		p := kyverno.Broken([]byte(text), "test.yaml", errors.New("broken"))
		if got := applies(t, p.Rules[0], bare(c.namespace)); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestBareException holds that an exception which asks for more than is known
// leaves nothing alone.
func TestBareException(t *testing.T) {
	const match = "    - resources:\n        kinds: [Pod]\n        namespaces: [prod]\n"
	when := func(key string) string {
		return match + "  conditions: {all: [{key: \"" + key + "\", operator: Equals, value: 'yes'}]}\n"
	}
	for _, c := range []struct {
		after, namespace string
		covers, unsure   bool
		reason           string
	}{
		{match, "prod", true, false, "the namespace"},
		{match, "test", false, false, "another namespace"},
		{match, "", false, true, "an unknown namespace"},
		{strings.Replace(match, "namespaces: [prod]", "names: [web]", 1), "prod", false, true, "a name"},
		{when("{{ request.namespace == 'prod' && 'yes' }}"), "prod", true, false, "a condition on the namespace"},
		{when("{{ request.object.metadata.labels.sign || 'yes' }}"), "prod", false, true, "a condition on a label"},
		{when("{{ request.operation != 'DELETE' && 'yes' }}"), "prod", true, false, "a condition for every operation that it may be"},
		{when("{{ request.operation == 'CREATE' && 'yes' || 'no' }}"), "prod", false, false, "a condition for creations alone"},
		{when("{{ request.operation == 'UPDATE' && 'yes' || 'no' }}"), "prod", false, false, "a condition for updates alone"},
	} {
		e, err := except(t, match, c.after)
		if err != nil {
			t.Fatal(err)
		}
		covers, err := e.Scope.Covers(t.Context(), bare(c.namespace))
		if covers != c.covers || (err != nil) != c.unsure {
			t.Errorf("%s: %t, %v", c.reason, covers, err)
		}
	}
}
