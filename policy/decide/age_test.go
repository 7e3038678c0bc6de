package decide_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/verify"
)

// TestEvidence: which digests date an image.
func TestEvidence(t *testing.T) {
	now := time.Now()
	digest := func(of string) image.Digest { return image.DigestOf([]byte(of)) }
	about := func(of string, ago int) verify.Fact {
		f := verify.Fact{Role: attest.Signature, Subject: digest(of), Signer: verify.Signer{KeyFingerprint: "A"}, Origin: attest.Origin{Manifest: image.DigestOf([]byte{byte(ago)})}}
		if ago > 0 {
			f.SignedAt, f.TimeSource = now.Add(-time.Duration(ago)*time.Hour), verify.LogTime
		}
		return f
	}
	by := func(signer string, f verify.Fact) verify.Fact {
		f.Role, f.Signer.KeyFingerprint = attest.Attestation, signer
		return f
	}
	named, index, amd64, arm64 := about("named", 10), about("index", 20), about("amd64", 30), about("arm64", 40)
	for _, c := range []struct {
		reason    string
		platforms policy.Platforms
		facts     []verify.Fact // by which the decision passes
		more      []verify.Fact
		want      int // hours; 0: none
	}{
		{"the named digest", policy.PlatformIndex, []verify.Fact{named}, nil, 10},
		{"an earlier one of the same authority", policy.PlatformIndex, []verify.Fact{named}, []verify.Fact{about("named", 90)}, 90},
		{"an earlier signature of another signer of the authority", policy.PlatformIndex, []verify.Fact{named}, []verify.Fact{{Role: attest.Signature, Subject: named.Subject, SignedAt: now.Add(-90 * time.Hour), TimeSource: verify.LogTime, Signer: verify.Signer{KeyFingerprint: "B"}}}, 90},
		{"an earlier statement of the signer", policy.PlatformIndex, []verify.Fact{by("A", named)}, []verify.Fact{by("A", about("named", 90))}, 90},
		{"an earlier statement of another signer of the authority", policy.PlatformIndex, []verify.Fact{by("A", named)}, []verify.Fact{by("B", about("named", 90))}, 10},
		{"an earlier one about a digest by which nothing passes", policy.PlatformIndex, []verify.Fact{named}, []verify.Fact{about("index", 90)}, 10},
		{"no time", policy.PlatformIndex, []verify.Fact{about("named", 0)}, nil, 0},
		{"no time, and an earlier one", policy.PlatformIndex, []verify.Fact{about("named", 0)}, []verify.Fact{about("named", 5)}, 5},
		{"the index that lists it", policy.PlatformIndex, []verify.Fact{index}, nil, 20},
		{"the earlier of both", policy.PlatformIndex, []verify.Fact{named, index}, nil, 20},
		{"every platform, by the last", policy.PlatformEach, []verify.Fact{amd64, arm64}, nil, 30},
		{"every platform, each by its first", policy.PlatformEach, []verify.Fact{amd64, arm64}, []verify.Fact{about("amd64", 90)}, 40},
		{"a platform without a time", policy.PlatformEach, []verify.Fact{amd64, about("arm64", 0)}, nil, 0},
		{"one platform of two", policy.PlatformEach, []verify.Fact{amd64}, nil, 0},
		{"any platform dates no index", policy.PlatformAny, []verify.Fact{amd64}, nil, 0},
		{"any, by the index itself", policy.PlatformAny, []verify.Fact{named}, nil, 10},
		{"no evidence", policy.PlatformIndex, nil, []verify.Fact{named}, 0},
	} {
		known := decide.Evidence{
			Named: digest("named"), Index: digest("index"), Children: []image.Descriptor{{Digest: digest("amd64")}, {Digest: digest("arm64")}},
			Answers: func(of image.Digest) policy.Answers {
				return func(policy.Question) (a policy.Answer) {
					for _, f := range append(append([]verify.Fact{}, c.facts...), c.more...) {
						if f.Subject == of {
							a.Facts = append(a.Facts, f)
						}
					}
					return a
				}
			},
		}
		decided := check(set(1, "a"))
		decided.Platforms = c.platforms
		first := known.First(policy.Decision{Check: decided, Result: policy.Pass, Facts: c.facts})
		hours := 0
		if first != nil {
			hours = int(now.Sub(first.SignedAt).Hours())
		}
		if hours != c.want {
			t.Errorf("%s: %d hours, want %d", c.reason, hours, c.want)
		}
	}
}

