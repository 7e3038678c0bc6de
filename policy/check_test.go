package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// TestCheckOfNoUse: what could not be met, or would mean nothing, is refused.
func TestCheckOfNoUse(t *testing.T) {
	within := func(m policy.Member) *policy.Check {
		return check(policy.Requirement{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{m}})
	}
	asking := func(a *verify.Authority, change func(*policy.Check)) *policy.Check {
		c := check()
		c.Judge, c.Asks = silentJudge{}, []policy.Question{{Authority: a, Role: attest.Signature}}
		change(c)
		return c
	}
	as := func(*policy.Check) {}
	good, never := set(1, "a"), set(2, "a")
	for _, c := range []struct {
		reason string
		check  *policy.Check
		want   string // empty: accepted
	}{
		{"an authority", within(policy.Member{Authority: authority("a")}), ""},
		{"a nested set", within(policy.Member{Set: &good}), ""},
		{"a nested set that can never be met", within(policy.Member{Set: &never}), "2 of 1"},
		{"neither", within(policy.Member{}), "wants an authority or a nested set"},
		{"both", within(policy.Member{Authority: authority("a"), Set: &good}), "wants an authority or a nested set"},
		{"questions with a judge", asking(authority("a"), as), ""},
		{"Asks must be empty without Judge", asking(authority("a"), func(c *policy.Check) { c.Judge = nil }), "Asks must be empty"},
		{"a judge of platforms", asking(authority("a"), func(c *policy.Check) { c.Platforms = policy.PlatformEach }), "platforms"},
		{"a question without an authority", asking(nil, as), "names no authority"},
		{"a question to an authority without keys", asking(&verify.Authority{Name: "x"}, as), "exactly one"},
		{"platforms without a judge", asking(nil, func(c *policy.Check) { c.Judge, c.Asks, c.Platforms = nil, nil, policy.PlatformEach }), ""},
	} {
		err := c.check.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.reason, err, c.want)
		}
	}
	for action, admits := range map[policy.Action]bool{policy.Warn: true, policy.Audit: true, policy.Enforce: false, "": false, "audit": false} {
		if action.Admits() != admits {
			t.Errorf("a failure under %q is admitted: %t", action, !admits)
		}
	}
}

