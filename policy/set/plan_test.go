package set_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// fixed is a rule that returns a fixed plan.
type fixed struct {
	extractors []policy.Extractor
	// ofObject and documents are whether it applies to objects and documents.
	ofObject, documents bool
	plans               func(images []policy.Image) (policy.RulePlan, error)
}

func (fixed) Name() string                                    { return "told" }
func (r fixed) Extractors(*policy.Subject) []policy.Extractor { return r.extractors }
func (r fixed) AppliesToObject() bool                         { return r.ofObject }
func (r fixed) OnlyDocuments() bool                           { return r.documents }

func (r fixed) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	return r.plans(images)
}

// always plans the same; of its checks there is one for each image.
func always(plan policy.RulePlan, checks bool) func([]policy.Image) (policy.RulePlan, error) {
	return func(images []policy.Image) (policy.RulePlan, error) {
		made := plan
		for _, i := range images {
			if checks {
				made.Checks = append(made.Checks, policy.Check{Image: i})
			}
		}
		return made, nil
	}
}

// became returns the outcome of a rule as text, for comparing.
func became(plan set.Plan) string {
	var words []string
	for _, check := range plan.Checks {
		word := "check " + check.Image.Pointer
		if check.Judge != nil {
			word += " judged"
		}
		if check.Exception != nil {
			word += " excepted"
		}
		words = append(words, word)
	}
	for _, r := range plan.Results {
		switch {
		case r.Err != nil:
			words = append(words, "error")
		case r.Exception != nil:
			words = append(words, "excepted")
		case r.Skip != "":
			words = append(words, r.Skip)
		case r.Judge != nil:
			words = append(words, "judge "+string(r.Action))
		default:
			words = append(words, "nothing")
		}
	}
	return strings.Join(words, ", ")
}

