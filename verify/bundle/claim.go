package bundle

import (
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/verify"
)

// payloadTypeInToto is the DSSE payload type of in-toto statements.
const payloadTypeInToto = "application/vnd.in-toto+json"

// claim adds the signed claim to the fact: a plain signature, or a statement with a predicate.
func (p *proof) claim(fact *verify.Fact) *verify.Rejection {
	if p.isMessage() {
		fact.Role, fact.Signatures = attest.Signature, []string{verify.SignatureID(p.content.Signature())} // of the artifact itself, without a statement
		return nil
	}
	statement, err := p.statement()
	if err != nil {
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	// Where the artifact's bytes are available, sigstore-go has hashed them with the statement's
	// own algorithms, which may differ from the digest's.
	if p.artifact.Content == nil && !statement.Covers(p.artifact.Digest) {
		return p.otherDigest(statement)
	}
	fact.Annotations = verify.SubjectAnnotations(statement, p.artifact.Digest)
	for _, signature := range p.entity.GetDsseEnvelope().GetSignatures() {
		fact.Signatures = append(fact.Signatures, verify.SignatureID(signature.GetSig()))
	}
	if statement.PredicateType == attest.PredicateCosignSign {
		return nil
	}
	fact.Role, fact.Statement = attest.Attestation, &statement
	return nil
}

// statement reads the in-toto statement in the envelope.
func (p *proof) statement() (attest.Statement, error) {
	envelope := p.content.EnvelopeContent().RawEnvelope()
	if envelope == nil {
		return attest.Statement{}, errors.New("the bundle's envelope is empty")
	}
	if envelope.PayloadType != payloadTypeInToto {
		return attest.Statement{}, fmt.Errorf("the envelope holds %q, want an in-toto statement (%s)", envelope.PayloadType, payloadTypeInToto)
	}
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		return attest.Statement{}, fmt.Errorf("the envelope's payload: %w", err)
	}
	return attest.ParseStatement(payload)
}

func (p *proof) otherDigest(statement attest.Statement) *verify.Rejection {
	rejection := &verify.Rejection{Code: verify.WrongDigest, Expected: p.artifact.Digest.String()}
	if len(statement.Subjects) > 0 {
		algorithm := p.artifact.Digest.Algorithm()
		if value := statement.Subjects[0].Digest[algorithm]; value != "" {
			rejection.Found = algorithm + ":" + value
		} else {
			rejection.Found = "a subject without a " + algorithm + " digest"
		}
	}
	if more := len(statement.Subjects) - 1; more > 0 {
		rejection.Found += fmt.Sprintf(" and %d more", more)
	}
	return rejection
}
