package validating_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

const onePod = `{containers: [{name: a, image: "a.example/a:1"}]}`

// TestExpressions asks one validation of a pod in namespace shop: each that holds has a
// twin that does not.
func TestExpressions(t *testing.T) {
	for _, c := range []struct{ reason, holds, not string }{
		{"the object", "object.metadata.name == 'web'", "object.metadata.name == 'other'"},
		{"the old object", "oldObject == null", "oldObject != null"},
		{"the request", "request.operation == 'CREATE' && request.resource.resource == 'pods'", "request.operation == 'UPDATE'"},
		{"the object of the request", "request.object.metadata.name == 'web'", "request.object.metadata.name == 'other'"},
		{"whether the request has an object", "has(request.object) && has(request.object.metadata) && !has(request.oldObject)", "has(request.oldObject)"},
		{"an optional object of the request", "request.?object.metadata.name.orValue('') == 'web' && !request.?oldObject.hasValue()", "request.?oldObject.metadata.name.orValue('') == 'web'"},
		{"the object of the request in a loop", "request.object.spec.containers.all(c, request.object.metadata.name == 'web' && c.name == 'a')", "request.object.spec.containers.exists(c, c.name == 'b')"},
		{"a request of a loop's own", "[{'object': 1}].all(request, request.object == 1)", "[{'object': 2}].all(request, request.object == 1)"},
		{"a default for a value that is there", "object.metadata.name.orValue('b') == 'web'", "object.metadata.name.orValue('b') == 'b'"},
		{"the user", "request.userInfo.username == 'ann' && 'dev' in request.userInfo.groups", "request.userInfo.username == 'eve'"},
		{"the namespace", "namespaceObject.metadata.labels.team == 'a'", "namespaceObject.metadata.labels.team == 'b'"},
		{"optional fields", "object.spec.?hostNetwork.orValue(false) == false", "object.spec.?hostNetwork.orValue(true) == false"},
		{"images", "object.spec.containers.all(c, image(c.image).registry() == 'a.example')", "object.spec.containers.all(c, image(c.image).registry() == 'b.example')"},
		{"quantities", "quantity('1Gi').isGreaterThan(quantity('1Mi'))", "quantity('1Mi').isGreaterThan(quantity('1Gi'))"},
		{"the time", "time.now() > timestamp('2020-01-01T00:00:00Z')", "time.now() < timestamp('2020-01-01T00:00:00Z')"},
		{"hashes", "sha256('a').startsWith('ca97')", "sha256('b').startsWith('ca97')"},
		{"resources", "resource.Get('v1', 'configmaps', 'shop', 'limits').data.most == '1'", "resource.Get('v1', 'configmaps', 'shop', 'limits').data.most == '2'"},
		{"a service", "http.Get('https://a.example/ok') == true", "http.Get('https://a.example/ok') == false"},
		{"global context", "globalContext.Get('teams', '') == ['a']", "globalContext.Get('teams', '') == ['b']"},
		{"an image's data", "image.GetMetadata('a.example/a:1').config.config.User == 'app'", "image.GetMetadata('a.example/a:1').config.config.User == 'root'"},
		{"no exceptions", "exceptions.allowedValues.size() == 0 && exceptions.allowedImages == []", "exceptions.allowedValues.size() > 0"},
	} {
		for expression, want := range map[string]string{c.holds: "pass", c.not: "fail"} {
			p := compile(t, head+asks(expression), func(o *kyvernocel.Options) { o.Outside = world() })
			s := subject(t, pod(onePod), func(s *policy.Subject) { s.User = policy.User{Name: "ann", Groups: []string{"dev"}} })
			if what, why := verdict(validate(t, s, []*policy.Policy{p})); what != want {
				t.Errorf("%s: %s: %s %s", c.reason, expression, what, why)
			}
		}
	}
}