// TestRulePlan: a rule plans checks, or returns the reason for none; a judge that
// applies to objects is asked without an image, too.
func TestRulePlan(t *testing.T) {
	fresh, old := pictured("/a", "registry.test/a:v1"), pictured("/b", "registry.test/b:v1")
	old.Unchanged = true
	judged := policy.RulePlan{Judge: silentJudge{}, Action: policy.Enforce}
	judgeSkips := policy.RulePlan{Skip: "of its own", Judge: silentJudge{}}
	const (
		ranBefore, namesNone = "the images that it names ran before this update", "it names none of the images"
		aboutObjects         = "it is about Kubernetes objects"
	)
	for _, c := range []struct {
		reason   string
		rule     fixed
		images   []policy.Image
		find     error
		excepted bool
		document bool
		audited  bool
		want     string
	}{
		{reason: "a check for each image", rule: fixed{plans: always(policy.RulePlan{}, true)}, images: []policy.Image{fresh, fresh}, want: "check /a, check /a"},
		{reason: "none for one that ran before", rule: fixed{plans: always(policy.RulePlan{}, true)}, images: []policy.Image{fresh, old}, want: "check /a"},
		{reason: "all ran before", rule: fixed{plans: always(policy.RulePlan{}, true)}, images: []policy.Image{old}, want: ranBefore},
		{reason: "those that it names ran before", rule: fixed{plans: func([]policy.Image) (policy.RulePlan, error) {
			return policy.RulePlan{Checks: []policy.Check{{Image: old}}}, nil
		}}, images: []policy.Image{fresh, old}, want: ranBefore},
		{reason: "it names none", rule: fixed{plans: always(policy.RulePlan{}, false)}, images: []policy.Image{fresh}, want: namesNone},
		{reason: "there is none", rule: fixed{plans: always(policy.RulePlan{}, true)}, want: namesNone},
		{reason: "it does not apply", rule: fixed{plans: always(policy.RulePlan{Skip: "of its own"}, false)}, images: []policy.Image{fresh}, want: "of its own"},
		{reason: "and its checks do not either", rule: fixed{plans: always(policy.RulePlan{Skip: "of its own"}, true)}, images: []policy.Image{fresh}, want: "of its own"},
		{reason: "nor its judge", rule: fixed{ofObject: true, plans: always(judgeSkips, true)}, images: []policy.Image{fresh}, want: "of its own"},
		{reason: "it cannot be evaluated", rule: fixed{plans: func([]policy.Image) (policy.RulePlan, error) { return policy.RulePlan{}, errors.New("no answer") }}, images: []policy.Image{fresh}, want: "error"},
		{reason: "nor can its judge be, then", rule: fixed{ofObject: true, plans: func([]policy.Image) (policy.RulePlan, error) { return judged, errors.New("no answer") }}, images: []policy.Image{fresh}, want: "error"},
		{reason: "a check that could never be met", rule: fixed{plans: func(images []policy.Image) (policy.RulePlan, error) {
			return policy.RulePlan{Checks: []policy.Check{{Image: images[0], Claims: policy.Claims{Requirements: []policy.Requirement{requirement(2, "a")}}}}}, nil
		}}, images: []policy.Image{fresh}, want: "error"},
		{reason: "one that can be met", rule: fixed{plans: func(images []policy.Image) (policy.RulePlan, error) {
			return policy.RulePlan{Checks: []policy.Check{{Image: images[0], Claims: policy.Claims{Requirements: []policy.Requirement{requirement(1, "a")}}}}}, nil
		}}, images: []policy.Image{fresh}, want: "check /a"},
		{reason: "images that cannot be read", rule: fixed{plans: always(policy.RulePlan{}, true)}, find: errors.New("unreadable"), want: "error"},
		{reason: "nor those beside one that ran before", rule: fixed{plans: always(policy.RulePlan{}, true)}, images: []policy.Image{old}, find: errors.New("unreadable"), want: "error"},
		{reason: "which matters to no rule that does not apply", rule: fixed{plans: always(policy.RulePlan{Skip: "of its own"}, false)}, find: errors.New("unreadable"), want: "of its own"},

		{reason: "a judge of images and their object", rule: fixed{ofObject: true, plans: always(judged, true)}, images: []policy.Image{fresh}, want: "check /a judged, judge Enforce"},
		{reason: "under an audit", rule: fixed{ofObject: true, plans: always(judged, true)}, images: []policy.Image{fresh}, audited: true, want: "check /a judged, judge Audit"},
		{reason: "a judge of an object with images that ran before", rule: fixed{ofObject: true, plans: always(judged, true)}, images: []policy.Image{old}, want: "judge Enforce"},
		{reason: "a judge of images alone that ran before", rule: fixed{plans: always(judged, true)}, images: []policy.Image{old}, want: ranBefore},
		{reason: "an object with images that ran before, without a judge", rule: fixed{ofObject: true, plans: always(policy.RulePlan{}, true)}, images: []policy.Image{old}, want: ranBefore},
		{reason: "a judge of an object without images", rule: fixed{ofObject: true, plans: always(judged, true)}, want: "judge Enforce"},
		{reason: "a judge of images alone, and there is none", rule: fixed{plans: always(judged, true)}, want: namesNone},
		{reason: "an object without images and without a judge", rule: fixed{ofObject: true, plans: always(policy.RulePlan{}, true)}, want: namesNone},

		{reason: "an exception of the checks", rule: fixed{plans: always(policy.RulePlan{}, true)}, images: []policy.Image{fresh}, excepted: true, want: "check /a excepted"},
		{reason: "and of the judge", rule: fixed{ofObject: true, plans: always(judged, true)}, images: []policy.Image{fresh}, excepted: true, want: "check /a judged excepted, excepted"},
		{reason: "and of a judge, for an object without images", rule: fixed{ofObject: true, plans: always(judged, true)}, excepted: true, want: "excepted"},
		{reason: "and of what cannot be read", rule: fixed{plans: always(policy.RulePlan{}, true)}, find: errors.New("unreadable"), excepted: true, want: "excepted"},

		{reason: "a document, and a rule about objects", rule: fixed{plans: always(policy.RulePlan{}, true)}, images: []policy.Image{fresh}, document: true, want: aboutObjects},
		{reason: "a document, and a rule about documents", rule: fixed{documents: true, plans: always(policy.RulePlan{}, true)}, images: []policy.Image{fresh}, document: true, want: "check /a"},
	} {
		p := &policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{c.rule}}
		if c.audited {
			p = policy.Audited(p, "the setting")
		}
		planned := setOf(t, p)
		if c.excepted {
			var err error
			planned, err = planned.With(exception("x", func(e *policy.Exception) { e.Rules[0].Rules = []string{"told"} }))
			if err != nil {
				t.Fatal(err)
			}
		}
		plan := planned.Plan(t.Context(), &policy.Subject{Kind: "Pod", Shape: policy.Shape{Document: c.document}, Time: now}, func([]policy.Extractor) ([]policy.Image, error) { return c.images, c.find })
		if got := became(plan); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestImagesAreLookedForOnce: all rules without extractors have the images of the standard
// places, which are looked for once, and one with extractors has those that they find.
func TestImagesAreLookedForOnce(t *testing.T) {
	own := []policy.Extractor{{Name: "own", Path: "/image"}}
	var looked []int
	find := func(extractors []policy.Extractor) ([]policy.Image, error) {
		looked = append(looked, len(extractors))
		if len(extractors) > 0 {
			return []policy.Image{pictured("/own", "registry.test/a:v1")}, nil
		}
		return []policy.Image{pictured("/standard", "registry.test/a:v1")}, nil
	}
	plain := fixed{plans: always(policy.RulePlan{}, true)}
	extracting := plain
	extracting.extractors = own
	planned := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{plain, extracting, plain}})
	if got := became(planned.Plan(t.Context(), &policy.Subject{Kind: "Pod"}, find)); got != "check /standard, check /own, check /standard" {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(looked, []int{0, 1}) {
		t.Errorf("looked for by %v extractors", looked)
	}
}

