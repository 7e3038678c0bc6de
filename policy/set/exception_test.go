package set_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/set"
)

// rule asks for one check of each image that its patterns concern.
type rule struct {
	name     string
	patterns []string
	targets  []policy.Target
	err      error
	asked    *int
}

func (r rule) Name() string                                  { return r.name }
func (r rule) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (r rule) Targets() []policy.Target                      { return r.targets }
func (r rule) ImagePatterns() ([]string, bool)               { return r.patterns, true }

func (r rule) Plan(_ context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	if r.asked != nil {
		*r.asked++
	}
	if len(r.targets) > 0 && r.targets[0].Kind != s.Kind {
		return policy.RulePlan{Skip: "another kind"}, nil
	}
	var plan policy.RulePlan
	for _, i := range images {
		if reference.Concerns(r.patterns, i.Ref) {
			plan.Checks = append(plan.Checks, policy.Check{Entry: r.name, Image: i})
		}
	}
	return plan, r.err
}

type scope struct {
	covers bool
	err    error
}

func (s scope) Covers(context.Context, *policy.Subject) (bool, error) { return s.covers, s.err }

func pictured(pointer, ref string) policy.Image {
	return policy.Image{Container: pointer, Pointer: pointer, Ref: image.MustParse(ref)}
}

func finder(images ...policy.Image) policy.Finder {
	return func([]policy.Extractor) ([]policy.Image, error) { return images, nil }
}

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func exception(name string, change func(*policy.Exception)) *policy.Exception {
	e := &policy.Exception{Namespace: "exceptions", Name: name, Hash: name, Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{"signed"}}}}
	if change != nil {
		change(e)
	}
	return e
}

func TestExceptions(t *testing.T) {
	images := func(patterns ...string) func(*policy.Exception) {
		return func(e *policy.Exception) { e.Images = patterns }
	}
	for _, c := range []struct {
		reason     string
		exceptions []*policy.Exception
		a, b       string // the exceptions recorded for the images a and b
	}{
		{"none", nil, "", ""},
		{"of the rule", []*policy.Exception{exception("x", nil)}, "x", "x"},
		{"of another rule", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules[0].Rules = []string{"other"} })}, "", ""},
		{"of the same rule in another policy", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules[0].Policy = "q" })}, "", ""},
		{"of a policy of that name in a namespace", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules[0].Policy = "team/p" })}, "", ""},
		{"of a policy of that name and another kind", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules[0].Kind = "ImageValidatingPolicy" })}, "", ""},
		{"of the policy by its kind", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules[0].Kind = "ClusterPolicy" })}, "x", "x"},
		{"by a wildcard", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules[0].Rules = []string{"sig*"} })}, "x", "x"},
		{"a is excepted, and b is not", []*policy.Exception{exception("x", images("registry.test/a:*"))}, "x", ""},
		{"a broader one does not widen a narrower one", []*policy.Exception{exception("all", nil), exception("x", images("registry.test/a:*"))}, "x", ""},
		{"a narrower one about none of the images does not matter", []*policy.Exception{exception("all", nil), exception("x", images("registry.test/c:*"))}, "all", "all"},
		{"two that list images add up", []*policy.Exception{exception("y", images("registry.test/b:v1")), exception("x", images("registry.test/a:v1"))}, "x", "y"},
		{"literal before wildcard", []*policy.Exception{exception("w", images("registry.test/*")), exception("z", images("registry.test/a:v1"))}, "z", "w"},
		{"fewer rules before more", []*policy.Exception{
			exception("many", func(e *policy.Exception) { e.Rules[0].Rules = []string{"signed", "other"} }), exception("one", nil),
		}, "one", "one"},
		{"rules by their names before rules by a pattern", []*policy.Exception{
			exception("a", func(e *policy.Exception) { e.Rules[0].Rules = []string{"sig*"} }), exception("b", nil),
		}, "b", "b"},
		{"then by name", []*policy.Exception{exception("y", nil), exception("x", nil)}, "x", "x"},
		{"in force", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Expires = now.Add(time.Second) })}, "x", "x"},
		{"expired at that very moment", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Expires = now })}, "", ""},
		{"an expired narrow one confines nothing", []*policy.Exception{
			exception("all", nil), exception("x", func(e *policy.Exception) { e.Expires = now; e.Images = []string{"registry.test/a:*"} }),
		}, "all", "all"},
		{"of the object", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Scope = scope{covers: true} })}, "x", "x"},
		{"of another object", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Scope = scope{} })}, "", ""},
		{"that cannot be evaluated", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Scope = scope{covers: true, err: errors.New("no")} })}, "", ""},
		{"of a control of the Pod Security Standards", []*policy.Exception{exception("x", func(e *policy.Exception) { e.PodSecurity = []policy.PodSecurityExemption{{Control: "Capabilities"}} })}, "", ""},
		{"of a control, beside one of an image", []*policy.Exception{
			exception("x", func(e *policy.Exception) { e.PodSecurity = []policy.PodSecurityExemption{{Control: "Capabilities"}} }), exception("y", images("registry.test/a:*")),
		}, "y", ""},
		{"of an image, which expressions may allow as well", []*policy.Exception{exception("x", func(e *policy.Exception) {
			e.Images = []string{"registry.test/a:*"}
			e.PodSecurity = []policy.PodSecurityExemption{{Images: e.Images}}
		})}, "x", ""},
	} {
		base, err := set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{rule{name: "signed", patterns: []string{"*"}}}})
		if err != nil {
			t.Fatal(err)
		}
		set, err := base.With(c.exceptions...)
		if err != nil {
			t.Fatal(err)
		}
		if (set.Hash() == base.Hash()) != (len(c.exceptions) == 0) {
			t.Errorf("%s: the hash does not cover the exceptions", c.reason)
		}
		plan := set.Plan(t.Context(), &policy.Subject{Kind: "Pod", Time: now}, finder(pictured("/a", "registry.test/a:v1"), pictured("/b", "registry.test/b:v1")))
		if len(plan.Checks) != 2 {
			t.Fatalf("%s: %d checks", c.reason, len(plan.Checks))
		}
		for i, want := range []string{c.a, c.b} {
			got, check := "", &plan.Checks[i]
			if check.Exception != nil {
				got = check.Exception.Name
				d := decide.Check(check, nil)
				if d.Result != policy.Skipped || d.Reasons[0].Code != policy.Excepted || !strings.Contains(d.Reasons[0].Message, "exceptions/"+got) || check.NeedsDigest() {
					t.Errorf("%s: decided %v", c.reason, d)
				}
			}
			if got != want {
				t.Errorf("%s: image %d is left alone by %q, want %q", c.reason, i, got, want)
			}
		}
	}
}