// TestRequestObjects: the object of the request is checked, adapted to controllers and confined as
// the variable object is, and is none of a document without a request.
func TestRequestObjects(t *testing.T) {
	p := compile(t, head+asks("request.object.spec.containers.all(c, c.name == 'a')"))
	for text, want := range map[string]string{
		deployment(onePod): "pass", deployment(strings.Replace(onePod, "name: a", "name: b", 1)): "fail", pod(onePod): "pass",
	} {
		if what, why := verdict(validate(t, subject(t, text), []*policy.Policy{p})); what != want {
			t.Errorf("%s: %s %s, want %s", text, what, why, want)
		}
	}
	for text, why := range map[string]string{
		head + asks("request.object.spec.containerz == []"):                                             "containerz",
		head + asks("request.objekt == null"):                                                           "objekt",
		head + "spec: {evaluation: {mode: JSON}, validations: [{expression: 'request.object.a == 1'}]}": "request",
	} {
		if _, err := validating.New(kyvernocel.Options{}).Compile([]byte(text), "test.yaml"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// world answers what expressions ask for outside.
type answers struct{}

func world() cel.Outside {
	return cel.Outside{Resources: answers{}, HTTP: answers{}, GlobalContext: teams{}, Images: answers{}}
}

func (answers) Get(_ context.Context, ref cel.ResourceRef) (map[string]any, error) {
	if ref != (cel.ResourceRef{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: "limits"}) {
		return nil, errors.New("not found")
	}
	return map[string]any{"data": map[string]any{"most": "1"}}, nil
}

func (answers) List(context.Context, cel.ResourceRef, map[string]string) (map[string]any, error) {
	return nil, errors.New("not expected")
}

func (answers) Post(context.Context, cel.ResourceRef, map[string]any) (map[string]any, error) {
	return nil, errors.New("not expected")
}

func (answers) Kind(context.Context, string, string) (group, version, resource string, err error) {
	return "", "", "", errors.New("not expected")
}

func (answers) Do(context.Context, cel.HTTPRequest) (any, error) { return true, nil }

func (answers) Metadata(context.Context, string) (map[string]any, error) {
	return map[string]any{"config": map[string]any{"config": map[string]any{"User": "app"}}}, nil
}

// teams is a global context with a function of the same name as another one's.
type teams struct{ answers }

func (teams) Get(context.Context, string, string) (any, error) { return []any{"a"}, nil }

// TestMatchedSubjects: the objects that a policy matches, and the results for them.
func TestMatchedSubjects(t *testing.T) {
	no := "  validations: [{expression: 'false'}]\n"
	owner := func(s *policy.Subject) { s.User.Name = "ann" }
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		want         string
	}{
		{"a kind that it matches", about("pods", no), subject(t, pod(onePod)), "fail"},
		{"another kind", about("pods", no), subject(t, "{apiVersion: v1, kind: Service, metadata: {name: a}}"), "nothing"},
		{"a kind of Kubernetes that runs nothing", about("networking.k8s.io/ingresses", no), subject(t, "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}"), "fail"},
		{"controllers", about("pods", no), subject(t, deployment(onePod)), "fail"},
		{"no controllers", about("pods", no+"  autogen: {podControllers: {controllers: []}}\n"), subject(t, deployment(onePod)), "nothing"},
		{"no controllers, with ephemeral containers", strings.Replace(about("pods", no), "[pods]", "[pods, pods/ephemeralcontainers]", 1), subject(t, deployment(onePod)), "nothing"},
		{"pods, with ephemeral containers", strings.Replace(about("pods", no), "[pods]", "[pods, pods/ephemeralcontainers]", 1), subject(t, pod(onePod)), "fail"},
		{"no controllers, with another subresource", strings.Replace(about("pods", no), "[pods]", "[pods, pods/exec]", 1), subject(t, deployment(onePod)), "nothing"},
		{"some controllers", about("pods", no+"  autogen: {podControllers: {controllers: [cronjobs]}}\n"), subject(t, cronJob(onePod)), "fail"},
		{"no others", about("pods", no+"  autogen: {podControllers: {controllers: [cronjobs]}}\n"), subject(t, deployment(onePod)), "nothing"},
		{"a policy of some labels matches pods", about("pods", "    objectSelector: {matchLabels: {app: web}}\n"+no), subject(t, pod(onePod)), "fail"},
		{"and of pods alone", about("pods", "    objectSelector: {matchLabels: {app: web}}\n"+no), subject(t, deployment(onePod)), "nothing"},
		{"of a namespace that is selected, controllers as well", about("pods", "    namespaceSelector: {matchLabels: {team: a}}\n"+no), subject(t, deployment(onePod)), "fail"},
		{"and none of another namespace", about("pods", "    namespaceSelector: {matchLabels: {team: b}}\n"+no), subject(t, deployment(onePod)), "nothing"},
		{"a condition that holds", about("pods", no+"  matchConditions: [{name: a, expression: \"object.metadata.name == 'web'\"}]\n"), subject(t, pod(onePod)), "fail"},
		{"a condition with a long name of words", about("pods", no+"  matchConditions: [{name: only of "+strings.Repeat("a", 100)+", expression: \"object.metadata.name == 'web'\"}]\n"), subject(t, pod(onePod)), "fail"},
		{"and one that does not hold", about("pods", no+"  matchConditions: [{name: only of "+strings.Repeat("a", 100)+", expression: \"object.metadata.name == 'b'\"}]\n"), subject(t, pod(onePod)), "skip"},
		{"a condition that does not", about("pods", no+"  matchConditions: [{name: a, expression: \"object.metadata.name == 'b'\"}]\n"), subject(t, pod(onePod)), "skip"},
		{"a condition on a controller sees the template", about("pods", no+"  matchConditions: [{name: a, expression: \"object.metadata.labels.app == 'web'\"}]\n"), subject(t, deployment(onePod)), "fail"},
		{"a condition that cannot be evaluated", about("pods", no+"  matchConditions: [{name: a, expression: 'object.metadata.labels.none == \"1\"'}]\n"), subject(t, pod(onePod)), "indeterminate"},
		{"a condition that cannot be evaluated beside one that does not hold", about("pods", no+"  matchConditions: [{name: a, expression: 'object.metadata.labels.none == \"1\"'}, {name: b, expression: 'false'}]\n"), subject(t, pod(onePod)), "skip"},
		{"a policy for scans, at admission", about("pods", no+"  evaluation: {admission: {enabled: false}}\n"), subject(t, pod(onePod), owner), "nothing"},
		{"and in a scan", about("pods", no+"  evaluation: {admission: {enabled: false}}\n"), subject(t, pod(onePod)), "fail"},
		{"no native policy is asked for", about("pods", no+"  autogen: {validatingAdmissionPolicy: {enabled: false}}\n"), subject(t, pod(onePod)), "fail"},
		{"one is, and the gateway evaluates the policy until it is there", about("pods", no+"  autogen: {validatingAdmissionPolicy: {enabled: true}}\n"), subject(t, pod(onePod)), "fail"},
		{"a deletion that is not meant", about("pods", no), subject(t, pod(onePod), deleted), "nothing"},
		{"and one that is", strings.Replace(about("pods", no), "CREATE, UPDATE", "DELETE", 1), subject(t, pod(onePod), deleted), "fail"},
		{"a connection", strings.NewReplacer("CREATE, UPDATE", "CONNECT", "[pods]", "[pods/exec]").Replace(about("pods", "  validations: [{expression: \"object.command[0] != 'tar'\"}]\n")), connection(t, "tar"), "fail"},
		{"and another", strings.NewReplacer("CREATE, UPDATE", "CONNECT", "[pods]", "[pods/exec]").Replace(about("pods", "  validations: [{expression: \"object.command[0] != 'tar'\"}]\n")), connection(t, "ls"), "pass"},
		{"of an object that is no more", strings.Replace(about("pods", "  validations: [{expression: \"object == null && oldObject.metadata.name == 'web'\"}]\n"), "CREATE, UPDATE", "'*'", 1), subject(t, pod(onePod), deleted), "pass"},
	} {
		what, why := verdict(validate(t, c.subject, []*policy.Policy{compile(t, head+c.text)}))
		if what != c.want {
			t.Errorf("%s: %s %s", c.reason, what, why)
		}
	}
}

// connection is a request for kubectl exec: the pod's kind, and the options.
func connection(t *testing.T, command string) *policy.Subject {
	return subject(t, "{apiVersion: v1, kind: PodExecOptions, command: ["+command+"]}", func(s *policy.Subject) {
		s.Kind, s.Subresource, s.Operation = "Pod", "exec", "CONNECT"
	})
}

func deleted(s *policy.Subject) {
	s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.Content{}
}

// TestNamespaced: a policy of a namespace matches its own objects alone.
func TestNamespaced(t *testing.T) {
	text := "apiVersion: policies.kyverno.io/v1\nkind: NamespacedValidatingPolicy\nmetadata: {name: test, namespace: shop}\n" + asks("false")
	p := compile(t, text)
	if what, _ := verdict(validate(t, subject(t, pod(onePod)), []*policy.Policy{p})); what != "fail" {
		t.Error("its own namespace:", what)
	}
	other := subject(t, pod(onePod), func(s *policy.Subject) { s.Namespace = "other" })
	if what, _ := verdict(validate(t, other, []*policy.Policy{p})); what != "nothing" {
		t.Error("another namespace:", what)
	}
	for _, target := range p.Validations[1].Targets() {
		if len(target.Namespaces) != 1 || target.Namespaces[0] != "shop" {
			t.Errorf("target %v is not confined", target)
		}
	}
	reads := compile(t, text[:strings.Index(text, "spec:")]+asks("resource.Get('v1', 'configmaps', 'limits').data.most == '1'"), func(o *kyvernocel.Options) { o.Outside = world() })
	if what, why := verdict(validate(t, subject(t, pod(onePod)), []*policy.Policy{reads})); what != "pass" {
		t.Error("a resource of its own namespace:", what, why)
	}
}

// TestDocuments: a policy of mode JSON matches documents that are no objects.
func TestDocuments(t *testing.T) {
	p := compile(t, head+"spec: {evaluation: {mode: JSON}, matchConditions: [{name: a, expression: 'has(object.planned)'}], validations: [{expression: 'object.planned < 3'}]}\n")
	rule := p.Validations[0]
	if of, ok := rule.(interface{ OnlyDocuments() bool }); !ok || !of.OnlyDocuments() {
		t.Error("it is not known to be of documents")
	}
	for text, want := range map[string]policy.Result{"{planned: 2}": policy.Pass, "{planned: 3}": policy.Fail, "{other: 1}": policy.Skipped} {
		about := policy.Case{Subject: &policy.Subject{Object: policy.ContentOf(policytest.Object(t, text)), Shape: policy.Shape{Document: true}}}
		got := rule.Validate(t.Context(), about)
		if got.Result != want {
			t.Errorf("%s: %v", text, got)
		}
		if len(got.Reasons) > 0 && want == policy.Fail && got.Reasons[0].Hint != hint.ChangeDocument {
			t.Errorf("%s: the hint is %q", text, got.Reasons[0].Hint)
		}
	}
	if got := compile(t, head+asks("false")).Validations[0].Validate(t.Context(), policy.Case{Subject: subject(t, pod(onePod))}); got.Result != policy.Fail || got.Reasons[0].Hint != "" {
		t.Error("of an object, by a policy of objects:", got)
	}
	if got := rule.Validate(t.Context(), policy.Case{Subject: subject(t, pod(onePod))}); got.Result != "" {
		t.Error("of an object:", got)
	}
	if got := compile(t, head+asks("false")).Validations[0].Validate(t.Context(), policy.Case{Subject: &policy.Subject{Object: policy.ContentOf(policytest.Object(t, "{}")), Shape: policy.Shape{Document: true}}}); got.Result != "" {
		t.Error("a policy of objects, of a document:", got)
	}
}

// TestMessages: the message and the action of a failure.
func TestMessages(t *testing.T) {
	longest := strings.Repeat("x", 5<<10)
	for _, c := range []struct {
		reason, entry, actions, want string
		action                       policy.Action
	}{
		{"the message", "{expression: 'false', message: not so}", "", "spec.validations[0]: not so\n", policy.Enforce},
		{"no message", "{expression: '1 == 2'}", "[Deny]", "spec.validations[0]: the validation does not hold: 1 == 2\n", policy.Enforce},
		{"an expression", "{expression: 'false', message: not so, messageExpression: \"'no, ' + object.metadata.name\"}", "[Audit]", "spec.validations[0]: no, web\n", policy.Audit},
		{"of a variable", "{expression: 'false', messageExpression: \"'no, ' + variables.who\"}", "[Audit, Warn]", "spec.validations[0]: no, web\n", policy.Warn},
		{"an expression that fails", "{expression: 'false', message: not so, messageExpression: string(object.metadata.labels.none)}", "[Deny, Audit]", "spec.validations[0]: not so\n", policy.Enforce},
		{"an expression of an empty text", "{expression: 'false', message: not so, messageExpression: \"''\"}", "", "spec.validations[0]: not so\n", policy.Enforce},
		{"an expression of blanks", "{expression: 'false', message: not so, messageExpression: \"' \\t '\"}", "", "spec.validations[0]: not so\n", policy.Enforce},
		{"the longest text", "{expression: 'false', message: not so, messageExpression: \"'" + longest + "'\"}", "", "spec.validations[0]: " + longest + "\n", policy.Enforce},
		{"a longer one", "{expression: 'false', message: not so, messageExpression: \"'" + longest + "x'\"}", "", "spec.validations[0]: not so\n", policy.Enforce},
		{"the second", "{expression: 'true', message: not so}, {expression: 'false', message: nor so}", "", "spec.validations[1]: nor so\n", policy.Enforce},
	} {
		more := "  variables: [{name: who, expression: object.metadata.name}]\n  validations: [" + c.entry + "]\n"
		if c.actions != "" {
			more += "  validationActions: " + c.actions + "\n"
		}
		p := compile(t, head+about("pods", more))
		results := validate(t, subject(t, pod(onePod)), []*policy.Policy{p})
		if _, why := verdict(results); why != c.want || results[0].Action != c.action || results[0].Ruling.Reasons[0].Code != policy.Violated {
			t.Errorf("%s: %q, %+v", c.reason, why, results[0])
		}
		if p.AuditOnly != (c.action != policy.Enforce) {
			t.Errorf("%s: AuditOnly %v", c.reason, p.AuditOnly)
		}
	}
}

// TestErrors has what cannot be evaluated be undecided and never a pass, whatever else
// holds; what certainly does not hold outweighs it.
func TestErrors(t *testing.T) {
	const bad = "{expression: 'object.metadata.labels.none == \"1\"'}"
	for _, c := range []struct{ reason, entries, want, why string }{
		{"alone", bad, "indeterminate", "spec.validations[0]: the expression cannot be evaluated: spec.validations[0].expression: no such key: none"},
		{"before one that holds", bad + ", {expression: 'true'}", "indeterminate", "no such key"},
		{"before one that does not", bad + ", {expression: 'false', message: nor so}", "fail", "spec.validations[1]: nor so"},
		{"after one that does not", "{expression: 'false', message: nor so}, " + bad, "fail", "spec.validations[0]: nor so"},
		{"a division by zero", "{expression: '1 / (object.spec.containers.size() - 1) == 1'}", "indeterminate", "division by zero"},
		{"no cluster", "{expression: \"resource.Get('v1', 'configmaps', 'a', 'b').size() == 0\"}", "indeterminate", "resource is not available here"},
		{"no clock of images", "{expression: \"image.GetMetadata('a') == null\"}", "indeterminate", "image.GetMetadata is not available here"},
		{"a variable that is not read may be wrong", "{expression: 'true'}", "pass", ""},
		{"too much", "{expression: '[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, a+b+c+d+e+f+g > 0)))))))'}", "indeterminate", "cost"},
	} {
		for _, policyOf := range []string{"Fail", "Ignore"} {
			p := compile(t, head+about("pods", "  failurePolicy: "+policyOf+"\n  variables: [{name: wrong, expression: object.metadata.labels.none}]\n  validations: ["+c.entries+"]\n"))
			if p.FailOpen != (policyOf == "Ignore") {
				t.Error(c.reason, "fails open:", p.FailOpen)
			}
			if what, why := verdict(validate(t, subject(t, pod(onePod)), []*policy.Policy{p})); what != c.want || !strings.Contains(why, c.why) {
				t.Errorf("%s: %s %q", c.reason, what, why)
			}
		}
	}
}

func TestUnknownNamespace(t *testing.T) {
	unknown := subject(t, pod(onePod), func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil })
	for _, text := range []string{
		asks("namespaceObject.metadata.labels.team == 'a'"),
		strings.Replace(asks("request.operation == 'UPDATE' || namespaceObject.metadata.name == 'shop' && namespaceObject.metadata.labels.team == 'a'"), "  validations:", "    namespaceSelector: {matchLabels: {team: a}}\n  validations:", 1),
	} {
		if what, why := verdict(validate(t, unknown, []*policy.Policy{compile(t, head+text)})); what != "indeterminate" {
			t.Errorf("%s: %s %s", text, what, why)
		}
		if what, why := verdict(validate(t, subject(t, pod(onePod)), []*policy.Policy{compile(t, head+text)})); what != "pass" {
			t.Errorf("%s: %s %s", text, what, why)
		}
	}
}

// TestUnknownMatch: where it is indeterminate whether a policy matches, an object that
// meets its validations passes either way, and any other is undecided.
func TestUnknownMatch(t *testing.T) {
	unknown := subject(t, pod(onePod), func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil })
	selected := func(team, expression string) string {
		return strings.Replace(asks(expression), "  validations:", "    namespaceSelector: {matchLabels: {team: "+team+"}}\n  validations:", 1)
	}
	for _, c := range []struct{ reason, text, want, known string }{
		{"it is met", selected("a", "true"), "pass", "pass"},
		{"it is not", selected("a", "false"), "indeterminate", "fail"},
		{"it is not, and does not match", selected("b", "false"), "indeterminate", ""},
		{"it cannot be evaluated", selected("a", "object.metadata.labels.none == '1'"), "indeterminate", "indeterminate"},
		{"a condition does not hold", strings.Replace(selected("a", "false"), "  validations:", "  matchConditions: [{name: never, expression: 'false'}]\n  validations:", 1), "", ""},
	} {
		p := []*policy.Policy{compile(t, head+c.text)}
		if what, why := verdict(validate(t, unknown, p)); what != c.want && c.want != "" || what == "fail" || what == "indeterminate" && c.want == "" {
			t.Errorf("%s: %s %s", c.reason, what, why)
		}
		if what, why := verdict(validate(t, subject(t, pod(onePod)), p)); c.known != "" && what != c.known || c.known == "" && (what == "fail" || what == "indeterminate") {
			t.Errorf("%s, where labels are known: %s %s", c.reason, what, why)
		}
	}
}

