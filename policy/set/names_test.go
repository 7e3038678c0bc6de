package set_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// where asks about images of a registry, and skips where the first image
// is of another, as a precondition does.
type where struct{ registry string }

func (where) Name() string                                  { return "where" }
func (where) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (w where) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	if images[0].Ref.Registry() != w.registry {
		return policy.RulePlan{Skip: "another registry"}, nil
	}
	var plan policy.RulePlan
	for _, i := range images {
		if i.Ref.Registry() == w.registry {
			plan.Checks = append(plan.Checks, policy.Check{Image: i})
		}
	}
	return plan, nil
}

// TestACopyIsPlannedUnderEachName never gives a rule two names of one image, so
// that its result for one name cannot hide the other.
func TestACopyIsPlannedUnderEachName(t *testing.T) {
	copied := image.MustParse("mirror.example/hub/app:v1")
	images := []policy.Image{{Pointer: "/a", Ref: copied}, {Pointer: "/b", Ref: image.MustParse("other.example/b")}}
	for _, source := range []string{"docker.io/org/app:v1", "quay.example/app:v1"} {
		images = append(images, policy.Image{Pointer: "/a", Ref: image.MustParse(source), Copy: copied})
	}
	for registry, want := range map[string][]string{
		"mirror.example": {"mirror.example/hub/app:v1"},
		"docker.io":      {"docker.io/org/app:v1"},
		"quay.example":   {"quay.example/app:v1"},
		"other.example":  nil, // it is never first, under no name
	} {
		set, err := set.New(&policy.Policy{Kind: "Test", Name: "a", Rules: []policy.Rule{where{registry}}})
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), &policy.Subject{}, func([]policy.Extractor) ([]policy.Image, error) { return images, nil })
		var got []string
		for _, check := range plan.Checks {
			got = append(got, check.Image.Ref.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: asked about %v, want %v", registry, got, want)
		}
	}
}

// TestABareSubjectMayBeInAnyNamespace does not leave out a policy because the
// namespace is unknown.
func TestABareSubjectMayBeInAnyNamespace(t *testing.T) {
	p := &policy.Policy{Kind: "Policy", Namespace: "team", Name: "a", Rules: []policy.Rule{where{"docker.io"}}}
	set, err := set.New(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason  string
		subject policy.Subject
		want    int
	}{
		{"its namespace is not known", policy.Subject{Shape: policy.Shape{Bare: true}}, 1},
		{"it is in another", policy.Subject{Shape: policy.Shape{Bare: true}, Namespace: "other"}, 0},
		{"it is in that one", policy.Subject{Shape: policy.Shape{Bare: true}, Namespace: "team"}, 1},
		{"it is in none", policy.Subject{}, 0},
	} {
		plan := set.Plan(t.Context(), &c.subject, func([]policy.Extractor) ([]policy.Image, error) {
			return []policy.Image{{Pointer: "/a", Ref: image.MustParse("docker.io/org/app:v1")}}, nil
		})
		if len(plan.Checks) != c.want {
			t.Errorf("%s: %d checks, want %d", c.reason, len(plan.Checks), c.want)
		}
	}
}

