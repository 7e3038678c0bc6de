package validating_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// reviews is a cluster in which members of the group dev may do anything with configmaps in the
// namespace shop, the service account shop/builder may get /metrics, and nobody else anything.
type reviews struct {
	answers
	asked *[]string
	fails bool
	error string // of the evaluation
}

func (r reviews) Post(_ context.Context, of cel.ResourceRef, object map[string]any) (map[string]any, error) {
	if of.Group != "authorization.k8s.io" || of.Resource != "subjectaccessreviews" || object["kind"] != "SubjectAccessReview" {
		return nil, errors.New("no review")
	}
	text, err := json.Marshal(object["spec"])
	if err != nil {
		return nil, err
	}
	*r.asked = append(*r.asked, string(text))
	if r.fails {
		return nil, &cel.UnknownError{Gaps: []error{errors.New("the API server does not answer")}}
	}
	spec := object["spec"].(map[string]any)
	resource, _ := spec["resourceAttributes"].(map[string]any)
	path, _ := spec["nonResourceAttributes"].(map[string]any)
	groups, _ := spec["groups"].([]any)
	allowed := slices.Contains(groups, any("dev")) && resource["resource"] == "configmaps" && resource["namespace"] == "shop" ||
		spec["user"] == "system:serviceaccount:shop:builder" && path["path"] == "/metrics" && path["verb"] == "get"
	return map[string]any{"status": map[string]any{"allowed": allowed, "denied": spec["user"] == "eve", "reason": "by the test", "evaluationError": r.error}}, nil
}

func (r reviews) outside() cel.Outside { return cel.Outside{Resources: r} }

