package kyverno_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/set"
)

func said(targets []policy.Target) string {
	var list []string
	for _, t := range targets {
		text := t.Group + "/" + t.Version + "/" + t.Kind
		if t.Subresource != "" {
			text += "/" + t.Subresource
		}
		if len(t.Operations) > 0 {
			text += fmt.Sprint(t.Operations)
		}
		if len(t.Namespaces) > 0 {
			text += "@" + strings.Join(t.Namespaces, ",")
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func TestTargets(t *testing.T) {
	const pods = "*/*/Pod */*/Pod/ephemeralcontainers"
	const controllers = " apps/*/DaemonSet apps/*/Deployment batch/*/Job apps/*/StatefulSet apps/*/ReplicaSet /*/ReplicationController batch/*/CronJob"
	for _, c := range []struct{ match, exclude, want, reason string }{
		{"any: [{resources: {kinds: [Pod]}}]", "", pods + controllers, "pods and their controllers"},
		{"any: [{resources: {kinds: [Pod], names: [web]}}]", "", pods, "by name, so that no controller follows"},
		{"any: [{resources: {kinds: [v1/Pod], names: [web], operations: [CREATE, DELETE]}}]", "", "*/v1/Pod[CREATE] */v1/Pod/ephemeralcontainers[CREATE]", "deletions run nothing"},
		{"any: [{resources: {kinds: [Pod], names: [web], operations: [DELETE]}}, {resources: {kinds: [Job]}}]", "", "*/*/Job", "deletions alone"},
		{"any: [{resources: {kinds: [apps/v1/Deployment], namespaces: [prod, 'team-*']}}]", "", "apps/v1/Deployment@prod,team-*", "confined to namespaces"},
		{"any: [{resources: {kinds: [Job], namespaces: ['*']}}]", "", "*/*/Job", "confined to nothing"},
		{"any: [{resources: {kinds: [Job], namespaces: [a]}}, {resources: {kinds: [Service]}}]", "", "*/*/Job@a */*/Service", "each filter alone"},
		{"all: [{resources: {kinds: [Job]}}, {resources: {namespaces: [a]}}]", "", "*/*/Job@a", "all filters together"},
		{"any: [{resources: {namespaces: [a]}}]", "", "*/*/*/*", "no kind: everything, Namespaces too"},
		{"any: [{subjects: [{kind: User, name: ann}]}]", "", "*/*/*/*", "a user: everything"},
		{"any: [{resources: {kinds: [Task], namespaces: [a]}}]", "any: [{resources: {namespaces: [a], names: [b]}}]", "*/*/Task@a", "an exclude narrows nothing"},
	} {
		p := compile(t, nil, "match:\n      any:\n      - resources:\n          kinds: [Pod]", "match: {"+c.match+"}\n    exclude: {"+c.exclude+"}")
		if got := said(p.Targets); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.reason, got, c.want)
		}
	}
	p, err := newCompiler(t, nil).Compile([]byte(strings.Replace(strings.Replace(minimal, "ClusterPolicy", "Policy", 1), "name: minimal", "name: minimal\n  namespace: team", 1)), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := said(p.Targets[:1]); got != "*/*/Pod@team" {
		t.Errorf("a Policy matches %s", got)
	}
}

func TestTimeoutAndWarning(t *testing.T) {
	for _, c := range []struct {
		spec   string
		want   time.Duration
		action policy.Action
		reason string
	}{
		{"", 0, policy.Audit, "no setting"},
		{"  webhookTimeoutSeconds: 5\n", 5 * time.Second, policy.Audit, "the old field"},
		{"  webhookTimeoutSeconds: 5\n  webhookConfiguration: {timeoutSeconds: 30}\n", 30 * time.Second, policy.Audit, "the new one wins"},
		{"  webhookTimeoutSeconds: 5\n  webhookConfiguration: {failurePolicy: Fail}\n", 5 * time.Second, policy.Audit, "the new one has no timeout"},
		{"  webhookTimeoutSeconds: 1\n", time.Second, policy.Audit, "the shortest there is"},
		{"  emitWarning: true\n", 0, policy.Warn, "the requester is warned"},
		{"  emitWarning: false\n", 0, policy.Audit, "the requester is not warned"},
		{"  emitWarning: true\n  validationFailureAction: Enforce\n", 0, policy.Enforce, "a denial needs no warning"},
	} {
		p := compile(t, nil, "spec:\n", "spec:\n"+c.spec)
		check := only(t, ruleOf(t, p, "signed"), pod("prod"), "nginx")
		if p.Timeout != c.want || check.Action != c.action {
			t.Errorf("%s: %s, %s", c.reason, p.Timeout, check.Action)
		}
		if p.AuditOnly != (c.action != policy.Enforce) {
			t.Errorf("%s: audit only is %t", c.reason, p.AuditOnly)
		}
	}
	for _, spec := range []string{"webhookTimeoutSeconds: 0", "webhookConfiguration: {timeoutSeconds: 31}"} {
		if _, err := newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, "spec:\n", "spec:\n  "+spec+"\n", 1)), "test.yaml"); err == nil || !strings.Contains(err.Error(), "imeoutSeconds: want 1 to 30 seconds") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// exempting is an exception that compiles; the tests change one text in it.
const exempting = `apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: legacy
  namespace: exceptions
spec:
  exceptions:
  - policyName: minimal
    ruleNames: [signed, autogen-*]
  match:
    any:
    - resources:
        kinds: [Pod]
        namespaces: [prod]
`

func except(t *testing.T, before, after string) (*policy.Exception, error) {
	t.Helper()
	if !strings.Contains(exempting, before) {
		t.Fatalf("%q is not in the exception", before)
	}
	return newCompiler(t, nil).CompileException([]byte(strings.Replace(exempting, before, after, 1)), "test.yaml")
}

func TestException(t *testing.T) {
	e, err := except(t, "  name: legacy", "  name: legacy\n  annotations: {quaymaster.dev/images: \"index.docker.io/library/nginx:*, , ghcr.io/org/*\\nquay.io/org/*\", quaymaster.dev/expires: '2027-01-31T00:00:00Z', quaymaster.dev/reason: ' INC-7 '}")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "identity", e.ID(), "exceptions/legacy")
	equal(t, "rules", e.Rules, []policy.ExceptedRule{{Policy: "minimal", Rules: []string{"signed", "autogen-*"}}})
	equal(t, "images", e.Images, []string{"docker.io/library/nginx:*", "ghcr.io/org/*", "quay.io/org/*"})
	equal(t, "end", e.Expires, time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC))
	equal(t, "reason", e.Reason, "INC-7")
	equal(t, "hash", len(e.Hash), 64)
	for background, unscanned := range map[string]bool{"": false, "  background: true\n": false, "  background: false\n": true} {
		e, err = except(t, "  exceptions:\n", background+"  exceptions:\n")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "scans heed it with "+background, e.Unscanned, unscanned)
	}
	e, err = except(t, "  namespace: exceptions\n", "")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "without a namespace", e.ID(), "default/legacy")
}

