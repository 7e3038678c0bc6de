package validate_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/validate"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

func newEngine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

// limits answers for the parameters of rules in CEL.
type limits struct{ list []any }

func (l limits) Get(_ context.Context, ref cel.ResourceRef) (map[string]any, error) {
	if ref.Name == "forbidden" {
		return nil, errors.New("forbidden")
	}
	if len(l.list) == 0 || ref.Name == "gone" {
		return nil, errors.New("not found")
	}
	return l.list[0].(map[string]any), nil
}

func (l limits) List(_ context.Context, _ cel.ResourceRef, labels map[string]string) (map[string]any, error) {
	if labels["of"] == "forbidden" {
		return nil, errors.New("forbidden")
	}
	if labels["of"] == "none" {
		return map[string]any{"items": []any{}}, nil
	}
	return map[string]any{"items": l.list}, nil
}

func (l limits) Post(context.Context, cel.ResourceRef, map[string]any) (map[string]any, error) {
	return nil, errors.New("unexpected")
}

func (l limits) Kind(_ context.Context, _, kind string) (string, string, string, error) {
	if kind == "Unknown" {
		return "", "", "", errors.New("no such kind")
	}
	return "example.com", "v1", "limits", nil
}

func options(tb testing.TB) validate.Options {
	tb.Helper()
	actions, err := action.Compile(action.Document{Usual: "Enforce"})
	if err != nil {
		tb.Fatal(err)
	}
	return validate.Options{
		Rule: rule.Options{Context: rulecontext.Options{Engine: newEngine(tb)}, OldForm: true}, Actions: actions,
		CEL: validate.NewLanguage(validate.LanguageOptions{Params: limits{[]any{
			map[string]any{"max": int64(3)}, map[string]any{"max": int64(1)},
		}}}),
	}
}

func compile(tb testing.TB, o validate.Options, body string) (*validate.Rule, error) {
	tb.Helper()
	text := "{name: r, match: {any: [{resources: {kinds: [Pod, Deployment]}}]}, " + body + "}"
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return validate.Compile(o, json.RawMessage(raw), "spec.rules[0]")
}

func object(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

func pod(tb testing.TB, spec string) *policy.Subject {
	tb.Helper()
	return &policy.Subject{
		Version: "v1", Kind: "Pod", Namespace: "prod", Name: "web", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}, Operation: "CREATE",
		User:   policy.User{Name: "ann"},
		Object: policy.ContentOf(object(tb, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: prod, labels: {team: a}}, spec: "+spec+"}")),
	}
}

func ask(tb testing.TB, r *validate.Rule, s *policy.Subject) policy.Validated {
	tb.Helper()
	return r.Validate(tb.Context(), policy.Case{Subject: s})
}

const two = "{hostNetwork: false, containers: [{name: a, image: 'x:v1'}, {name: b, image: 'y:latest'}]}"

