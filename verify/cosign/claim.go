package cosign

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/verify"
)

// simpleSigning is the content of a simple signing payload.
type simpleSigning struct {
	digest      string
	annotations map[string]string
}

// parseSimpleSigning reads the payload. The type is part of the claim: the same
// key may sign payloads of other types, which mean something else.
func parseSimpleSigning(text []byte) (simpleSigning, error) {
	var parsed payload.SimpleContainerImage
	if err := json.Unmarshal(text, &parsed); err != nil {
		return simpleSigning{}, fmt.Errorf("simple signing payload: %w", strictjson.Readable(err))
	}
	if parsed.Critical.Type != payload.CosignSignatureType {
		return simpleSigning{}, fmt.Errorf("simple signing payload: its type is %q, want %q", parsed.Critical.Type, payload.CosignSignatureType)
	}
	claim := simpleSigning{digest: parsed.Critical.Image.DockerManifestDigest}
	if claim.digest == "" {
		return simpleSigning{}, errors.New("simple signing payload: it names no digest")
	}
	for name, value := range parsed.Optional {
		text, ok := value.(string)
		if !ok {
			continue // cosign compares texts
		}
		if claim.annotations == nil {
			claim.annotations = make(map[string]string)
		}
		claim.annotations[name] = text
	}
	return claim, nil
}

// check decides whether the claim is about the digest. cosign's library calls it once the
// signature over the payload is verified.
func (l *layer) check(digest image.Digest) *verify.Rejection {
	if l.detached {
		if found := image.DigestOf(l.payload); found != digest {
			return &verify.Rejection{Code: verify.WrongDigest, Expected: digest.String(), Found: found.String()}
		}
		return nil
	}
	if l.envelope == nil {
		if l.simple.digest == digest.String() {
			return nil
		}
		return &verify.Rejection{Code: verify.WrongDigest, Expected: digest.String(), Found: l.simple.digest}
	}
	if l.statement.Covers(digest) {
		return nil
	}
	rejection := &verify.Rejection{Code: verify.WrongDigest, Expected: digest.String()}
	if value := l.statement.Subjects[0].Digest[digest.Algorithm()]; value != "" {
		rejection.Found = digest.Algorithm() + ":" + value
	}
	if more := len(l.statement.Subjects) - 1; more > 0 {
		rejection.Found += fmt.Sprintf(" and %d more", more)
	}
	return rejection
}

// claim adds the signed claim to a fact. A statement is an attestation, except cosign's own
// signing statement.
func (l *layer) claim(fact *verify.Fact) {
	if l.envelope == nil {
		fact.Role, fact.Annotations, fact.Signatures = attest.Signature, l.simple.annotations, []string{verify.SignatureID(l.signature)}
		return
	}
	for _, signature := range l.envelope.Signatures {
		fact.Signatures = append(fact.Signatures, verify.SignatureID(signature.Sig))
	}
	fact.Annotations = verify.SubjectAnnotations(l.statement, fact.Subject)
	if l.statement.PredicateType == attest.PredicateCosignSign {
		fact.Role = attest.Signature
		return
	}
	fact.Role, fact.Statement = attest.Attestation, &l.statement
}
