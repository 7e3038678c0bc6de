package attest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Envelope is a DSSE v1 envelope around an in-toto statement. Its signatures
// have not been checked.
type Envelope struct {
	PayloadType string
	// Payload is the statement's JSON, decoded.
	Payload    []byte
	Signatures []EnvelopeSignature
}

// EnvelopeSignature is one signature over an envelope's payload type and payload.
type EnvelopeSignature struct {
	KeyID string
	Sig   []byte
}

// ParseEnvelope parses a DSSE v1 envelope in JSON. It refuses any payload type but in-toto's, an
// empty payload, no signature or more than MaxSignatures, and JSON that parsers read differently.
// Base64 may be of the standard or the URL-safe alphabet.
func ParseEnvelope(b []byte) (Envelope, error) {
	if len(b) > MaxAttestation {
		return Envelope{}, overBound("DSSE envelope", "MaxAttestation", MaxAttestation)
	}
	if err := CheckJSON(b); err != nil {
		return Envelope{}, fmt.Errorf("DSSE envelope: %w", err)
	}
	e, err := readEnvelope(b)
	if err != nil {
		return Envelope{}, fmt.Errorf("DSSE envelope: %w", err)
	}
	return e, nil
}

func readEnvelope(b []byte) (Envelope, error) {
	members, err := fields(b, "payload", "payloadType", "signatures")
	if err != nil {
		return Envelope{}, err
	}
	var payload, payloadType string
	signatures, err := elements(members, "signatures", MaxSignatures)
	if err := errors.Join(
		err,
		decode(members, "payload", &payload),
		decode(members, "payloadType", &payloadType),
	); err != nil {
		return Envelope{}, err
	}
	switch {
	case payloadType == "" && len(members["_type"]) > 0:
		return Envelope{}, errors.New("it is a bare statement without a signature")
	case payloadType != MediaTypeInToto:
		return Envelope{}, fmt.Errorf("payload type %q is not %s", shorten(payloadType), MediaTypeInToto)
	case len(signatures) == 0:
		return Envelope{}, errors.New("it has no signature")
	case len(signatures) > MaxSignatures:
		return Envelope{}, overBound("signatures", "MaxSignatures", MaxSignatures)
	}
	e := Envelope{PayloadType: payloadType}
	e.Payload, err = decodePayload(payload)
	if err != nil {
		return Envelope{}, err
	}
	for i, raw := range signatures {
		sig, err := readSignature(raw)
		if err != nil {
			return Envelope{}, fmt.Errorf("signature %d: %w", i+1, err)
		}
		e.Signatures = append(e.Signatures, sig)
	}
	return e, nil
}

func readSignature(raw json.RawMessage) (EnvelopeSignature, error) {
	members, err := fields(raw, "keyid", "sig")
	if err != nil {
		return EnvelopeSignature{}, err
	}
	var s EnvelopeSignature
	var encoded string
	if err := errors.Join(decode(members, "keyid", &s.KeyID), decode(members, "sig", &encoded)); err != nil {
		return EnvelopeSignature{}, err
	}
	s.Sig, err = decodeBase64(encoded)
	if err != nil {
		return EnvelopeSignature{}, err
	}
	if len(s.Sig) == 0 {
		return EnvelopeSignature{}, errors.New("it is empty")
	}
	return s, nil
}

func decodePayload(encoded string) ([]byte, error) {
	payload, err := decodeBase64(encoded)
	switch {
	case err != nil:
		return nil, fmt.Errorf("payload: %w", err)
	case len(payload) == 0:
		return nil, errors.New("the payload is empty")
	}
	return payload, nil
}

// decodeBase64 accepts both alphabets, with or without padding, never mixed, and line breaks as
// in the output of command-line encoders.
func decodeBase64(s string) ([]byte, error) {
	encoding := base64.StdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.URLEncoding
	}
	if !strings.HasSuffix(strings.TrimRight(s, "\r\n"), "=") {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	return encoding.Strict().DecodeString(s)
}

// peekEnvelope returns the predicate type of the statement in an envelope.
func peekEnvelope(b []byte) (string, error) {
	e, err := ParseEnvelope(b)
	if err != nil {
		return "", err
	}
	statement, err := ParseStatement(e.Payload)
	if err != nil {
		return "", err
	}
	return statement.PredicateType, nil
}
