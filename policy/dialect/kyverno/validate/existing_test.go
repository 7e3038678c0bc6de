package validate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/validate"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// updated is an update of a pod that violates every rule of the tests, before and after.
func updated(tb testing.TB, change func(s *policy.Subject)) *policy.Subject {
	tb.Helper()
	s := pod(tb, "{hostNetwork: true, containers: []}")
	s.Operation, s.OldObject = "UPDATE", pod(tb, "{hostNetwork: true, containers: [], priority: 1}").Object
	if change != nil {
		change(s)
	}
	return s
}

// compileWhole reads a rule with a match of its own.
func compileWhole(tb testing.TB, text string) *validate.Rule {
	tb.Helper()
	raw, err := yaml.YAMLToJSON([]byte("{name: r, " + text + "}"))
	if err != nil {
		tb.Fatal(err)
	}
	r, err := validate.Compile(options(tb), json.RawMessage(raw), "spec.rules[0]")
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestNoExcuse: where an existing violation excuses an update and where it does not. Each
// row that denies differs in one thing from one that does not.
func TestNoExcuse(t *testing.T) {
	const pods = "match: {any: [{resources: {kinds: [Pod]}}]}, "
	const kind = "preconditions: {all: [{key: '{{request.object.kind}}', operator: Equals, value: Pod}]}, "
	const deny, pattern = "validate: {deny: {}}", "validate: {pattern: {spec: {hostNetwork: false}}}"
	scale := func(s *policy.Subject) {
		s.Group, s.Kind, s.Subresource = "apps", "StatefulSet", "scale"
		s.Object = policy.ContentOf(object(t, "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web, namespace: prod}, spec: {replicas: 2}}"))
		s.OldObject = policy.ContentOf(object(t, "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web, namespace: prod}, spec: {replicas: 1}}"))
	}
	denies := func(key string) string {
		return "validate: {deny: {conditions: {all: [{key: \"" + key + "\", operator: NotEquals, value: other}]}}}"
	}
	user := func(s *policy.Subject) {
		s.User = policy.User{Name: "system:serviceaccount:prod:ann", Groups: []string{"all"}, Roles: []string{"a"}, ClusterRoles: []string{"b"}, RolesKnown: true}
		s.Request = policy.RequestFrom([]byte(`{"operation": "UPDATE", "userInfo": {"username": "system:serviceaccount:prod:ann", "groups": ["all"]}, "options": {"fieldManager": "x"}}`))
	}
	old := func(text string) func(s *policy.Subject) {
		return func(s *policy.Subject) { s.OldObject = policy.ContentOf(object(t, text)) }
	}
	for _, c := range []struct {
		reason, rule string
		change       func(s *policy.Subject)
		want         policy.Result
	}{
		{"a deny rule about the object", pods + deny, nil, policy.Skipped},
		{"a pattern about the object", pods + pattern, nil, policy.Skipped},
		{"a standard", pods + "validate: {podSecurity: {level: baseline}}", nil, policy.Skipped},
		{"CEL knows no excuse", pods + "validate: {cel: {expressions: [{expression: '!object.spec.hostNetwork'}]}}", nil, policy.Fail},
		{"CEL, in words", pods + "validate: {allowExistingViolations: true, cel: {expressions: [{expression: 'false'}]}}", nil, policy.Fail},
		{"under Audit the failure is reported", pods + "validate: {failureAction: Audit, deny: {}}", nil, policy.Fail},
		{"a rule about updates alone", "match: {any: [{resources: {kinds: [Pod], operations: [UPDATE]}}]}, " + deny, nil, policy.Fail},
		{"one about creations, too", "match: {any: [{resources: {kinds: [Pod], operations: [CREATE, UPDATE]}}]}, " + deny, nil, policy.Skipped},
		{"a precondition of updates", pods + "preconditions: {all: [{key: '{{request.operation}}', operator: Equals, value: UPDATE}]}, " + deny, nil, policy.Fail},
		{"a precondition of the object", pods + kind + deny, nil, policy.Fail},
		{"a precondition of creations and updates", pods + "preconditions: {all: [{key: '{{request.operation}}', operator: NotEquals, value: DELETE}]}, " + deny, nil, policy.Fail},
		{"in the old form", pods + "preconditions: [{key: '{{request.object.kind}}', operator: Equals, value: Pod}], " + deny, nil, policy.Fail},
		{"of a pattern", pods + kind + pattern, nil, policy.Fail},
		{"of a standard", pods + kind + "validate: {podSecurity: {level: baseline}}", nil, policy.Fail},
		{"of a list", pods + kind + "validate: {foreach: [{list: '[request.object]', deny: {}}]}", nil, policy.Fail},
		{"without a precondition", pods + "preconditions: null, " + deny, nil, policy.Skipped},
		{"a condition on the name and the namespace", pods + denies("{{request.namespace}}/{{request.name}}"), nil, policy.Skipped},
		{"a condition that creations alone meet", pods + "validate: {deny: {conditions: {any: [{key: '{{request.operation}}', operator: Equals, value: CREATE}, {key: '{{request.object.spec.hostNetwork}}{{request.operation}}', operator: Equals, value: trueUPDATE}]}}}", func(s *policy.Subject) {
			s.OldObject = policy.ContentOf(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": s.OldObject.Map()["metadata"], "spec": map[string]any{"hostNetwork": false}})
		}, policy.Fail},
		{"a text that only looks like one", pods + denies("a request.userInfo"), nil, policy.Skipped},
		{"a rule about the user", pods + denies("{{ request.userInfo.username || 'none' }}"), user, policy.Fail},
		{"about the user's groups", pods + denies("{{ request.userInfo.groups || 'none' }}"), user, policy.Fail},
		{"about roles", pods + denies("{{ request.roles || 'none' }}"), user, policy.Fail},
		{"about cluster roles", pods + denies("{{ request.clusterRoles || 'none' }}"), user, policy.Fail},
		{"about the service account", pods + denies("{{ serviceAccountName }}{{ serviceAccountNamespace }}"), user, policy.Fail},
		{"about options", pods + denies("{{ request.options.fieldManager || 'none' }}"), user, policy.Fail},
		{"about the object before", pods + denies("{{ request.oldObject.spec.priority || `0` }}"), user, policy.Fail},
		{"in quotes", pods + denies("{{ \\\"request\\\".\\\"oldObject\\\".spec.priority || `0` }}"), user, policy.Fail},
		{"in a pipe", pods + denies("{{ request | oldObject.spec.priority || `0` }}"), user, policy.Fail},
		{"about the whole request", pods + denies("{{ to_string(request) }}"), user, policy.Fail},
		{"about the whole context", pods + denies("{{ @.request.dryRun || `false` }}"), user, policy.Fail},
		{"about the object", pods + denies("{{ request.object.spec.priority || `0` }}"), user, policy.Skipped},
		{"about a field of that name in the object", pods + denies("{{ request.object.spec.oldObject || `0` }}"), user, policy.Skipped},
		{"by a variable", pods + "context: [{name: who, variable: {jmesPath: request.userInfo.username}}], " + denies("{{ who }}"), user, policy.Fail},
		{"by a variable of the object", pods + "context: [{name: who, variable: {jmesPath: request.object.metadata.name}}], " + denies("{{ who }}"), user, policy.Skipped},
		{"by a variable, evaluated on each of the objects", pods + "context: [{name: p, variable: {jmesPath: 'request.object.spec.priority || `0`'}}], validate: {deny: {conditions: {all: [" +
			"{key: '{{ p }}{{ request.object.spec.priority || `0` }}', operator: AnyIn, value: ['00', '11']}]}}}", user, policy.Skipped},
		{"that allows the old object", pods + "context: [{name: p, variable: {jmesPath: 'request.object.spec.priority || `0`'}}], validate: {deny: {conditions: {all: [" +
			"{key: '{{ p }}{{ request.object.spec.priority || `0` }}', operator: AnyIn, value: ['00', '01']}]}}}", user, policy.Fail},
		{"by a list", pods + "validate: {foreach: [{list: '[request.oldObject]', deny: {}}]}", user, policy.Fail},
		{"by a list of the object", pods + "validate: {foreach: [{list: '[request.object]', deny: {}}]}", user, policy.Skipped},
		{"in a list", pods + "validate: {foreach: [{list: '[request.object]', preconditions: {all: [{key: '{{ request.operation }}', operator: NotEquals, value: DELETE}]}, deny: {}}]}", user, policy.Skipped},
		{"in a list of a list", pods + "validate: {foreach: [{list: '[request.object]', foreach: [{list: '[element]', pattern: {metadata: {name: '{{ request.userInfo.username }}'}}}]}]}", user, policy.Fail},
		{"in a pattern", pods + "validate: {pattern: {metadata: {name: '{{ request.userInfo.username }}'}}}", user, policy.Fail},
		{"in one of several patterns", pods + "validate: {anyPattern: [{metadata: {name: '{{ request.userInfo.username }}'}}]}", user, policy.Fail},
		{"an exclusion of users", pods + "exclude: {any: [{subjects: [{kind: User, name: eve}]}]}, " + deny, user, policy.Fail},
		{"an exclusion of roles", pods + "exclude: {any: [{clusterRoles: [eve]}]}, " + deny, user, policy.Fail},
		{"an exclusion of objects", pods + "exclude: {any: [{resources: {names: [eve]}}]}, " + deny, user, policy.Skipped},
		{"the message alone", pods + "validate: {message: '{{ request.userInfo.username }}', deny: {}}", user, policy.Skipped},
		{"a rule about a user", "match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: ann}]}]}, " + deny, nil, policy.Fail},
		{"scale of a StatefulSet", "match: {any: [{resources: {kinds: [StatefulSet/scale]}}]}, " + deny, scale, policy.Fail},
		{"ephemeral containers of a Pod", "match: {any: [{resources: {kinds: [Pod/ephemeralcontainers]}}]}, " + deny,
			func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" }, policy.Fail},
		{"the status of a Pod", "match: {any: [{resources: {kinds: [Pod/status]}}]}, " + deny, func(s *policy.Subject) { s.Subresource = "status" }, policy.Fail},
		{"no old object", pods + deny, func(s *policy.Subject) { s.OldObject = policy.Content{} }, policy.Fail},
		{"an old object that did not come", pods + deny, func(s *policy.Subject) { s.OldObject = policy.AssumedFrom(stored{s.OldObject}) }, policy.Fail},
		{"an old object that is the new one", pods + deny, func(s *policy.Subject) { s.OldObject = s.Object }, policy.Fail},
		{"an old object of another kind", pods + deny, old("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: prod}, spec: {hostNetwork: true}}"), policy.Fail},
		{"of another version", pods + deny, old("{apiVersion: v2, kind: Pod, metadata: {name: web, namespace: prod}, spec: {hostNetwork: true}}"), policy.Fail},
		{"of another name", pods + deny, old("{apiVersion: v1, kind: Pod, metadata: {name: api, namespace: prod}, spec: {hostNetwork: true}}"), policy.Fail},
		{"of another namespace", pods + deny, old("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: dev}, spec: {hostNetwork: true}}"), policy.Fail},
		{"a creation", pods + deny, func(s *policy.Subject) { s.Operation = "CREATE" }, policy.Fail},
		{"a rule that did not hold for the old object", pods + pattern, old("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: prod}, spec: {hostNetwork: false}}"), policy.Fail},
	} {
		if got := ask(t, compileWhole(t, c.rule), updated(t, c.change)); got.Result != c.want {
			t.Errorf("%s: %q %v, want %q", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// tiers are parameters for objects of a tier.
type tiers struct {
	limits
	cluster bool
	asked   cel.ResourceRef
	fails   error
}

func (p *tiers) Get(ctx context.Context, ref cel.ResourceRef) (map[string]any, error) {
	p.asked = ref
	return p.limits.Get(ctx, ref)
}

func (p *tiers) Namespaced(context.Context, string, string) (bool, error) { return !p.cluster, p.fails }

// TestEachParameter: a rule holds for each of its parameters, and a condition that leaves
// one out leaves out no other, in whatever order they come.
func TestEachParameter(t *testing.T) {
	const rule = "celPreconditions: [{name: tier, expression: 'params.tier == object.metadata.labels.team'}], " +
		"validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {selector: {}}, expressions: [{expression: 'size(object.spec.containers) <= params.max'}]}}"
	param := func(tier string, most any) any { return map[string]any{"tier": tier, "max": most} }
	for _, c := range []struct {
		reason string
		params []any
		want   policy.Result
	}{
		{"the first is left out, the second fails", []any{param("b", int64(9)), param("a", int64(1))}, policy.Fail},
		{"the second is left out, the first fails", []any{param("a", int64(1)), param("b", int64(9))}, policy.Fail},
		{"the first is left out, the second holds", []any{param("b", int64(1)), param("a", int64(9))}, policy.Pass},
		{"both are left out", []any{param("b", int64(1)), param("c", int64(1))}, policy.Skipped},
		{"the first cannot be evaluated, the second fails", []any{param("a", "x"), param("a", int64(1))}, policy.Fail},
		{"the first cannot be evaluated, the second holds", []any{param("a", "x"), param("a", int64(9))}, policy.Indeterminate},
		{"a condition cannot be evaluated, the other holds", []any{map[string]any{"max": int64(9)}, param("a", int64(9))}, policy.Indeterminate},
		{"a condition cannot be evaluated, the other is left out", []any{map[string]any{"max": int64(9)}, param("b", int64(9))}, policy.Indeterminate},
	} {
		o := options(t)
		o.CEL = validate.NewLanguage(validate.LanguageOptions{Params: limits{c.params}})
		r, err := compile(t, o, rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, r, pod(t, two)); got.Result != c.want {
			t.Errorf("%s: %q %v, want %q", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// TestScopeOfParameters: those of the cluster are in no namespace, whatever the object is in.
func TestScopeOfParameters(t *testing.T) {
	for _, c := range []struct {
		reason, ref, policy string
		cluster             bool
		fails               error
		change              func(s *policy.Subject)
		want, err           string
	}{
		{reason: "of a namespace", ref: "name: a", want: "prod"},
		{reason: "of the cluster", ref: "name: a", cluster: true},
		{reason: "of the cluster, with a namespace", ref: "name: a, namespace: prod", cluster: true, err: "paramRef.namespace is prod"},
		{reason: "of the cluster, for a Policy", ref: "name: a", policy: "prod", cluster: true, err: "use a ClusterPolicy"},
		{reason: "an unknown scope", ref: "name: a", fails: errors.New("no discovery"), err: "no discovery"},
		{reason: "of a namespace, for an object of the cluster", ref: "name: a", change: func(s *policy.Subject) { s.Namespace = "" }, err: "set paramRef.namespace"},
		{reason: "of a namespace that is named, for an object of the cluster", ref: "name: a, namespace: dev", change: func(s *policy.Subject) { s.Namespace = "" }, want: "dev"},
	} {
		o, params := options(t), &tiers{limits: limits{[]any{map[string]any{"max": int64(3)}}}, cluster: c.cluster, fails: c.fails}
		o.Rule.Context.Namespace = c.policy
		o.CEL = validate.NewLanguage(validate.LanguageOptions{Params: params})
		r, err := compile(t, o, "validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {"+c.ref+"}, expressions: [{expression: 'params.max == 3'}]}}")
		if err != nil {
			t.Fatal(err)
		}
		s := pod(t, two)
		if c.change != nil {
			c.change(s)
		}
		got := ask(t, r, s)
		if c.err != "" {
			if got.Result != policy.Indeterminate || !strings.Contains(got.Reasons[0].Message, c.err) {
				t.Errorf("%s: %q %v, want %s", c.reason, got.Result, got.Reasons, c.err)
			}
			continue
		}
		if got.Result != policy.Pass || params.asked.Namespace != c.want {
			t.Errorf("%s: %q %v, in %q, want %q", c.reason, got.Result, got.Reasons, params.asked.Namespace, c.want)
		}
	}
}

type stored struct{ of policy.Content }

func (s stored) Content() map[string]any { return s.of.Map() }
