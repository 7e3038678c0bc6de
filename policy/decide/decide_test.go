package decide_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/verify"
)

// world answers questions by the name of the authority.
type world map[string]policy.Answer

func (w world) answers(q policy.Question) policy.Answer { return w[q.Authority.Name] }

func authority(name string) *verify.Authority {
	return &verify.Authority{Name: name, Key: &verify.Key{Ref: "PEM of " + name}}
}

func signedBy(signers ...string) policy.Answer {
	var a policy.Answer
	for _, s := range signers {
		a.Facts = append(a.Facts, verify.Fact{Role: attest.Signature, Signer: verify.Signer{KeyFingerprint: s}})
	}
	return a
}

func stated(signer string, predicates ...string) policy.Answer {
	var a policy.Answer
	for i, p := range predicates {
		a.Facts = append(a.Facts, verify.Fact{
			Role: attest.Attestation, Signer: verify.Signer{KeyFingerprint: signer},
			Origin:    attest.Origin{Via: fmt.Sprint("statement ", i)},
			Statement: &attest.Statement{PredicateType: "scan", Predicate: json.RawMessage(p)},
		})
	}
	return a
}

func rejected(codes ...verify.Code) policy.Answer {
	var a policy.Answer
	for _, c := range codes {
		a.Rejections = append(a.Rejections, &verify.Rejection{Code: c})
	}
	return a
}

var unreachable = policy.Answer{Gaps: []error{&image.Error{Kind: image.Unavailable, Op: "ask", On: "registry"}}}

func set(threshold int, names ...string) policy.Requirement {
	r := policy.Requirement{Name: "attestors[0]", Threshold: threshold}
	for _, name := range names {
		r.Members = append(r.Members, policy.Member{Authority: authority(name)})
	}
	return r
}

func check(requirements ...policy.Requirement) *policy.Check {
	return &policy.Check{Entry: "verifyImages[0]", Image: policy.Image{Ref: image.MustParse("registry.test/app:v1")}, Claims: policy.Claims{Requirements: requirements}}
}

