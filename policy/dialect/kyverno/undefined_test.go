package kyverno_test

import (
	"strings"
	"testing"
)

// TestAlwaysTheSame: a rule with variables, conditions or selectors that have the same
// result in every evaluation does not compile, and its counterpart does.
func TestAlwaysTheSame(t *testing.T) {
	const head = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec: {background: false, rules: [{name: r, "
	const config = "match: {any: [{resources: {kinds: [ConfigMap]}}]}, "
	deny := func(key string) string {
		return config + "validate: {deny: {conditions: {any: [{key: \"{{ " + key + " }}\", operator: Equals, value: x}]}}}"
	}
	denied := func(context, key string) string { return "context: [" + context + "], " + deny(key) }
	when := func(key, operator, value string) string {
		return config + "preconditions: {all: [{key: '" + key + "', operator: " + operator + ", value: " + value + "}]}, validate: {deny: {}}"
	}
	loop := func(body string) string { return config + "validate: {foreach: [{" + body + "}]}" }
	match := func(filter string) string {
		return "match: {any: [{resources: {kinds: [ConfigMap]}}]}, exclude: {any: [{" + filter + "}]}, validate: {deny: {}}"
	}
	only := func(kinds, field string) string {
		return "match: {any: [{resources: {kinds: [" + kinds + "], " + field + "}}]}, validate: {deny: {}}"
	}
	narrowed := func(field, exclude string) string {
		return "match: {any: [{resources: {kinds: [ConfigMap], " + field + "}}]}, exclude: {any: [{" + exclude + "}]}, validate: {deny: {}}"
	}
	const entry = "{name: team, variable: {value: {a: x}}}"
	verify := func(more string) string {
		return "match: {any: [{resources: {kinds: [Pod]}}]}, context: [" + entry + "], verifyImages: [{" + more + "}]"
	}
	const signed = "attestors: [{entries: [{keyless: {issuer: a, subject: b}}]}]"
	scanned := func(key string) string {
		return verify("imageReferences: ['*'], attestations: [{type: a/b, " + signed + ", conditions: [{all: [{key: \"{{ " + key + " }}\", operator: NotEquals, value: a}]}]}]")
	}
	refused := func(key string) string {
		return verify("imageReferences: ['*'], attestations: [{name: scan, type: a/b, " + signed + "}], " +
			"validate: {deny: {conditions: {any: [{key: \"{{ " + key + " }}\", operator: Equals, value: a}]}}}")
	}
	for _, c := range []struct{ reason, good, bad, want string }{
		{"a member of the request in other cases", deny("request.userInfo.username || ''"), deny("request.userinfo.username || ''"), "validate.deny.conditions: a variable reads request.userinfo, which no request has: write request.userInfo"},
		{"the old object in other cases", deny("request.oldObject.data.a || ''"), deny("request.oldobject.data.a || ''"), "which no request has: write request.oldObject"},
		{"a member that a suite may define", deny("request.mode || ''"), deny("request.subresource || ''"), "which no request has: write request.subResource"},
		{"images of an entry", verify("imageReferences: [\"{{ team.a || 'x' }}\"], " + signed), verify("imageReferences: [\"{{ teams.a || 'x' }}\"], " + signed), "verifyImages[0]: a variable reads teams, which nothing defines: did you mean team?"},
		{"a signer of a member of the request", verify("imageReferences: ['*'], attestors: [{entries: [{keyless: {issuer: a, subject: \"{{ request.userInfo.username || '*' }}\"}}]}]"), verify("imageReferences: ['*'], attestors: [{entries: [{keyless: {issuer: a, subject: \"{{ request.userinfo.username || '*' }}\"}}]}]"), "verifyImages[0]: a variable reads request.userinfo, which no request has"},
		{"conditions of a statement", scanned("score || ''"), scanned("request.userinfo.username || score"), "attestations[0].conditions: a variable reads request.userinfo, which no request has"},
		{"a deny of a statement", refused("scan.score || ''"), refused("request.userinfo.username || scan.score"), "validate.deny.conditions: a variable reads request.userinfo, which no request has"},
		{"a name with a default", deny("request.object.data.a || ''"), deny("requst.object.data.a || ''"), "validate.deny.conditions: a variable reads requst, which nothing defines: did you mean request?"},
		{"an empty name", deny("request.object.data.a || ''"), deny("request.object.data.a || \\\"\\\""), "a variable reads \"\", a member without a name, which nothing defines: write '' for an empty text"},
		{"an entry with a default", denied(entry, "team.a || ''"), denied(entry, "teams.a || ''"), "did you mean team?"},
		{"a name in a function", deny("not_null(request.object.data.a, '')"), deny("not_null(object.data.a, '')"), "reads object, which nothing defines"},
		{"a name in a variable of a variable", deny("request.object.data.\\\"{{ request.name }}\\\" || ''"), deny("request.object.data.\\\"{{ nam || 'x' }}\\\" || ''"), "reads nam,"},
		{"a null that is written as a name", deny("request.object.data.a || null"), deny("request.object.data.a || nil"), "reads nil,"},
		{"an element outside of a loop", loop("list: request.object.data, deny: {conditions: {any: [{key: \"{{ element || '' }}\", operator: Equals, value: x}]}}"), deny("element || ''"), "reads element,"},
		{"an element of a loop that is not there", loop("list: request.object.data, deny: {conditions: {any: [{key: \"{{ element0 || '' }}\", operator: Equals, value: x}]}}"), loop("list: request.object.data, deny: {conditions: {any: [{key: \"{{ element1 || '' }}\", operator: Equals, value: x}]}}"), "reads element1,"},
		{"a list", loop("list: request.object.data, deny: {}"), loop("list: requst.object.data, deny: {}"), "foreach[0].list: a variable reads requst,"},
		{"a list of an entry", "context: [" + entry + "], " + loop("list: team.a, deny: {}"), loop("list: team.a, deny: {}"), "reads team,"},
		{"a list of an entry of the loop itself", loop("list: request.object.data, context: [" + entry + "], deny: {conditions: {any: [{key: '{{ team.a }}', operator: Equals, value: x}]}}"), loop("list: team.a, context: [" + entry + "], deny: {}"), "reads team,"},
		{"preconditions of a loop", loop("list: request.object.data, preconditions: {all: [{key: \"{{ element || '' }}\", operator: Equals, value: x}]}, deny: {}"), loop("list: request.object.data, preconditions: {all: [{key: \"{{ elment || '' }}\", operator: Equals, value: x}]}, deny: {}"), "did you mean element?"},
		{"a pattern", config + "validate: {pattern: {data: {a: \"{{ request.name || '*' }}\"}}}", config + "validate: {pattern: {data: {a: \"{{ requst.name || '*' }}\"}}}", "validate.pattern: a variable reads requst,"},
		{"a pattern with a field", config + "validate: {pattern: {data: {}}}", config + "validate: {pattern: {}}", "validate.pattern: is empty"},
		{"several patterns with fields", config + "validate: {anyPattern: [{data: {a: x}}, {data: {b: x}}]}", config + "validate: {anyPattern: [{data: {a: x}}, {}]}", "validate.anyPattern[1]: is empty"},
		{"one of several patterns", config + "validate: {anyPattern: [{data: {a: \"{{ request.name }}\"}}]}", config + "validate: {anyPattern: [{data: {a: \"{{ name }}\"}}]}", "validate.anyPattern: a variable reads name,"},
		{"the path of an entry", denied("{name: a, variable: {jmesPath: request.object.data.a, default: ''}}", "a"), denied("{name: a, variable: {jmesPath: requst.object.data.a, default: ''}}", "a"), "context: a variable reads requst,"},
		{"the path of a value is in it", denied("{name: a, variable: {value: {b: x}, jmesPath: b}}", "a"), denied("{name: a, variable: {value: '{{ b }}'}}", "a"), "context: a variable reads b,"},
		{"a patch", config + "mutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{ request.name }}\"}}}}", config + "mutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{ requst.name || 'a' }}\"}}}}", "reads requst,"},
		{"a patch of existing values", config + "mutate: {patchStrategicMerge: {data: {a: '{{ @ }}'}}}", config + "mutate: {patchesJson6902: '[{op: add, path: /data/a, value: \"{{ a || b }}\"}]'}", "reads a,"},
		{"an operation", when("{{ request.operation }}", "Equals", "CREATE"), when("{{ request.operation }}", "Equals", "Create"), `preconditions: "Create" is no operation`},
		{"one of several operations", when("{{request.operation}}", "AnyIn", "[CREATE, UPDATE]"), when("{{request.operation}}", "AnyIn", "[CREATE, Updated]"), `"Updated" is no operation`},
		{"an operation that differs", when("{{ request.operation }}", "NotEquals", "DELETE"), when("{{ request.operation }}", "NotEquals", "delete"), `"delete" is no operation`},
		{"operations of a pattern", when("{{ request.operation }}", "Equals", "'*E'"), when("{{ request.operation }}", "Equals", "'*X'"), `"*X" is no operation`},
		{"an operation with a default", when("{{ request.operation || ''BACKGROUND'' }}", "AnyNotIn", "[BACKGROUND, DELETE]"), when("{{ request.operation || ''BACKGROUND'' }}", "AnyNotIn", "[BACKGROUND, Delete]"), `"Delete" is no operation`},
		{"a default of another operation", when("{{ request.operation || ''NONE'' }}", "Equals", "NONE"), when("{{ request.operation || ''NONE'' }}", "Equals", "BACKGROUND"), `"BACKGROUND" is no operation`},
		{"an operation as the value", when("CREATE", "Equals", "'{{ request.operation }}'"), when("Create", "Equals", "'{{ request.operation }}'"), `"Create" is no operation`},
		{"an operation in an expression", when("{{ request.operation == ''CREATE'' }}", "Equals", "true"), when("{{ request.operation == ''Create'' }}", "Equals", "true"), `request.operation is never "Create"`},
		{"an operation in an entry", denied("{name: a, variable: {jmesPath: \"request.operation != 'DELETE'\"}}", "a"), denied("{name: a, variable: {jmesPath: \"request.operation != 'delete'\"}}", "a"), `request.operation is never "delete"`},
		{"an operation of an old list", config + "preconditions: [{key: '{{request.operation}}', operator: Equals, value: DELETE}], validate: {deny: {}}", config + "preconditions: [{key: '{{request.operation}}', operator: Equals, value: Delete}], validate: {deny: {}}", "no operation"},
		{"an expression without braces", deny("request.name"), strings.NewReplacer("{{ ", "", " }}", "").Replace(deny("request.object.data.a")), "validate.deny.conditions: the key \"request.object.data.a\" is a text, and the condition has the same result for every object: write {{ request.object.data.a }}"},
		{"in single braces", when("{{ request.name }}", "Equals", "a"), when("{request.name}", "Equals", "a"), "preconditions: the key \"{request.name}\" is a text"},
		{"in a shell's braces", when("a", "Equals", "a"), when("${request.name}", "Equals", "a"), "is a text"},
		{"beside a variable", when("request.name", "Equals", "\"{{ request.name }}\""), when("request.name", "Equals", "a"), "is a text"},
		{"of an entry", denied(entry, "team.a"), strings.NewReplacer("{{ ", "", " }}", "").Replace(denied(entry, "team.a")), "write {{ team.a }}"},
		{"of another name", when("team.a", "Equals", "a"), when("images.containers", "Equals", "a"), "is a text"},
		{"an element without braces", loop("list: request.object.data, deny: {conditions: {any: [{key: '{{ element }}', operator: Equals, value: x}]}}"), loop("list: request.object.data, deny: {conditions: {any: [{key: element, operator: Equals, value: x}]}}"), "write {{ element }}"},
		{"a label", match("resources: {selector: {matchLabels: {a: b}}}"), match("resources: {selector: {matchLabels: {a: '{{ request.name }}'}}}"), "exclude.any[0].resources.selector.matchLabels[a]"},
		{"no label", match("resources: {selector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}]}}"), match("resources: {selector: {matchExpressions: [{key: a, operator: NotIn, values: ['{{ request.name }}']}]}}"), "matchExpressions[0]"},
		{"a label of the namespace", match("resources: {namespaceSelector: {matchLabels: {a: b}}}"), match("resources: {namespaceSelector: {matchLabels: {'{{ a }}': b}}}"), "namespaceSelector"},
		{"an annotation", match("resources: {annotations: {a: b}}"), match("resources: {annotations: {a: '{{ request.name }}'}}"), "annotations[a]"},
		{"a user", match("subjects: [{kind: User, name: ann}]"), match("subjects: [{kind: User, name: '{{ request.name }}'}]"), "exclude.any[0].subjects[0]"},
		{"a role of the cluster", match("clusterRoles: [admin]"), match("clusterRoles: ['{{ request.name }}']"), "exclude.any[0].clusterRoles[0]"},
		{"in a match", strings.Replace(deny("request.name"), "[ConfigMap]", "[ConfigMap], annotations: {a: b}", 1), strings.Replace(deny("request.name"), "[ConfigMap]", "[ConfigMap], annotations: {a: '{{ b }}'}", 1), "match.any[0].resources.annotations[a]"},
		{"connections to a pod", only("Pod/exec", "operations: [CONNECT]"), only("Pod", "operations: [CONNECT]"), "match.any[0].resources.operations: CONNECT is no operation of Pod"},
		{"connections to every kind", only("'*/*'", "operations: [CONNECT]"), only("'*'", "operations: [CONNECT]"), "CONNECT is no operation of *"},
		{"connections of a custom kind", only("VirtualMachine", "operations: [CONNECT]"), only("Secret", "operations: [CONNECT]"), "CONNECT is no operation of Secret"},
		{"the creation of a connection", only("Pod/exec", "operations: [CREATE, CONNECT]"), only("Pod/exec", "operations: [CREATE]"), "CREATE is no operation of Pod/exec"},
		{"a proxy", only("Service/proxy", "operations: [CONNECT]"), only("Service/proxy", "operations: [UPDATE]"), "UPDATE is no operation of Service/proxy"},
		{"an eviction", only("Pod/eviction", "operations: [CREATE]"), only("Pod/eviction", "operations: [DELETE]"), "DELETE is no operation of Pod/eviction"},
		{"scales", only("'*/scale'", "operations: [UPDATE]"), only("'*/scale'", "operations: [CREATE]"), "CREATE is no operation of */scale"},
		{"a status", only("Deployment/status", "operations: [UPDATE]"), only("Deployment/status", "operations: [CREATE, DELETE]"), "no operation of Deployment/status"},
		{"added containers", only("Pod/ephemeralcontainers", "operations: [UPDATE]"), only("Pod/ephemeralcontainers", "operations: [CREATE]"), "no operation of Pod/ephemeralcontainers"},
		{"one of several kinds", only("Pod, Pod/exec", "operations: [CONNECT]"), only("Pod, Secret", "operations: [CONNECT]"), "no operation of Pod, Secret"},
		{"logs", only("Pod/attach", "names: [a]"), only("Pod/log", "names: [a]"), "a read is not admitted"},
		{"the core group", only("v1/Pod", "names: [a]"), only("core/v1/Pod", "names: [a]"), "write v1/Pod"},
		{"a kind of the cluster in a namespace", only("Role, ClusterRole", "namespaces: [a]"), only("ClusterRole, Node", "namespaces: [a]"), "are in no namespace"},
		{"and in every one", only("ClusterRole", "namespaces: ['*']"), only("ClusterRole", "namespaces: ['?*']"), "are in no namespace"},
		{"a custom kind of that name", only("example.com/v1/Node", "namespaces: [a]"), only("v1/Node", "namespaces: [a]"), "are in no namespace"},
		{"a pattern at deletions", config + "validate: {pattern: {data: {a: x}}}", strings.Replace(config, "[ConfigMap]", "[ConfigMap], operations: [DELETE]", 1) + "validate: {pattern: {data: {a: x}}}", "match: names none of the operations"},
		{"a standard at deletions", only("Pod", "operations: [DELETE]"), strings.Replace(only("Pod", "operations: [DELETE]"), "deny: {}", "podSecurity: {level: baseline, version: latest}", 1), "match: names none of the operations"},
		{"one of several filters", "match: {any: [{resources: {kinds: [ConfigMap], operations: [DELETE]}}, {resources: {kinds: [Secret]}}]}, validate: {pattern: {data: {a: x}}}", "match: {all: [{resources: {kinds: [ConfigMap], operations: [DELETE]}}, {resources: {names: [a]}}]}, validate: {pattern: {data: {a: x}}}", "match: names none of the operations"},
		{"a mutation", strings.Replace(config, "[ConfigMap]", "[ConfigMap], operations: [UPDATE, DELETE]", 1) + "mutate: {patchStrategicMerge: {data: {a: x}}}", strings.Replace(config, "[ConfigMap]", "[ConfigMap], operations: [DELETE]", 1) + "mutate: {patchStrategicMerge: {data: {a: x}}}", "match: names none of the operations"},
		{"what match selects is excluded", match("resources: {kinds: [ConfigMap], names: [a]}"), match("resources: {kinds: [ConfigMap]}"), "exclude: leaves out everything that match selects"},
		{"by a wildcard", match("resources: {kinds: ['*'], namespaces: [a]}"), match("resources: {kinds: ['*'], namespaces: ['*']}"), "leaves out everything"},
		{"by a namespace", narrowed("namespaces: [a-b, c]", "resources: {namespaces: ['a-*']}"), narrowed("namespaces: [a-b]", "resources: {namespaces: ['a-*']}"), "leaves out everything"},
		{"by operations", narrowed("operations: [CREATE, DELETE]", "resources: {operations: [CREATE]}"), narrowed("operations: [CREATE]", "resources: {operations: [CREATE, UPDATE]}"), "leaves out everything"},
		{"by labels", narrowed("selector: {matchLabels: {a: b}}", "resources: {selector: {matchLabels: {a: c}}}"), narrowed("selector: {matchLabels: {a: b}}", "resources: {selector: {matchLabels: {a: b}}}"), "leaves out everything"},
		{"by an annotation", narrowed("annotations: {a: b}", "resources: {annotations: {a: b, c: d}}"), narrowed("annotations: {a: b, c: d}", "resources: {annotations: {a: b}}"), "leaves out everything"},
		{"by users", narrowed("names: [a]", "subjects: [{kind: User, name: ann}]"), "match: {any: [{subjects: [{kind: User, name: ann}]}]}, exclude: {any: [{subjects: [{kind: User, name: ann}]}]}, validate: {deny: {}}", "leaves out everything"},
		{"of namespaces, with objects of the cluster", strings.Replace(narrowed("names: [a]", "resources: {namespaceSelector: {}}"), "ConfigMap", "ConfigMap, ClusterRole", 1), narrowed("namespaceSelector: {matchLabels: {a: b}}", "resources: {namespaceSelector: {matchLabels: {a: b}}}"), "leaves out everything"},
		{"by a selector of any namespace", match("resources: {kinds: [Namespace], namespaceSelector: {}}"), match("resources: {kinds: [ConfigMap], namespaceSelector: {}}"), "leaves out everything"},
		{"one of all", "match: {any: [{resources: {kinds: [ConfigMap]}}]}, exclude: {all: [{resources: {kinds: [ConfigMap]}}, {resources: {names: [a]}}]}, validate: {deny: {}}", "match: {all: [{resources: {kinds: [ConfigMap]}}, {resources: {names: [a]}}]}, exclude: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {deny: {}}", "leaves out everything"},
	} {
		if _, err := newCompiler(t, nil).Compile([]byte(head+c.good+"}]}"), "test.yaml"); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		if _, err := newCompiler(t, nil).Compile([]byte(head+c.bad+"}]}"), "test.yaml"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}
