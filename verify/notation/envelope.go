package notation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-go/verifier/truststore"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// pluginPrefix starts the attributes by which a signature requests a verification plugin.
const pluginPrefix = "io.cncf.notary.verificationPlugin"

// envelope is the unverified content of a signature envelope.
type envelope struct {
	info   signature.SignerInfo
	target ocispec.Descriptor
}

// store returns the kind of trust store for the signature's scheme.
func (e *envelope) store() truststore.Type {
	if e.info.SignedAttributes.SigningScheme == signature.SigningSchemeX509SigningAuthority {
		return truststore.TypeSigningAuthority
	}
	return truststore.TypeCA
}

// open parses the envelope. It refuses unknown critical attributes, which notation-go ignores.
func (p *proof) open() error {
	if len(p.evidence.Payload) > maxEnvelope {
		return p.bound(fmt.Errorf("the envelope has %d bytes, more than %d are not read", len(p.evidence.Payload), maxEnvelope))
	}
	parsed, err := signature.ParseEnvelope(p.evidence.MediaType, p.evidence.Payload)
	if err != nil {
		return p.reject(verify.Malformed, fmt.Errorf("read envelope of media type %q: %w", p.evidence.MediaType, err))
	}
	if err := p.measure(); err != nil {
		return err
	}
	content, err := parsed.Content()
	if err != nil {
		return p.reject(integrityCode(err), fmt.Errorf("read envelope: %w", err))
	}
	info := content.SignerInfo
	for _, attribute := range info.SignedAttributes.ExtendedAttributes {
		key := fmt.Sprint(attribute.Key)
		switch {
		case strings.HasPrefix(key, pluginPrefix):
			return p.reject(verify.WrongFormat,
				fmt.Errorf("the signature asks for the verification plugin %v, and plugins are not supported; sign without one", attribute.Value))
		case attribute.Critical:
			return p.reject(verify.WrongFormat, fmt.Errorf("the signature has the critical attribute %q, which is not known here", key))
		}
	}
	var payload struct {
		TargetArtifact ocispec.Descriptor `json:"targetArtifact"`
	}
	if err := json.Unmarshal(content.Payload.Content, &payload); err != nil {
		return p.reject(verify.Malformed, fmt.Errorf("read payload: %w", err))
	}
	p.signed = &envelope{info: info, target: payload.TargetArtifact}
	return nil
}

func (p *proof) bound(err error) error {
	return &image.Error{Kind: image.Bound, Op: "verify notation signature", On: p.evidence.Origin.String(), Err: err}
}

// integrityCode distinguishes signatures that do not match and broken chains from envelopes that
// cannot be parsed.
func integrityCode(err error) verify.Code {
	if _, ok := errors.AsType[*signature.SignatureIntegrityError](err); ok {
		return verify.BadSignature
	}
	if _, ok := errors.AsType[*signature.UnsupportedSignatureAlgoError](err); ok {
		return verify.BadSignature
	}
	// notation-core-go has one error type for all other failures, so only the text identifies a
	// broken chain. A different text would make it Malformed.
	if strings.Contains(err.Error(), "certificate-chain is invalid") {
		return verify.UntrustedChain
	}
	return verify.Malformed
}
