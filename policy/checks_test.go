package policy_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
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
		{"a judge that was not asked says nothing", check(), func(c *policy.Check) { c.Judge = silentJudge{} }, policy.Indeterminate, policy.Internal},
		{"nor for what was proved", check(set(1, "a")), func(c *policy.Check) { c.Judge = silentJudge{} }, policy.Indeterminate, policy.Internal},
		{"a tag where only a digest will do", check(), func(c *policy.Check) { c.VerifyDigest = true }, policy.Fail, policy.MissingDigest},
		{"and nobody signed", check(set(1, "b")), func(c *policy.Check) { c.VerifyDigest = true }, policy.Fail, policy.Unsigned},
		{"and it is signed", check(set(1, "a")), func(c *policy.Check) { c.VerifyDigest = true }, policy.Fail, policy.MissingDigest},
		{"and it is left alone", check(), func(c *policy.Check) { c.VerifyDigest, c.Skip = true, "left alone" }, policy.Skipped, policy.SkippedByPolicy},
		{"a digest", check(), func(c *policy.Check) { c.VerifyDigest, c.Image.Ref = true, digest }, policy.Pass, policy.DigestPinned},
		{"a tag that becomes one", check(), func(c *policy.Check) { c.VerifyDigest, c.MutateDigest = true, true }, policy.Pass, policy.DigestPinned},
		{"a proof is required, and nobody could give one", check(), func(c *policy.Check) { c.Required = true }, policy.Fail, policy.PolicyError},
		{"a proof is required, and there", check(set(1, "a")), func(c *policy.Check) { c.Required = true }, policy.Pass, policy.Verified},
		{"a proof is required, and not there", check(set(1, "b")), func(c *policy.Check) { c.Required = true }, policy.Fail, policy.Unsigned},
		{"a deny condition of its own that holds", check(), func(c *policy.Check) { c.Deny = says("{}") }, policy.Fail, policy.Denied},
		{"and stands before what is lacking", check(), func(c *policy.Check) { c.Deny, c.Required = says("{}"), true }, policy.Fail, policy.Denied},
		{"a deny condition of its own that does not", check(), func(c *policy.Check) { c.Deny = says("bad") }, policy.Pass, policy.DigestPinned},
		{"a deny condition beside a signature that is there", check(set(1, "a")), func(c *policy.Check) { c.Deny = says("{}") }, policy.Fail, policy.Denied},
		{"a deny condition beside a signature that is not", check(set(1, "b")), func(c *policy.Check) { c.Deny = says("{}") }, policy.Fail, policy.Unsigned},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.change(c.check)
			got := policy.Decide(c.check, signed.answers).WithDigest()
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
		got := policy.Decide(check(set(1, c.names[0]), set(1, c.names[1])), answers.answers)
		if got.Result != c.want || got.Reasons[0].Path != c.first {
			t.Errorf("%q: %s %+v, want %s by %s first", c.names, got.Result, got.Reasons, c.want, c.first)
		}
	}
}

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
		{"questions that nobody judges", asking(authority("a"), func(c *policy.Check) { c.Judge = nil }), "nobody judges"},
		{"a judge of platforms", asking(authority("a"), func(c *policy.Check) { c.Platforms = policy.PlatformEach }), "platforms"},
		{"a question to nobody", asking(nil, as), "names no authority"},
		{"a question to an authority that is nobody", asking(&verify.Authority{Name: "x"}, as), "exactly one"},
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

