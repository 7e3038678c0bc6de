package set_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// labelled is a rule about images of objects with the label team; the value "unknown" makes it
// fail. Plain means that it states to select by nothing but kinds.
type labelled struct{ plain, reads bool }

func (labelled) Name() string                                  { return "labelled" }
func (labelled) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (r labelled) MayRematch() bool                            { return !r.plain }
func (r labelled) ReadsUpdate(s *policy.Subject) bool {
	return r.reads && teamOf(s.Object) != teamOf(s.OldObject)
}

func (r labelled) Plan(_ context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	switch team := teamOf(s.Object); team {
	case "":
		return policy.RulePlan{Skip: "no team"}, nil
	case "unknown":
		return policy.RulePlan{}, errors.New("the team is unknown")
	}
	for _, i := range images {
		plan.Checks = append(plan.Checks, policy.Check{Entry: "e", Image: i})
	}
	return plan, nil
}

func teamOf(object policy.Content) string {
	metadata, _ := object.Map()["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	team, _ := labels["team"].(string)
	return team
}

// ofTeam is an exception's scope: objects of the team.
type ofTeam string

func (o ofTeam) Covers(_ context.Context, s *policy.Subject) (bool, error) {
	return teamOf(s.Object) == string(o), nil
}

func valid(made *set.Set, err error) func(*testing.T) *set.Set {
	return func(t *testing.T) *set.Set {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

// TestRenewedImages: an image that the object had before an update is evaluated all the same if
// the rule did not match it in the old object.
func TestRenewedImages(t *testing.T) {
	object := func(team string) policy.Content {
		labels := map[string]any{}
		if team != "" {
			labels["team"] = team
		}
		return policy.ContentOf(map[string]any{"metadata": map[string]any{"labels": labels, "resourceVersion": team}})
	}
	for _, c := range []struct {
		reason   string
		rule     labelled
		old, now string
		excepts  string
		want     string // checks, skipped, or failed and renewed
	}{
		{"the label is added", labelled{}, "", "a", "", "checks"},
		{"the label was there", labelled{}, "a", "a", "", "skipped"},
		{"another value that matches as well", labelled{}, "a", "b", "", "skipped"},
		{"another value, which decides", labelled{reads: true}, "a", "b", "", "checks"},
		{"the same value, and it decides", labelled{reads: true}, "a", "a", "", "skipped"},
		{"the label is removed", labelled{}, "a", "", "", "skipped"},
		{"an exception held before", labelled{}, "a", "b", "a", "checks"},
		{"an exception holds now", labelled{}, "b", "a", "a", "skipped"},
		{"an exception to a rule for all objects held before", labelled{plain: true}, "a", "b", "a", "checks"},
		{"the rule could not be evaluated before", labelled{}, "unknown", "a", "", "checks"},
		{"it cannot be evaluated now, and did not match before", labelled{}, "", "unknown", "", "failed renewed"},
		{"it cannot be evaluated now, and matched before", labelled{}, "a", "unknown", "", "skipped"},
		{"it can be evaluated at no time", labelled{}, "unknown", "unknown", "", "failed"},
	} {
		set := valid(set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{c.rule}}))(t)
		if c.excepts != "" {
			set = valid(set.With(&policy.Exception{Namespace: "n", Name: "e", Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{"*"}}}, Scope: ofTeam(c.excepts)}))(t)
		}
		subject := &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "n", Operation: "UPDATE", Object: object(c.now), OldObject: object(c.old)}
		stood := []policy.Image{{Pointer: "/spec/containers/0/image", Ref: image.MustParse("ghcr.io/org/app:1"), Unchanged: true}}
		plan := set.Plan(t.Context(), subject, func([]policy.Extractor) ([]policy.Image, error) { return stood, nil })
		got := "skipped"
		switch {
		case len(plan.Checks) == 1 && plan.Checks[0].Skip == "" && !plan.Checks[0].Image.Unchanged:
			got = "checks"
		case len(plan.Results) == 1 && plan.Results[0].Err != nil:
			got = "failed"
			if plan.Results[0].Renewed {
				got += " renewed"
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.reason, got, c.want, plan)
		}
		if !stood[0].Unchanged {
			t.Errorf("%s: the caller's image was changed", c.reason)
		}
	}
}