// TestUndefinedFields: a field that no matched kind has is refused with its path.
func TestUndefinedFields(t *testing.T) {
	for _, c := range []struct{ reason, text, path string }{
		{"a field", about("pods", "  validations: [{expression: object.spec.hostNetwork != true}]\n"), ""},
		{"none", about("pods", "  validations: [{expression: object.spec.hostNetwrk != true}]\n"), `spec.validations[0].expression: undefined field "object.spec.hostNetwrk"`},
		{"none in a condition", about("pods", "  matchConditions: [{name: a, expression: object.spec.hostNetwrk != true}]\n  validations: [{expression: 'true'}]\n"), "spec.matchConditions[0].expression: undefined field"},
		{"none in a variable", about("pods", "  variables: [{name: a, expression: object.spec.hostNetwrk}]\n  validations: [{expression: variables.a != true}]\n"), "spec.variables[0].expression: undefined field"},
		{"none in a message", about("pods", "  validations: [{expression: 'true', messageExpression: string(object.spec.hostNetwrk)}]\n"), "spec.validations[0].messageExpression: undefined field"},
		{"of every group", about("*/deployments", "  validations: [{expression: object.spec.anything != 1}]\n"), "warning: spec.validations[0].expression: undefined field"},
		{"a kind beside that has it", about("pods, services", "  validations: [{expression: object.spec.clusterIP != ''}]\n"), ""},
		{"a subresource of another kind beside", about("/pods, pods/exec", "  validations: [{expression: 'object.command != []'}]\n"), ""},
		{"every kind", about("'*'", "  validations: [{expression: object.anything == 1}]\n"), ""},
	} {
		p, err := validating.New(kyvernocel.Options{}).Compile([]byte(head+c.text), "test.yaml")
		if err == nil && len(p.Warnings) > 0 {
			err = errors.New("warning: " + p.Warnings[0])
		}
		if c.path == "" && err != nil || c.path != "" && (err == nil || !strings.Contains(err.Error(), c.path)) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.path)
		}
	}
}