func TestDecideRequirements(t *testing.T) {
	for _, c := range []struct {
		reason string
		check  *policy.Check
		world  world
		want   policy.Result
		code   policy.Code
	}{
		{"one authority signed", check(set(1, "a")), world{"a": signedBy("A")}, policy.Pass, policy.Verified},
		{"unsigned", check(set(1, "a")), world{}, policy.Fail, policy.Unsigned},
		{"signed with another key", check(set(1, "a")), world{"a": rejected(verify.WrongKey)}, policy.Fail, policy.Code(verify.WrongKey)},
		{"could not be verified is neither", check(set(1, "a")), world{"a": unreachable}, policy.Indeterminate, policy.Unavailable},
		{"any of two, one signed", check(set(1, "a", "b")), world{"b": signedBy("B")}, policy.Pass, policy.Verified},
		{"any of two, one signed, the other out of reach", check(set(1, "a", "b")), world{"a": unreachable, "b": signedBy("B")}, policy.Pass, policy.Verified},
		{"both of two, one out of reach", check(set(2, "a", "b")), world{"a": unreachable, "b": signedBy("B")}, policy.Indeterminate, policy.TooFewSigners},
		{"both of two, one out of reach and one unsigned: no look could help", check(set(2, "a", "b")), world{"a": unreachable}, policy.Fail, policy.Unsigned},
		{"two of two by two signers", check(set(2, "a", "b")), world{"a": signedBy("A"), "b": signedBy("B")}, policy.Pass, policy.Verified},
		{"two of two by one signer that both trust", check(set(2, "a", "b")), world{"a": signedBy("X"), "b": signedBy("X")}, policy.Fail, policy.TooFewSigners},
		{"two of two, matched: a has X or Y, b only X", check(set(2, "a", "b")), world{"a": signedBy("X", "Y"), "b": signedBy("X")}, policy.Pass, policy.Verified},
		{"two sets, both met by the same signer", check(set(1, "a"), set(1, "b")), world{"a": signedBy("X"), "b": signedBy("X")}, policy.Pass, policy.Verified},
		{"two sets, the second not met", check(set(1, "a"), set(1, "b")), world{"a": signedBy("X")}, policy.Fail, policy.Unsigned},
		{"two sets, one undecided, one failed: failed", check(set(1, "a"), set(1, "b")), world{"a": unreachable}, policy.Fail, policy.Unsigned},
		{"the nearest miss stands first", check(set(1, "a")), world{"a": rejected(verify.BadSignature, verify.WrongIdentity, verify.WrongDigest)}, policy.Fail, policy.Code(verify.WrongIdentity)},
		{"a skip asks nothing", &policy.Check{Skip: "the policy leaves it alone"}, nil, policy.Skipped, policy.SkippedByPolicy},
		{"a tag where a digest is asked for", &policy.Check{Pinning: policy.Pinning{VerifyDigest: true}, Image: policy.Image{Ref: image.MustParse("app:v1")}}, nil, policy.Fail, policy.MissingDigest},
		{"a verification is required of no authority", &policy.Check{Claims: policy.Claims{Required: true}, Image: policy.Image{Ref: image.MustParse("app:v1")}}, nil, policy.Fail, policy.PolicyError},
		{"a tag that will be pinned", &policy.Check{Pinning: policy.Pinning{VerifyDigest: true, MutateDigest: true}, Image: policy.Image{Ref: image.MustParse("app:v1")}}, nil, policy.Pass, policy.DigestPinned},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := decide.Check(c.check, c.world.answers).WithDigest()
			if got.Result != c.want {
				t.Fatalf("result %s, want %s: %+v", got.Result, c.want, got.Reasons)
			}
			if len(got.Reasons) == 0 || got.Reasons[0].Code != c.code {
				t.Fatalf("reasons %+v, want %s first", got.Reasons, c.code)
			}
			if got.Result != policy.Pass && len(got.Facts) > 0 {
				t.Fatalf("a check that is not met carries facts: %+v", got.Facts)
			}
		})
	}
}

