package decide_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/verify"
)

// TestCountedFacts: each member is met by a signer of its own, in whichever order they
// come, and the decision names those that counted.
func TestCountedFacts(t *testing.T) {
	answers := world{
		"one": signedBy("A"), "both": signedBy("A", "B"), "two": signedBy("B"), "three": signedBy("A", "B", "C"),
	}
	nested := func(threshold int, names ...string) policy.Requirement {
		inner := set(2, "one", "two")
		r := set(threshold, names...)
		r.Members = append(r.Members, policy.Member{Set: &inner})
		return r
	}
	for _, c := range []struct {
		reason string
		set    policy.Requirement
		want   []string // none: failed
	}{
		{"one by its first signer", set(1, "both"), []string{"A"}},
		{"the first gives way to the second", set(2, "both", "one"), []string{"B", "A"}},
		{"the second takes the remaining signer", set(2, "one", "both"), []string{"A", "B"}},
		{"two give way to the third", set(3, "three", "both", "one"), []string{"C", "B", "A"}},
		{"one signer for two", set(2, "one", "one"), nil},
		{"two signers for three", set(3, "both", "one", "two"), nil},
		{"a nested set by all of its signers", nested(1), []string{"A", "B"}},
		{"a nested set and one with a signer of its own", nested(2, "three"), []string{"B", "A", "B"}},
	} {
		got := decide.Check(check(c.set), answers.answers)
		var names []string
		for _, fact := range got.Facts {
			names = append(names, fact.Signer.KeyFingerprint)
		}
		if (got.Result == policy.Pass) != (c.want != nil) {
			t.Errorf("%s: %s %+v", c.reason, got.Result, got.Reasons)
		} else if c.want != nil && !slices.Equal(names, c.want) {
			t.Errorf("%s: counted %q, want %q", c.reason, names, c.want)
		}
	}
}