func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	two := head + about("pods", "  validations: [{expression: 'true'}, {expression: 'true'}]\n")
	got := compile(t, two).Validations[0].Validate(ctx, policy.Case{Subject: subject(t, pod(onePod))})
	if got.Result != policy.Indeterminate || len(got.Reasons) != 1 {
		t.Error("after the end, and what comes after it is not asked:", got)
	}
}

func TestAuditAnnotations(t *testing.T) {
	more := "  auditAnnotations: [{key: who, valueExpression: string(object.metadata.name)}, {key: none, valueExpression: 'null'}, {key: wrong, valueExpression: string(object.metadata.labels.none)}]\n"
	labelled := strings.Replace(pod(onePod), "app: web", "none: x", 1)
	for _, c := range []struct {
		entry     string
		faulty    policy.Result
		evaluated policy.Result
	}{
		{"", policy.Indeterminate, policy.Pass}, // as Kubernetes' and Kyverno's failure policy decides
		{"  validations: [{expression: 'true'}]\n", policy.Indeterminate, policy.Pass},
		{"  validations: [{expression: 'false'}]\n", policy.Fail, policy.Fail},
	} {
		p := compile(t, head+about("pods", more+c.entry))
		got := validate(t, subject(t, pod(onePod)), []*policy.Policy{p})[0]
		words := got.AuditAnnotations
		if words["who"] != "web" || len(words) != 2 || !strings.HasPrefix(words["wrong"], "cannot be evaluated: ") || got.Ruling.Result != c.faulty {
			t.Errorf("%q: %v", c.entry, got)
		}
		got = validate(t, subject(t, labelled), []*policy.Policy{p})[0]
		if got.AuditAnnotations["wrong"] != "x" || got.Ruling.Result != c.evaluated {
			t.Errorf("%q, with the label: %v", c.entry, got)
		}
	}
}