// TestNamesThatARuleSees: a rule is asked by the names that stand in the object, and then by
// those of their sources, each time with one name for each place.
func TestNamesThatARuleSees(t *testing.T) {
	const standing, other = "mirror.example/hub/app:v1", "mirror.example/hub/b:v1"
	at := func(pointer, name string) policy.Image { return pictured(pointer, name) }
	source := func(pointer, name, of string) policy.Image {
		i := pictured(pointer, name)
		i.Copy = image.MustParse(of)
		return i
	}
	for _, c := range []struct {
		reason string
		images []policy.Image
		want   []string
	}{
		{"no copy", []policy.Image{at("/a", standing)}, []string{"/a=" + standing}},
		{"a copy", []policy.Image{at("/a", standing), source("/a", "docker.io/org/app:v1", standing)}, []string{"/a=" + standing, "/a=docker.io/org/app:v1"}},
		{"a copy behind its source", []policy.Image{source("/a", "docker.io/org/app:v1", standing), at("/a", standing)}, []string{"/a=" + standing, "/a=docker.io/org/app:v1"}},
		{
			"a copy of two sources",
			[]policy.Image{at("/a", standing), source("/a", "docker.io/org/app:v1", standing), source("/a", "quay.example/app:v1", standing)},
			[]string{"/a=" + standing, "/a=docker.io/org/app:v1", "/a=quay.example/app:v1"},
		},
		{
			"one copy at two places",
			[]policy.Image{at("/a", standing), at("/b", standing), source("/a", "docker.io/org/app:v1", standing), source("/b", "docker.io/org/app:v1", standing)},
			[]string{"/a=" + standing + " /b=" + standing, "/a=docker.io/org/app:v1 /b=docker.io/org/app:v1"},
		},
		{
			"two images at one place, of which one is a copy",
			[]policy.Image{at("/a", standing), at("/a", other), source("/a", "docker.io/org/b:v1", other)},
			[]string{"/a=" + standing + " /a=" + other, "/a=" + standing + " /a=docker.io/org/b:v1"},
		},
		{
			"two copies, one of two sources",
			[]policy.Image{at("/a", standing), at("/b", other), source("/b", "docker.io/org/b:v1", other), source("/a", "docker.io/org/app:v1", standing), source("/a", "quay.example/app:v1", standing)},
			[]string{"/a=" + standing + " /b=" + other, "/a=docker.io/org/app:v1 /b=docker.io/org/b:v1", "/a=quay.example/app:v1 /b=" + other},
		},
	} {
		var got []string
		seeing := fixed{plans: func(images []policy.Image) (policy.RulePlan, error) {
			var names []string
			for _, i := range images {
				names = append(names, i.Pointer+"="+i.Ref.String())
			}
			got = append(got, strings.Join(names, " "))
			return policy.RulePlan{}, nil
		}}
		setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{seeing}}).Plan(t.Context(), &policy.Subject{Kind: "Pod"}, finder(c.images...))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: saw %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestRuleOfACopy: a rule's results under each name of an image are reported together,