// came is the whole request of a user for a pod in namespace shop.
func came(t *testing.T, name string, groups ...string) func(*policy.Subject) {
	return func(s *policy.Subject) {
		s.User = policy.User{Name: name, Groups: groups}
		info := map[string]any{"username": name, "uid": "1", "groups": groups, "extra": map[string]any{}}
		text, err := json.Marshal(map[string]any{
			"uid": "a", "operation": "CREATE", "namespace": "shop", "name": "web", "userInfo": info, "object": s.Object.Map(),
			"kind": map[string]any{"group": "", "version": "v1", "kind": "Pod"}, "resource": map[string]any{"group": "", "version": "v1", "resource": "pods"},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Request = policy.RequestFrom(text)
	}
}

// TestAuthorizer: what a user may do decides, and where that is not known, nothing does, in either
// polarity.
func TestAuthorizer(t *testing.T) {
	const may = "authorizer.group('').resource('configmaps').namespace('shop').name('limits').check('update')"
	for _, c := range []struct {
		reason, expression, want, asked string
		user                            func(*policy.Subject)
		fails                           bool
	}{
		{"a user who may", may + ".allowed()", "pass", `"verb":"update"`, came(t, "ann", "dev"), false},
		{"one who may not", may + ".allowed()", "fail", `"name":"limits"`, came(t, "bob", "ops"), false},
		{"one who is denied", may + ".allowed()", "fail", `"user":"eve"`, came(t, "eve", "dev"), false},
		{"one who may not, and must not", "!" + may + ".allowed()", "pass", `"resource":"configmaps"`, came(t, "bob", "ops"), false},
		{"one who may, and must not", "!" + may + ".allowed()", "fail", `"groups":["dev"]`, came(t, "ann", "dev"), false},
		{"the reason", may + ".reason() == 'by the test'", "pass", `"verb":"update"`, came(t, "bob"), false},
		{"another namespace", strings.Replace(may, "shop", "other", 1) + ".allowed()", "fail", `"namespace":"other"`, came(t, "ann", "dev"), false},
		{"the resource of the request", "authorizer.requestResource.check('create').allowed()", "fail", `"resource":"pods"`, came(t, "ann", "dev"), false},
		{"its name", "!authorizer.requestResource.check('create').allowed()", "pass", `"name":"web"`, came(t, "ann", "dev"), false},
		{"a path of a service account", "authorizer.serviceAccount('shop', 'builder').path('/metrics').check('get').allowed()", "pass", `"path":"/metrics"`, came(t, "ann"), false},
		{"another verb", "authorizer.serviceAccount('shop', 'builder').path('/metrics').check('post').allowed()", "fail", `"verb":"post"`, came(t, "ann"), false},
		{"a selector", "authorizer.group('').resource('configmaps').namespace('shop').labelSelector('a in (b)').check('list').allowed()", "pass", `"labelSelector":{"requirements":[{"key":"a","operator":"In","values":["b"]}]}`, came(t, "ann", "dev"), false},
		{"a review that fails", may + ".allowed()", "indeterminate", `"verb":"update"`, came(t, "ann", "dev"), true},
		{"a review that fails, of one who must not", "!" + may + ".allowed()", "indeterminate", `"verb":"update"`, came(t, "ann", "dev"), true},
		{"a review that fails, in an alternative", may + ".errored() || " + may + ".allowed()", "indeterminate", `"verb":"update"`, came(t, "ann", "dev"), true},
		{"a user who is not known", may + ".allowed()", "indeterminate", "", func(*policy.Subject) {}, false},
		{"a user with a known name alone", "!" + may + ".allowed()", "indeterminate", "", func(s *policy.Subject) { s.User.Name = "ann" }, false},
	} {
		var asked []string
		p := compile(t, head+asks(c.expression), func(o *kyvernocel.Options) { o.Outside = reviews{asked: &asked, fails: c.fails}.outside() })
		s := subject(t, pod(onePod), c.user)
		if what, why := verdict(validate(t, s, []*policy.Policy{p})); what != c.want || !strings.Contains(strings.Join(asked, "\n"), c.asked) || len(asked) > 1 {
			t.Errorf("%s: %s %s, want %s; asked %q", c.reason, what, why, c.want, asked)
		}
	}
	var asked []string
	p := compile(t, head+about("pods", "  variables: [{name: may, expression: \""+may+".allowed()\"}]\n  validations: [{expression: variables.may}, {expression: variables.may || "+may+".allowed()}]\n"),
		func(o *kyvernocel.Options) { o.Outside = reviews{asked: &asked}.outside() })
	if what, why := verdict(validate(t, subject(t, pod(onePod), came(t, "ann", "dev")), []*policy.Policy{p})); what != "pass" || len(asked) != 1 {
		t.Errorf("one question: %s %s, asked %q", what, why, asked)
	}
	tenant := strings.Replace(strings.Replace(head, "Validating", "NamespacedValidating", 1), "test}", "test, namespace: shop}", 1)
	if _, err := validating.New(kyvernocel.Options{}).Compile([]byte(tenant+asks(may+".allowed()")), "test.yaml"); err == nil || !strings.Contains(err.Error(), "authorizer") {
		t.Errorf("a policy of a namespace: %v", err)
	}
}

// TestIncompleteReviews: an authorizer that failed may allow what the others do not, so that allowed()
// is neither true nor false; an expression that handles the error has a result.
func TestIncompleteReviews(t *testing.T) {
	const may = "authorizer.group('').resource('configmaps').namespace('shop').name('limits').check('update')"
	const variable = "  variables: [{name: check, expression: \"" + may + "\"}]\n  validations: [{expression: %q}]\n"
	dev, ops := came(t, "ann", "dev"), came(t, "bob", "ops")
	for _, c := range []struct {
		reason, expression, whole, failed string
		user                              func(*policy.Subject)
	}{
		{"not allowed", may + ".allowed()", "fail", "indeterminate", ops},
		{"not allowed, and must not be", "!" + may + ".allowed()", "pass", "indeterminate", ops},
		{"allowed", may + ".allowed()", "pass", "pass", dev},
		{"allowed, and must not be", "!" + may + ".allowed()", "fail", "fail", dev},
		{"an alternative decides", may + ".allowed() || object.metadata.name == 'web'", "pass", "pass", ops},
		{"another condition decides", "!" + may + ".allowed() && object.metadata.name == 'other'", "fail", "fail", ops},
		{"the decision that is computed", "[" + may + "].all(d, !d.allowed())", "pass", "indeterminate", ops},
		{"of a type that is not known", "!dyn(" + may + ").allowed()", "pass", "indeterminate", ops},
		{"the error", may + ".errored()", "fail", "pass", ops},
		{"no error", "!" + may + ".errored()", "pass", "fail", ops},
		{"the text of the error", may + ".error() == 'webhook down'", "fail", "pass", ops},
		{"the reason", may + ".reason() == 'by the test'", "pass", "pass", ops},
		{"an error that is handled", may + ".errored() || " + may + ".allowed()", "fail", "pass", ops},
	} {
		for failed, want := range map[string]string{"": c.whole, "webhook down": c.failed} {
			for form, text := range map[string]string{
				"expression": asks(c.expression),
				"variable":   about("pods", fmt.Sprintf(variable, strings.ReplaceAll(c.expression, may, "variables.check"))),
			} {
				var asked []string
				p := compile(t, head+text, func(o *kyvernocel.Options) { o.Outside = reviews{asked: &asked, error: failed}.outside() })
				what, why := verdict(validate(t, subject(t, pod(onePod), c.user), []*policy.Policy{p}))
				if what != want || len(asked) != 1 || what == "indeterminate" && !strings.Contains(why, failed) {
					t.Errorf("%s, as %s, error %q: %s %s, want %s; asked %q", c.reason, form, failed, what, why, want, asked)
				}
			}
		}
	}
}

// TestWholeUser: of a user without uid and extra everything is known; of one with a name and groups alone
// it is not.
func TestWholeUser(t *testing.T) {
	const may = "authorizer.group('').resource('configmaps').namespace('shop').name('limits').check('update').allowed()"
	for _, c := range []struct {
		reason, expression, want string
		user                     policy.User
	}{
		{"a whole user who may", may, "pass", policy.User{Name: "ann", Groups: []string{"dev"}, Whole: true}},
		{"a whole user who may not", may, "fail", policy.User{Name: "bob", Groups: []string{"ops"}, Whole: true}},
		{"a user who may have a uid", may, "indeterminate", policy.User{Name: "ann", Groups: []string{"dev"}}},
		{"a whole user without groups", may, "indeterminate", policy.User{Name: "ann", Whole: true}},
		{"no extra", "!has(request.userInfo.extra)", "pass", policy.User{Name: "ann", Groups: []string{"dev"}, Whole: true}},
		{"an extra that is not known", "!has(request.userInfo.extra)", "indeterminate", policy.User{Name: "ann", Groups: []string{"dev"}}},
	} {
		var asked []string
		p := compile(t, head+asks(c.expression), func(o *kyvernocel.Options) { o.Outside = reviews{asked: &asked}.outside() })
		s := subject(t, pod(onePod), func(s *policy.Subject) { s.User = c.user })
		if what, why := verdict(validate(t, s, []*policy.Policy{p})); what != c.want {
			t.Errorf("%s: %s %s, want %s", c.reason, what, why, c.want)
		}
	}
}