// TestNearestMissIsFirst: of several rejected signers the nearest miss is reported first, and
// equal ones in the policy's order.
func TestNearestMissIsFirst(t *testing.T) {
	blind := rejected(verify.NoLogEntry) // a near miss, and a place that gave no answer
	blind.Gaps = unreachable.Gaps
	pair := set(2, "c", "d")
	nested := policy.Requirement{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: authority("a")}, {Set: &pair}}}
	statements := &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{{
		Path: "attestations[0]", PredicateType: "scan", Signers: []policy.Requirement{set(1, "a", "b")},
	}}}}
	for _, c := range []struct {
		reason string
		check  *policy.Check
		world  world
		want   policy.Result
		codes  string // with the paths
	}{
		{"the second is nearer", check(set(1, "a", "b")), world{"a": rejected(verify.WrongKey), "b": rejected(verify.NoLogEntry)}, policy.Fail, "no-log-entry/b wrong-key/a"},
		{"the first is nearer", check(set(1, "a", "b")), world{"a": rejected(verify.NoLogEntry), "b": rejected(verify.WrongKey)}, policy.Fail, "no-log-entry/a wrong-key/b"},
		{"both are as near", check(set(1, "a", "b")), world{"a": rejected(verify.WrongKey), "b": rejected(verify.WrongKey)}, policy.Fail, "wrong-key/a wrong-key/b"},
		{"both are as near, the other way round", check(set(1, "b", "a")), world{"a": rejected(verify.WrongKey), "b": rejected(verify.WrongKey)}, policy.Fail, "wrong-key/b wrong-key/a"},
		{"nothing is no miss", check(set(1, "a", "b")), world{"b": rejected(verify.WrongFormat)}, policy.Fail, "wrong-format/b unsigned/a"},
		{"a signature that was changed, and is of no other key", check(set(1, "a", "b")), world{"a": rejected(verify.WrongKey), "b": rejected(verify.BadSignature)}, policy.Fail, "bad-signature/b wrong-key/a"},
		{"nothing by either", check(set(1, "a", "b")), world{}, policy.Fail, "unsigned/a unsigned/b"},
		{"three", check(set(1, "a", "b", "c")), world{"b": rejected(verify.WrongIdentity), "c": rejected(verify.WrongKey)}, policy.Fail, "wrong-identity/b wrong-key/c unsigned/a"},
		{"half of a set is nearer than a miss", check(nested), world{"a": rejected(verify.Revoked), "c": signedBy("C")}, policy.Fail, "too-few-signers/attestors[0] unsigned/d revoked/a"},
		{"none of a set is as near as its nearest", check(nested), world{"a": rejected(verify.WrongKey), "d": rejected(verify.Expired)}, policy.Fail, "expired/d unsigned/c wrong-key/a"},
		{"could not be verified comes first, where the result depends on it", check(set(1, "a", "b")), world{"a": rejected(verify.Revoked), "b": unreachable}, policy.Indeterminate, "registry-unavailable/b revoked/a"},
		{"a miss beside a gap is no nearer than a gap", check(set(1, "a", "b")), world{"a": unreachable, "b": blind}, policy.Indeterminate, "registry-unavailable/a registry-unavailable/b no-log-entry/b"},
		{"a certain miss, where no look could help", check(set(2, "a", "b", "c")), world{"a": blind, "b": rejected(verify.WrongKey)}, policy.Fail, "wrong-key/b unsigned/c registry-unavailable/a no-log-entry/a"},
		{"each of two sets by itself", check(set(1, "a"), set(1, "b")), world{"a": rejected(verify.WrongKey), "b": rejected(verify.NoLogEntry)}, policy.Fail, "wrong-key/a no-log-entry/b"},
		{"statements", statements, world{"a": rejected(verify.WrongKey), "b": rejected(verify.NoLogEntry)}, policy.Fail, "no-log-entry/b wrong-key/a"},
	} {
		got := decide.Check(c.check, c.world.answers)
		var codes []string
		for _, r := range got.Reasons {
			codes = append(codes, string(r.Code)+"/"+r.Path)
		}
		if got.Result != c.want || strings.Join(codes, " ") != c.codes {
			t.Errorf("%s: %s %q, want %s %q", c.reason, got.Result, codes, c.want, c.codes)
		}
	}
}

func TestDecideNested(t *testing.T) {
	inner := set(2, "b", "c")
	outer := policy.Requirement{Name: "attestors[0]", Threshold: 2, Members: []policy.Member{{Authority: authority("a")}, {Set: &inner}}}
	met := world{"a": signedBy("A"), "b": signedBy("B"), "c": signedBy("C")}
	if got := decide.Check(check(outer), met.answers); got.Result != policy.Pass || len(got.Facts) != 3 {
		t.Fatalf("all signed: %s with %d facts, want pass with 3", got.Result, len(got.Facts))
	}
	alone := world{"a": signedBy("A"), "b": signedBy("A"), "c": signedBy("A")}
	one := policy.Requirement{Name: "nested", Threshold: 1, Members: []policy.Member{{Authority: authority("b")}}}
	twice := policy.Requirement{Name: "attestors[0]", Threshold: 2, Members: []policy.Member{{Authority: authority("a")}, {Set: &one}}}
	if got := decide.Check(check(twice), alone.answers); got.Result != policy.Fail {
		t.Fatalf("one signer counts as itself and as a nested set: %s", got.Result)
	}
	delete(met, "c")
	if got := decide.Check(check(outer), met.answers); got.Result != policy.Fail {
		t.Fatalf("the nested set lacks one: %s, want fail", got.Result)
	}
}