// and where it applies under none, it does not apply.
func TestRuleOfACopy(t *testing.T) {
	standing, source := pictured("/a", "mirror.example/hub/app:v1"), pictured("/a", "docker.io/org/app:v1")
	source.Copy = standing.Ref
	judged := policy.RulePlan{Judge: silentJudge{}, Action: policy.Enforce}
	judgeSkips := policy.RulePlan{Skip: "of its own", Judge: silentJudge{}}
	under := func(mirror, hub policy.RulePlan, broken string) fixed {
		return fixed{ofObject: true, plans: func(images []policy.Image) (policy.RulePlan, error) {
			if broken != "" && images[0].Ref.Registry() == broken {
				return policy.RulePlan{}, errors.New("no answer")
			}
			if images[0].Ref.Registry() == "docker.io" {
				return always(hub, hub.Skip == "")(images)
			}
			return always(mirror, mirror.Skip == "")(images)
		}}
	}
	for _, c := range []struct {
		reason string
		rule   fixed
		want   string
	}{
		{"it applies under both", under(policy.RulePlan{}, policy.RulePlan{}, ""), "check /a, check /a"},
		{"under the copy's", under(policy.RulePlan{}, policy.RulePlan{Skip: "of its own"}, ""), "check /a"},
		{"under the source's", under(policy.RulePlan{Skip: "of its own"}, policy.RulePlan{}, ""), "check /a"},
		{"under none", under(policy.RulePlan{Skip: "of its own"}, policy.RulePlan{Skip: "of its other"}, ""), "of its own"},
		{"it judges under both", under(judged, judged, ""), "check /a judged, check /a judged, judge Enforce, judge Enforce"},
		{"under the copy's alone", under(judged, judgeSkips, ""), "check /a judged, judge Enforce"},
		{"under the source's alone", under(judgeSkips, judged, ""), "check /a judged, judge Enforce"},
		{"it cannot be evaluated under the copy's", under(policy.RulePlan{}, policy.RulePlan{}, "mirror.example"), "error"},
		{"it cannot be evaluated under the source's", under(policy.RulePlan{}, policy.RulePlan{}, "docker.io"), "error"},
	} {
		planned := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{c.rule}})
		if got := became(planned.Plan(t.Context(), &policy.Subject{Kind: "Pod"}, finder(standing, source))); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestResultOfObject: results about the object itself, and not about images alone.
func TestResultOfObject(t *testing.T) {
	for _, c := range []struct {
		reason string
		result policy.RuleResult
		want   bool
	}{
		{"a rule about images", policy.RuleResult{Kind: policy.ImageRule}, false},
		{"one with a judge", policy.RuleResult{Kind: policy.ImageRule, Judge: silentJudge{}}, true},
		{"a rule about objects", policy.RuleResult{Kind: policy.ValidateRule}, true},
		{"one with both", policy.RuleResult{Kind: policy.ValidateRule, Judge: silentJudge{}}, true},
	} {
		if got := c.result.OfObject(); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}
