package attest

import (
	"encoding/json"
	"errors"
	"fmt"
)

// peekBundle returns the unverified role of a Sigstore bundle, and the predicate type of an
// attestation. Protocol buffers write a field of JSON in camel case and accept snake case, too; a
// bundle that has both is refused, as it is by them.
func peekBundle(b []byte) (Role, string, error) {
	role, predicate, err := readBundle(b)
	if err != nil {
		return "", "", fmt.Errorf("bundle: %w", err)
	}
	return role, predicate, nil
}

func readBundle(b []byte) (Role, string, error) {
	if err := CheckJSON(b); err != nil {
		return "", "", err
	}
	members, err := fields(b, "mediaType", "media_type", "messageSignature", "message_signature", "dsseEnvelope", "dsse_envelope")
	if err != nil {
		return "", "", err
	}
	mediaType, err := either[string](members, "mediaType", "media_type")
	if err != nil {
		return "", "", err
	}
	if !isBundle(mediaType) {
		return "", "", fmt.Errorf("media type %q is not that of a Sigstore bundle", shorten(mediaType))
	}
	message, err := either[json.RawMessage](members, "messageSignature", "message_signature")
	if err != nil {
		return "", "", err
	}
	envelope, err := either[json.RawMessage](members, "dsseEnvelope", "dsse_envelope")
	if err != nil {
		return "", "", err
	}
	switch {
	case len(message) > 0 && len(envelope) > 0:
		return "", "", errors.New("it has both a message signature and an envelope")
	case len(message) > 0:
		return Signature, "", nil
	case len(envelope) == 0:
		return "", "", errors.New("it has neither a message signature nor an envelope")
	}
	return peekBundled(envelope)
}

// peekBundled reads the envelope of a bundle.
func peekBundled(envelope json.RawMessage) (Role, string, error) {
	members, err := fields(envelope, "payload", "payloadType", "payload_type", "signatures")
	if err != nil {
		return "", "", err
	}
	payloadType, err := either[string](members, "payloadType", "payload_type")
	if err != nil {
		return "", "", err
	}
	if payloadType != MediaTypeInToto {
		return "", "", fmt.Errorf("payload type %q is not %s", shorten(payloadType), MediaTypeInToto)
	}
	var encoded string
	if err := decode(members, "payload", &encoded); err != nil {
		return "", "", err
	}
	payload, err := decodePayload(encoded)
	if err != nil {
		return "", "", err
	}
	statement, err := ParseStatement(payload)
	if err != nil {
		return "", "", err
	}
	if statement.PredicateType == PredicateCosignSign {
		return Signature, statement.PredicateType, nil
	}
	return Attestation, statement.PredicateType, nil
}

// either reads a member with two possible names. null is no value, as in protocol buffers.
func either[T any](members map[string]json.RawMessage, camel, snake string) (T, error) {
	var value T
	_, hasCamel := members[camel]
	_, hasSnake := members[snake]
	name := camel
	switch {
	case hasCamel && hasSnake:
		return value, fmt.Errorf("it has both %q and %q", camel, snake)
	case hasSnake:
		name = snake
	}
	if string(members[name]) == "null" {
		return value, nil
	}
	return value, decode(members, name, &value)
}
