package cel_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

const conditional = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: conditional, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  validationFailureAction: Enforce
  rules:
  - name: rule
    match: {any: [{resources: {kinds: [Pod]}}]}
`

// TestUndecidedInSource: where the source cannot decide, the result does not admit: such rules have no form.
func TestUndecidedInSource(t *testing.T) {
	head := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: test}\nspec:\n  rules:\n  - name: r\n    match: {any: [{resources: {kinds: [KIND]}}]}\n"
	deny := func(settings, key, operator, value string) string {
		return "    validate: {failureAction: Enforce, " + settings + "deny: {conditions: {all: [{key: \"" + key + "\", operator: " + operator + ", value: " + value + "}]}}}\n"
	}
	stays := "allowExistingViolations: false, "
	for _, c := range []struct {
		reason, kind, rule string
		converts           bool
	}{
		{"a text that may have wildcards, with the excuse of existing violations", "Pod", deny("", "{{ request.object.metadata.annotations.a || '' }}", "AnyIn", "[a, b]"), false},
		{"without the excuse", "Pod", deny(stays, "{{ request.object.metadata.annotations.a || '' }}", "AnyIn", "[a, b]"), true},
		{"a list that an API server writes as null", "ClusterRole", deny(stays, "{{ request.object.rules[].verbs[] }}", "AnyIn", "[escalate]"), true},
		{"one that it leaves out", "ClusterRoleBinding", deny(stays, "{{ request.object.subjects[].kind }}", "AnyIn", "[User]"), true},
	} {
		result := convertText(t, strings.Replace(head, "KIND", c.kind, 1)+c.rule, cel.Options{})
		if (len(result.Problems) == 0) != c.converts {
			t.Errorf("%s: %v", c.reason, result.Problems)
		}
	}
}

// TestConditional: rules with conditions, loops and variables have the form of each row, and the verdict and the
// message of the source for each object.
func TestConditional(t *testing.T) {
	objects := []string{
		"metadata: {name: a, labels: {team: shop}}, spec: {containers: [{name: a, image: 'reg/a:1'}]}",
		"metadata: {name: b}, spec: {hostNetwork: true, containers: [{name: a, image: 'reg/a'}, {name: b, image: 'other/b', ports: [{containerPort: 1, hostPort: 80}]}]}",
		"metadata: {name: c, labels: {team: ''}}, spec: {initContainers: [{name: i, image: 'other/i'}], containers: [{name: a, image: 'other/a', securityContext: {capabilities: {add: [x]}}}]}",
		"metadata: {name: d, labels: {team: x}, annotations: {mode: strict}}, spec: {containers: [{name: a, image: 'reg/a', ports: [{containerPort: 1}]}], volumes: [{name: v, hostPath: {path: /a}}]}",
	}
	for _, c := range []struct{ reason, rule, want string }{
		{"deny, with a message", "validate: {message: '{{ request.object.metadata.name }} has no team', deny: {conditions: {any: [{key: \"{{ request.object.metadata.labels.team || '' }}\", operator: Equals, value: ''}]}}}",
			"messageExpression: variables.resource.metadata.name + ' has no team'"},
		{"preconditions on the operation", "preconditions: {all: [{key: '{{ request.operation }}', operator: NotEquals, value: DELETE}]}, validate: {message: no host network, deny: {conditions: {any: [{key: '{{ request.object.spec.hostNetwork || `false` }}', operator: Equals, value: true}]}}}",
			"expression: '!object.spec.?hostNetwork.orValue(false)'"},
		{"other preconditions", "preconditions: {any: [{key: \"{{ request.object.metadata.annotations.mode || '' }}\", operator: Equals, value: strict}, {key: \"{{ request.operation }}\", operator: Equals, value: UPDATE}]}, validate: {message: strict, pattern: {spec: {volumes: [{=(hostPath): null}]}}}", ""},
		{"a loop, with the element in the message", "validate: {message: '{{ element.name }} is not of reg', foreach: [{list: 'request.object.spec.containers', deny: {conditions: {any: [{key: '{{ starts_with(element.image, ''reg/'') }}', operator: Equals, value: false}]}}}]}",
			"messageExpression: variables.violating[0].name + ' is not of reg'"},
		{"a loop with a pattern and preconditions", "validate: {message: tags, foreach: [{list: 'request.object.spec.[initContainers, containers][]', preconditions: {all: [{key: '{{ element.name }}', operator: NotEquals, value: b}]}, pattern: {image: '*:*'}}]}", ""},
		{"a loop in a loop", "validate: {message: ports, foreach: [{list: 'request.object.spec.containers', foreach: [{list: 'element.ports', deny: {conditions: {any: [{key: '{{ element.hostPort || `0` }}', operator: GreaterThan, value: 0}]}}}]}]}",
			"container.?ports.orValue([]).all(port, port.?hostPort.orValue(0) <= 0)"},
		{"a loop with variables", "validate: {message: caps, foreach: [{list: 'request.object.spec.containers', context: [{name: caps, variable: {jmesPath: 'element.securityContext.capabilities.add', default: []}}], deny: {conditions: {all: [{key: '{{ length(caps) }}', operator: GreaterThan, value: 0}]}}}]}",
			"container.?securityContext.?capabilities.?add.orValue([]).size() <= 0"},
		{"a variable", "context: [{name: team, variable: {jmesPath: 'request.object.metadata.labels.team', default: none}}], validate: {allowExistingViolations: false, message: 'the team is {{ team }}', deny: {conditions: {all: [{key: '{{ team }}', operator: AnyIn, value: [none, '']}]}}}",
			"name: team"},
		{"always", "validate: {message: never, deny: {}}", "variables.violatedBefore || false"},
		{"a missing key", "validate: {allowExistingViolations: false, message: team, deny: {conditions: {all: [{key: '{{ request.object.metadata.labels.team }}', operator: Equals, value: x}, {key: '{{ request.operation }}', operator: Equals, value: CREATE}]}}}", " ? "},
	} {
		text := conditional + "    " + c.rule[:strings.Index(c.rule, ":")] + ":" + c.rule[strings.Index(c.rule, ":")+1:]
		text = strings.Replace(text, ", validate: {", "\n    validate: {", 1) + "\n"
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) > 0 {
			t.Errorf("%s: %v", c.reason, result.Problems)
			continue
		}
		written, err := cel.YAML(result.Policies)
		if err != nil || !strings.Contains(string(written), c.want) {
			t.Errorf("%s: %v\n%s\nlacks %s", c.reason, err, written, c.want)
		}
		source, made := sourcePolicy(t, []byte(text)), compiledResults(t, result.Policies)
		for i, one := range objects {
			for _, operation := range []string{"CREATE", "UPDATE", "DELETE"} {
				s := creation(policytest.Object(t, "{apiVersion: v1, kind: Pod, "+one+"}"))
				s.Operation = operation
				switch operation {
				case "UPDATE":
					s.OldObject = policy.ContentOf(policytest.Object(t, "{apiVersion: v1, kind: Pod, "+strings.Replace(objects[(i+1)%len(objects)], "name: "+string('a'+rune((i+1)%len(objects))), "name: "+string('a'+rune(i)), 1)+"}"))
				case "DELETE":
					s.Object, s.OldObject = policy.Content{}, s.Object
				}
				want, why := admits(t, s, source)
				got, instead := admits(t, s, made...)
				if got != want {
					t.Errorf("%s: %s of %s: %t (%s), was %t (%s)\n%s", c.reason, operation, one, got, instead, want, why, written)
				}
				author := strings.TrimPrefix(strings.ReplaceAll(why, "validation failure: ", ""), "fail: ")
				if strings.HasPrefix(why, "fail: ") && !strings.Contains(instead, strings.TrimPrefix(strings.Split(author, " rule ")[0], "validation error: ")[:4]) {
					t.Errorf("%s: %s of %s: the message is %q, was %q", c.reason, operation, one, instead, why)
				}
			}
		}
	}
}
