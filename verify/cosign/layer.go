package cosign

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v2/pkg/oci"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/verify/internal/limits"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// layer is a signature with its annotations, parsed once and within bounds, so that cosign's own
// parser reads only expected input.
type layer struct {
	payload []byte
	// detached: the payload is any content, which the signature is about.
	detached bool
	// envelope and statement are those of an attestation.
	envelope  *attest.Envelope
	statement attest.Statement
	// simple is the claim of a signature.
	simple simpleSigning

	encoded     string // the signature in base64; empty for an attestation
	signature   []byte
	certificate *x509.Certificate   // nil if there is none
	chain       []*x509.Certificate // intermediates in the annotations
	entry       *bundle.RekorBundle // nil if there is none
	body        []byte              // of the entry
	timestamp   *bundle.RFC3161Timestamp
}

func newLayer(evidence attest.Evidence) (*layer, error) {
	l := &layer{payload: evidence.Payload}
	read := l.readSignature
	if evidence.Role == attest.Attestation {
		read = l.readEnvelope
	}
	if err := read(evidence.Annotations[static.SignatureAnnotationKey]); err != nil {
		return nil, err
	}
	return l, l.readMaterial(evidence.Annotations)
}

// readMaterial reads what goes with the signature.
func (l *layer) readMaterial(annotations map[string]string) error {
	steps := []struct {
		annotation string
		most       int
		read       func(string) error
	}{
		{static.CertificateAnnotationKey, trust.MaxPEM, l.readCertificate},
		{static.ChainAnnotationKey, trust.MaxPEM, l.readChain},
		{static.BundleAnnotationKey, MaxEntry, l.readEntry},
		{static.RFC3161TimestampAnnotationKey, MaxTimestamp, l.readTimestamp},
	}
	for _, step := range steps {
		text := annotations[step.annotation]
		if text == "" {
			continue
		}
		if len(text) > step.most {
			return fmt.Errorf("annotation %s has %d bytes, more than the bound of %d", step.annotation, len(text), step.most)
		}
		if err := step.read(text); err != nil {
			return fmt.Errorf("annotation %s: %w", step.annotation, err)
		}
	}
	return nil
}

func (l *layer) readSignature(encoded string) error {
	err := l.decodeSignature(encoded)
	if err == nil {
		l.simple, err = parseSimpleSigning(l.payload)
	}
	return err
}

func (l *layer) decodeSignature(encoded string) error {
	switch {
	case len(l.payload) > MaxPayload:
		return fmt.Errorf("the payload has %d bytes, more than the bound of %d", len(l.payload), MaxPayload)
	case encoded == "":
		return fmt.Errorf("the layer has no annotation %s, so it is not signed", static.SignatureAnnotationKey)
	case len(encoded) > MaxSignature:
		return fmt.Errorf("the signature has %d bytes, more than the bound of %d", len(encoded), MaxSignature)
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", static.SignatureAnnotationKey, err)
	}
	l.encoded, l.signature = encoded, signature
	return nil
}

// readEnvelope ignores the signature annotation: an attestation's signatures are in its envelope,
// and cosign leaves the annotation empty.
func (l *layer) readEnvelope(string) error {
	if len(l.payload) > MaxEnvelope {
		return fmt.Errorf("the envelope has %d bytes, more than the bound of %d", len(l.payload), MaxEnvelope)
	}
	envelope, err := attest.ParseEnvelope(l.payload)
	if err != nil {
		return err
	}
	l.envelope = &envelope
	l.statement, err = attest.ParseStatement(envelope.Payload)
	return err
}

func (l *layer) readCertificate(text string) error {
	certificates, err := trust.ParseCertificates([]byte(text), 1)
	if err != nil {
		return err
	}
	l.certificate = certificates[0]
	return nil
}

// readChain keeps the certificates of authorities. A root in the annotation is not trusted.
func (l *layer) readChain(text string) error {
	certificates, err := trust.ParseCertificates([]byte(text), trust.MaxChain)
	if err != nil {
		return err
	}
	for _, c := range certificates {
		if c.IsCA {
			l.chain = append(l.chain, c)
		}
	}
	return nil
}

func (l *layer) readEntry(text string) error {
	var entry bundle.RekorBundle
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return strictjson.Readable(err)
	}
	encoded, ok := entry.Payload.Body.(string)
	if !ok {
		return errors.New("the entry has no body")
	}
	body, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("the entry's body: %w", err)
	}
	if err := limits.Entry(body); err != nil {
		return err
	}
	if len(entry.SignedEntryTimestamp) == 0 {
		return errors.New("the entry has no signed entry timestamp")
	}
	l.entry, l.body = &entry, body
	return nil
}

func (l *layer) readTimestamp(text string) error {
	var timestamp bundle.RFC3161Timestamp
	if err := json.Unmarshal([]byte(text), &timestamp); err != nil {
		return strictjson.Readable(err)
	}
	if len(timestamp.SignedRFC3161Timestamp) == 0 {
		return errors.New("it holds no timestamp")
	}
	if err := limits.Timestamp(timestamp.SignedRFC3161Timestamp); err != nil {
		return err
	}
	l.timestamp = &timestamp
	return nil
}

// stamped returns the bytes that a timestamp of the layer covers: the signature, or for an
// attestation the whole envelope, as in cosign 2.
func (l *layer) stamped() []byte {
	if l.envelope != nil {
		return l.payload
	}
	return l.signature
}

// object converts the layer for cosign's library.
func (l *layer) object() (oci.Signature, error) {
	var options []static.Option
	if l.certificate != nil {
		leaf, err := cryptoutils.MarshalCertificateToPEM(l.certificate)
		if err != nil {
			return nil, err
		}
		options = append(options, static.WithCertChain(leaf, nil))
	}
	if l.entry != nil {
		options = append(options, static.WithBundle(l.entry))
	}
	if l.timestamp != nil {
		options = append(options, static.WithRFC3161Timestamp(l.timestamp))
	}
	if l.envelope != nil {
		return static.NewAttestation(l.payload, options...)
	}
	return static.NewSignature(l.payload, l.encoded, options...)
}
