package verify_test

import (
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/verify"
)

func TestCounted(t *testing.T) {
	key := func(key string) verify.Fact { return verify.Fact{Signer: verify.Signer{KeyFingerprint: key}} }
	certificate := func(id, key string) verify.Fact { return verify.Fact{Signer: verify.Signer{ID: id, Key: key}} }
	name := func(issuer, subject, key string) verify.Fact {
		return verify.Fact{Signer: verify.Signer{Issuer: issuer, Subject: subject, Key: key}}
	}
	for _, c := range []struct {
		reason  string
		members [][]verify.Fact
		want    []int
	}{
		{"no member", nil, []int{}},
		{"a member without facts", [][]verify.Fact{nil, {key("a")}}, []int{-1, 0}},
		{"two keys", [][]verify.Fact{{key("a")}, {key("b")}}, []int{0, 0}},
		{"one key twice", [][]verify.Fact{{key("a")}, {key("a")}}, []int{0, -1}},
		{"one key, and the other by its second signer", [][]verify.Fact{{key("a"), key("b")}, {key("a")}}, []int{1, 0}},
		{"two certificates", [][]verify.Fact{{certificate("x", "a")}, {certificate("y", "b")}}, []int{0, 0}},
		{"two certificates of one key", [][]verify.Fact{{certificate("x", "a")}, {certificate("y", "a")}}, []int{0, -1}},
		{"one identity with two keys", [][]verify.Fact{{certificate("x", "a")}, {certificate("x", "b")}}, []int{0, -1}},
		{"a key and a certificate of another", [][]verify.Fact{{key("a")}, {certificate("x", "b")}}, []int{0, 0}},
		{"a key and its certificate", [][]verify.Fact{{key("a")}, {certificate("x", "a")}}, []int{0, -1}},
		{"keys of one identity", [][]verify.Fact{{key("a")}, {key("b")}, {certificate("x", "a"), certificate("x", "b")}}, []int{0, -1, -1}},
		{"two names", [][]verify.Fact{{name("i", "x", "a")}, {name("i", "y", "b")}}, []int{0, 0}},
		{"one name of two issuers", [][]verify.Fact{{name("i", "x", "a")}, {name("j", "x", "b")}}, []int{0, 0}},
		{"two names of one key", [][]verify.Fact{{name("i", "x", "a")}, {name("i", "y", "a")}}, []int{0, -1}},
		{"signers without a name", [][]verify.Fact{{{}}, {{}}}, []int{0, -1}},
	} {
		got, count := verify.Counted(c.members)
		met := len(c.want)
		for _, at := range c.want {
			met += min(at, 0)
		}
		if !slices.Equal(got, c.want) || count != met {
			t.Errorf("%s: got %v of %d, want %v of %d", c.reason, got, count, c.want, met)
		}
	}
}
