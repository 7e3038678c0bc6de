package cosign

import "github.com/quaymaster/quaymaster/attest"

// Bounds on the parts of one layer, in bytes.
const (
	// MaxPayload is the size of a simple signing payload, equal to the limit of package attest.
	MaxPayload = attest.MaxPayload
	// MaxEnvelope is the size of a DSSE envelope, equal to the limit of package attest.
	MaxEnvelope = attest.MaxAttestation
	// MaxSignature is the size of a signature in base64. The longest RSA key in use (8192 bits)
	// needs 1,368.
	MaxSignature = 16 << 10
	// MaxEntry is the size of the annotation with a log entry. Entries of hashedrekord have some
	// kilobytes; old ones of in-toto hold public keys and hashes only.
	MaxEntry = 1 << 20
	// MaxTimestamp is the size of the annotation with a timestamp. A response with its chain has
	// under ten kilobytes.
	MaxTimestamp = 256 << 10
)