// TestRequire: a policy that requires a verification accepts that of another policy,
// if that one applies to the same namespace or to all.
func TestRequire(t *testing.T) {
	decision := func(namespace string, facts int, change func(*policy.Decision)) policy.Decision {
		d := policy.Decision{Result: policy.Pass, Facts: make([]verify.Fact, facts), Check: &policy.Check{
			Policy: &policy.Policy{Namespace: namespace}, Judge: silentJudge{}, Claims: policy.Claims{Required: true},
		}}
		change(&d)
		return d
	}
	as := func(*policy.Decision) {}
	proving := func(namespace string) policy.Decision {
		return decision(namespace, 1, func(d *policy.Decision) { d.Check.Judge = nil })
	}
	for _, c := range []struct {
		reason    string
		decisions []policy.Decision
		want      policy.Result // of the first
	}{
		{"nothing was proved", []policy.Decision{decision("", 0, as)}, policy.Fail},
		{"it proved something itself", []policy.Decision{decision("", 1, as)}, policy.Pass},
		{"another proved it for all", []policy.Decision{decision("team", 0, as), proving("")}, policy.Pass},
		{"another of its namespace proved it", []policy.Decision{decision("team", 0, as), proving("team")}, policy.Pass},
		{"another of a namespace proved it, and this one is for all", []policy.Decision{decision("", 0, as), proving("team")}, policy.Fail},
		{"another of another namespace proved it", []policy.Decision{decision("team", 0, as), proving("other")}, policy.Fail},
		{"another proved nothing", []policy.Decision{decision("team", 0, as), decision("", 0, func(d *policy.Decision) { d.Check.Judge = nil })}, policy.Fail},
		{"no proof is required", []policy.Decision{decision("", 0, func(d *policy.Decision) { d.Check.Required = false })}, policy.Pass},
		{"no expressions", []policy.Decision{decision("", 0, func(d *policy.Decision) { d.Check.Judge = nil })}, policy.Pass},
		{"it could not be decided", []policy.Decision{decision("", 0, func(d *policy.Decision) { d.Result = policy.Indeterminate })}, policy.Indeterminate},
		{"it was left alone", []policy.Decision{decision("", 0, func(d *policy.Decision) { d.Result = policy.Skipped })}, policy.Skipped},
	} {
		policy.Require(c.decisions)
		if got := c.decisions[0]; got.Result != c.want || c.want == policy.Fail && got.Reasons[0].Code != policy.Unverified {
			t.Errorf("%s: %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// TestOverrideSigner: a key matches by its fingerprint, and a certificate by its identity;
// neither matches as the other.
func TestOverrideSigner(t *testing.T) {
	byKey := policy.OverrideSigner{KeyFingerprint: "ab"}
	byName := policy.OverrideSigner{Identity: verify.Identity{Issuer: verify.Exactly("i"), Subject: verify.Wildcard("s*")}}
	key := &verify.Authority{Key: &verify.Key{}}
	keyless := &verify.Authority{Keyless: &verify.Keyless{}}
	for _, c := range []struct {
		reason      string
		signer      verify.Signer
		key, ofName bool
	}{
		{"the key", verify.Signer{KeyFingerprint: "ab"}, true, false},
		{"another key", verify.Signer{KeyFingerprint: "cd"}, false, false},
		{"a certificate of the key", verify.Signer{Key: "ab", Issuer: "x", Subject: "x"}, true, false},
		{"the identity", verify.Signer{Issuer: "i", Subject: "sub"}, false, true},
		{"another name of the certificate", verify.Signer{Issuer: "i", Subject: "x", Names: []string{"x", "sub"}}, false, true},
		{"another name, of another issuer", verify.Signer{Issuer: "x", Subject: "x", Names: []string{"x", "sub"}}, false, false},
		{"another subject", verify.Signer{Issuer: "i", Subject: "x"}, false, false},
		{"another issuer", verify.Signer{Issuer: "x", Subject: "sub"}, false, false},
		{"a key that calls itself by the identity", verify.Signer{KeyFingerprint: "cd", Issuer: "i", Subject: "sub"}, false, false},
		{"nobody", verify.Signer{}, false, false},
	} {
		if byKey.Is(c.signer) != c.key || byName.Is(c.signer) != c.ofName {
			t.Errorf("%s: is the key: %t, the identity: %t", c.reason, byKey.Is(c.signer), byName.Is(c.signer))
		}
	}
	if !strings.Contains(byKey.String(), "ab") || !strings.Contains(byName.String(), "s*") {
		t.Errorf("they are called %q and %q", byKey.String(), byName.String())
	}
	certificate := &verify.Authority{Certificate: &verify.Certificate{}}
	if !byKey.MayBe(certificate) || !byName.MayBe(certificate) || !byKey.MayBe(key) || byKey.MayBe(keyless) || byName.MayBe(key) || !byName.MayBe(keyless) {
		t.Error("MayBe is wrong for one of the authorities")
	}
}

func TestCheckValidate(t *testing.T) {
	for _, c := range []struct {
		reason string
		check  *policy.Check
		want   string
	}{
		{"a threshold that can be met", check(set(2, "a", "b")), ""},
		{"a threshold above the members", check(set(3, "a", "b")), "3 of 2"},
		{"a threshold of none", check(set(0, "a")), "0 of 1"},
		{"no members", check(set(1)), "no entries"},
		{"an attestation without signers", &policy.Check{Claims: policy.Claims{Attestations: []policy.Attestation{{Path: "attestations[0]", PredicateType: "x"}}}}, "any signer"},
		{"an attestation of no type", &policy.Check{Claims: policy.Claims{Attestations: []policy.Attestation{{Path: "attestations[0]", Signers: []policy.Requirement{set(1, "a")}}}}}, "type is empty"},
		{"an authority without keys", check(policy.Requirement{Threshold: 1, Members: []policy.Member{{Authority: &verify.Authority{Name: "x"}}}}), "exactly one"},
	} {
		err := c.check.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.reason, err, c.want)
		}
	}
}

// TestCheckNeeds: the registry is asked only for the data that the check needs.
func TestCheckNeeds(t *testing.T) {
	tag, pinned := image.MustParse("registry.test/app:v1"), image.MustParse("registry.test/app@"+image.DigestOf([]byte{1}).String())
	asks := []policy.Question{{Authority: authority("a")}}
	for _, c := range []struct {
		reason        string
		check         policy.Check
		digest, proof bool
	}{
		{"nothing", policy.Check{}, false, false},
		{"a signature", policy.Check{Claims: policy.Claims{Requirements: []policy.Requirement{set(1, "a")}}}, true, true},
		{"an attestation", policy.Check{Claims: policy.Claims{Attestations: []policy.Attestation{{PredicateType: "x"}}}}, true, true},
		{"a judge's question", policy.Check{Claims: policy.Claims{Asks: asks}}, true, true},
		{"the image's own data", policy.Check{Lookup: policy.Lookup{WantsData: policy.DataOne}}, true, false},
		{"a digest for a tag", policy.Check{Pinning: policy.Pinning{MutateDigest: true}}, true, false},
		{"a digest where there is one", policy.Check{Pinning: policy.Pinning{MutateDigest: true}, Image: policy.Image{Ref: pinned}}, false, false},
		{"a tag where nothing is pinned", policy.Check{Pinning: policy.Pinning{VerifyDigest: true}}, false, false},
		{"a signature of a skipped image", policy.Check{Skip: "left alone", Claims: policy.Claims{Requirements: []policy.Requirement{set(1, "a")}}}, false, false},
		{"a judge's question about a skipped image", policy.Check{Skip: "left alone", Claims: policy.Claims{Asks: asks}}, false, false},
		{"data of a skipped image", policy.Check{Skip: "left alone", Lookup: policy.Lookup{WantsData: policy.DataOne}}, false, false},
		{"a digest of a skipped image", policy.Check{Skip: "left alone", Pinning: policy.Pinning{MutateDigest: true}}, false, false},
	} {
		if c.check.Image.Ref.IsZero() {
			c.check.Image.Ref = tag
		}
		if digest, proof := c.check.NeedsDigest(), c.check.NeedsProof(); digest != c.digest || proof != c.proof {
			t.Errorf("%s: needs a digest: %t, a proof: %t", c.reason, digest, proof)
		}
	}
}

// TestQuestions: one for each authority and kind of claim, in the places of the check or in
// those of its own.
func TestQuestions(t *testing.T) {
	beside, own := []attest.Source{{TagPrefix: "beside"}}, []attest.Source{{TagPrefix: "own"}}
	inner := set(1, "c", "d")
	nested := set(1, "a", "b")
	nested.Members[1].Sources = own
	nested.Members = append(nested.Members, policy.Member{Set: &inner})
	whole := policy.Check{
		Lookup: policy.Lookup{Sources: beside}, Claims: policy.Claims{Requirements: []policy.Requirement{nested}, Asks: []policy.Question{{Authority: authority("z"), Role: attest.Signature}}, Attestations: []policy.Attestation{{PredicateType: "scan", Artifact: true, Signers: []policy.Requirement{set(1, "a")}}}},
	}
	skipped := whole
	skipped.Skip = "left alone"
	for _, c := range []struct {
		reason string
		check  policy.Check
		want   []string
	}{
		{"each once", whole, []string{
			"signature by z of \"\" []", "signature by a of \"\" [beside]", "signature by b of \"\" [own]", "signature by c of \"\" [beside]", "signature by d of \"\" [beside]",
			"artifact attestation by a of \"scan\" [beside]",
		}},
		{"a skipped image", skipped, nil},
		{"nothing is asked", policy.Check{}, nil},
	} {
		var got []string
		for _, q := range c.check.Questions() {
			var prefixes []string
			for _, s := range q.Sources {
				prefixes = append(prefixes, s.TagPrefix)
			}
			word := map[attest.Role]string{attest.Signature: "signature", attest.Attestation: "attestation"}[q.Role]
			if q.Artifact {
				word = "artifact " + word
			}
			got = append(got, fmt.Sprintf("%s by %s of %q %v", word, q.Authority.Name, q.Predicate, prefixes))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