// TestExceptionBounds: the very last that is accepted, and one more.
func TestExceptionBounds(t *testing.T) {
	const one = "  - policyName: minimal\n    ruleNames: [signed, autogen-*]\n"
	for _, c := range []struct {
		before, more, want string
		most               int
	}{
		{one, one, "the number of policies exceeds", 500},
		{"[signed, autogen-*]", "", "the number of rules exceeds", 500},
		{"  name: legacy", "", "the number of images exceeds", 200},
	} {
		text := func(n int) string {
			switch c.before {
			case one:
				return strings.Repeat(one, n)
			case "  name: legacy":
				return "  name: legacy\n  annotations: {quaymaster.dev/images: '" + strings.Repeat("ghcr.io/org/*,", n) + "'}"
			}
			return "[" + strings.Repeat("signed,", n) + "]"
		}
		if _, err := except(t, c.before, text(c.most)); err != nil {
			t.Errorf("%d: %v", c.most, err)
		}
		if _, err := except(t, c.before, text(c.most+1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v, want %s", c.most+1, err, c.want)
		}
	}
}

func TestExceptionScope(t *testing.T) {
	either := func(version string) string {
		return "  conditions: {any: [{key: '" + version + "', operator: GreaterThan, value: 2.0.0}, {key: a, operator: Equals, value: a}]}\n  match:"
	}
	conditions := func(key, value string) string {
		return "  conditions: {all: [{key: \"{{ " + key + " }}\", operator: Equals, value: " + value + "}]}\n  match:"
	}
	for _, c := range []struct {
		before, after, namespace string
		want                     bool
		unknown                  bool // whether it covers the object is indeterminate
		reason                   string
	}{
		{"spec:", "spec:", "prod", true, false, "the object"},
		{"spec:", "spec:", "test", false, false, "of another namespace"},
		{"  match:", conditions("request.object.metadata.labels.owner", "ann"), "prod", true, false, "the condition holds"},
		{"  match:", conditions("request.object.metadata.labels.owner", "ann"), "test", false, false, "the condition holds, in another namespace"},
		{"  match:", conditions("request.object.metadata.labels.owner", "bob"), "prod", false, false, "the condition does not hold"},
		{"  match:", conditions("request.object.metadata.labels.team", "bob"), "prod", false, true, "the condition cannot be evaluated"},
		{"  match:", either("1.0.0"), "prod", true, false, "one of two conditions holds"},
		{"  match:", either("{{ request.object.metadata.name }}"), "prod", true, false, "one of two conditions holds, and the other compares what has no order"},
		{"        namespaces: [prod]", "        namespaceSelector: {matchLabels: {a: b}}", "prod", false, false, "the namespace has no such label"},
		{"    - resources:", "    - subjects: [{kind: User, name: ann}]\n      resources:", "prod", false, false, "no requester, and the exception is for a user"},
	} {
		e, err := except(t, c.before, c.after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Scope.Covers(t.Context(), pod(c.namespace))
		if got != c.want || (err != nil) != c.unknown {
			t.Errorf("%s: covers %t, %v", c.reason, got, err)
		}
	}
}

func TestExceptionErrors(t *testing.T) {
	annotation := func(text string) string { return "  name: legacy\n  annotations: {" + text + "}" }
	for _, c := range []struct{ before, after, want, reason string }{
		{"spec:", "spec:\n  podSecurity: [{controlName: Seccom}]", "spec.podSecurity[0]", "no control"},
		{"spec:", "spec:\n  podSecurity: []", "spec.podSecurity: is empty, and the exception would cover its rules as a whole", "no control is named"},
		{"spec:", "spec:\n  podSecurity:", "spec.podSecurity: is null", "controls are not written"},
		{"  name: legacy\n  namespace: exceptions\nspec:", annotation("quaymaster.dev/images: 'ghcr.io/org/*'") + "\nspec:\n  podSecurity: [{controlName: Host Namespaces}]", "quaymaster.dev/images]: does not confine podSecurity", "controls for images of an annotation"},
		{"spec:", "spec:\n  conditions: ~", "spec.conditions: is null", "conditions are not written"},
		{"spec:", "spec:\n  until: 2027", "spec.until: unknown field", "an unknown field"},
		{"  name: legacy", "  labels: {}", "metadata.name: is empty", "no name"},
		{"  name: legacy", annotation("quaymaster.dev/expires: 2027"), "metadata: ", "an annotation that is no text"},
		{"  name: legacy", annotation("quaymaster.dev/expires: '0001-01-01T00:00:00Z'"), "is no time", "an end that would be none"},
		{"  - policyName: minimal\n    ruleNames: [signed, autogen-*]\n", "", "spec.exceptions: is empty", "no policies"},
		{"    ruleNames: [signed, autogen-*]", "    ruleNames: [signed, '']", "spec.exceptions[0].ruleNames: is empty", "an empty rule"},
		{"  match:", "  match:\n    all: [{resources: {kinds: [Pod]}}]", "spec.match: want one of any, all", "two ways at once"},
		{"    ruleNames: [signed, autogen-*]", "    ruleNames: []", "spec.exceptions[0].ruleNames: is empty", "no rule"},
		{"policyName: minimal", "policyName: 'min*'", "spec.exceptions[0].policyName: ", "a pattern for policies"},
		{"policyName: minimal", "policyName: ''", "spec.exceptions[0].policyName: is empty", "no policy"},
		{"    any:\n    - resources:\n        kinds: [Pod]\n        namespaces: [prod]\n", "    any: []\n", "spec.match: is empty", "it would cover nothing"},
		{"kinds: [Pod]", "kinds: [Pods]", "spec.match.any[0].resources.kinds[0]: ", "a misspelt kind"},
		{"  name: legacy", annotation("quaymaster.dev/image: a"), "did you mean quaymaster.dev/images?", "a misspelt annotation would widen it"},
		{"  name: legacy", annotation("quaymaster.dev/images: ' , '"), "quaymaster.dev/images]: is empty", "no images"},
		{"  name: legacy", annotation("quaymaster.dev/images: ghcr.io/org/app"), "can match no image reference", "neither tag nor digest"},
		{"  name: legacy", annotation("quaymaster.dev/expires: tomorrow"), "is no time", "an end that is no time"},
		{"spec:", "spec:\n  conditions: {any: [{key: \"{{ request.object.spec.a || 'x' }}\", operator: AllNotIn, value: 1}]}", "spec.conditions.any[0].value: 1 never holds under AllNotIn", "a condition that never holds in Kyverno"},
		{"spec:", "spec:\n  conditions: {}", "spec.conditions: is empty", "conditions that ask nothing"},
		{"spec:", "spec:\n  conditions: {all: [{key: request.object.metadata.name, operator: NotEquals, value: web}]}", "spec.conditions: the key \"request.object.metadata.name\" is a text", "a condition that always holds"},
		{"spec:", "spec:\n  conditions: {all: [{key: \"{{ requst.name || 'x' }}\", operator: NotEquals, value: web}]}", "spec.conditions: a variable reads requst", "a variable of nothing"},
		{"kyverno.io/v2", "kyverno.io/v9", "is no Kyverno exception", "another version"},
	} {
		if _, err := except(t, c.before, c.after); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}

func TestBroken(t *testing.T) {
	why := errors.New("spec.rules[0].verifyImages[0].typ: unknown field")
	foreign := strings.Replace(minimal, "verifyImages:", "generate: {kind: Secret}\n    other:", 1)
	for _, c := range []struct {
		before, after string
		kind          string
		asked         bool
		reason        string
	}{
		{"", "", "Pod", true, "the kind that it names"},
		{"", "", "Deployment", true, "a controller that follows"},
		{"", "", "ConfigMap", false, "another kind"},
		{"kinds: [Pod]", "kinds: [Task]", "Pod", false, "a kind that it does not name"},
		{"kinds: [Pod]", "kinds: ['*']", "Task", true, "every kind"},
		{"kinds: [Pod]", "kinds: ['*']", "Namespace", false, "every kind but Namespaces"},
		{"kinds: [Pod]", "kinds: ['*']", "Event", false, "every kind but Events"},
		{"kinds: [Pod]", "kinds: ['*']", "SubjectAccessReview", false, "every kind but reviews"},
		{"kinds: [Pod]", "kinds: [Node]", "Node", false, "never Nodes"},
		{"kinds: [Pod]", "kinds: 7", "Pod", true, "a match that cannot be read"},
		{"kinds: [Pod]", "kinds: 7", "Deployment", true, "a match that cannot be read, for controllers"},
		{"kinds: [Pod]", "kinds: 7", "ConfigMap", false, "a match that cannot be read, for other kinds"},
		{"          kinds: [Pod]", "          kinds: [Pod]\n          namespaces: [prod]", "Pod", true, "in the namespace"},
		{"          kinds: [Pod]", "          kinds: [Pod]\n          namespaces: [test]", "Pod", false, "in another namespace"},
	} {
		p := kyverno.Broken([]byte(strings.Replace(minimal, c.before, c.after, 1)), "test.yaml", why)
		if p == nil || !errors.Is(p.Broken, why) || p.ID() != "ClusterPolicy/minimal" || p.FailOpen || p.AuditOnly || p.Hash == "" {
			t.Fatalf("%s: %+v", c.reason, p)
		}
		set, err := set.New(p)
		if err != nil {
			t.Fatal(err)
		}
		group := map[string]string{"Deployment": "apps", "SubjectAccessReview": "authorization.k8s.io"}[c.kind]
		s := &policy.Subject{Group: group, Version: "v1", Kind: c.kind, Namespace: "prod", Name: "x", Operation: "CREATE", Object: policy.ContentOf(map[string]any{})}
		plan := set.Plan(t.Context(), s, func([]policy.Extractor) ([]policy.Image, error) { return []policy.Image{container("nginx")}, nil })
		got := len(plan.Results) == 1 && errors.Is(plan.Results[0].Err, why)
		if got != c.asked {
			t.Errorf("%s: indeterminate %t", c.reason, got)
		}
	}
	if p := kyverno.Broken([]byte(foreign), "x", why); p == nil || !p.IsEmpty() || len(p.Targets) > 0 || !errors.Is(p.Broken, why) {
		t.Errorf("a document without a rule for admission: %+v", p)
	}
}

// TestBrokenHead: the fields that are read of a broken document, except its rules.
func TestBrokenHead(t *testing.T) {
	why := errors.New("broken")
	const mebi = 1 << 20
	for _, c := range []struct{ before, after, want, reason string }{
		{"", "", "ClusterPolicy/minimal closed", "as it is"},
		{"  name: minimal", "  name: minimal\n  namespace: team", "ClusterPolicy/minimal closed", "a ClusterPolicy is of no namespace"},
		{"kind: ClusterPolicy\nmetadata:", "kind: Policy\nmetadata:", "Policy/default/minimal closed", "a Policy without a namespace"},
		{"kind: ClusterPolicy\nmetadata:", "kind: Policy\nmetadata:\n  namespace: team", "Policy/team/minimal closed", "a Policy of a namespace"},
		{"  name: minimal", "  labels: {}", "ClusterPolicy/unnamed- closed", "no name"},
		{"spec:\n", "spec:\n  failurePolicy: Ignore\n", "ClusterPolicy/minimal open", "it fails open"},
		{"spec:\n", "spec:\n  failurePolicy: Ignore\n  webhookConfiguration: {failurePolicy: Fail}\n", "ClusterPolicy/minimal closed", "the newer field wins"},
		{"spec:\n", "spec:\n  failurePolicy: Fail\n  webhookConfiguration: {failurePolicy: Ignore}\n", "ClusterPolicy/minimal open", "the newer field wins, the other way"},
		{"spec:\n", "spec:\n  failurePolicy: Ignore\n  webhookConfiguration: {failurePolicy: ''}\n", "ClusterPolicy/minimal open", "the newer field is empty"},
		{"spec:\n", "spec:\n  failurePolicy: Ignore\n  webhookConfiguration: {timeoutSeconds: 5}\n", "ClusterPolicy/minimal open", "the newer field is not there"},
		{"spec:\n", "spec:\n  failurePolicy: Ignore\n  webhookConfiguration: 7\n", "ClusterPolicy/minimal closed", "settings that cannot be read fail closed"},
		{minimal[strings.Index(minimal, "spec:"):], "spec: {rules: 7}", "ClusterPolicy/minimal closed", "rules that cannot be read"},
		{minimal[strings.Index(minimal, "spec:"):], "spec: {rules: [7]}", "ClusterPolicy/minimal closed", "a rule that cannot be read"},
		{minimal[strings.Index(minimal, "spec:"):], "spec: {rules: []}", "ClusterPolicy/minimal closed", "no rules"},
		{"  - name: signed", "  - {name: [}", "none", "no YAML"},
		{"spec:\n", strings.Repeat("#", 3*mebi-len(minimal)-1) + "\nspec:\n", "ClusterPolicy/minimal closed", "as long as may be"},
		{"spec:\n", strings.Repeat("#", 3*mebi-len(minimal)) + "\nspec:\n", "none", "a byte longer"},
	} {
		p := kyverno.Policies{}.Broken([]byte(strings.Replace(minimal, c.before, c.after, 1)), "test.yaml", why)
		got := "none"
		if p != nil {
			got = strings.TrimRight(p.ID(), "0123456789abcdef") + " " + map[bool]string{true: "open", false: "closed"}[p.FailOpen]
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestBrokenRulesMatch: a broken rule matches the kinds that can be read of it, else pods
// and their controllers.
func TestBrokenRulesMatch(t *testing.T) {
	const pods = "*/*/Pod */*/Pod/ephemeralcontainers"
	const controllers = " apps/*/DaemonSet apps/*/Deployment batch/*/Job apps/*/StatefulSet apps/*/ReplicaSet /*/ReplicationController batch/*/CronJob"
	const match = "      any:\n      - resources:\n          kinds: [Pod]\n"
	const everything = "/*/Pod /*/Pod/ephemeralcontainers" + controllers
	for _, c := range []struct{ before, after, want, reason string }{
		{match, "      any: [{resources: {kinds: [Pod], names: [a]}}]\n", pods, "pods by name"},
		{match, "      any: [{resources: {kinds: [Task, Node]}}]\n", "*/*/Task", "Nodes are left alone"},
		{match, "      any: []\n", everything, "an empty match"},
		{match, "      any: [{resources: {kinds: [Task]}}, {resources: {kinds: [a/b/c/d/e]}}]\n", everything, "a kind that is none"},
		{match, "      any: [{resources: {kinds: [Task]}}, {resources: {kinds: 7}}]\n", everything, "kinds that cannot be read"},
		{match, "      any: [{resources: {kinds: [Task]}}]\n      all: 7\n", everything, "a match of which a half can be read"},
		{"  name: minimal", "  name: minimal\n  annotations: {pod-policies.kyverno.io/autogen-controllers: none}", pods, "no controllers are wanted"},
		{"  name: minimal", "  name: minimal\n  annotations: {pod-policies.kyverno.io/autogen-controllers: Knative}", pods + controllers, "the controllers cannot be read"},
	} {
		p := kyverno.Broken([]byte(strings.Replace(minimal, c.before, c.after, 1)), "x", errors.New("broken"))
		if got := said(p.Targets); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.reason, got, c.want)
		}
	}
}

// TestABrokenRuleAsksNothing of images, and nothing of what goes.
func TestABrokenRuleAsksNothing(t *testing.T) {
	r := kyverno.Broken([]byte(minimal), "x", errors.New("broken")).Rules[0]
	if patterns, known := r.(policy.Selective).ImagePatterns(); known {
		t.Errorf("it matches %v alone", patterns)
	}
	s := pod("prod")
	equal(t, "a pod that comes", applies(t, r, s), "error: broken")
	s.Operation = "DELETE"
	equal(t, "a pod that goes", applies(t, r, s), "skips")
}

func FuzzBroken(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(exempting))
	c := newCompiler(f, nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		p := kyverno.Broken(text, "fuzz", errors.New("broken"))
		if p != nil {
			s := &policy.Subject{Kind: "Pod", Version: "v1", Operation: "CREATE"}
			for _, r := range p.Rules {
				if plan, err := r.Plan(t.Context(), s, nil); err == nil && plan.Skip == "" {
					t.Error("a broken rule was asked")
				}
			}
		}
		if e, err := c.CompileException(text, "fuzz"); err == nil {
			if len(e.Rules) == 0 {
				t.Error("an exception without rules")
			}
			_, _ = json.Marshal(e.Rules)
		}
	})
}