// TestStatementsThatAreNone: a claim without a statement meets no condition, and is refused
// without a condition too.
func TestStatementsThatAreNone(t *testing.T) {
	one := func(condition policy.Condition) *policy.Check {
		return &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{{
			Name: "scan", Path: "attestations[0]", PredicateType: "scan", Signers: []policy.Requirement{set(1, "a")}, Condition: condition,
		}}}}
	}
	for _, c := range []struct {
		reason    string
		condition policy.Condition
		answer    policy.Answer
		want      policy.Result
	}{
		{"a statement", nil, stated("A", `null`), policy.Pass},
		{"a statement that agrees", holds("null"), stated("A", `null`), policy.Pass},
		{"a predicate that is no JSON", nil, stated("A", `{`), policy.Fail},
		{"a predicate that is no JSON, and a condition that takes nothing", holds("null"), stated("A", `{`), policy.Fail},
		{"a signature", nil, signedBy("A"), policy.Fail},
		{"a signature, and a condition that takes nothing", holds("null"), signedBy("A"), policy.Fail},
	} {
		if got := decide.Check(one(c.condition), world{"a": c.answer}.answers); got.Result != c.want {
			t.Errorf("%s: %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// written holds for the exact text, and cannot be evaluated for the decoded value.
type written string

func (w written) Holds(data any) (bool, string, error) {
	return false, "", fmt.Errorf("it was asked about %v", data)
}

func (w written) HoldsText(predicate []byte) (bool, string, error) {
	return string(predicate) == string(w), "it is " + string(predicate), nil
}

// TestTextConditions: a condition on the text receives the text, and the deny condition over
// several attestations receives the decoded statements.
func TestTextConditions(t *testing.T) {
	const id = `{"id":9007199254740993}`
	one := func(deny policy.Condition) *policy.Check {
		return &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Deny: deny, Attestations: []policy.Attestation{{
			Name: "scan", Path: "attestations[0]", PredicateType: "scan", Signers: []policy.Requirement{set(1, "a")}, Condition: written(id),
		}}}}
	}
	var often []string
	for range 300 {
		often = append(often, id)
	}
	for _, c := range []struct {
		reason string
		check  *policy.Check
		answer policy.Answer
		want   policy.Result
	}{
		{"to the digit", one(nil), stated("A", id), policy.Pass},
		{"another digit", one(nil), stated("A", `{"id":9007199254740992}`), policy.Fail},
		{"a signature", one(nil), signedBy("A"), policy.Fail},
		{"nothing is denied", one(holds("bad")), stated("A", id), policy.Pass},
		{"its statement is denied", one(holds("id")), stated("A", id), policy.Fail},
		{"equal statements are one combination", one(holds("bad")), stated("A", often...), policy.Pass},
	} {
		if got := decide.Check(c.check, world{"a": c.answer}.answers); got.Result != c.want {
			t.Errorf("%s: %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// TestDenyAcrossAttestations: one combination that passes is enough, of what has a name,
// and of no more than are asked about.
func TestDenyAcrossAttestations(t *testing.T) {
	many := func(word string, count int) policy.Answer {
		var predicates []string
		for i := range count {
			predicates = append(predicates, fmt.Sprintf(`"%s %d"`, word, i))
		}
		return stated("A", predicates...)
	}
	asking := func(first, second string, deny string) *policy.Check {
		c := &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Deny: holds(deny)}}
		for i, name := range []string{first, second} {
			c.Attestations = append(c.Attestations, policy.Attestation{
				Name: name, Path: fmt.Sprintf("attestations[%d]", i), PredicateType: "scan", Signers: []policy.Requirement{set(1, "signer "+fmt.Sprint(i))},
			})
		}
		return c
	}
	for _, c := range []struct {
		reason        string
		check         *policy.Check
		first, second policy.Answer
		want          policy.Result
		code          policy.Code
	}{
		{"neither is bad", asking("x", "y", "bad"), many("good", 1), many("good", 1), policy.Pass, policy.Verified},
		{"the first is bad", asking("x", "y", "bad"), many("bad", 1), many("good", 1), policy.Fail, policy.Denied},
		{"the second is bad", asking("x", "y", "bad"), many("good", 1), many("bad", 1), policy.Fail, policy.Denied},
		{"one that has no name is not asked about", asking("", "y", "bad"), many("bad", 1), many("good", 1), policy.Pass, policy.Verified},
		{"one of many second ones is good", asking("x", "y", "bad"), many("good", 3), stated("A", `"bad"`, `"bad too"`, `"good"`), policy.Pass, policy.Verified},
		{"as many as are asked about", asking("x", "y", "bad"), many("good", 16), many("good", 16), policy.Pass, policy.Verified},
		{"more", asking("x", "y", "bad"), many("good", 257), many("good", 1), policy.Fail, policy.TooMuch},
	} {
		got := decide.Check(c.check, world{"signer 0": c.first, "signer 1": c.second}.answers)
		if got.Result != c.want || got.Reasons[0].Code != c.code {
			t.Errorf("%s: %s %+v, want %s with %s", c.reason, got.Result, got.Reasons, c.want, c.code)
		}
	}
	for reason, answer := range map[policy.Result]policy.Answer{policy.Indeterminate: unreachable, policy.Fail: rejected(verify.WrongKey)} {
		got := decide.Check(asking("x", "y", "{"), world{"signer 0": answer, "signer 1": many("good", 1)}.answers)
		if got.Result != reason || slices.ContainsFunc(got.Reasons, func(r policy.Reason) bool { return r.Code == policy.Denied }) {
			t.Errorf("a condition was evaluated without a statement: %s %+v, want %s", got.Result, got.Reasons, reason)
		}
	}
	words := asking("x", "y", "bad")
	words.DenyMessage = "the author's words"
	for _, c := range []struct {
		check *policy.Check
		want  string
	}{{asking("x", "y", "bad"), "the policy's deny condition holds"}, {words, "the author's words"}} {
		got := decide.Check(c.check, world{"signer 0": many("bad", 1), "signer 1": many("good", 1)}.answers)
		if got.Result != policy.Fail || got.Reasons[0].Message != c.want {
			t.Errorf("got %+v, want %q", got.Reasons, c.want)
		}
	}
	if (policy.Ruling{Result: policy.Fail}).Passes() || !(policy.Ruling{Result: policy.Pass}).Passes() || !(policy.Ruling{}).Passes() || (policy.Ruling{Result: policy.Indeterminate}).Passes() {
		t.Error("what passes is another")
	}
}