// TestAges: the requirement is decided by the decisions that pass, and by no other.
func TestAges(t *testing.T) {
	now := time.Now()
	fact := verify.Fact{Role: attest.Signature, SignedAt: now.Add(-2 * time.Hour), TimeSource: verify.LogTime}
	cluster, tenant := &policy.Policy{Kind: "Test"}, &policy.Policy{Kind: "Test", Namespace: "team"}
	of := func(p *policy.Policy, result policy.Result) policy.Decision {
		d := policy.Decision{Check: check(set(1, "a")), Result: result}
		d.Check.Policy = p
		if result == policy.Pass {
			d.Facts = []verify.Fact{fact}
		}
		return d
	}
	for _, c := range []struct {
		reason  string
		minimum time.Duration
		others  []policy.Decision
		first   *verify.Fact
		want    policy.Result
		code    policy.Code
	}{
		{"old enough", time.Hour, []policy.Decision{of(cluster, policy.Pass)}, &fact, policy.Pass, policy.Verified},
		{"to the second", 2 * time.Hour, []policy.Decision{of(cluster, policy.Pass)}, &fact, policy.Pass, policy.Verified},
		{"too young", 3 * time.Hour, []policy.Decision{of(cluster, policy.Pass)}, &fact, policy.Fail, policy.TooYoung},
		{"too young, and another policy may know more", 3 * time.Hour, []policy.Decision{of(cluster, policy.Pass), of(cluster, policy.Indeterminate)}, &fact, policy.Indeterminate, policy.TooYoung},
		{"old enough, and another policy may know more", time.Hour, []policy.Decision{of(cluster, policy.Pass), of(cluster, policy.Indeterminate)}, &fact, policy.Pass, policy.Verified},
		{"no time", time.Hour, []policy.Decision{of(cluster, policy.Pass)}, nil, policy.Indeterminate, policy.NoVerifiedTime},
		{"no time, for a maximum", 0, []policy.Decision{of(cluster, policy.Pass)}, nil, policy.Indeterminate, policy.NoVerifiedTime},
		{"no other check", time.Hour, nil, &fact, policy.Indeterminate, policy.NoVerifiedTime},
		{"a check that fails", time.Hour, []policy.Decision{of(cluster, policy.Fail)}, &fact, policy.Indeterminate, policy.NoVerifiedTime},
		{"a check that is skipped", time.Hour, []policy.Decision{of(cluster, policy.Skipped)}, &fact, policy.Indeterminate, policy.NoVerifiedTime},
		{"a policy of a namespace", time.Hour, []policy.Decision{of(tenant, policy.Pass)}, &fact, policy.Indeterminate, policy.NoVerifiedTime},
	} {
		own := &policy.Check{Policy: &policy.Policy{Kind: "Settings"}, Image: check().Image, Age: age.Bounds{By: "r[0]", Minimum: c.minimum, At: now, Whole: true}}
		decisions := append([]policy.Decision{decide.Check(own, nil)}, c.others...)
		if decisions[0].Result != policy.Indeterminate || decisions[0].Reasons[0].Code != policy.Internal {
			t.Errorf("%s: %+v before the other checks are decided", c.reason, decisions[0])
		}
		decide.Ages(decisions, func(int) *verify.Fact { return c.first })
		if d := decisions[0]; d.Result != c.want || d.Reasons[0].Code != c.code {
			t.Errorf("%s: %s %s, want %s %s", c.reason, d.Result, d.Reasons[0].Code, c.want, c.code)
		}
		own.Age.At = time.Time{}
		decide.Ages(decisions, func(int) *verify.Fact { return c.first })
		if d := decisions[0]; d.Result != policy.Indeterminate {
			t.Errorf("%s: %s without a clock", c.reason, d.Result)
		}
	}
}