// TestRequire: a policy that requires a proof is content with one that another policy has,
// if that one speaks for the same namespace or for all.
func TestRequire(t *testing.T) {
	decision := func(namespace string, facts int, change func(*policy.Decision)) policy.Decision {
		d := policy.Decision{Result: policy.Pass, Facts: make([]verify.Fact, facts), Check: &policy.Check{
			Policy: &policy.Policy{Namespace: namespace}, Judge: silentJudge{}, Required: true,
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

// TestOverrideSigner: a key is known by its fingerprint, and a certificate by what it says;
// neither passes for the other.
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
		{"the identity", verify.Signer{Issuer: "i", Subject: "sub"}, false, true},
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
	if !byKey.MayBe(key) || byKey.MayBe(keyless) || byName.MayBe(key) || !byName.MayBe(keyless) {
		t.Error("who an authority may prove is another one")
	}
}

// TestFirstMutationOnly: of a policy whose first rule counts, the second changes nothing;
// and one that an exception names neither.
func TestFirstMutationOnly(t *testing.T) {
	put := func(key string) ruling {
		return ruling{name: key, says: policy.Validated{Result: policy.Pass}, changes: func(object map[string]any) map[string]any {
			data, _ := object["data"].(map[string]any)
			changed := map[string]any{key: "x"}
			for k, v := range data {
				changed[k] = v
			}
			return map[string]any{"data": changed}
		}}
	}
	for _, c := range []struct {
		reason    string
		first     bool
		exception string // the rule that it is for
		want      map[string]any
	}{
		{"all", false, "", map[string]any{"a": "x", "b": "x"}},
		{"the first", true, "", map[string]any{"a": "x"}},
		{"but one that is excepted", false, "a", map[string]any{"b": "x"}},
		{"the first that is not excepted", true, "a", map[string]any{"b": "x"}},
	} {
		set := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", FirstRuleOnly: c.first, Mutations: []policy.Mutation{put("a"), put("b")}})
		if c.exception != "" {
			var err error
			set, err = set.With(&policy.Exception{Namespace: "shop", Name: "e", Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{c.exception}}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		changed, _ := set.Mutate(t.Context(), configMap("shop", nil), func(*policy.Subject) policy.Finder { return none })
		if !reflect.DeepEqual(changed["data"], c.want) {
			t.Errorf("%s: got %v, want %v", c.reason, changed["data"], c.want)
		}
	}
}

// TestWithText: a text is changed where one stands, and nothing else is.
func TestWithText(t *testing.T) {
	object := map[string]any{"a": []any{"x", "y"}, "b/c": "z", "n": 1.0}
	for pointer, want := range map[string]map[string]any{
		"/a/0":   {"a": []any{"x!", "y"}, "b/c": "z", "n": 1.0},
		"/a/1":   {"a": []any{"x", "y!"}, "b/c": "z", "n": 1.0},
		"/b~1c":  {"a": []any{"x", "y"}, "b/c": "z!", "n": 1.0},
		"/a/2":   object,
		"/a/-1":  object,
		"/a/x":   object,
		"/a":     object,
		"/n":     object,
		"/b/c":   object,
		"/a/0/0": object,
	} {
		if got := policy.WithText(object, pointer, func(s string) string { return s + "!" }); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", pointer, got, want)
		}
	}
}

// TestExceptionOfNamespacedPolicy: a policy of a namespace is named with it, and is none of
// that name for the cluster.
func TestExceptionOfNamespacedPolicy(t *testing.T) {
	base := setOf(t, &policy.Policy{Kind: "Policy", Namespace: "team", Name: "p", Validations: []policy.Validation{ruling{name: "signed", says: violated("no")}}})
	for _, c := range []struct {
		policy, kind string
		excepted     bool
	}{
		{"team/p", "", true}, {"team/p", "Policy", true}, {"team/p", "ClusterPolicy", false}, {"p", "", false}, {"other/p", "", false},
	} {
		set, err := base.With(exception("x", func(e *policy.Exception) { e.Rules[0].Policy, e.Rules[0].Kind = c.policy, c.kind }))
		if err != nil {
			t.Fatal(err)
		}
		results := set.Validate(t.Context(), configMap("team", nil), none)
		if len(results) != 1 || (results[0].Exception != nil) != c.excepted {
			t.Errorf("%q of kind %q: %+v, want it to be excepted: %t", c.policy, c.kind, results, c.excepted)
		}
	}
}
