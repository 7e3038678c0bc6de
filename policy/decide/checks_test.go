package decide_test

import (
	"context"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
)

// silentJudge has not been asked.
type silentJudge struct{}

func (silentJudge) Judge(context.Context, []policy.Given) policy.Judgement {
	return policy.Judgement{}
}

// TestDecideBeforeProof: what a check comes to by itself.
func TestDecideBeforeProof(t *testing.T) {
	digest := image.MustParse("registry.test/app@" + image.DigestOf(nil).String())
	signed := world{"a": signedBy("A")}
	for _, c := range []struct {
		reason string
		check  *policy.Check
		change func(*policy.Check)
		want   policy.Result
		code   policy.Code
	}{
		{"nothing is asked", check(), func(*policy.Check) {}, policy.Pass, policy.DigestPinned},
		{"a judge that was not asked returns no result", check(), func(c *policy.Check) { c.Judge = silentJudge{} }, policy.Indeterminate, policy.Internal},
		{"nor for a verified claim", check(set(1, "a")), func(c *policy.Check) { c.Judge = silentJudge{} }, policy.Indeterminate, policy.Internal},
		{"a tag where only a digest will do", check(), func(c *policy.Check) { c.VerifyDigest = true }, policy.Fail, policy.MissingDigest},
		{"and it is unsigned", check(set(1, "b")), func(c *policy.Check) { c.VerifyDigest = true }, policy.Fail, policy.Unsigned},
		{"and it is signed", check(set(1, "a")), func(c *policy.Check) { c.VerifyDigest = true }, policy.Fail, policy.MissingDigest},
		{"and it is left alone", check(), func(c *policy.Check) { c.VerifyDigest, c.Skip = true, "left alone" }, policy.Skipped, policy.SkippedByPolicy},
		{"a digest", check(), func(c *policy.Check) { c.VerifyDigest, c.Image.Ref = true, digest }, policy.Pass, policy.DigestPinned},
		{"a tag that becomes one", check(), func(c *policy.Check) { c.VerifyDigest, c.MutateDigest = true, true }, policy.Pass, policy.DigestPinned},
		{"a verification is required, and no authority is named", check(), func(c *policy.Check) { c.Required = true }, policy.Fail, policy.PolicyError},
		{"a proof is required, and there", check(set(1, "a")), func(c *policy.Check) { c.Required = true }, policy.Pass, policy.Verified},
		{"a proof is required, and not there", check(set(1, "b")), func(c *policy.Check) { c.Required = true }, policy.Fail, policy.Unsigned},
		{"a deny condition of its own that holds", check(), func(c *policy.Check) { c.Deny = holds("{}") }, policy.Fail, policy.Denied},
		{"and comes before the missing verification", check(), func(c *policy.Check) { c.Deny, c.Required = holds("{}"), true }, policy.Fail, policy.Denied},
		{"a deny condition of its own that does not", check(), func(c *policy.Check) { c.Deny = holds("bad") }, policy.Pass, policy.DigestPinned},
		{"a deny condition beside a signature that is there", check(set(1, "a")), func(c *policy.Check) { c.Deny = holds("{}") }, policy.Fail, policy.Denied},
		{"a deny condition beside a signature that is not", check(set(1, "b")), func(c *policy.Check) { c.Deny = holds("{}") }, policy.Fail, policy.Unsigned},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.change(c.check)
			got := decide.Check(c.check, signed.answers).WithDigest()
			if got.Result != c.want || len(got.Reasons) == 0 || got.Reasons[0].Code != c.code {
				t.Errorf("%s %+v, want %s with %s first", got.Result, got.Reasons, c.want, c.code)
			}
		})
	}
}

// TestReasonsInOrder: the certain one first, and of two of a kind the first.
func TestReasonsInOrder(t *testing.T) {
	answers := world{"away": unreachable, "gone": unreachable, "good": signedBy("A")}
	for _, c := range []struct {
		names []string
		want  policy.Result
		first string // authority
	}{
		{[]string{"good", "good"}, policy.Pass, "verifyImages[0]"},
		{[]string{"away", "gone"}, policy.Indeterminate, "away"},
		{[]string{"away", "nobody"}, policy.Fail, "nobody"},
		{[]string{"nobody", "away"}, policy.Fail, "nobody"},
		{[]string{"good", "away"}, policy.Indeterminate, "away"},
		{[]string{"away", "good"}, policy.Indeterminate, "away"},
	} {
		got := decide.Check(check(set(1, c.names[0]), set(1, c.names[1])), answers.answers)
		if got.Result != c.want || got.Reasons[0].Path != c.first {
			t.Errorf("%q: %s %+v, want %s by %s first", c.names, got.Result, got.Reasons, c.want, c.first)
		}
	}
}