const exception = "apiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: e, namespace: shop}\nspec:\n  policyRefs: [{kind: ValidatingPolicy, name: test}]\n"

func TestExceptions(t *testing.T) {
	const allows = "object.spec.containers.all(c, c.image in exceptions.allowedImages || c.name in exceptions.allowedValues)"
	for _, c := range []struct{ reason, expression, more, want string }{
		{"all of it", "false", "", "skip"},
		{"another policy", "false", "REPLACE", "fail"},
		{"some objects", "false", "  matchConditions: [{name: a, expression: \"object.metadata.name == 'web'\"}]\n", "skip"},
		{"others", "false", "  matchConditions: [{name: a, expression: \"object.metadata.name == 'b'\"}]\n", "fail"},
		{"ended", "false", "  expiresAt: 2020-01-01T00:00:00Z\n", "fail"},
		{"an image", allows, "  images: ['a.example/a:1']\n", "pass"},
		{"another image", allows, "  images: ['a.example/b:1']\n", "fail"},
		{"an image leaves the rest", "false", "  images: ['a.example/a:1']\n", "fail"},
		{"a value", allows, "  allowedValues: [a]\n", "pass"},
		{"another value", allows, "  allowedValues: [b]\n", "fail"},
		{"a value leaves the rest", "false", "  allowedValues: [a]\n", "fail"},
	} {
		text := exception + c.more
		if c.more == "REPLACE" {
			text = strings.Replace(exception, "name: test", "name: other", 1)
		}
		p := compile(t, head+asks(c.expression))
		for _, wrap := range []func(string) string{pod, deployment} {
			if what, why := verdict(validate(t, subject(t, wrap(onePod)), []*policy.Policy{p}, text)); what != c.want {
				t.Errorf("%s: %s %s", c.reason, what, why)
			}
		}
	}
}