// TestAnExceptionCoversTheListedNames is not extended from a copy to its
// source.
func TestAnExceptionCoversTheListedNames(t *testing.T) {
	copied := image.MustParse("mirror.example/hub/app:v1")
	images := []policy.Image{{Pointer: "/a", Ref: copied}}
	for _, source := range []string{"docker.io/org/app:v1", "quay.example/app:v1"} {
		images = append(images, policy.Image{Pointer: "/a", Ref: image.MustParse(source), Copy: copied})
	}
	base, err := set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{rule{name: "signed", patterns: []string{"*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		lists  []string
		asked  []string
	}{
		{"the copy", []string{"mirror.example/*"}, []string{"docker.io/org/app:v1", "quay.example/app:v1"}},
		{"a source: the redirected image stays excepted", []string{"docker.io/org/*"}, []string{"quay.example/app:v1"}},
		{"every name", []string{"mirror.example/*", "docker.io/*", "quay.example/*"}, nil},
		{"no name, and so all", nil, nil},
		{"another image", []string{"other.example/*"}, []string{"mirror.example/hub/app:v1", "docker.io/org/app:v1", "quay.example/app:v1"}},
	} {
		set, err := base.With(exception("x", func(e *policy.Exception) { e.Images = c.lists }))
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		for _, check := range set.Plan(t.Context(), &policy.Subject{Kind: "Pod", Time: now}, finder(images...)).Checks {
			if check.Skip == "" {
				asked = append(asked, check.Image.Ref.String())
			}
		}
		if !slices.Equal(asked, c.asked) {
			t.Errorf("%s: asked about %v, want %v", c.reason, asked, c.asked)
		}
	}
}

// reading asks about each image if the object's own text begins with a registry, as
// a precondition on request.object does.
type reading struct{ where }

func (r reading) Plan(_ context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	spec, _ := s.Object.Map()["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	first, _ := containers[0].(map[string]any)
	if text, _ := first["image"].(string); !strings.HasPrefix(text, r.registry) {
		return policy.RulePlan{Skip: "another registry"}, nil
	}
	return policy.RulePlan{Checks: []policy.Check{{Image: images[0]}}}, nil
}

// TestAnObjectReadsAsItsCopysSource does not let a precondition on the object's text
// hide a copy from the checks of its source.
func TestAnObjectReadsAsItsCopysSource(t *testing.T) {
	copied, source := image.MustParse("mirror.example/hub/app:v1"), image.MustParse("docker.io/org/app:v1")
	object := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "mirror.example/hub/app:v1"}}}}
	images := []policy.Image{
		{Pointer: "/spec/containers/0/image", Ref: copied},
		{Pointer: "/spec/containers/0/image", Ref: source, Copy: copied},
	}
	for registry, want := range map[string]int{"mirror.example": 1, "docker.io": 1, "quay.example": 0} {
		set, err := set.New(&policy.Policy{Kind: "Test", Name: "a", Rules: []policy.Rule{reading{where{registry}}}})
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), &policy.Subject{Object: policy.ContentOf(object)}, finder(images...))
		if len(plan.Checks) != want {
			t.Errorf("%s: %d checks, want %d", registry, len(plan.Checks), want)
		}
	}
	if text := fmt.Sprint(object); strings.Contains(text, "docker.io") {
		t.Errorf("the object was changed: %s", text)
	}
}

// objects notes which objects it is asked about.
type objects struct {
	where
	seen *[]bool
}

func (o objects) Plan(_ context.Context, s *policy.Subject, _ []policy.Image) (policy.RulePlan, error) {
	*o.seen = append(*o.seen, s.Object.IsZero())
	return policy.RulePlan{Skip: "seen"}, nil
}

// TestNoObjectIsNoneUnderAnyName: where there is no object, there is none under the name of a
// copy's source either.
func TestNoObjectIsNoneUnderAnyName(t *testing.T) {
	copied, source := image.MustParse("mirror.example/hub/app:v1"), image.MustParse("docker.io/org/app:v1")
	images := []policy.Image{{Pointer: "/a", Ref: copied}, {Pointer: "/a", Ref: source, Copy: copied}}
	for _, c := range []struct {
		reason string
		object policy.Content
		want   []bool // none is there
	}{
		{"an object", policy.ContentOf(map[string]any{"a": "mirror.example/hub/app:v1"}), []bool{false, false}},
		{"none", policy.Content{}, []bool{true, true}},
	} {
		var seen []bool
		set := setOf(t, &policy.Policy{Kind: "Test", Name: "a", Rules: []policy.Rule{objects{seen: &seen}}})
		set.Plan(t.Context(), &policy.Subject{Object: c.object, Shape: policy.Shape{Bare: c.object.IsZero()}}, finder(images...))
		if !slices.Equal(seen, c.want) {
			t.Errorf("%s: there is none: %v, want %v", c.reason, seen, c.want)
		}
	}
}