// TestNestedSetsShareSigners: a nested set counts by any signer that meets one of its members,
// and not only by the first, which another member may need.
func TestNestedSetsShareSigners(t *testing.T) {
	nested := func(names ...string) policy.Member {
		inner := set(1, names...)
		return policy.Member{Set: &inner}
	}
	of := func(threshold int, members ...policy.Member) *policy.Check {
		return check(policy.Requirement{Name: "attestors[0]", Threshold: threshold, Members: members})
	}
	deeper := policy.Requirement{Name: "deeper", Threshold: 1, Members: []policy.Member{nested("any")}}
	alice := policy.Member{Authority: authority("alice")}
	for _, c := range []struct {
		reason string
		check  *policy.Check
		world  world
		want   policy.Result
	}{
		{"the second signer of a set", of(2, nested("any"), alice), world{"any": signedBy("A", "B"), "alice": signedBy("A")}, policy.Pass},
		{"of a set within a set", of(2, policy.Member{Set: &deeper}, alice), world{"any": signedBy("A", "B"), "alice": signedBy("A")}, policy.Pass},
		{"of two sets", of(2, nested("any"), nested("alice")), world{"any": signedBy("A", "B"), "alice": signedBy("A")}, policy.Pass},
		{"one signer alone", of(2, nested("any"), alice), world{"any": signedBy("A"), "alice": signedBy("A")}, policy.Fail},
		{"one signer alone, twice", of(2, nested("any"), alice), world{"any": signedBy("A", "A"), "alice": signedBy("A")}, policy.Fail},
		{"two signers for three", of(3, nested("any"), nested("any"), alice), world{"any": signedBy("A", "B"), "alice": signedBy("A")}, policy.Fail},
		{"three signers for three", of(3, nested("any"), nested("any"), alice), world{"any": signedBy("A", "B", "C"), "alice": signedBy("A")}, policy.Pass},
		{"a set of two that is not met", of(2, policy.Member{Set: &policy.Requirement{Threshold: 2, Members: []policy.Member{{Authority: authority("any")}, {Authority: authority("nobody")}}}}, alice),
			world{"any": signedBy("A", "B"), "alice": signedBy("A")}, policy.Fail},
	} {
		if got := decide.Check(c.check, c.world.answers); got.Result != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got.Result, c.want)
		}
	}
}

// holds is a condition that is met by a predicate with a word.
type holds string

func (s holds) Holds(data any) (bool, string, error) {
	text, err := json.Marshal(data)
	if strings.Contains(string(text), "unreadable") {
		return false, "", errors.New("no such field")
	}
	return strings.Contains(string(text), string(s)), fmt.Sprintf("expected %s, found %s", string(s), text), err
}

