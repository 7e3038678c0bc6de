package verify

import (
	"crypto/sha256"
	"encoding/hex"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// SignatureID identifies a signature: copies of it with other log entries or timestamps
// have the same. An ECDSA signature (r, s) has a valid twin (r, -s) that anyone can compute, so
// that r alone identifies it.
func SignatureID(signature []byte) string {
	var (
		r, s     []byte
		sequence cryptobyte.String
	)
	input := cryptobyte.String(signature)
	if input.ReadASN1(&sequence, asn1.SEQUENCE) && input.Empty() && // as crypto/ecdsa parses it
		sequence.ReadASN1Integer(&r) && sequence.ReadASN1Integer(&s) && sequence.Empty() {
		signature = r
	}
	sum := sha256.Sum256(signature)
	return hex.EncodeToString(sum[:])
}