func TestValidate(t *testing.T) {
	const (
		list   = "list: request.object.spec.containers"
		user   = "{spec: {=(securityContext): {(runAsNonRoot): true, runAsUser: '>999'}, =(hostNetwork): false}}"
		root   = "validate: {anyPattern: [" + user + ", {spec: {priorityClassName: trusted}}]}"
		exists = "validate: {pattern: {spec: {^(containers): [{=(securityContext): {(privileged): false, runAsUser: '>0'}, =(tty): false}]}}}"
	)
	for _, c := range []struct {
		body, spec string
		want       policy.Result
		says       string
		reason     string
	}{
		{"validate: {message: no host, pattern: {spec: {=(hostNetwork): false}}}", two, policy.Pass, "", "a pattern that holds"},
		{"validate: {message: no host, pattern: {spec: {=(hostNetwork): false}}}", "{hostNetwork: true}", policy.Fail, "validation error: no host. rule r failed at path /spec/hostNetwork/", "a pattern that does not"},
		{"validate: {pattern: {spec: {=(hostNetwork): false}}}", "{hostNetwork: true}", policy.Fail, "validation error: rule r failed at path /spec/hostNetwork/", "without a message"},
		{"validate: {message: 'of {{request.name}}.', pattern: {spec: {hostNetwork: false}}}", "{hostNetwork: true}", policy.Fail, "validation error: of web. rule r failed", "a variable in the message"},
		{"validate: {message: 'of {{request.object.metadata.labels.none}}', pattern: {spec: {hostNetwork: false}}}", "{hostNetwork: true}", policy.Fail, "validation error: of {{request.object.metadata.labels.none}}. rule r failed", "a variable in the message that is not there"},
		{"validate: {message: 'want $(./../pattern/spec/hostNetwork)', pattern: {spec: {=(hostNetwork): false}}}", "{hostNetwork: true}", policy.Fail, "validation error: want false. rule r", "a reference in the message, past an anchor"},
		{"validate: {message: 'want $(/validate/pattern/none)', pattern: {spec: {=(hostNetwork): false}}}", "{hostNetwork: true}", policy.Fail, "want $(/validate/pattern/none). rule r", "a reference to nothing"},
		{"validate: {pattern: {spec: {(hostNetwork): true, containers: [{image: '!*:latest'}]}}}", two, policy.Skipped, "", "an anchor that leaves the object alone"},
		{"validate: {pattern: {spec: {containers: [{name: '{{request.object.metadata.labels.none}}'}]}}}", two, policy.Indeterminate, "validate.pattern: ", "a variable that is not there"},
		{"validate: {pattern: {metadata: {name: '{{request.name}}'}}}", two, policy.Pass, "", "a variable in a pattern"},

		{"validate: {anyPattern: [{spec: {hostNetwork: true}}, {spec: {hostNetwork: false}}]}", two, policy.Pass, "", "one of two patterns"},
		{"validate: {message: m, anyPattern: [{spec: {hostNetwork: true}}, {spec: {hostPID: true}}]}", two, policy.Fail, "validation error: m. rule r[0] failed at path /spec/hostNetwork/ rule r[1] failed at path /spec/hostPID/", "none of two"},
		{"validate: {anyPattern: [{spec: {(hostNetwork): true, x: y}}]}", two, policy.Skipped, "", "all leave it alone"},
		{"validate: {anyPattern: [{spec: {(hostNetwork): true, x: y}}, {spec: {hostPID: true}}]}", two, policy.Fail, "rule r[1] failed", "one leaves it alone, and one does not hold"},
		{root, "{securityContext: {runAsNonRoot: false, runAsUser: 0}}", policy.Fail, "rule r[1] failed", "one leaves a part of it alone, and one does not hold"},
		{root, "{securityContext: {runAsNonRoot: true, runAsUser: 1000}}", policy.Pass, "", "one applies, and holds"},
		{root, "{securityContext: {runAsNonRoot: false, runAsUser: 0}, priorityClassName: trusted}", policy.Pass, "", "one leaves a part of it alone, and the other holds"},
		{"validate: {anyPattern: [" + user + "]}", "{securityContext: {runAsNonRoot: false, runAsUser: 0}}", policy.Skipped, "rule r[0] skipped: /spec/securityContext/runAsNonRoot/", "all leave a part of it alone"},
		{"validate: {pattern: " + user + "}", "{securityContext: {runAsNonRoot: false, runAsUser: 0}}", policy.Pass, "", "a single pattern"},
		{"validate: {anyPattern: [{spec: {containers: [{(name): web, image: 'x:*'}, {image: '*'}]}}, {spec: {hostPID: true}}]}", "{containers: [{name: db, image: y}]}", policy.Fail, "rule r[1] failed", "an item of a list leaves all elements alone"},
		{"validate: {anyPattern: [{spec: {containers: [{(name): web, image: 'x:*'}, {image: '*'}]}}, {spec: {hostPID: true}}]}", "{containers: [{name: web, image: 'x:1'}]}", policy.Pass, "", "it applies to one"},
		{exists, "{containers: [{securityContext: {privileged: true, runAsUser: 0}}]}", policy.Fail, "rule r failed at path /spec/containers/", "no element that the existence anchor looks for"},
		{exists, "{containers: [{securityContext: {privileged: false, runAsUser: 1}}]}", policy.Pass, "", "one"},

		{"validate: {anyPattern: [{metadata: {name: '{{request.object.metadata.labels.none}}'}}]}", two, policy.Indeterminate, "validate.anyPattern[0]: ", "a variable that is not there, in one of several"},

		{"validate: {deny: {}}", two, policy.Fail, "validation error: rule r failed", "always"},
		{"validate: {deny: {conditions: {any: [{key: 2h, operator: AnyIn, value: 1h-5Gi}]}}}", two, policy.Indeterminate, "the condition is indeterminate", "a condition that holds in one reading and not in another"},
		{"validate: {message: 'no {{request.name}}', deny: {conditions: {any: [{key: '{{request.name}}', operator: Equals, value: web}]}}}", two, policy.Fail, "no web", "a condition that holds"},
		{"validate: {message: nay, deny: {conditions: {any: [{key: '{{request.name}}', operator: Equals, value: other}]}}}", two, policy.Pass, "", "a condition that does not"},
		{"validate: {message: nay, deny: {conditions: {all: [{key: a, operator: Equals, value: a, message: its own}]}}}", two, policy.Fail, "nay; its own", "the condition's message"},
		{"validate: {deny: {conditions: {all: [{key: '{{request.object.metadata.labels.none}}', operator: Equals, value: a}]}}}", two, policy.Indeterminate, "validate.deny.conditions: ", "a condition that cannot be evaluated"},
		{"validate: {deny: {conditions: [{key: a, operator: Equals, value: a}]}}", two, policy.Fail, "rule r failed", "the old form"},

		{"preconditions: {all: [{key: '{{request.name}}', operator: Equals, value: other}]}, validate: {deny: {}}", two, policy.Skipped, "preconditions not met", "preconditions that are not met"},
		{"preconditions: {all: [{key: '{{request.name}}', operator: Equals, value: web}]}, validate: {deny: {}}", two, policy.Fail, "", "preconditions that are"},
		{"preconditions: {all: [{key: '{{request.none}}', operator: Equals, value: web}]}, validate: {deny: {}}", two, policy.Indeterminate, "preconditions: ", "preconditions that cannot be evaluated"},
		{"context: [{name: num, variable: {jmesPath: length(request.object.spec.containers)}}], validate: {deny: {conditions: {any: [{key: '{{num}}', operator: GreaterThan, value: 1}]}}}", two, policy.Fail, "", "a context"},
		{"context: [{name: num, configMap: {name: gone}}], validate: {pattern: {metadata: {name: web}}}", two, policy.Pass, "", "a context that nothing reads"},
		{"context: [{name: num, configMap: {name: gone}}], validate: {pattern: {metadata: {name: '{{num.data.x}}'}}}", two, policy.Indeterminate, "there is no cluster", "a context that cannot be had"},
		{"context: [{name: num, configMap: {name: gone}}], validate: {message: '{{num.data.x}}', deny: {}}", two, policy.Fail, "{{num.data.x}}", "a context that cannot be had, in a message"},

		{"validate: {foreach: [{" + list + ", pattern: {image: '!*:latest'}}]}", two, policy.Fail, "validation failure: validation error: rule r failed at path /image/", "an element that fails"},
		{"validate: {foreach: [{" + list + ", pattern: {image: '*:*'}}]}", two, policy.Pass, "", "elements that all hold"},
		{"validate: {message: '{{element.name}}', foreach: [{" + list + ", deny: {conditions: {any: [{key: '{{element.image}}', operator: Equals, value: '*:latest'}]}}}]}", two, policy.Fail, "validation failure: b", "the element in the message"},
		{"validate: {message: '{{elementIndex}}', foreach: [{" + list + ", anyPattern: [{name: a}]}]}", two, policy.Fail, "validation failure: validation error: 1. rule r[0]", "the index in the message"},
		{"validate: {foreach: [{list: request.object.metadata.labels.none, deny: {}}]}", two, policy.Skipped, "no element", "a list that is not there"},
		{"validate: {foreach: [{list: '`[]`', deny: {}}]}", two, policy.Skipped, "no element", "an empty list"},
		{"validate: {foreach: [{list: 'to_upper(request.object)', deny: {}}]}", two, policy.Indeterminate, "foreach[0].list: ", "a list that cannot be evaluated"},
		{"validate: {foreach: [{list: request.name, deny: {conditions: {any: [{key: '{{element}}', operator: Equals, value: web}]}}}]}", two, policy.Fail, "", "a value that is no list"},
		{"validate: {foreach: [{" + list + ", preconditions: {any: [{key: '{{element.name}}', operator: Equals, value: c}]}, deny: {}}]}", two, policy.Skipped, "no element", "no element is concerned"},
		{"validate: {foreach: [{" + list + ", preconditions: {any: [{key: '{{element.name}}', operator: Equals, value: b}]}, deny: {}}]}", two, policy.Fail, "", "one element is concerned"},
		{"validate: {foreach: [{" + list + ", context: [{name: num, variable: {jmesPath: element.name}}], deny: {conditions: {any: [{key: '{{num}}', operator: Equals, value: b}]}}}]}", two, policy.Fail, "", "a context for each element"},
		{"validate: {foreach: [{" + list + ", deny: {conditions: {any: [{key: '{{element.none}}', operator: Equals, value: b}]}}}]}", two, policy.Indeterminate, "", "an element that cannot be evaluated"},
		{"validate: {foreach: [{" + list + ", deny: {conditions: {any: [{key: \"{{element.name == 'a' && element.none || element.name}}\", operator: Equals, value: b}]}}}]}", two, policy.Fail, "", "a later element decides"},
		{"validate: {foreach: [{" + list + ", pattern: {name: '?*'}}, {" + list + ", pattern: {name: a}}]}", two, policy.Fail, "", "the second of two loops"},
		{"validate: {foreach: [{" + list + ", elementScope: false, pattern: {spec: {hostNetwork: false}}}]}", two, policy.Pass, "", "the object in place of the element"},
		{"validate: {foreach: [{" + list + ", elementScope: false, pattern: {spec: {hostNetwork: true}}}]}", two, policy.Fail, "", "the object in place of the element, and it fails"},
		{"validate: {foreach: [{list: '[`1`]', elementScope: true, pattern: {a: b}}]}", two, policy.Indeterminate, "elementScope is true", "a scope that cannot be"},
		{"validate: {foreach: [{list: '[`null`]', deny: {}}]}", two, policy.Skipped, "no element", "an element that is null"},
		{"validate: {foreach: [{" + list + ", elementScope: true, pattern: {image: '*:*'}}]}", two, policy.Pass, "", "the element, in words"},
		{"validate: {foreach: [{list: '[`1`]', elementScope: false, pattern: {spec: {hostNetwork: false}}}]}", two, policy.Pass, "", "the object, and an element that is none"},
		{"validate: {foreach: [{list: '[`1`]', pattern: {spec: {hostNetwork: true}}}]}", two, policy.Fail, "", "an element that is no object leaves the object"},
		{"validate: {foreach: [{" + list + ", foreach: [{list: 'split(element.image, `\":\"`)', deny: {conditions: {all: [{key: '{{element0.name}}{{element1}}{{elementIndex1}}', operator: Equals, value: blatest1}]}}}]}]}", two, policy.Fail, "validation failure: validation failure: ", "a loop in a loop"},

		{"validate: {podSecurity: {level: baseline}}", "{hostNetwork: true, containers: [{name: a, image: x}]}", policy.Fail, `It violates PodSecurity "baseline:`, "a standard that is not met"},
		{"validate: {podSecurity: {level: baseline}}", "{containers: [{name: a, image: x}]}", policy.Pass, "", "a standard that is met"},
		{"validate: {podSecurity: {level: baseline, exclude: [{controlName: Host Namespaces}]}}", "{hostNetwork: true, containers: [{name: a, image: x}]}", policy.Pass, "", "an exclusion"},
		{"validate: {podSecurity: {level: baseline}}", "{hostNetwork: 7}", policy.Indeterminate, "podSecurity: ", "no pod"},

		{"validate: {cel: {expressions: [{expression: 'object.spec.containers.size() < 3'}]}}", two, policy.Pass, "", "CEL that holds"},
		{"validate: {message: m, cel: {expressions: [{expression: 'object.spec.containers.size() < 2'}]}}", two, policy.Fail, "m", "CEL that does not"},
		{"validate: {message: m, cel: {expressions: [{expression: 'false', message: own}]}}", two, policy.Fail, "own", "its own message"},
		{"validate: {cel: {expressions: [{expression: 'false', message: own, messageExpression: \"'of ' + object.metadata.name\"}]}}", two, policy.Fail, "of web", "a computed message"},
		{"validate: {cel: {expressions: [{expression: 'false', message: own, messageExpression: 'string(object.metadata.labels.none)'}]}}", two, policy.Fail, "own", "a computed message that fails"},
		{"validate: {cel: {expressions: [{expression: '1 > 2'}]}}", two, policy.Fail, "failed expression: 1 > 2", "no message"},
		{"validate: {cel: {expressions: [{expression: 'object.metadata.labels.none == \"1\"'}]}}", two, policy.Indeterminate, "expressions[0]", "CEL that cannot be evaluated"},
		{"validate: {cel: {expressions: [{expression: 'object.metadata.labels.none == \"1\"'}, {expression: 'false'}]}}", two, policy.Fail, "", "another expression decides"},
		{"validate: {cel: {variables: [{name: num, expression: 'size(object.spec.containers)'}], expressions: [{expression: 'variables.num == 2'}]}}", two, policy.Pass, "", "variables"},
		{"celPreconditions: [{name: a, expression: \"request.name == 'other'\"}], validate: {cel: {expressions: [{expression: 'false'}]}}", two, policy.Skipped, "cel preconditions not met", "preconditions in CEL"},
		{"celPreconditions: [{name: Only for what is not named other, expression: \"request.name == 'other'\"}], validate: {cel: {expressions: [{expression: 'false'}]}}", two, policy.Skipped, "cel preconditions not met", "a precondition with a sentence as its name"},
		{"celPreconditions: [{name: a, expression: \"request.operation == 'CREATE'\"}], validate: {cel: {expressions: [{expression: 'false'}]}}", two, policy.Fail, "", "preconditions in CEL that are met"},
		{"celPreconditions: [{name: a, expression: 'object.metadata.labels.none == \"1\"'}], validate: {cel: {expressions: [{expression: 'false'}]}}", two, policy.Indeterminate, "celPreconditions", "preconditions in CEL that cannot be evaluated"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {name: a}, expressions: [{expression: 'size(object.spec.containers) <= params.max'}]}}", two, policy.Pass, "", "a parameter"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {selector: {}}, expressions: [{expression: 'size(object.spec.containers) <= params.max'}]}}", two, policy.Fail, "", "two parameters, of which one is exceeded"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {name: gone}, expressions: [{expression: 'true'}]}}", two, policy.Indeterminate, "not found", "a parameter that is gone"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {name: gone, parameterNotFoundAction: Allow}, expressions: [{expression: 'true'}]}}", two, policy.Indeterminate, "not found", "a named parameter that is gone, whatever the action is"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {selector: {matchLabels: {of: none}}, parameterNotFoundAction: Allow}, expressions: [{expression: 'false'}]}}", two, policy.Pass, "", "selected parameters that may be gone"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {selector: {matchLabels: {of: none}}, parameterNotFoundAction: Deny}, expressions: [{expression: 'true'}]}}", two, policy.Indeterminate, "no object has the labels", "selected parameters that must be there"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {selector: {matchLabels: {of: none}}}, expressions: [{expression: 'true'}]}}", two, policy.Indeterminate, "no object has the labels", "selected parameters without an action"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {name: forbidden}, expressions: [{expression: 'true'}]}}", two, policy.Indeterminate, "forbidden", "a parameter that cannot be read"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {selector: {}}, expressions: [{expression: 'size(object.spec.containers) >= params.max'}]}}", two, policy.Fail, "", "two parameters, of which the first is not reached"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {selector: {matchLabels: {of: forbidden}}, parameterNotFoundAction: Allow}, expressions: [{expression: 'true'}]}}", two, policy.Indeterminate, "forbidden", "parameters that cannot be listed"},
		{"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Unknown}, paramRef: {name: a}, expressions: [{expression: 'true'}]}}", two, policy.Indeterminate, "no such kind", "parameters of a kind that is not there"},
	} {
		r, err := compile(t, options(t), c.body)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		got := ask(t, r, pod(t, c.spec))
		said := ""
		if len(got.Reasons) > 0 {
			said = got.Reasons[0].Message
		}
		if got.Result != c.want || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q %q; want %q %q", c.reason, got.Result, said, c.want, c.says)
		}
		if got.Action != policy.Enforce {
			t.Errorf("%s: action %q", c.reason, got.Action)
		}
	}
}

