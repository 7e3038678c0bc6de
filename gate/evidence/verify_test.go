package evidence

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

func digestOf(t *testing.T, hex string) image.Digest {
	t.Helper()
	digest, err := image.ParseDigest("sha256:" + strings.Repeat(hex, 64))
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func parse(t *testing.T, text string) image.Ref {
	t.Helper()
	ref, err := image.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// claiming is a fake verifier that accepts everything as the same fact, or panics.
type claiming struct {
	fact   verify.Fact
	panics bool
}

func (c claiming) Verify(context.Context, image.Pinned, attest.Evidence, verify.Authority) (verify.Fact, error) {
	if c.panics {
		panic("a defect")
	}
	return c.fact, nil
}

// TestVerify: a verified fact counts for the query that it matches alone.
func TestVerify(t *testing.T) {
	subject, err := parse(t, "registry.example/app:1").Pin(image.Descriptor{Digest: digestOf(t, "a")})
	if err != nil {
		t.Fatal(err)
	}
	scan := policy.Question{Role: attest.Attestation, Predicate: "scan"}
	signature := policy.Question{Role: attest.Signature}
	statement := func(predicate string) verify.Fact {
		return verify.Fact{Subject: subject.Digest(), Role: attest.Attestation, Statement: &attest.Statement{PredicateType: predicate}}
	}
	signed := verify.Fact{Subject: subject.Digest(), Role: attest.Signature}
	other := signed
	other.Subject = digestOf(t, "b")
	bare := signed
	bare.Role = attest.Attestation
	statementOf := func(role attest.Role, predicate string) attest.Evidence {
		return attest.Evidence{Format: attest.Cosign, Role: role, PredicateType: predicate}
	}
	notation := attest.Evidence{Format: attest.Notation, Role: attest.Signature}
	for _, c := range []struct {
		reason   string
		query    policy.Question
		evidence attest.Evidence
		fact     verify.Fact
		want     string // fact, rejection, gap, or the kind found instead
	}{
		{"a signature", signature, statementOf(attest.Signature, ""), signed, "fact"},
		{"of another image", signature, statementOf(attest.Signature, ""), other, "rejection"},
		{"a statement as a signature", signature, statementOf(attest.Signature, ""), statement("scan"), "rejection"},
		{"a statement", scan, statementOf(attest.Attestation, "scan"), statement("scan"), "fact"},
		{"a statement that does not announce its type", scan, statementOf(attest.Attestation, ""), statement("scan"), "fact"},
		{"that is of another type", scan, statementOf(attest.Attestation, ""), statement("sbom"), "rejection"},
		{"a fact without its statement", scan, statementOf(attest.Attestation, "scan"), bare, "rejection"},
		{"a signature as a statement", scan, statementOf(attest.Attestation, "scan"), signed, "rejection"},
		{"a statement of another type", scan, statementOf(attest.Attestation, "sbom"), statement("sbom"), "an attestation of type sbom"},
		{"a signature in place of a statement", scan, statementOf(attest.Signature, ""), signed, "a signature in the format cosign"},
		{"a statement in place of a signature", signature, statementOf(attest.Attestation, ""), signed, "an attestation"},
		{"another format", signature, notation, signed, ""},
	} {
		found := Found{Subject: subject, Found: attest.Found{Evidence: []attest.Evidence{c.evidence}}}
		queries := []Query{{Question: c.query, Key: claims.Key{Of: "a"}}, {Question: c.query, Key: claims.Key{Of: "a"}}}
		answers := Verify(t.Context(), claiming{fact: c.fact}, found, queries)
		for i, got := range answers {
			if kind := kindOf(got); kind != c.want {
				t.Errorf("%s: answer %d is %q: %+v", c.reason, i, kind, got)
			}
		}
	}
	found := Found{Subject: subject, Err: errors.New("unavailable"), Found: attest.Found{Evidence: []attest.Evidence{notation}}}
	query := Query{Question: signature, Resolved: verify.Authority{Formats: []attest.Format{attest.Notation, attest.Cosign}}}
	if got := Verify(t.Context(), claiming{fact: signed}, found, []Query{query}); kindOf(got[0]) != "gap" {
		t.Errorf("a signature with a subject that is not known in full: %+v", got)
	}
	found.Err = nil
	if got := Verify(t.Context(), claiming{fact: signed}, found, []Query{query}); kindOf(got[0]) != "fact" {
		t.Errorf("a signature with a known subject: %+v", got)
	}
	found.Err, found.Evidence = errors.New("unavailable"), []attest.Evidence{statementOf(attest.Signature, "")}
	if got := Verify(t.Context(), claiming{fact: signed}, found, []Query{query}); kindOf(got[0]) != "fact" {
		t.Errorf("a signature in a format that needs no descriptor: %+v", got)
	}
	if got := Verify(t.Context(), claiming{panics: true}, found, []Query{query}); kindOf(got[0]) != "gap" {
		t.Errorf("a defect of the verifier: %+v", got)
	}
}

// kindOf names the one thing that an answer holds.
func kindOf(a policy.Answer) string {
	kinds := a.Instead
	if len(a.Facts) > 0 {
		kinds = append(kinds, "fact")
	}
	if len(a.Rejections) > 0 {
		kinds = append(kinds, "rejection")
	}
	if len(a.Gaps) > 0 {
		kinds = append(kinds, "gap")
	}
	return strings.Join(kinds, ", ")
}
