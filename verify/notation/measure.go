package notation

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/notaryproject/tspclient-go"
	gocose "github.com/veraison/go-cose"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// timestampHeader is the envelope's header with the RFC 3161 timestamp.
const timestampHeader = "io.cncf.notary.timestampSignature"

// measure refuses envelopes that are expensive to process. It runs first, because
// notation-core-go computes while it reads a chain, before it checks trust.
func (p *proof) measure() error {
	chain, timestamp := carriedByJWS(p.evidence.Payload)
	if p.evidence.MediaType == cose.MediaTypeEnvelope {
		chain, timestamp = carriedByCOSE(p.evidence.Payload)
	}
	if len(chain) > maxChain {
		return p.bound(fmt.Errorf("the certificate chain has %d certificates, more than %d are not looked at", len(chain), maxChain))
	}
	for _, der := range chain {
		if err := limits.Certificate(der); err != nil {
			return p.reject(verify.Malformed, fmt.Errorf("read envelope: %w", err))
		}
	}
	if err := p.vouched(chain); err != nil {
		return err
	}
	token, err := tspclient.ParseSignedToken(timestamp)
	if err != nil {
		return nil //nolint:nilerr // there is none, or the next parser reports the error
	}
	if err := limits.Signers(token.Certificates, len(token.SignerInfos)); err != nil {
		return p.reject(verify.Malformed, fmt.Errorf("read envelope: %w", err))
	}
	return nil
}

// vouched refuses a chain that no trusted certificate leads to, if authenticity is enforced.
// notation-core-go starts at the other end and computes with each key of the chain.
func (p *proof) vouched(chain [][]byte) error {
	certificates, _ := x509.ParseCertificates(bytes.Join(chain, nil))
	if len(certificates) == 0 || p.terms.level.Authenticity != verify.Enforce {
		return nil // the next parser reports a chain that cannot be parsed
	}
	signer := certificates[0]
	trusted := slices.Concat(p.terms.stores[truststore.TypeCA], p.terms.stores[truststore.TypeSigningAuthority])
	if slices.ContainsFunc(append(limits.Certified(certificates, trusted), trusted...), signer.Equal) {
		return nil
	}
	return p.miss(verify.UntrustedChain, "a certificate of the trust store: "+subjects(trusted), certificates[len(certificates)-1].Subject.String())
}

// carriedByJWS reads what an envelope carries without a signature, as notation-core-go does.
func carriedByJWS(payload []byte) (chain [][]byte, timestamp []byte) {
	var envelope struct {
		Header struct {
			Timestamp []byte   `json:"io.cncf.notary.timestampSignature"`
			Chain     [][]byte `json:"x5c"`
		} `json:"header"`
	}
	_ = json.Unmarshal(payload, &envelope) // it was read before
	return envelope.Header.Chain, envelope.Header.Timestamp
}

func carriedByCOSE(payload []byte) (chain [][]byte, timestamp []byte) {
	var message gocose.Sign1Message
	_ = message.UnmarshalCBOR(payload) // it was read before
	list, _ := message.Headers.Unprotected[gocose.HeaderLabelX5Chain].([]any)
	for _, one := range list {
		der, _ := one.([]byte)
		chain = append(chain, der)
	}
	timestamp, _ = message.Headers.Unprotected[timestampHeader].([]byte)
	return chain, timestamp
}
