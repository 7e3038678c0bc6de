package verifytest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"
)

func newRekor2(url string, valid span) (*Log, error) {
	key, err := newKey(Ed25519) // as the public instance
	if err != nil {
		return nil, fmt.Errorf("make the key of a Rekor v2 log: %w", err)
	}
	l := &Log{key: key, url: url, valid: valid, v2: true}
	l.origin = l.host()
	// C2SP signed-note: the ID of an Ed25519 key covers the name and type 1.
	id := sha256.New()
	fmt.Fprintf(id, "%s\n\x01%s", l.origin, key.Public().(ed25519.PublicKey))
	l.id = id.Sum(nil)
	l.fill()
	return l, nil
}

// entryV2 writes the body of a Rekor v2 entry. For an envelope, the type hashedrekord holds the
// digest of DSSE's pre-authentication encoding.
func entryV2(kind string, c *content) (*entry, error) {
	details, err := signature.GetDefaultAlgorithmDetails(c.signer.Public(), options.WithED25519ph())
	if err != nil {
		return nil, fmt.Errorf("record: algorithm for Rekor v2: %w", err)
	}
	if !c.pure && c.hash != details.GetHashType() || c.signer.options.PSS || c.pure && !c.dsse {
		return nil, errors.New("record: Rekor v2 takes only the algorithm that Sigstore pairs with the key")
	}
	verifier := map[string]any{"keyDetails": details.GetSignatureAlgorithm().String()}
	if c.signer.leaf != nil {
		verifier["x509Certificate"] = map[string]any{"rawBytes": c.signer.leaf.Raw}
	} else {
		verifier["publicKey"] = map[string]any{"rawBytes": publicDER(c.signer.Public())}
	}
	signed := map[string]any{"content": c.signature, "verifier": verifier}

	var spec map[string]any
	switch {
	case kind == "" || kind == "hashedrekord":
		kind = "hashedrekord"
		spec = map[string]any{"hashedRekordV002": map[string]any{
			"data": map[string]any{
				"algorithm": details.GetProtoHashType().String(),
				"digest":    sum(details.GetHashType(), c.message),
			},
			"signature": signed,
		}}
	case kind == "dsse" && c.dsse:
		spec = map[string]any{"dsseV002": map[string]any{
			"payloadHash": map[string]any{"algorithm": "SHA2_256", "digest": sum(crypto.SHA256, c.payload)},
			"signatures":  []any{signed},
		}}
	default:
		return nil, fmt.Errorf("record: Rekor v2 has no entry of type %q for this content", kind)
	}
	body, err := canonical(map[string]any{"apiVersion": "0.0.2", "kind": kind, "spec": spec})
	return &entry{kind: kind, version: "0.0.2", body: body}, err
}