func TestDecideAttestations(t *testing.T) {
	one := func(condition policy.Condition, signers ...policy.Requirement) *policy.Check {
		return &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{{
			Name: "scan", Path: "attestations[0]", PredicateType: "scan", Signers: signers, Condition: condition,
		}}}}
	}
	denying := func(word string, signers ...policy.Requirement) *policy.Check {
		if len(signers) == 0 {
			signers = []policy.Requirement{set(1, "a")}
		}
		c := one(nil, signers...)
		c.Deny, c.DenyMessage = holds(word), "the scan is bad"
		return c
	}
	for _, c := range []struct {
		reason string
		check  *policy.Check
		world  world
		want   policy.Result
		code   policy.Code
	}{
		{"a statement that agrees", one(holds("clean"), set(1, "a")), world{"a": stated("A", `"clean"`)}, policy.Pass, policy.Verified},
		{"a statement that does not", one(holds("clean"), set(1, "a")), world{"a": stated("A", `"dirty"`)}, policy.Fail, policy.ConditionFailed},
		{"a stale statement beside one that agrees", one(holds("clean"), set(1, "a")), world{"a": stated("A", `"dirty"`, `"clean"`)}, policy.Pass, policy.Verified},
		{"a statement that the condition cannot read", one(holds("clean"), set(1, "a")), world{"a": stated("A", `"unreadable"`)}, policy.Fail, policy.ConditionFailed},
		{"a statement signed with another key", one(holds("clean"), set(1, "a")), world{"a": rejected(verify.WrongKey)}, policy.Fail, policy.Code(verify.WrongKey)},
		{"none", one(nil, set(1, "a")), world{}, policy.Fail, policy.NoAttestation},
		{"two signers, each with a statement that agrees", one(holds("clean"), set(2, "a", "b")), world{"a": stated("A", `"clean"`), "b": stated("B", `"clean too"`)}, policy.Pass, policy.Verified},
		{"two signers, one with a statement that disagrees", one(holds("clean"), set(2, "a", "b")), world{"a": stated("A", `"clean"`), "b": stated("B", `"dirty"`)}, policy.Fail, policy.ConditionFailed},
		{"a deny condition that does not hold", denying("bad"), world{"a": stated("A", `"good"`)}, policy.Pass, policy.Verified},
		{"a deny condition that holds", denying("bad"), world{"a": stated("A", `"bad"`)}, policy.Fail, policy.Denied},
		{"a deny condition that cannot be evaluated denies", denying("bad"), world{"a": stated("A", `"unreadable"`)}, policy.Fail, policy.Denied},
		{"a deny condition that one statement passes", denying("bad"), world{"a": stated("A", `"bad"`, `"good"`)}, policy.Pass, policy.Verified},
		{"a deny condition that one of two required signers passes", denying("bad", set(2, "a", "b")), world{"a": stated("A", `"bad"`), "b": stated("B", `"good"`)}, policy.Fail, policy.Denied},
		{"the same, in the other order", denying("bad", set(2, "a", "b")), world{"a": stated("A", `"good"`), "b": stated("B", `"bad"`)}, policy.Fail, policy.Denied},
		{"the same, in two sets", denying("bad", set(1, "a"), set(1, "b")), world{"a": stated("A", `"good"`), "b": stated("B", `"bad"`)}, policy.Fail, policy.Denied},
		{"a deny condition that both required signers pass", denying("bad", set(2, "a", "b")), world{"a": stated("A", `"bad"`, `"good"`), "b": stated("B", `"good too"`)}, policy.Pass, policy.Verified},
		{"a deny condition that one of two signers passes, where one is enough", denying("bad", set(1, "a", "b")), world{"a": stated("A", `"bad"`), "b": stated("B", `"good"`)}, policy.Pass, policy.Verified},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := decide.Check(c.check, c.world.answers)
			if got.Result != c.want || got.Reasons[0].Code != c.code {
				t.Fatalf("%s %+v, want %s with %s first", got.Result, got.Reasons, c.want, c.code)
			}
		})
	}
}

// TestOneSignerUnderTwoNames: a certificate with two names meets two entries and
// is one signer all the same.
func TestOneSignerUnderTwoNames(t *testing.T) {
	named := func(id, subject string) policy.Answer {
		return policy.Answer{Facts: []verify.Fact{{Role: attest.Signature, Signer: verify.Signer{ID: id, Subject: subject, Issuer: "idp"}}}}
	}
	both := check(set(2, "a", "b"))
	if got := decide.Check(both, world{"a": named("X", "alice@corp"), "b": named("X", "alice@work")}.answers); got.Result != policy.Fail {
		t.Errorf("one certificate counts twice: %s", got.Result)
	}
	if got := decide.Check(both, world{"a": named("X", "alice@corp"), "b": named("Y", "bob@work")}.answers); got.Result != policy.Pass {
		t.Errorf("two certificates count once: %s %+v", got.Result, got.Reasons)
	}
}