func TestValidateErrors(t *testing.T) {
	const path = "spec.rules[0].validate"
	for _, c := range []struct{ body, want, reason string }{
		{"validate: null", path + ": is empty", "null"},
		{"validate: {}", path + ": want one of", "nothing"},
		{"validate: {anyPattern: [" + strings.Repeat("{a: b}, ", 201) + "]}", path + ".anyPattern: want 1 to 200", "too many patterns"},
		{"validate: {foreach: [" + strings.Repeat("{list: a, deny: {}}, ", 51) + "]}", path + ".foreach: want 1 to 50", "too many loops"},
		{"validate: {cel: {expressions: [" + strings.Repeat("{expression: 'true'}, ", 201) + "]}}", path + ".cel.expressions: want 1 to 200", "too much CEL"},
		{"validate: {cel: {expressions: [{expression: 'true'}], auditAnnotations: [" + strings.Repeat("{key: a, valueExpression: \"''\"}, ", 201) + "]}}", path + ".cel.auditAnnotations: 201 are more than 200", "too many annotations"},
		{"validate: {cel: {expressions: [{expression: 'true'}], auditAnnotations: [{valueExpression: \"''\"}]}}", path + ".cel.auditAnnotations[0].key: is empty", "an annotation without a name"},
		{"validate: {cel: {expressions: [{expression: \"namespaceObject.status.phase != 'Active'\"}]}}", "namespaceObject.status is not known here", "an unknown member of the namespace"},
		{"validate: {cel: {expressions: [{expression: 'true'}], paramKind: {apiVersion: v1}, paramRef: {name: a}}}", path + ".cel.paramKind: want", "parameters without a kind"},
		{"validate: {cel: {expressions: [{expression: 'true'}], paramKind: {kind: ConfigMap}, paramRef: {name: a}}}", path + ".cel.paramKind: want", "parameters without a version"},
		{"validate: {cel: {expressions: [{expression: 'true'}], paramKind: {apiVersion: v1, kind: ConfigMap}, paramRef: {}}}", path + ".cel.paramRef: want one of", "neither a name nor a selector"},
		{"validate: {cel: {expressions: [{expression: 'true'}], paramKind: {apiVersion: v1, kind: ConfigMap}, paramRef: {name: a, selector: {}}}}", path + ".cel.paramRef: want one of", "a name and a selector"},
		{"validate: {cel: {expressions: [{expression: 'true'}], paramKind: {apiVersion: v1, kind: ConfigMap}, paramRef: {selector: {matchExpressions: [{key: a, operator: Exists}]}}}}", path + ".cel.paramRef.selector.matchExpressions", "a selector that is not understood"},
		{"validate: {message: m}", path + ": want one of", "a message alone"},
		{"validate: {pattern: {a: b}, deny: {}}", path + ": want one of", "two things"},
		{"validate: {pattern: {a: b}, mesage: x}", path + ".mesage: unknown field: did you mean message?", "a misspelt field"},
		{"validate: {manifests: {attestors: []}}", path + ".manifests.attestors: is empty", "manifests without signers"},
		{"validate: {manifests: {attestors: [{entries: [{keys: {publicKeys: x}}]}], ignoreFields: [{fields: [spec]}]}}", path + ".manifests.ignoreFields[0].fields[0]", "manifests with everything ignored"},
		{"validate: {manifests: {}, deny: {}}", path + ": want one of", "manifests and a condition"},
		{"validate: {assert: {object: {}}}", path + ".assert: ", "assertions"},
		{"validate: {pattern: {'+(a)': b}}", path + ".pattern", "an anchor that only mutation has"},
		{"validate: {pattern: {a: '{{ b c }}'}}", path + ".pattern", "no expression"},
		{"validate: {anyPattern: []}", path + ".anyPattern: want 1", "no pattern"},
		{"validate: {anyPattern: [{a: '{{ b c }}'}]}", path + ".anyPattern[0]", "no expression in one of several"},
		{"validate: {message: '{{ b c }}', deny: {}}", path + ".message", "no expression in the message"},
		{"validate: {deny: {conditions: {any: []}}}", path + ".deny.conditions.any: is empty", "conditions that never hold"},
		{"validate: {deny: {conditions: {any: [{key: a, operator: Is, value: b}]}}}", path + ".deny.conditions", "an unknown operator"},
		{"validate: {deny: {condition: {}}}", path + ".deny.condition: unknown field", "a misspelt field below"},
		{"validate: {foreach: []}", path + ".foreach: want 1", "no loop"},
		{"validate: {foreach: [{deny: {}}]}", path + ".foreach[0].list: is empty", "no list"},
		{"validate: {foreach: [{list: 'a b', deny: {}}]}", path + ".foreach[0].list", "no expression as a list"},
		{"validate: {foreach: [{list: a}]}", path + ".foreach[0]: want one of", "a loop that does nothing"},
		{"validate: {foreach: [{list: a, deny: {}, pattern: {}}]}", path + ".foreach[0]: want one of", "a loop that does two things"},
		{"validate: {foreach: [{list: a, podSecurity: {level: baseline}}]}", path + ".foreach[0].podSecurity: unknown field", "a standard, which Kyverno's definition drops"},
		{"validate: {foreach: [{list: a, deny: {}, pattern: {a: b}}]}", path + ".foreach[0]: want one of pattern, anyPattern, deny and foreach", "two kinds of checks"},
		{"validate: {foreach: [{list: a, order: Ascending, deny: {}}]}", path + ".foreach[0].order: unknown field", "a field of mutation"},
		{"validate: {foreach: [{list: a, context: [{name: x, variable: {jmesPath: later}}, {name: later, variable: {value: 1}}], deny: {}}]}", "reads later, which comes later", "a context in the wrong order"},
		{"validate: {foreach: [{list: a, foreach: [{list: a, foreach: [{list: a, foreach: [{list: a, foreach: [{list: a, foreach: [{list: a, deny: {}}]}]}]}]}]}]}", "exceeds the bound", "loops too deep"},
		{"validate: {podSecurity: {level: strict}}", path + ".podSecurity.level", "an unknown level"},
		{"validate: {podSecurity: {level: baseline, version: new}}", path + ".podSecurity.version", "an unknown version"},
		{"validate: {podSecurity: {level: baseline, exclude: [{controlName: Capabilitys}]}}", path + ".podSecurity.exclude[0]", "an unknown control"},
		{"validate: {cel: {expressions: []}}", path + ".cel.expressions: want 1", "no expression in CEL"},
		{"validate: {cel: {expressions: [{expression: 'object.'}]}}", path + ".cel.expressions[0].expression", "no CEL"},
		{"validate: {cel: {expressions: [{expression: '1'}]}}", path + ".cel.expressions[0].expression", "no truth"},
		{"validate: {cel: {expressions: [{expression: 'authorizer.path(\"/x\").check(\"get\").allowed()'}]}}", path + ".cel.expressions[0].expression", "the authorizer"},
		{"validate: {cel: {expressions: [{expression: 'true', reason: Nope}]}}", path + ".cel.expressions[0].reason", "an unknown reason"},
		{"validate: {cel: {expressions: [{expression: 'params.x == 1'}]}}", path + ".cel.expressions[0].expression", "parameters of none"},
		{"validate: {cel: {expressions: [{expression: 'true'}], paramKind: {apiVersion: v1, kind: ConfigMap}}}", path + ".cel.paramRef: is missing", "no parameter"},
		{"validate: {cel: {expressions: [{expression: 'true'}], paramRef: {name: a}}}", path + ".cel.paramKind: want", "parameters of no kind"},
		{"validate: {cel: {expressions: [{expression: 'true'}], variables: [{name: a, expression: 'x'}]}}", path + ".cel.variables[0].expression", "a variable that is not CEL"},
		{"validate: {cel: {expressions: [{expression: 'true'}], auditAnnotations: [{key: a, valueExpression: '1'}]}}", path + ".cel.auditAnnotations[0].valueExpression", "an annotation that is no text"},
		{"celPreconditions: [{name: a, expression: 'true'}], validate: {deny: {}}", "spec.rules[0].celPreconditions: belong to a rule with cel", "preconditions in CEL of another rule"},
		{"validate: {failureAction: Block, deny: {}}", path + ".failureAction: unknown action", "an unknown action"},
		{"validate: {failureActionOverrides: [{action: Audit}], deny: {}}", path + ".failureActionOverrides[0].namespaces", "an override for no namespace"},
		{"preconditions: {any: []}, validate: {deny: {}}", "spec.rules[0].preconditions.any: is empty", "preconditions that never hold"},
		{"context: [{name: a, variable: {}}], validate: {deny: {}}", "spec.rules[0].context[0].variable", "a bad context"},
	} {
		if _, err := compile(t, options(t), c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
	o := options(t)
	o.Rule.OldForm = false
	raw := json.RawMessage(`{"name":"r","match":{"resources":{"kinds":["Pod"]}},"validate":{"deny":{}}}`)
	if _, err := validate.Compile(o, raw, "rule"); err == nil || !strings.Contains(err.Error(), "old form") {
		t.Errorf("the old form of match in a new version: %v", err)
	}
}

// TestOperations: what a rule is asked about where its match names no operation.
func TestOperations(t *testing.T) {
	for _, c := range []struct {
		body, operation string
		want            policy.Result
		reason          string
	}{
		{"validate: {pattern: {spec: {hostNetwork: false}}}", "DELETE", "", "a pattern does not apply to deletions"},
		{"validate: {podSecurity: {level: restricted}}", "DELETE", "", "nor does a standard"},
		{"validate: {foreach: [{list: request.object.spec.containers, elementScope: false, anyPattern: [{spec: {hostNetwork: true}}]}]}", "DELETE", policy.Skipped, "nor do patterns of a loop that are of the object"},
		{"validate: {deny: {conditions: {any: [{key: '{{request.operation}}', operator: Equals, value: DELETE}]}}}", "DELETE", policy.Fail, "a deny rule does"},
		{"validate: {deny: {conditions: {any: [{key: '{{request.object.metadata.name}}', operator: Equals, value: web}]}}}", "DELETE", policy.Fail, "and reads the deleted object"},
		{"validate: {foreach: [{list: request.object.spec.containers, pattern: {image: '!*:latest'}}]}", "DELETE", policy.Skipped, "the list of a loop does not"},
		{"validate: {foreach: [{list: keys(request.object.spec), deny: {}}]}", "DELETE", policy.Skipped, "nor does a function of the object"},
		{"validate: {foreach: [{list: 'map(&to_upper(@), keys(request.object.spec))', deny: {}}]}", "DELETE", policy.Skipped, "nor does one that calls another"},
		{"validate: {foreach: [{list: 'items(request.object.spec, `\"key\"`, `\"value\"`)[?key == `\"hostNetwork\"`]', deny: {}}]}", "DELETE", policy.Skipped, "nor does a filter of one"},
		{"validate: {foreach: [{list: '[request.object]', foreach: [{list: keys(element.spec), deny: {}}]}]}", "DELETE", policy.Skipped, "nor does a loop in a loop"},
		{"validate: {foreach: [{list: keys(request.oldObject.spec), deny: {}}]}", "DELETE", policy.Fail, "a function of the old object does"},
		{"validate: {foreach: [{list: keys(request.oldObject.data), deny: {}}]}", "DELETE", policy.Indeterminate, "what the old object lacks is an error"},
		{"validate: {foreach: [{list: 'keys(request.oldObject.data || request.object.data)', deny: {}}]}", "DELETE", policy.Indeterminate, "also next to the object"},
		{"context: [{name: found, variable: {jmesPath: '{objects: request.oldObject}'}}], validate: {foreach: [{list: keys(found.objects.data), deny: {}}]}", "DELETE", policy.Indeterminate, "nor one of an entry with a similar member"},
		{"context: [{name: found, variable: {jmesPath: '{objects: request.oldObject}'}}], validate: {foreach: [{list: keys(found.objects.spec), deny: {}}]}", "DELETE", policy.Fail, "a function of an entry"},
		{"context: [{name: found, variable: {value: {}}}], validate: {foreach: [{list: 'merge(found.data, request.object.spec)', deny: {}}]}", "DELETE", policy.Indeterminate, "or one of an entry and the object"},
		{"validate: {foreach: [{list: 'keys(request.[oldObject][0].data || request.objectMeta || request.object.data)', deny: {}}]}", "DELETE", policy.Indeterminate, "nor one of other members"},
		{"validate: {foreach: [{list: parse_json(request.operation || request.object.spec), deny: {}}]}", "DELETE", policy.Indeterminate, "and so is any other error"},
		{"validate: {foreach: [{list: keys(request.object.data), deny: {}}]}", "CREATE", policy.Indeterminate, "and what the object lacks at another operation"},
		{"validate: {foreach: [{list: request.oldObject.spec.containers, pattern: {image: '!*:latest'}}]}", "DELETE", policy.Fail, "unless it is of the old object"},
		{"validate: {foreach: [{list: request.oldObject.spec.containers, deny: {conditions: {all: [{key: '{{request.object.metadata.name}}', operator: Equals, value: web}]}}}]}", "DELETE", policy.Fail, "and its conditions read the deleted object"},
		{"validate: {cel: {expressions: [{expression: \"request.operation != 'DELETE'\"}]}}", "DELETE", policy.Fail, "and CEL"},
	} {
		r, err := compile(t, options(t), c.body)
		if err != nil {
			t.Fatal(err)
		}
		s := pod(t, two)
		s.Operation, s.OldObject, s.Object = c.operation, s.Object, policy.Content{}
		if got := ask(t, r, s); got.Result != c.want || (got.Action == "") != (c.want == "") {
			t.Errorf("%s: %q %v, action %q", c.reason, got.Result, got.Reasons, got.Action)
		}
	}
}

// TestExistingViolations: an existing violation excuses an update, and nothing else does.
func TestExistingViolations(t *testing.T) {
	const pattern = "validate: {pattern: {spec: {hostNetwork: false}}}"
	const bad, good = "{hostNetwork: true}", "{hostNetwork: false}"
	const immutable = "preconditions: {all: [{key: '{{request.operation}}', operator: Equals, value: UPDATE}]}, validate: {deny: {conditions: {any: [{key: '{{request.object.spec.hostNetwork}}', operator: NotEquals, value: '{{request.oldObject.spec.hostNetwork}}'}]}}}"
	const undefined = "validate: {deny: {conditions: {any: [{key: '{{request.oldObject.spec.hostNetwork}}', operator: Equals, value: false}]}}}"
	for _, c := range []struct {
		body, before, after string
		want                policy.Result
		reason              string
	}{
		{pattern, bad, bad, policy.Skipped, "it violated before"},
		{pattern, good, bad, policy.Fail, "it did not violate before"},
		{pattern, bad, good, policy.Pass, "it does not violate any more"},
		{"validate: {allowExistingViolations: true, pattern: {spec: {hostNetwork: false}}}", bad, bad, policy.Skipped, "it is allowed in words"},
		{"validate: {allowExistingViolations: false, pattern: {spec: {hostNetwork: false}}}", bad, bad, policy.Fail, "it is not allowed"},
		{"validate: {podSecurity: {level: baseline}}", "{hostNetwork: true, containers: []}", "{hostNetwork: true, containers: []}", policy.Skipped, "of a standard"},
		{"validate: {foreach: [{list: '[request.object.spec]', deny: {conditions: {any: [{key: '{{element.hostNetwork}}', operator: Equals, value: true}]}}}]}", bad, bad, policy.Skipped, "of a loop"},
		{"exclude: {any: [{resources: {selector: {matchLabels: {before: 'yes'}}}}]}, " + pattern, bad + ", x: {before: 'yes'}", bad, policy.Fail, "the rule did not match it before"},
		{immutable, good, bad, policy.Fail, "a rule about the change itself"},
		{immutable, bad, bad, policy.Pass, "a rule about the change itself, and there is none"},
		{undefined, good, bad, policy.Fail, "the rule cannot be evaluated for the old object"},
		{"validate: {deny: {conditions: {any: [{key: '{{length(images)}}', operator: Equals, value: 0}]}}}", bad, bad, policy.Fail, "the images of the old object are not known"},
	} {
		r, err := compile(t, options(t), c.body)
		if err != nil {
			t.Fatal(err)
		}
		spec, labelled := strings.CutSuffix(c.before, ", x: {before: 'yes'}")
		s, before := pod(t, c.after), pod(t, spec)
		if labelled {
			before.Object.Map()["metadata"].(map[string]any)["labels"] = map[string]any{"before": "yes"}
		}
		before.Object.Map()["metadata"].(map[string]any)["resourceVersion"] = "1"
		s.Operation, s.OldObject = "UPDATE", before.Object
		if got := ask(t, r, s); got.Result != c.want {
			t.Errorf("%s: %q %v, want %q", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// TestExistingViolationsUnderOverrides: the excuse exists where the policy or the rule enforces by
// itself, as in Kyverno, and not where an override does.
func TestExistingViolationsUnderOverrides(t *testing.T) {
	for _, c := range []struct {
		actions string
		want    policy.Result
	}{
		{"failureAction: Enforce, ", policy.Skipped},
		{"failureAction: Audit, failureActionOverrides: [{action: Enforce, namespaces: ['*']}], ", policy.Fail},
		{"failureAction: Enforce, failureActionOverrides: [{action: Enforce, namespaces: ['*']}], ", policy.Skipped},
	} {
		for _, body := range []string{
			"pattern: {spec: {hostNetwork: false}}",
			"deny: {conditions: {any: [{key: '{{request.object.spec.hostNetwork}}', operator: Equals, value: true}]}}",
			"podSecurity: {level: baseline}",
		} {
			r, err := compile(t, options(t), "validate: {"+c.actions+body+"}")
			if err != nil {
				t.Fatal(err)
			}
			s, before := pod(t, "{hostNetwork: true, containers: []}"), pod(t, "{hostNetwork: true, containers: []}")
			before.Object.Map()["metadata"].(map[string]any)["resourceVersion"] = "1"
			s.Operation, s.OldObject = "UPDATE", before.Object
			if got := ask(t, r, s); got.Result != c.want {
				t.Errorf("%s%s: %q %v, want %q", c.actions, body, got.Result, got.Reasons, c.want)
			}
		}
	}
}

func TestActions(t *testing.T) {
	for _, c := range []struct {
		rule, namespace string
		want            policy.Action
		reason          string
	}{
		{"", "prod", policy.Enforce, "the policy's"},
		{"failureAction: Audit, ", "prod", policy.Audit, "the rule's own"},
		{"failureAction: Audit, failureActionOverrides: [{action: Enforce, namespaces: [pro*]}], ", "prod", policy.Enforce, "an override of the rule's"},
		{"failureAction: Audit, failureActionOverrides: [{action: Enforce, namespaces: [pro*]}], ", "test", policy.Audit, "an override for others"},
		{"failureActionOverrides: [{action: Audit, namespaces: [test]}], ", "prod", policy.Enforce, "an override for others, of the policy's"},
		{"failureActionOverrides: [{action: Audit, namespaces: [test]}], ", "test", policy.Audit, "an override, of the policy's"},
	} {
		r, err := compile(t, options(t), "validate: {"+c.rule+"deny: {}}")
		if err != nil {
			t.Fatal(err)
		}
		s := pod(t, two)
		s.Namespace = c.namespace
		if got := ask(t, r, s); got.Result != policy.Fail || got.Action != c.want {
			t.Errorf("%s: %q %q", c.reason, got.Result, got.Action)
		}
	}
	o := options(t)
	var err error
	o.Actions, err = action.Compile(action.Document{Usual: "Enforce", Warns: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compile(t, o, "validate: {failureAction: Audit, deny: {}}")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, r, pod(t, two)); got.Action != policy.Warn || r.CanEnforce() {
		t.Errorf("emitWarning: %q", got.Action)
	}
	// Which action applies is not known: the failure denies.
	r, err = compile(t, options(t), "validate: {failureAction: Audit, failureActionOverrides: [{action: Enforce, namespaceSelector: {matchLabels: {a: b}}}], deny: {}}")
	if err != nil {
		t.Fatal(err)
	}
	s := pod(t, two)
	s.NamespaceKnown = false
	if got := ask(t, r, s); got.Action != policy.Enforce || len(got.Reasons) != 2 {
		t.Errorf("unknown labels of the namespace: %q %v", got.Action, got.Reasons)
	}
}

func TestWordsForReports(t *testing.T) {
	r, err := compile(t, options(t), "reportProperties: {team: a, standard: own}, validate: {podSecurity: {level: baseline}}")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, r, pod(t, "{hostNetwork: true, containers: []}")).Properties; got["team"] != "a" || got["standard"] != "own" || got["controls"] == "" {
		t.Errorf("properties %v", got)
	}
	r, err = compile(t, options(t), "validate: {cel: {expressions: [{expression: 'true'}], auditAnnotations: [{key: num, valueExpression: 'string(object.metadata.name)'}, {key: none, valueExpression: 'null'}, {key: bad, valueExpression: 'string(object.metadata.labels.none)'}, {key: empty, valueExpression: \"''\"}]}}")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, r, pod(t, two)).AuditAnnotations; len(got) != 2 || got["num"] != "web" || !strings.Contains(got["bad"], "cannot be evaluated") {
		t.Errorf("annotations %v", got)
	}
}

func TestExemptions(t *testing.T) {
	r, err := compile(t, options(t), "validate: {podSecurity: {level: baseline}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		exempt   []policy.PodSecurityExemption
		host     bool
		want     policy.Result
		exempted bool
		reason   string
	}{
		{nil, true, policy.Fail, false, "none"},
		{[]policy.PodSecurityExemption{{Control: "Host Namespaces"}}, true, policy.Pass, true, "the control"},
		{[]policy.PodSecurityExemption{{Control: "Host Namespaces"}}, false, policy.Pass, false, "the control, and none is needed"},
		{[]policy.PodSecurityExemption{{Control: "HostPath Volumes"}}, true, policy.Fail, false, "another control"},
		{[]policy.PodSecurityExemption{{Control: "Nonsense"}}, true, policy.Indeterminate, false, "no control"},
		{[]policy.PodSecurityExemption{{Control: "Nonsense"}}, false, policy.Pass, false, "no control, and none is needed"},
	} {
		spec := fmt.Sprintf("{hostNetwork: %t, containers: [{name: a, image: x}]}", c.host)
		got := r.Validate(t.Context(), policy.Case{Subject: pod(t, spec), Exempt: c.exempt})
		if got.Result != c.want || got.Exempted != c.exempted {
			t.Errorf("%s: %q, exempted %t, %v", c.reason, got.Result, got.Exempted, got.Reasons)
		}
	}
}

func TestTheTimeEnds(t *testing.T) {
	r, err := compile(t, options(t), "validate: {foreach: [{list: request.object.spec.containers, pattern: {image: '*'}}]}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if got := r.Validate(ctx, policy.Case{Subject: pod(t, two)}); got.Result != policy.Indeterminate || got.Reasons[0].Code != policy.TimedOut {
		t.Errorf("%q %v", got.Result, got.Reasons)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`{"name":"r","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"validate":{"message":"$(./../pattern/a)","pattern":{"=(a)":"{{request.name}}"}}}`)
	f.Add(`{"name":"r","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"validate":{"foreach":[{"list":"request.object.spec.containers","deny":{"conditions":{"any":[{"key":"{{element}}","operator":"Equals","value":"x"}]}}}]}}`)
	o := options(f)
	s := pod(f, two)
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := validate.Compile(o, json.RawMessage(raw), "rule")
		if err != nil {
			return
		}
		if got := r.Validate(t.Context(), policy.Case{Subject: s}); got.Result == policy.Indeterminate && len(got.Reasons) == 0 {
			t.Error("undecided without a reason")
		}
	})
}

func Example() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := validate.Compile(validate.Options{
		Rule: rule.Options{Context: rulecontext.Options{Engine: engine}}, CEL: validate.NewLanguage(validate.LanguageOptions{}),
	}, json.RawMessage(`{"name": "tagged", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
		"validate": {"message": "Name a version", "pattern": {"spec": {"containers": [{"image": "!*:latest"}]}}}}`), "spec.rules[0]")
	if err != nil {
		fmt.Println(err)
		return
	}
	found := r.Validate(context.Background(), policy.Case{Subject: &policy.Subject{
		Kind: "Pod", Version: "v1", Operation: "CREATE", Object: policy.ContentOf(map[string]any{
			"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx:latest"}}},
		}),
	}})
	fmt.Println(found.Result, found.Reasons[0].Message)
	// Output: fail validation error: Name a version. rule tagged failed at path /spec/containers/0/image/
}
