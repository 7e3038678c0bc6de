package set_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// documents is a rule about documents that are no Kubernetes object.
type documents struct{ ruling }

func (documents) OnlyDocuments() bool { return true }

// TestSilentRules: a rule that does not apply to an object is not reported, and one about
// documents is not evaluated for objects.
func TestSilentRules(t *testing.T) {
	set := setOf(t, &policy.Policy{
		Kind: "ClusterPolicy", Name: "p",
		ObjectRules: policy.ObjectRules{Mutations: []policy.Mutation{ruling{name: "mute"}, ruling{name: "said", says: policy.Validated{Result: policy.Pass}}}, Validations: []policy.Validation{ruling{name: "object", says: policy.Validated{Result: policy.Pass}}, documents{ruling{name: "document", says: policy.Validated{Result: policy.Pass}}}}},
	})
	if _, results := set.Mutate(t.Context(), configMap("shop", nil), func(*policy.Subject) policy.Finder { return none }); len(results) != 1 || results[0].Rule != "said" {
		t.Errorf("got %+v, want the result of the second rule", results)
	}
	for document, want := range map[bool]string{false: "object", true: "document"} {
		subject := configMap("shop", nil)
		subject.Document = document
		results := set.Validate(t.Context(), subject, none)
		if len(results) != 1 || results[0].Rule != want || len(results[0].Ruling.Reasons) != 0 {
			t.Errorf("a document: %t: got %+v, want %s, which needs no reason", document, results, want)
		}
	}
}

// TestMayOfEveryKind: a rule that names no kind may match each.
func TestMayOfEveryKind(t *testing.T) {
	for _, c := range []struct {
		kinds []string
		want  bool
	}{{nil, true}, {[]string{"ConfigMap"}, true}, {[]string{"Secret"}, false}} {
		set := setOf(t, &policy.Policy{
			Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", kinds: c.kinds}}, Mutations: []policy.Mutation{ruling{name: "b", kinds: c.kinds}}},
		})
		subject := configMap("shop", nil)
		if set.MayValidate(subject) != c.want || set.MayMutate(subject) != c.want {
			t.Errorf("rules of kinds %q may match a ConfigMap: %t", c.kinds, !c.want)
		}
	}
}

// TestReasonsAreKept: a failure keeps its own reasons, and one without reasons gets one.
func TestReasonsAreKept(t *testing.T) {
	for _, c := range []struct {
		says policy.Validated
		want policy.Code
	}{
		{violated("no"), policy.Violated},
		{policy.Validated{Result: policy.Fail, Action: policy.Enforce}, policy.Internal},
	} {
		set := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: c.says}}}})
		results := set.Validate(t.Context(), configMap("shop", nil), none)
		if len(results) != 1 || len(results[0].Ruling.Reasons) != 1 || results[0].Ruling.Reasons[0].Code != c.want {
			t.Errorf("got %+v, want %s", results, c.want)
		}
	}
}

// leaving is a rule that leaves images alone by itself.
type leaving struct{ rule }

func (l leaving) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	plan, err := l.rule.Plan(ctx, s, images)
	for i := range plan.Checks {
		plan.Checks[i].Skip = "of its own"
	}
	return plan, err
}

// TestExceptedAndLeft: an image that the policy skips itself is not reported as excepted.
func TestExceptedAndLeft(t *testing.T) {
	for _, c := range []struct {
		rule policy.Rule
		want bool
	}{
		{rule{name: "signed", patterns: []string{"*"}}, true},
		{leaving{rule{name: "signed", patterns: []string{"*"}}}, false},
	} {
		base := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{c.rule}})
		set, err := base.With(exception("x", nil))
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), &policy.Subject{Kind: "Pod", Time: now}, finder(pictured("/a", "registry.test/a:v1")))
		if len(plan.Checks) != 1 || (plan.Checks[0].Exception != nil) != c.want || plan.Checks[0].Skip == "" {
			t.Errorf("got %+v, want it to be the exception's: %t", plan.Checks, c.want)
		}
	}
}

// TestExceptionOfChangedImages: a rule that cannot be evaluated is left alone where an exception
// covers what changed; what did not change needs none.
func TestExceptionOfChangedImages(t *testing.T) {
	base := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{rule{name: "signed", patterns: []string{"*"}, err: errors.New("no answer")}}})
	unchanged := pictured("/b", "registry.test/b:v1")
	unchanged.Unchanged = true
	for _, c := range []struct {
		reason string
		images []string // of the exception
		object []policy.Image
		open   bool
	}{
		{"it covers what changed", []string{"registry.test/a:*"}, []policy.Image{pictured("/a", "registry.test/a:v1"), unchanged}, false},
		{"it covers what did not", []string{"registry.test/b:*"}, []policy.Image{pictured("/a", "registry.test/a:v1"), unchanged}, true},
		{"it lists images, and the object has none", []string{"registry.test/a:*"}, nil, true},
		{"it is for all, and the object has none", nil, nil, false},
	} {
		set, err := base.With(exception("x", func(e *policy.Exception) { e.Images = c.images }))
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), &policy.Subject{Kind: "Pod", Time: now}, finder(c.object...))
		if len(plan.Results) != 1 || (plan.Results[0].Err != nil) != c.open || (plan.Results[0].Exception == nil) != c.open {
			t.Errorf("%s: %+v", c.reason, plan.Results)
		}
	}
}