// TestExceptionsInConditions: a condition reads what exceptions allow, as in Kyverno.
func TestExceptionsInConditions(t *testing.T) {
	p := compile(t, head+asks("false")+"  matchConditions: [{name: a, expression: \"!('legacy' in exceptions.allowedValues)\"}]\n")
	for _, c := range []struct{ reason, value, want string }{
		{"the value", "legacy", "skip"}, {"another value", "modern", "fail"},
	} {
		if what, why := verdict(validate(t, subject(t, pod(onePod)), []*policy.Policy{p}, exception+"  allowedValues: ["+c.value+"]\n")); what != c.want {
			t.Errorf("%s: %s %s", c.reason, what, why)
		}
	}
	if what, why := verdict(validate(t, subject(t, pod(onePod)), []*policy.Policy{p})); what != "fail" {
		t.Errorf("no exception: %s %s", what, why)
	}
}

// TestNames are what Kyverno's test suites and reports call the rules.
func TestNames(t *testing.T) {
	p := compile(t, head+asks("true"))
	var names []string
	for _, v := range p.Validations {
		names = append(names, v.Name())
	}
	if got := strings.Join(names, " "); got != "test autogen-test autogen-cronjobs-test" {
		t.Error(got)
	}
	if p.ID() != "ValidatingPolicy/test" || p.Timeout != 0 {
		t.Errorf("%+v", p)
	}
	if p := compile(t, head+asks("true")+"  webhookConfiguration: {timeoutSeconds: 7}\n"); p.Timeout != 7*time.Second {
		t.Error(p.Timeout)
	}
}

