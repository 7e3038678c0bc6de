package verifytest_test

import (
	"crypto"
	"crypto/rsa"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"

	. "github.com/quaymaster/quaymaster/verify/verifytest"
)

func TestKeyBundle(t *testing.T) {
	s := Must(New(Options{}))
	message, envelope := Claim{Artifact: artifact}, Claim{Statement: CosignSignature(digest, nil)}
	unlogged := func(c Claim) Claim { c.NoLog = true; return c }
	inRekor2 := func(c Claim) Claim { c.Records = []Record{{Log: s.Rekor2}}; return c }

	tests := []struct {
		reason string
		key    KeyOptions
		claim  Claim
		refuse string // by a verifier of another hash or scheme
	}{
		{reason: "P-256", claim: message},
		{reason: "P-256 envelope", claim: envelope},
		{reason: "P-256 in Rekor v2", claim: inRekor2(message)},
		{reason: "P-256 envelope in Rekor v2", claim: inRekor2(envelope)},
		{reason: "P-256 with SHA-224", key: KeyOptions{Hash: crypto.SHA224}, claim: envelope},
		{reason: "P-256 with SHA-384", key: KeyOptions{Hash: crypto.SHA384}, claim: message},
		{reason: "P-384", key: KeyOptions{Algorithm: ECDSAP384}, claim: message},
		{reason: "P-384 with SHA-256", key: KeyOptions{Algorithm: ECDSAP384, Hash: crypto.SHA256}, claim: message},
		{reason: "P-521", key: KeyOptions{Algorithm: ECDSAP521}, claim: inRekor2(message)},
		{reason: "RSA 2048", key: KeyOptions{Algorithm: RSA2048}, claim: message},
		{reason: "RSA 2048 with SHA-512", key: KeyOptions{Algorithm: RSA2048, Hash: crypto.SHA512}, claim: message},
		{reason: "RSA-PSS", key: KeyOptions{Algorithm: RSA2048, PSS: true}, claim: unlogged(message)},
		{reason: "RSA-PSS envelope", key: KeyOptions{Algorithm: RSA2048, PSS: true}, claim: envelope},
		{reason: "Ed25519 envelope", key: KeyOptions{Algorithm: Ed25519}, claim: envelope},
		{reason: "Ed25519 message", key: KeyOptions{Algorithm: Ed25519}, claim: unlogged(message)},
		{reason: "Ed25519ph message", key: KeyOptions{Algorithm: Ed25519, Prehash: true}, claim: message},
		{reason: "Ed25519ph message in Rekor v2", key: KeyOptions{Algorithm: Ed25519, Prehash: true}, claim: inRekor2(message)},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			signer, another := Must(KeySigner(test.key)), Must(KeySigner(KeyOptions{}))
			test.claim.Signer = signer
			data, err := s.Bundle(test.claim)
			if err != nil {
				t.Fatal(err)
			}
			accept := []verify.VerifierOption{verify.WithNoObserverTimestamps()}
			if !test.claim.NoLog {
				accept = append(accept, verify.WithTransparencyLog(1))
			}
			wantRefusal(t, check(data, trusting(t, s, keyVerifier(t, signer, test.key)), true, accept...), "")
			if err := check(data, trusting(t, s, keyVerifier(t, another, KeyOptions{})), true, accept...); err == nil {
				t.Error("accepted with another key")
			}
		})
	}
}

func keyVerifier(t *testing.T, s *Signer, o KeyOptions) signature.Verifier {
	t.Helper()
	if s.Hash() == 0 {
		var load []signature.LoadOption
		if o.Prehash {
			load = append(load, options.WithED25519ph())
		}
		v, err := signature.LoadVerifierWithOpts(s.Public(), load...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v, err := signature.LoadVerifier(s.Public(), s.Hash())
	if o.PSS {
		v, err = signature.LoadVerifierWithOpts(s.Public(), options.WithHash(s.Hash()), options.WithRSAPSS(&rsa.PSSOptions{}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestKeyRefusals(t *testing.T) {
	tests := []struct {
		reason  string
		options KeyOptions
		words   string
	}{
		{"no such algorithm", KeyOptions{Algorithm: "dsa"}, "not known"},
		{"PSS is a scheme of RSA", KeyOptions{PSS: true}, "PSS is for RSA"},
		{"Ed25519 hashes by itself", KeyOptions{Algorithm: Ed25519, Hash: crypto.SHA256}, "takes no hash"},
		{"only Ed25519 has a prehashed variant", KeyOptions{Prehash: true}, "Prehash is for Ed25519"},
		{"MD5 is not supported", KeyOptions{Hash: crypto.MD5}, "not one of"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			_, err := KeySigner(test.options)
			wantRefusal(t, err, test.words)
		})
	}
}
