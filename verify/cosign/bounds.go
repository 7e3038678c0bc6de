package cosign

import "github.com/quaymaster/quaymaster/attest"

// Bounds on what is read of one layer, in bytes.
const (
	// MaxPayload is the size of a simple signing payload, as package attest
	// fetches it.
	MaxPayload = attest.MaxPayload
	// MaxEnvelope is the size of a DSSE envelope, as package attest fetches it.
	MaxEnvelope = attest.MaxAttestation
	// MaxSignature is the size of a signature in base64: one by the longest RSA
	// key in use (8192 bits) has 1,368.
	MaxSignature = 16 << 10
	// MaxEntry is the size of the annotation with a log entry. Entries of
	// hashedrekord have some kilobytes; old ones of in-toto hold public keys and
	// hashes only.
	MaxEntry = 1 << 20
	// MaxTimestamp is the size of the annotation with a timestamp: a response
	// with its chain has under ten kilobytes.
	MaxTimestamp = 256 << 10
)