func TestTargets(t *testing.T) {
	p := compile(t, strings.Replace(head+about("services", "  validations: [{expression: 'true'}]\n"), "CREATE, UPDATE", "'*'", 1))
	targets := p.Validations[0].Targets()
	if len(targets) != 1 || targets[0].Kind != "Service" || strings.Join(targets[0].Operations, " ") != "CREATE UPDATE DELETE CONNECT" {
		t.Errorf("%+v", targets)
	}
	if len(p.Targets) != 0 {
		t.Error("it matches images:", p.Targets)
	}
}

// TestUnconverted: a rule for another version is not evaluated on an object, even if that
// would meet it.
func TestUnconverted(t *testing.T) {
	text := about("autoscaling/horizontalpodautoscalers", "  validations: [{expression: '!has(object.spec.targetCPUUtilizationPercentage)'}]\n")
	const of = "kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 3, "
	for _, c := range []struct{ object, want string }{
		{"{apiVersion: autoscaling/v1, " + of + "targetCPUUtilizationPercentage: 95}}", "fail"},
		{"{apiVersion: autoscaling/v1, " + of + "minReplicas: 1}}", "pass"},
		{"{apiVersion: autoscaling/v2, " + of + "minReplicas: 1}}", "indeterminate"},
	} {
		if what, why := verdict(validate(t, subject(t, c.object), []*policy.Policy{compile(t, head+text)})); what != c.want || what == "indeterminate" && !strings.Contains(why, "write the object in version v1") {
			t.Errorf("%s: %s %s, want %s", c.object, what, why, c.want)
		}
	}
}

