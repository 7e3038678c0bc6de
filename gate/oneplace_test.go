package gate_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/requirements"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// judgingTwice is twice for a rule with a judge.
type judgingTwice struct{ judging }

func (judgingTwice) Extractors(s *policy.Subject) []policy.Extractor { return twice{}.Extractors(s) }

// ofRepository is a rule about the images of one repository.
type ofRepository struct {
	policy.Rule
	repository string
}

func (n ofRepository) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	return n.Rule.Plan(ctx, s, slices.DeleteFunc(slices.Clone(images), func(i policy.Image) bool {
		return !strings.HasSuffix(i.Ref.Repository().String(), n.repository)
	}))
}

// TestTwoImagesAtOnePlace: evidence about one of the images that rules make of a text neither dates another nor
// verifies it.
func TestTwoImagesAtOnePlace(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := func(name, tag string, ago time.Duration) gatetest.Image {
		built := h.Build(name, tag, name+tag)
		h.signedAgo(t, built, h.key, ago)
		return built
	}
	const old, young = 100 * time.Hour, time.Hour
	image("made", "old", old)
	image("made", "young", young)
	both := twice{extracting{loggedBy(1, h.key), "default"}}
	signed := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{both}}
	requiring := judging{check: policy.Check{Required: true}, action: policy.Enforce, judge: eachSigned(0)}
	verified := func(repository string) []*policy.Policy {
		return []*policy.Policy{
			{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{ofRepository{both, repository}}},
			{Kind: "Test", Name: "other", Hash: "2", Rules: []policy.Rule{ofRepository{judgingTwice{requiring}, "made"}}},
		}
	}
	aged := []*policy.Policy{signed, settings(t, requirements.Requirement{MinimumAge: 72 * time.Hour})}
	oldEnough, tooYoung := image("app", "old", old), image("app", "young", old)
	for _, c := range []struct {
		reason   string
		policies []*policy.Policy
		image    gatetest.Image
		want     gate.Result
	}{
		{"both are old enough", aged, oldEnough, gate.Allow},
		{"the second is too young", aged, tooYoung, gate.Deny},
		{"the required verification is of the image", verified("made"), oldEnough, gate.Allow},
		{"the required verification is of the other image", verified("app"), oldEnough, gate.Deny},
	} {
		g := h.requiring(t, c.policies)
		if out := g.Decide(t.Context(), gate.Request{Object: checkEvaluation(t, c.image.Name, "")}); out.Result != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.reason, out.Result, c.want, out.Verdicts)
		}
	}
}
