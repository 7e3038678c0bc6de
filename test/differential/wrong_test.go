package differential

import (
	"fmt"
	"testing"
)

// ordinary signs as most do: with a key and no log, notation with a certificate.
func ordinary(f format, attests bool) recipe {
	r := recipe{Format: f, Writer: ours, Key: keyKinds[0], Log: "none", Certified: f.isNotation(), Attests: attests, Ask: question{By: byKey, IgnoreLog: true}}
	if f.isNotation() {
		r.Ask.By = byAuthority
	}
	if attests {
		r.Ask.Attestation = "own"
	}
	return r
}

// wrong asks for each kind of wrong thing in each format, whatever is drawn: a check of
// ours that is gone is seen here, with the same evidence accepted beside it.
func (c *crowd) wrong(t *testing.T) {
	for i, f := range allFormats {
		for _, attests := range []bool{false, true} {
			if attests && f.isNotation() {
				continue
			}
			for n, change := range wrongly(f, attests) {
				r := ordinary(f, attests)
				change(&r)
				newScene(t, c, fmt.Sprintf("wrong-%d-%t-%d", i, attests, n), &r).judge("go test -count=1 -run TestDifferential/wrong ./differential")
			}
		}
	}
}

// wrongly are changes of the question; the first changes nothing.
func wrongly(f format, attests bool) []func(*recipe) {
	all := []func(*recipe){func(*recipe) {}, func(r *recipe) { r.Ask.Moved = true }}
	good := ordinary(f, attests)
	for _, by := range wrongSignersOf(&good) {
		all = append(all, func(r *recipe) { r.Ask.By = by })
	}
	if attests {
		return append(all, func(r *recipe) { r.Ask.Attestation = "other" })
	}
	return append(all, func(r *recipe) { r.Ask.Annotation = "name" })
}
