package verify_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/verify"
)

// statement is a fact about a statement with a text, by a signer, at a second; zero is no time.
func statement(signer, text string, at int64) verify.Fact {
	fact := verify.Fact{
		Role: attest.Attestation, Signer: verify.Signer{KeyFingerprint: signer},
		Statement: &attest.Statement{PredicateType: "scan", Predicate: json.RawMessage(text)},
	}
	if at > 0 {
		fact.SignedAt = time.Unix(at, 0)
	}
	return fact
}

func TestLatest(t *testing.T) {
	other := statement("a", "old", 1)
	other.Statement.PredicateType = "sbom"
	by := func(fact verify.Fact, signatures ...string) verify.Fact {
		fact.Signatures = signatures
		return fact
	}
	certified := func(id, key string, at int64) verify.Fact {
		fact := statement("", "same", at)
		fact.Signer.ID, fact.Signer.Key = id, key
		return fact
	}
	for _, c := range []struct {
		reason string
		facts  []verify.Fact
		times  []int64
		want   []int // positions
	}{
		{"none", nil, nil, nil},
		{"one without a time", []verify.Fact{statement("a", "x", 0)}, []int64{0}, []int{0}},
		{"several without a time", []verify.Fact{statement("a", "x", 0), statement("a", "y", 0)}, []int64{0, 0}, []int{0, 1}},
		{"the latest", []verify.Fact{statement("a", "x", 1), statement("a", "y", 3), statement("b", "z", 2)}, []int64{1, 3, 2}, []int{1}},
		{"two at once", []verify.Fact{statement("a", "x", 3), statement("a", "y", 3), statement("a", "z", 2)}, []int64{3, 3, 2}, []int{0, 1}},
		{"one without a time beside one with it", []verify.Fact{statement("a", "x", 0), statement("a", "y", 1)}, []int64{0, 1}, []int{1}},
		{"an old one that is logged again", []verify.Fact{statement("a", "old", 3), statement("a", "new", 2), statement("a", "old", 1)}, []int64{1, 2, 1}, []int{1}},
		{"one without a time that is logged elsewhere", []verify.Fact{statement("a", "old", 0), statement("a", "old", 1)}, []int64{1, 1}, []int{0, 1}},
		{"the same text by another signer", []verify.Fact{statement("a", "same", 2), statement("b", "same", 1)}, []int64{2, 1}, []int{0}},
		{"the same text by another certificate", []verify.Fact{certified("x", "k", 2), certified("y", "l", 1)}, []int64{2, 1}, []int{0}},
		{"the same text by another certificate of one key", []verify.Fact{certified("x", "k", 2), certified("y", "k", 1)}, []int64{1, 1}, []int{0, 1}},
		{"the same text by one identity with two keys", []verify.Fact{certified("x", "k", 2), certified("x", "l", 1)}, []int64{1, 1}, []int{0, 1}},
		{"a verdict that is signed anew", []verify.Fact{by(statement("a", "dirty", 1), "x"), by(statement("a", "clean", 2), "y"), by(statement("a", "dirty", 3), "z")}, []int64{1, 2, 3}, []int{2}},
		{"a signature that is logged again", []verify.Fact{by(statement("a", "clean", 1), "x"), by(statement("a", "dirty", 2), "y"), by(statement("a", "clean", 3), "x")}, []int64{1, 2, 1}, []int{1}},
		{"one that is logged again beside another", []verify.Fact{by(statement("a", "clean", 1), "x"), by(statement("a", "dirty", 2), "y"), by(statement("a", "clean", 3), "junk", "x")}, []int64{1, 2, 1}, []int{1}},
		{"a signature that is not known", []verify.Fact{by(statement("a", "clean", 1), "x"), by(statement("a", "dirty", 2), "y"), statement("a", "clean", 3)}, []int64{1, 2, 1}, []int{1}},
		{"the same text of another type", []verify.Fact{statement("a", "old", 2), other}, []int64{2, 1}, []int{0}},
		{"a signature without a statement that is logged again", []verify.Fact{by(verify.Fact{SignedAt: time.Unix(1, 0)}, "x"), by(verify.Fact{SignedAt: time.Unix(2, 0)}, "x")}, []int64{1, 1}, []int{0, 1}},
		{"two signatures without a statement", []verify.Fact{by(verify.Fact{SignedAt: time.Unix(1, 0)}, "x"), by(verify.Fact{SignedAt: time.Unix(2, 0)}, "y")}, []int64{1, 2}, []int{1}},
		{"signatures without a statement", []verify.Fact{{SignedAt: time.Unix(1, 0)}, {SignedAt: time.Unix(2, 0)}}, []int64{1, 2}, []int{1}},
	} {
		var times []int64
		for _, at := range verify.Times(c.facts) {
			if at.IsZero() {
				times = append(times, 0)
				continue
			}
			times = append(times, at.Unix())
		}
		if !slices.Equal(times, c.times) {
			t.Errorf("%s: times %v, want %v", c.reason, times, c.times)
		}
		var want []verify.Fact
		for _, i := range c.want {
			want = append(want, c.facts[i])
		}
		same := func(a, b verify.Fact) bool { return a.Statement == b.Statement && a.SignedAt.Equal(b.SignedAt) }
		if got := verify.Latest(c.facts); !slices.EqualFunc(got, want, same) {
			t.Errorf("%s: got %d facts, want %d of %v", c.reason, len(got), len(want), c.want)
		}
	}
}
