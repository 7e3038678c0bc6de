package validate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/validate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestMessages compares messages word for word.
func TestMessages(t *testing.T) {
	const named = "context: [{name: a, variable: {value: {'ab(c)': x, 'abd)': x, '(fg': x, '(e)': found, num: 7, no: null, list: [p, q]}}}], "
	reference := func(path string) string {
		return named + "validate: {message: '$(" + path + ")', deny: {}}"
	}
	const value = "/context/0/variable/value/"
	long := strings.Repeat("x", kyvernocel.MaxMessage)
	computed := func(text string) string {
		return "validate: {cel: {expressions: [{expression: 'false', message: own, messageExpression: \"'" + text + "'\"}]}}"
	}
	for _, c := range []struct{ reason, body, want string }{
		{"several patterns", "validate: {anyPattern: [{spec: {hostNetwork: true}}]}", "validation error: rule r[0] failed at path /spec/hostNetwork/"},
		{"several patterns, and a message", "validate: {message: m, anyPattern: [{spec: {hostNetwork: true}}]}", "validation error: m. rule r[0] failed at path /spec/hostNetwork/"},
		{"a denial", "validate: {deny: {}}", "validation error: rule r failed"},
		{"a denial with a message", "validate: {message: m, deny: {}}", "m"},
		{"the condition's own", "validate: {deny: {conditions: {all: [{key: a, operator: Equals, value: a, message: its own}]}}}", "its own"},
		{"both", "validate: {message: m, deny: {conditions: {all: [{key: a, operator: Equals, value: a, message: its own}]}}}", "m; its own"},
		{"an anchor that leaves the object alone", "validate: {pattern: {spec: {(hostNetwork): true}}}", "the pattern does not apply: /spec/hostNetwork/: "},

		{"a reference that is escaped", named + "validate: {message: '\\$(" + value + "num)', deny: {}}", "$(" + value + "num)"},
		{"a reference to a text", reference("/name"), "r"},
		{"to a number", reference(value + "num"), "7"},
		{"to an object", reference("/validate/deny"), "$(/validate/deny)"},
		{"to null", reference(value + "no"), "$(" + value + "no)"},
		{"to the first of a list", reference(value + "list/0"), "p"},
		{"to the last of a list", reference(value + "list/1"), "q"},
		{"beyond a list", reference(value + "list/2"), "$(" + value + "list/2)"},
		{"before a list", reference(value + "list/-1"), "$(" + value + "list/-1)"},
		{"to no place of a list", reference(value + "list/x"), "$(" + value + "list/x)"},
		{"past an anchor", reference(value + "e"), "found"},
		{"past text that is no anchor", reference(value + "c"), "$(" + value + "c)"},
		{"past what only ends as one", reference(value + "ab"), "$(" + value + "ab)"},
		{"or as one, but for a letter", reference(value + "abd"), "$(" + value + "abd)"},
		{"past what only begins as one", reference(value + "f"), "$(" + value + "f)"},

		{"a computed message", computed("m"), "m"},
		{"an empty one", computed(""), "own"},
		{"one as long as may be", computed(long), long},
		{"one that is longer", computed(long + "x"), "own"},
	} {
		r, err := compile(t, options(t), c.body)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		got := ask(t, r, pod(t, two))
		if len(got.Reasons) != 1 || got.Reasons[0].Message != c.want && (got.Result != policy.Skipped || !strings.HasPrefix(got.Reasons[0].Message, c.want)) {
			t.Errorf("%s: %q %.200v, want %.200s", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// TestBounds: as many as may be.
func TestBounds(t *testing.T) {
	for _, body := range []string{
		"validate: {anyPattern: [" + strings.Repeat("{a: b}, ", 200) + "]}",
		"validate: {foreach: [" + strings.Repeat("{list: request.a, deny: {}}, ", 50) + "]}",
		"validate: {cel: {expressions: [" + strings.Repeat("{expression: 'true'}, ", 200) + "]}}",
		"validate: {cel: {expressions: [{expression: 'true'}], auditAnnotations: [" + strings.Repeat("{key: a, valueExpression: \"''\"}, ", 200) + "]}}",
	} {
		if _, err := compile(t, options(t), body); err != nil {
			t.Errorf("%.60s: %v", body, err)
		}
	}
}

// noted notes where parameters are looked for.
type noted struct {
	limits
	namespace string
}

func (n *noted) Get(ctx context.Context, ref cel.ResourceRef) (map[string]any, error) {
	n.namespace = ref.Namespace
	return n.limits.Get(ctx, ref)
}

// TestWhereParametersAre: a Policy reads those of its namespace, and no others.
func TestWhereParametersAre(t *testing.T) {
	for _, c := range []struct{ reason, policy, ref, want, refused string }{
		{"of the object's namespace", "", "name: a", "prod", ""},
		{"of another one", "", "name: a, namespace: other", "other", ""},
		{"of a Policy", "prod", "name: a", "prod", ""},
		{"of a Policy, in words", "prod", "name: a, namespace: prod", "prod", ""},
		{"of a Policy, in another namespace", "prod", "name: a, namespace: other", "", "use a ClusterPolicy"},
	} {
		o, n := options(t), &noted{limits: limits{[]any{map[string]any{"max": int64(3)}}}}
		o.Rule.Context.Namespace = c.policy
		o.CEL = validate.NewLanguage(validate.LanguageOptions{Params: n})
		r, err := compile(t, o, "validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {"+c.ref+"}, expressions: [{expression: 'params.max == 3'}]}}")
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v", c.reason, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, r, pod(t, two)); got.Result != policy.Pass || n.namespace != c.want {
			t.Errorf("%s: %q %v, in %s", c.reason, got.Result, got.Reasons, n.namespace)
		}
	}
	o := options(t)
	o.CEL = validate.NewLanguage(validate.LanguageOptions{})
	r, err := compile(t, o, "validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {name: a, parameterNotFoundAction: Allow}, expressions: [{expression: 'true'}]}}")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, r, pod(t, two)); got.Result != policy.Indeterminate || !strings.Contains(got.Reasons[0].Message, "there is no cluster") {
		t.Errorf("without a cluster: %q %v", got.Result, got.Reasons)
	}
}

// TestPropertiesOfEither: the properties of a standard are reported without those of the
// author, and the reverse.
func TestPropertiesOfEither(t *testing.T) {
	for _, c := range []struct{ reason, body, has, lacks string }{
		{"a standard alone", "validate: {podSecurity: {level: baseline}}", "controls", "team"},
		{"words alone", "reportProperties: {team: a}, validate: {deny: {}}", "team", "controls"},
	} {
		r, err := compile(t, options(t), c.body)
		if err != nil {
			t.Fatal(err)
		}
		got := ask(t, r, pod(t, "{hostNetwork: true, containers: []}")).Properties
		if got[c.has] == "" || got[c.lacks] != "" {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// TestVariablesInProperties: variables in the author's words for reports are resolved, whatever the
// result is. One that cannot be resolved decides nothing, and its text stays as written.
func TestVariablesInProperties(t *testing.T) {
	const properties = "reportProperties: {plain: a, name: 'of {{request.object.metadata.name}}', images: '{{request.object.spec.containers[].image}}', none: '{{request.object.spec.nowhere}}', own: '{{team}}'}, context: [{name: team, variable: {value: blue}}], "
	for _, c := range []struct {
		reason, body string
		want         policy.Result
	}{
		{"it passes", "validate: {pattern: {metadata: {name: web}}}", policy.Pass},
		{"it fails", "validate: {deny: {}}", policy.Fail},
		{"its preconditions do not hold", "preconditions: {all: [{key: a, operator: Equals, value: b}]}, validate: {deny: {}}", policy.Skipped},
	} {
		r, err := compile(t, options(t), properties+c.body)
		if err != nil {
			t.Fatal(err)
		}
		got := ask(t, r, pod(t, "{containers: [{name: a, image: x}, {name: b, image: z}]}"))
		p := got.Properties
		if got.Result != c.want || len(p) != 5 || p["plain"] != "a" || p["name"] != "of web" || p["images"] != `["x","z"]` || p["none"] != "{{request.object.spec.nowhere}}" || p["own"] != "blue" {
			t.Errorf("%s: %q %v", c.reason, got.Result, p)
		}
	}
	if _, err := compile(t, options(t), "reportProperties: {name: '{{ request.object( }}'}, validate: {deny: {}}"); err == nil || !strings.Contains(err.Error(), "reportProperties.name") {
		t.Errorf("a variable that cannot be read: %v", err)
	}
}

func TestWithoutATemplate(t *testing.T) {
	r, err := compile(t, options(t), "validate: {podSecurity: {level: baseline}}")
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]policy.Result{
		"{template: {spec: {containers: [{name: a, image: x}]}}}": policy.Pass, "{template: 7}": policy.Indeterminate,
	} {
		s := pod(t, two)
		s.Group, s.Kind = "apps", "Deployment"
		s.Object = policy.ContentOf(object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod}, spec: "+spec+"}"))
		if got := ask(t, r, s); got.Result != want {
			t.Errorf("%s: %q %v", spec, got.Result, got.Reasons)
		}
	}
}

// TestTargets: which operations a rule wants to see where its match names none.
func TestTargets(t *testing.T) {
	for body, deletions := range map[string]bool{
		"pattern: {a: b}": false, "anyPattern: [{a: b}]": false, "podSecurity: {level: baseline}": false, "deny: {}": true,
	} {
		r, err := compile(t, options(t), "validate: {"+body+"}")
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range r.Targets() {
			if slices.Contains(target.Operations, "DELETE") != deletions || !slices.Contains(target.Operations, "CREATE") {
				t.Errorf("%s: %+v", body, target)
			}
		}
	}
}

// TestUnknownAction: an unknown action is a reason only where the result depends on it.
func TestUnknownAction(t *testing.T) {
	for body, reasons := range map[string]int{"{{request.name}}": 0, "{{request.none}}": 2} {
		r, err := compile(t, options(t), "validate: {failureAction: Audit, failureActionOverrides: [{action: Enforce, namespaceSelector: {matchLabels: {a: b}}}], pattern: {metadata: {name: '"+body+"'}}}")
		if err != nil {
			t.Fatal(err)
		}
		s := pod(t, two)
		s.NamespaceKnown = false
		if got := ask(t, r, s); got.Action != policy.Enforce || len(got.Reasons) != reasons {
			t.Errorf("%s: %q %q %v", body, got.Result, got.Action, got.Reasons)
		}
	}
}
