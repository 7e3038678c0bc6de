package attest_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
)

// BenchmarkHostileBundle reads two bundles that are as large as the bound allows
// and as dense as JSON can be: what a pusher can make a search cost.
func BenchmarkHostileBundle(b *testing.B) {
	s := newStore()
	for _, salt := range []string{"1", "22"} {
		dense := `{"a":[` + strings.Repeat("1,", 5900<<10) + salt + `]}`
		bundle := dsseBundle(statement(attest.PredicateCosignSign, subject, dense))
		s.refer(b, own, subject, bundleReferrer(s, subject, bundle, nil))
	}
	b.ReportAllocs()
	for b.Loop() {
		want := attest.Want{Signatures: true, Predicates: []string{slsa}}
		if found := attest.Find(b.Context(), s, pinned(b), want); len(found.Evidence) != 2 {
			b.Fatalf("malformed %v, gaps %v", found.Malformed, found.Gaps)
		}
	}
}

// BenchmarkHostileKeys reads objects of all sizes: the search for a duplicate key is their main
// cost.
func BenchmarkHostileKeys(b *testing.B) {
	for name, predicate := range map[string]string{
		"many objects": `[` + strings.Repeat(`{"a":1,"b":2},`, 200<<10) + `0]`,
		"nested":       `[` + strings.Repeat(strings.Repeat(`{"a":`, 200)+"1"+strings.Repeat("}", 200)+",", 1<<10) + `0]`,
	} {
		text := statement(slsa, subject, predicate)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := attest.ParseStatement(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