// TestHintOfFormat: the hint after a failed condition names a tool that can read the document.
func TestHintOfFormat(t *testing.T) {
	for format, tool := range map[attest.Format]string{attest.Cosign: "cosign", attest.Bundle: "cosign", attest.Notation: "oras"} {
		answer := stated("A", `"dirty"`)
		answer.Facts[0].Format = format
		asked := &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{{
			Name: "scan", Path: "attestations[0]", PredicateType: "scan", Signers: []policy.Requirement{set(1, "a")}, Condition: holds("clean"),
		}}}}
		got := decide.Check(asked, world{"a": answer}.answers)
		if len(got.Reasons) != 1 || got.Reasons[0].Code != policy.ConditionFailed || !strings.Contains(got.Reasons[0].Hint, tool+" ") {
			t.Errorf("%s: %+v", format, got.Reasons)
		}
	}
}

// TestShortcomingsWithoutReasons: a decision without reasons does not hide those of others.
func TestShortcomingsWithoutReasons(t *testing.T) {
	said := func(result policy.Result, codes ...policy.Code) policy.Decision {
		d := policy.Decision{Result: result}
		for _, code := range codes {
			d.Reasons = append(d.Reasons, policy.Reason{Code: code})
		}
		return d
	}
	for _, c := range []struct {
		reason string
		missed []policy.Decision
		want   []policy.Code
	}{
		{"one with reasons", []policy.Decision{said(policy.Fail, policy.Denied, policy.Unsigned)}, []policy.Code{policy.Denied, policy.Unsigned}},
		{"one that does not", []policy.Decision{said(policy.Fail)}, nil},
		{"one that does not before another", []policy.Decision{said(policy.Fail), said(policy.Fail, policy.Unsigned)}, []policy.Code{policy.Unsigned}},
		{"and behind it", []policy.Decision{said(policy.Fail, policy.Unsigned), said(policy.Fail)}, []policy.Code{policy.Unsigned}},
	} {
		var got []policy.Code
		for _, r := range decide.Shortcomings(policy.Fail, c.missed) {
			got = append(got, r.Code)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.reason, got, c.want)
		}
	}
}

// TestLatestDecides: a statement counts unless the same authority verified a later one that the
// condition does not hold for, by the trusted time of signing.
func TestLatestDecides(t *testing.T) {
	type said struct {
		signer, text string
		at           int64 // zero: without a trusted time
	}
	answer := func(all []said) policy.Answer {
		var a policy.Answer
		for _, s := range all {
			facts := stated(s.signer, `"`+s.text+`"`).Facts
			if s.at > 0 {
				facts[0].SignedAt = time.Unix(s.at, 0)
			}
			a.Facts = append(a.Facts, facts...)
		}
		return a
	}
	for _, c := range []struct {
		reason      string
		statements  []said
		latest, any policy.Result // with LatestDecides, and without
	}{
		{"the later one agrees", []said{{"A", "dirty", 1}, {"A", "clean", 2}}, policy.Pass, policy.Pass},
		{"the earlier one agrees", []said{{"A", "clean", 1}, {"A", "dirty", 2}}, policy.Fail, policy.Pass},
		{"in the other order", []said{{"A", "dirty", 2}, {"A", "clean", 1}}, policy.Fail, policy.Pass},
		{"the later one cannot be read", []said{{"A", "clean", 1}, {"A", "unreadable", 2}}, policy.Fail, policy.Pass},
		{"the later one is of another signer of the authority", []said{{"A", "clean", 1}, {"B", "dirty", 2}}, policy.Fail, policy.Pass},
		{"both agree", []said{{"A", "clean", 1}, {"A", "clean too", 2}}, policy.Pass, policy.Pass},
		{"at the same time", []said{{"A", "clean", 1}, {"A", "dirty", 1}}, policy.Pass, policy.Pass},
		{"one without a time agrees, beside a time", []said{{"A", "clean", 0}, {"A", "dirty", 1}}, policy.Fail, policy.Pass},
		{"one with a time agrees, beside one without", []said{{"A", "clean", 1}, {"A", "dirty", 0}}, policy.Pass, policy.Pass},
		{"without times", []said{{"A", "clean", 0}, {"A", "dirty", 0}}, policy.Pass, policy.Pass},
		{"the earlier one was logged again", []said{{"A", "clean", 1}, {"A", "dirty", 2}, {"A", "clean", 3}}, policy.Fail, policy.Pass},
	} {
		for latest, want := range map[bool]policy.Result{true: c.latest, false: c.any} {
			attestation := policy.Attestation{
				Name: "scan", Path: "attestations[0]", PredicateType: "scan", Signers: []policy.Requirement{set(1, "a")}, LatestDecides: latest,
			}
			world := world{"a": answer(c.statements)}
			denied := &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{attestation}, Deny: holds("dirty")}}
			attestation.Condition = holds("clean")
			asked := &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{attestation}}}
			if got := decide.Check(asked, world.answers); got.Result != want {
				t.Errorf("%s (latest decides: %t): %s %+v, want %s", c.reason, latest, got.Result, got.Reasons, want)
			}
			if got := decide.Check(denied, world.answers); got.Result != want {
				t.Errorf("%s (latest decides: %t), in a deny condition: %s %+v, want %s", c.reason, latest, got.Result, got.Reasons, want)
			}
		}
	}
}

