package evidence

import (
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// TestWanted: a search is for all that its queries can use, each once, and for nothing else.
func TestWanted(t *testing.T) {
	scan := policy.Question{Role: attest.Attestation, Predicate: "scan"}
	artifact := policy.Question{Role: attest.Attestation, Predicate: "sbom", Artifact: true}
	signature := policy.Question{Role: attest.Signature}
	cosign, notary := verify.Authority{}, verify.Authority{Notation: &verify.Notation{}}
	for _, c := range []struct {
		reason     string
		queries    []Query
		formats    []attest.Format
		signatures bool
		predicates []string
		artifacts  []string
	}{
		{"a signature", []Query{{Question: signature, Resolved: cosign}}, []attest.Format{attest.Bundle, attest.Cosign}, true, nil, nil},
		{"of Notation", []Query{{Question: signature, Resolved: notary}}, []attest.Format{attest.Notation}, true, nil, nil},
		{"of a format that is named", []Query{{Question: signature, Resolved: verify.Authority{Formats: []attest.Format{attest.Cosign}}}}, []attest.Format{attest.Cosign}, true, nil, nil},
		{"a statement, by two keys", []Query{{Question: scan}, {Question: scan}}, []attest.Format{attest.Bundle, attest.Cosign}, false, []string{"scan"}, nil},
		{"an artifact", []Query{{Question: artifact}, {Question: artifact}}, []attest.Format{attest.Bundle, attest.Cosign}, false, nil, []string{"sbom"}},
		{"of each kind", []Query{{Question: artifact}, {Question: scan}, {Question: signature, Resolved: notary}},
			[]attest.Format{attest.Bundle, attest.Cosign, attest.Notation}, true, []string{"scan"}, []string{"sbom"}},
	} {
		got := wanted(c.queries)
		slices.Sort(c.formats)
		if !slices.Equal(got.Formats, c.formats) || got.Signatures != c.signatures || !slices.Equal(got.Predicates, c.predicates) || !slices.Equal(got.Artifacts, c.artifacts) {
			t.Errorf("%s: %+v", c.reason, got)
		}
	}
}
