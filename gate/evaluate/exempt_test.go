package evaluate

import (
	"context"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// TestExemptTag: a tag that a policy exempts exempts the digest beside it while it resolves to
// that, whatever the digests are that the check is about.
func TestExemptTag(t *testing.T) {
	index, child, other := digestOf(t, "a"), digestOf(t, "b"), digestOf(t, "c")
	for _, c := range []struct {
		reason    string
		ref       string
		tag       image.Digest
		platforms policy.Platforms
		isExempt  bool
		signed    []image.Digest
		want      policy.Result
	}{
		{"nothing is signed", ":1@", index, "", true, nil, policy.Skipped},
		{"nothing is signed, of each platform", ":1@", index, policy.PlatformEach, true, nil, policy.Skipped},
		{"the index is signed, and no platform", ":1@", index, policy.PlatformEach, true, []image.Digest{index}, policy.Skipped},
		{"the index is signed, and one platform", ":1@", index, policy.PlatformEach, true, []image.Digest{index, child}, policy.Skipped},
		{"nothing is signed, of any platform", ":1@", index, policy.PlatformAny, true, nil, policy.Skipped},
		{"each is signed", ":1@", index, policy.PlatformEach, true, []image.Digest{child, other}, policy.Pass},
		{"the tag is not exempt", ":1@", index, policy.PlatformEach, false, []image.Digest{index}, policy.Fail},
		{"the tag is of another digest", ":1@", other, policy.PlatformEach, true, []image.Digest{index}, policy.Fail},
		{"the tag is of another digest, and nothing is signed", ":1@", other, "", true, nil, policy.Fail},
		{"the tag is gone", ":1@", image.Digest{}, policy.PlatformEach, true, []image.Digest{index}, policy.Fail},
		{"no tag is named", "@", index, policy.PlatformEach, true, []image.Digest{index}, policy.Fail},
	} {
		source := &library{tag: c.tag, indexes: map[image.Digest][]image.Digest{index: {child, other}}}
		for _, about := range c.signed {
			source.attest(about, "clean")
		}
		check := scanned(c.platforms)
		if c.isExempt {
			check.AtTag = &policy.Check{Skip: "exempt"}
		}
		evaluation := newEvaluator(t, time.Now).Evaluate(Reference{Ref: parse(t, "registry.example/app"+c.ref+index.String()), Registry: source, Prover: believing{}})
		at := evaluation.Add(check)
		if got := evaluation.Run(t.Context()).Decide(at); got.Result != c.want {
			t.Errorf("%s: %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// TestPlatformsOfFallbacks: the claims about platforms may be in a fallback, although the index
// itself was verified before.
func TestPlatformsOfFallbacks(t *testing.T) {
	index, child, other := digestOf(t, "a"), digestOf(t, "b"), digestOf(t, "c")
	indexes := map[image.Digest][]image.Digest{index: {child, other}}
	for _, c := range []struct {
		reason    string
		platforms policy.Platforms
		second    []image.Digest // that have statements in the second repository
		searched  int
		want      policy.Result
	}{
		{"each platform", policy.PlatformEach, []image.Digest{child, other}, 2, policy.Pass},
		{"not each platform", policy.PlatformEach, []image.Digest{child}, 2, policy.Fail},
		{"any digest", policy.PlatformAny, nil, 1, policy.Pass},
		{"the index suffices", policy.PlatformIndex, nil, 1, policy.Pass},
	} {
		first, second := &library{indexes: indexes}, &library{indexes: indexes}
		first.attest(index, "clean")
		for _, about := range c.second {
			second.attest(about, "clean")
		}
		searched := 0
		reference := Reference{
			Ref: parse(t, "registry.example/app@"+index.String()), Registry: first, Prover: believing{},
			Evidence: []image.Repository{parse(t, "mirror.example/1").Repository(), parse(t, "mirror.example/2").Repository()},
		}
		reference.Open = func(_ context.Context, repository image.Repository) (Registry, error) {
			searched++
			if repository == reference.Evidence[0] {
				return first, nil
			}
			return second, nil
		}
		evaluation := newEvaluator(t, time.Now).Evaluate(reference)
		at := evaluation.Add(scanned(c.platforms))
		if got := evaluation.Run(t.Context()).Decide(at); got.Result != c.want || searched != c.searched {
			t.Errorf("%s: %s %+v after %d repositories, want %s after %d", c.reason, got.Result, got.Reasons, searched, c.want, c.searched)
		}
	}
}