// TestUnreadStatements: where a registry returns a part of a repository's statements, a later one
// may be among the rest. Another repository and a signature have no such effect.
func TestUnreadStatements(t *testing.T) {
	here, elsewhere := image.MustParse("registry.example/app").Repository(), image.MustParse("mirror.example/app").Repository()
	for _, c := range []struct {
		reason string
		at     int64 // zero: without a trusted time
		kind   image.Kind
		in     image.Repository
		latest policy.Result // with LatestDecides
	}{
		{"unavailable", 1, image.Unavailable, here, policy.Indeterminate},
		{"refused", 1, image.Refused, here, policy.Indeterminate},
		{"beyond a bound", 1, image.Bound, here, policy.Indeterminate},
		{"corrupt", 1, image.Corrupt, here, policy.Indeterminate},
		{"not found", 1, image.NotFound, here, policy.Pass},
		{"another repository has more than a bound", 1, image.Bound, elsewhere, policy.Pass},
		{"another repository is unavailable", 1, image.Unavailable, elsewhere, policy.Pass},
		{"statements without a time have no order", 0, image.Unavailable, here, policy.Pass},
	} {
		answer := stated("A", `"clean"`)
		answer.Facts[0].Origin.Repository = here
		if c.at > 0 {
			answer.Facts[0].SignedAt = time.Unix(c.at, 0)
		}
		answer.Gaps = []error{fmt.Errorf("search: %w", attest.Gap{Repository: c.in, Where: "referrers", Err: &image.Error{Kind: c.kind, Op: "list", On: "referrers"}})}
		for latest, want := range map[bool]policy.Result{true: c.latest, false: policy.Pass} {
			attestation := policy.Attestation{
				Name: "scan", Path: "attestations[0]", PredicateType: "scan", Signers: []policy.Requirement{set(1, "a")}, LatestDecides: latest,
			}
			for reason, check := range map[string]*policy.Check{
				"a condition":      {Entry: "e", Claims: policy.Claims{Attestations: []policy.Attestation{conditional(attestation)}}},
				"a deny condition": {Entry: "e", Claims: policy.Claims{Attestations: []policy.Attestation{attestation}, Deny: holds("dirty")}},
			} {
				if got := decide.Check(check, world{"a": answer}.answers); got.Result != want {
					t.Errorf("%s, %s (latest decides: %t): %s %+v, want %s", c.reason, reason, latest, got.Result, got.Reasons, want)
				}
			}
			bare := &policy.Check{Entry: "e", Claims: policy.Claims{Attestations: []policy.Attestation{attestation}}}
			if got := decide.Check(bare, world{"a": answer}.answers); got.Result != policy.Pass {
				t.Errorf("%s, without a condition: %s", c.reason, got.Result)
			}
		}
	}
}

func conditional(a policy.Attestation) policy.Attestation {
	a.Condition = holds("clean")
	return a
}