func TestExceptionsRefused(t *testing.T) {
	set, err := set.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason     string
		exceptions []*policy.Exception
	}{
		{"without rules", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules = nil })}},
		{"of rules without a policy", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules[0].Policy = "" })}},
		{"of a policy without rules", []*policy.Exception{exception("x", func(e *policy.Exception) { e.Rules[0].Rules = nil })}},
		{"twice", []*policy.Exception{exception("x", nil), exception("x", nil)}},
	} {
		if _, err := set.With(c.exceptions...); err == nil {
			t.Errorf("accepted an exception %s", c.reason)
		}
	}
}

func TestExceptionOfRuleThatCannotBeAsked(t *testing.T) {
	base, err := set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{rule{name: "signed", patterns: []string{"*"}, err: errors.New("no answer")}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason   string
		images   []string
		controls []policy.PodSecurityExemption
		open     bool
	}{
		{"it covers every image", nil, nil, false},
		{"it covers each image", []string{"registry.test/*"}, nil, false},
		{"an image is left", []string{"registry.test/a:*"}, nil, true},
		{"it covers a control of the Pod Security Standards", nil, []policy.PodSecurityExemption{{Control: "Capabilities"}}, true},
	} {
		set, err := base.With(exception("x", func(e *policy.Exception) { e.Images, e.PodSecurity = c.images, c.controls }))
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), &policy.Subject{Kind: "Pod", Time: now}, finder(pictured("/a", "registry.test/a:v1"), pictured("/b", "registry.test/b:v1")))
		if len(plan.Results) != 1 || (plan.Results[0].Err != nil) != c.open || (plan.Results[0].Exception == nil) != c.open {
			t.Errorf("%s: %+v", c.reason, plan.Results)
		}
	}
}

func TestUnchanged(t *testing.T) {
	asked := 0
	set, err := set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{rule{name: "signed", patterns: []string{"*"}, asked: &asked}}})
	if err != nil {
		t.Fatal(err)
	}
	old, fresh := pictured("/a", "registry.test/a:v1"), pictured("/b", "registry.test/b:v1")
	old.Unchanged = true
	plan := set.Plan(t.Context(), &policy.Subject{Kind: "Pod"}, finder(old, fresh))
	if len(plan.Checks) != 1 || plan.Checks[0].Image.Pointer != "/b" || asked != 1 {
		t.Errorf("one changed: %+v", plan)
	}
	plan = set.Plan(t.Context(), &policy.Subject{Kind: "Pod"}, finder(old))
	if len(plan.Checks) != 0 || len(plan.Results) != 1 || plan.Results[0].Err != nil || asked != 1 {
		t.Errorf("a rule was asked about an object that did not change: %+v", plan)
	}
}