// TestBroken: the result of a broken document is indeterminate for the objects that it
// matches.
func TestBroken(t *testing.T) {
	compiler := validating.New(kyvernocel.Options{})
	why := errors.New("it is broken")
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		want         string
	}{
		{"a kind that it names", asks("not CEL"), subject(t, pod(onePod)), "indeterminate"},
		{"what follows", asks("not CEL"), subject(t, deployment(onePod)), "indeterminate"},
		{"nothing else", asks("not CEL"), subject(t, "{apiVersion: v1, kind: Service, metadata: {name: a}}"), "nothing"},
		{"no deletion, if it does not name it", asks("not CEL"), subject(t, pod(onePod), deleted), "nothing"},
		{"a deletion, if it names it", strings.Replace(asks("not CEL"), "CREATE, UPDATE", "DELETE", 1), subject(t, pod(onePod), deleted), "indeterminate"},
		{"what cannot be read", "spec: {matchConstraints: 7}", subject(t, pod(onePod)), "indeterminate"},
		{"and not its deletion, which a kubelet needs", "spec: {matchConstraints: 7}", subject(t, pod(onePod), deleted), "nothing"},
		{"a deletion, if its operations are misspelt", strings.Replace(asks("not CEL"), "CREATE, UPDATE", "DELET", 1), subject(t, pod(onePod), deleted), "indeterminate"},
		{"the deletion of a controller that follows", strings.Replace(asks("not CEL"), "CREATE, UPDATE", "DELETE", 1), subject(t, deployment(onePod), deleted), "indeterminate"},
		{"and not its creation", strings.Replace(asks("not CEL"), "CREATE, UPDATE", "DELETE", 1), subject(t, deployment(onePod)), "nothing"},
		{"never what mends a cluster", strings.Replace(asks("not CEL"), "pods", "'*'", 1), subject(t, "{apiVersion: v1, kind: Node, metadata: {name: a}}"), "nothing"},
	} {
		p := compiler.Broken([]byte(head+c.text), "test.yaml", why)
		what, got := verdict(validate(t, c.subject, []*policy.Policy{p}))
		if what != c.want || what == "indeterminate" && !strings.Contains(got, "it is broken") {
			t.Errorf("%s: %s %s", c.reason, what, got)
		}
	}
	if compiler.Broken([]byte("{"), "", why) != nil {
		t.Error("a policy without a document")
	}
	audit := compiler.Broken([]byte(head+asks("not CEL")+"  validationActions: [Audit]\n"), "", why)
	if results := validate(t, subject(t, pod(onePod)), []*policy.Policy{audit}); !audit.AuditOnly || results[0].Action != policy.Audit {
		t.Errorf("%+v", results)
	}
	documents := compiler.Broken([]byte(head+"spec: {evaluation: {mode: JSON}, nosuch: 1}\n"), "", why)
	for p, want := range map[*policy.Policy]bool{documents: true, audit: false} {
		if of, ok := p.Validations[0].(interface{ OnlyDocuments() bool }); !ok || of.OnlyDocuments() != want {
			t.Errorf("of documents alone: %v, want %v", !want, want)
		}
	}
}

var _ constraint.Resources = kinds{}

// kinds knows a kind of the cluster.
type kinds struct{}

func (kinds) Named(group, name string) []constraint.Resource {
	if group == "tekton.dev" && name == "tasks" {
		return []constraint.Resource{{Name: name, Group: group, Kind: "Task"}}
	}
	return nil
}

func TestKindsOfTheCluster(t *testing.T) {
	p := compile(t, head+about("tekton.dev/tasks", "  validations: [{expression: 'false'}]\n"), func(o *kyvernocel.Options) { o.Kinds = kinds{} })
	if what, _ := verdict(validate(t, subject(t, "{apiVersion: tekton.dev/v1, kind: Task, metadata: {name: a}}"), []*policy.Policy{p})); what != "fail" {
		t.Error(what)
	}
}
