package verifytest

import (
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// IntotoPayloadType is the payload type of envelopes that hold a statement.
const IntotoPayloadType = "application/vnd.in-toto+json"

// Claim describes a signature: its content, signer and evidence.
//
// Exactly one of Artifact, Image, Statement and Payload is set. The first two are signed as they
// are (a message signature), the others in a DSSE envelope.
type Claim struct {
	Signer *Signer

	Artifact  []byte         // any bytes
	Image     *SimpleSigning // cosign's legacy payload
	Statement *Statement     // an in-toto statement
	Payload   []byte         // any bytes, of type PayloadType
	// PayloadType is the type of the envelope's payload;
	// IntotoPayloadType if empty.
	PayloadType string

	// Version of the bundle: "0.1", "0.2" or "0.3"; the last if empty.
	Version string
	// Time of signing. If zero it is a time at which a keyless signer's certificate is valid; for
	// a bare key it is the Sigstore's current time.
	Time time.Time

	// Records are the log entries. If empty there is one of Rekor v1, with
	// promise and proof.
	Records []Record
	// NoLog omits log entries.
	NoLog bool
	// Stamps are the RFC 3161 timestamps.
	Stamps []Stamp

	// NoChain omits the issuers of the certificate, in formats that include them.
	NoChain bool

	// CoSigner adds a second signature to an envelope. A bundle must have one.
	CoSigner *Signer
	// Shown is a keyless signer. Its certificate replaces the signer's own in the evidence; logs
	// record the signer's own.
	Shown *Signer
	// WrongSignature signs and records other bytes than the shown ones.
	WrongSignature bool
	// NoSignatures leaves the list of signatures of an envelope empty.
	NoSignatures bool
}

// content is the signed content and its signature.
type content struct {
	signer      *Signer
	dsse        bool
	payload     []byte
	payloadType string
	message     []byte      // the payload, or its pre-authentication encoding
	hash        crypto.Hash // of the signature; SHA-256 where the signature has none
	pure        bool        // an Ed25519 signature without a digest
	digest      []byte      // of the message, as logs record it
	signature   []byte
	signatures  [][]byte // of the envelope; the first is signature, unless there is none
	envelope    []byte   // JSON
}

// sealed is a content with its evidence.
type sealed struct {
	*content
	leaf    *x509.Certificate   // nil for a bare key
	issuers []*x509.Certificate // the issuers in the evidence, the root last
	entries []*entry
	stamps  [][]byte
}

// seal signs a claim and gathers its evidence. A message signature of a
// keyless Ed25519 key is prehashed in bundles.
func (s *Sigstore) seal(c Claim, bundled bool) (*sealed, error) {
	signed, err := c.content(bundled)
	if err != nil {
		return nil, err
	}
	at := c.Time
	if at.IsZero() {
		at = s.now()
		if c.Signer.leaf != nil {
			at = c.Signer.time
		}
	}
	records := c.Records
	if len(records) == 0 && !c.NoLog {
		records = []Record{{}}
	}
	if len(records) > 0 && c.NoLog {
		return nil, errors.New("claim: NoLog and Records exclude each other")
	}
	shown := c.Signer
	if c.Shown != nil {
		shown = c.Shown
		if shown.leaf == nil {
			return nil, errors.New("claim: Shown has no certificate")
		}
	}
	all := &sealed{content: signed, leaf: shown.leaf}
	if !c.NoChain {
		all.issuers = shown.issuers
	}
	for _, r := range records {
		recorded := signed
		if r.Fault == OtherSignature {
			recorded, err = signed.other()
			if err != nil {
				return nil, err
			}
		}
		e, err := s.record(r, recorded, at)
		if err != nil {
			return nil, err
		}
		all.entries = append(all.entries, e)
		if r.Fault == Repeated {
			all.entries = append(all.entries, e)
		}
	}
	for _, st := range c.Stamps {
		der, err := s.stamp(st, signed.stamped(bundled), at)
		if err != nil {
			return nil, err
		}
		all.stamps = append(all.stamps, der)
	}
	return all, nil
}

// stamped returns the bytes that a timestamp covers: the signature, but in cosign's legacy
// attestations the whole envelope.
func (c *content) stamped(bundled bool) []byte {
	if c.dsse && !bundled {
		return c.envelope
	}
	return c.signature
}

// content signs.
func (c Claim) content(bundled bool) (*content, error) {
	payload, isDSSE, err := c.payload()
	if err != nil {
		return nil, err
	}
	if (c.NoSignatures || c.CoSigner != nil) && !isDSSE {
		return nil, errors.New("claim: NoSignatures and CoSigner are for envelopes")
	}
	payloadType := ""
	if isDSSE {
		payloadType = c.PayloadType
		if payloadType == "" {
			payloadType = IntotoPayloadType
		}
	}
	out := &content{signer: c.Signer, dsse: isDSSE, payload: payload, payloadType: payloadType}
	if err := out.sign(c.WrongSignature, bundled && !isDSSE && c.Signer.leaf != nil); err != nil {
		return nil, err
	}
	if c.NoSignatures {
		out.signatures = nil
	}
	if c.CoSigner != nil {
		second, err := c.CoSigner.Sign(out.message)
		if err != nil {
			return nil, err
		}
		out.signatures = append(out.signatures, second)
	}
	return out, out.encode()
}

// payload returns the bytes of the content, and whether they go in an envelope.
func (c Claim) payload() (payload []byte, isDSSE bool, err error) {
	if c.Signer == nil {
		return nil, false, errors.New("claim: no signer")
	}
	given := 0
	for _, is := range []bool{c.Artifact != nil, c.Image != nil, c.Statement != nil, c.Payload != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, false, errors.New("claim: set exactly one of Artifact, Image, Statement and Payload")
	}
	switch {
	case c.Artifact != nil:
		return c.Artifact, false, nil
	case c.Image != nil:
		payload, err = c.Image.encode()
		return payload, false, err
	case c.Statement != nil:
		payload, err = c.Statement.encode()
		return payload, true, err
	}
	return c.Payload, true, nil
}

// sign fills in the signature. prehash is the default of an Ed25519 key; the key's own option
// overrides it.
func (c *content) sign(wrong, prehash bool) error {
	c.message = c.payload
	if c.dsse {
		c.message = dsse.PAE(c.payloadType, c.payload)
	}
	c.hash = c.signer.options.Hash
	if c.signer.options.Algorithm == Ed25519 {
		prehash = prehash || c.signer.options.Prehash
		c.pure = !prehash
		c.hash = crypto.SHA256
		if prehash {
			c.hash = crypto.SHA512
		}
	}
	if wrong {
		c.message = append([]byte("other bytes: "), c.message...)
	}
	c.digest = sum(c.hash, c.message)
	var err error
	c.signature, err = c.signer.sign(c.message, prehash)
	if err != nil {
		return err
	}
	c.signatures = [][]byte{c.signature}
	return c.encode()
}

// encode writes the envelope.
func (c *content) encode() error {
	if !c.dsse {
		return nil
	}
	signatures := []dsse.Signature{} // an empty list, not null
	for _, one := range c.signatures {
		signatures = append(signatures, dsse.Signature{Sig: base64.StdEncoding.EncodeToString(one)})
	}
	var err error
	c.envelope, err = json.Marshal(dsse.Envelope{
		PayloadType: c.payloadType,
		Payload:     base64.StdEncoding.EncodeToString(c.payload),
		Signatures:  signatures,
	})
	if err != nil {
		return fmt.Errorf("encode an envelope: %w", err)
	}
	return nil
}

// other is another content, genuinely signed by the same signer.
func (c *content) other() (*content, error) {
	o := &content{signer: c.signer, dsse: c.dsse, payloadType: c.payloadType}
	o.payload = append([]byte("\n"), c.payload...)
	return o, o.sign(false, !c.pure)
}

// Envelope writes a bare DSSE envelope (JSON) of a claim with a statement or a payload. It has no
// members for Records and Stamps.
func (s *Sigstore) Envelope(c Claim) ([]byte, error) {
	if len(c.Records) > 0 || len(c.Stamps) > 0 {
		return nil, errors.New("envelope: a bare envelope carries no log entries and no timestamps")
	}
	signed, err := c.content(false)
	if err != nil {
		return nil, err
	}
	if !signed.dsse {
		return nil, errors.New("envelope: set Statement or Payload")
	}
	return signed.envelope, nil
}
