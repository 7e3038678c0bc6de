package verifytest_test

import (
	"crypto"
	"crypto/x509"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/verify"

	. "github.com/quaymaster/quaymaster/verify/verifytest"
)

// led verifies a signer's chain to a root with Go's own verifier.
func led(t *testing.T, signer *Signer, root []byte, at time.Time) error {
	t.Helper()
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(root) {
		t.Fatal("no root")
	}
	between.AppendCertsFromPEM(signer.ChainPEM())
	_, err := signer.Certificate().Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
	return err
}

// TestBranches: each authority has its name's content, and is wrong in one thing at most.
func TestBranches(t *testing.T) {
	s, foreign, twin := Must(New(Options{})), Must(New(Options{Name: "foreign"})), Must(New(Options{}))
	now := time.Now()
	ended := BranchOptions{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(-30 * time.Minute)}
	holder := Must(s.Keyless(Identity{Email: "holder@example.com", Issuer: issuer}))
	for _, row := range []struct {
		reason string
		ca     *CA
		root   []byte
		at     time.Time
		refuse string
	}{
		{"the authority's own", s.CA, s.CA.RootPEM(), now, ""},
		{"a branch", Must(s.CA.Branch(BranchOptions{})), s.CA.RootPEM(), now, ""},
		{"a branch of three", Must(s.CA.Branch(BranchOptions{Depth: 3})), s.CA.RootPEM(), now, ""},
		{"a branch of twelve", Must(s.CA.Branch(BranchOptions{Depth: 12})), s.CA.RootPEM(), now, ""},
		{"a branch that ended", Must(s.CA.Branch(ended)), s.CA.RootPEM(), now, "expired"},
		{"the same before", Must(s.CA.Branch(ended)), s.CA.RootPEM(), now.Add(-45 * time.Minute), ""},
		{"a branch by SHA-1", Must(s.CA.Branch(BranchOptions{SHA1: true})), s.CA.RootPEM(), now, "SHA1"},
		{"a branch of another root", Must(foreign.CA.Branch(BranchOptions{})), s.CA.RootPEM(), now, "unknown authority"},
		{"crossed, to the root that crosses", Must(s.CA.Crossed(foreign.CA)), foreign.CA.RootPEM(), now, ""},
		{"crossed, to its own root", Must(s.CA.Crossed(foreign.CA)), s.CA.RootPEM(), now, "unknown authority"},
		{"the same name and another key", twin.CA, s.CA.RootPEM(), now, "unknown authority"},
		{"in a crowd, to its own root", Must(s.CA.Crowded(6)), s.CA.RootPEM(), now, ""},
		{"in a crowd, to another root", Must(s.CA.Crowded(6)), foreign.CA.RootPEM(), now, "signature check attempts limit"},
		{"a certificate that may not issue", Must(holder.Issuing()), s.CA.RootPEM(), now, "unknown authority|not authorized to sign"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			signer := Must(s.Keyless(Identity{Email: person, Issuer: issuer, CA: row.ca, NotBefore: now.Add(-time.Hour), Lifetime: 2 * time.Hour}))
			wantRefusal(t, led(t, signer, row.root, row.at), row.refuse)
		})
	}
	sha1 := Must(s.Keyless(Identity{Email: person, Issuer: issuer, SHA1: true}))
	wantRefusal(t, led(t, sha1, s.CA.RootPEM(), now), "SHA1")
}

// TestBranchRefuses: what means nothing is no authority.
func TestBranchRefuses(t *testing.T) {
	s, direct := Must(New(Options{})), Must(New(Options{NoIntermediate: true}))
	now := time.Now()
	for words, means := range map[string]func() error{
		"not between":         func() error { _, err := s.CA.Branch(BranchOptions{Depth: 65}); return err },
		"before it begins":    func() error { _, err := s.CA.Branch(BranchOptions{NotBefore: now, NotAfter: now}); return err },
		"has no intermediate": func() error { _, err := direct.CA.Crossed(s.CA); return err },
		"has no certificate":  func() error { _, err := Must(KeySigner(KeyOptions{})).Issuing(); return err },
		"PSS is for RSA": func() error {
			_, err := Must(KeySigner(KeyOptions{})).Otherwise(KeyOptions{PSS: true})
			return err
		},
		"exclude each other": func() error {
			_, err := s.Bundle(Claim{Signer: Must(KeySigner(KeyOptions{})), Artifact: artifact, Stamps: []Stamp{{NoCertificate: true, ForgedCertificate: true}}})
			return err
		},
		"Shown has no certificate": func() error {
			_, err := s.Bundle(Claim{Signer: Must(KeySigner(KeyOptions{})), Artifact: artifact, Shown: Must(KeySigner(KeyOptions{}))})
			return err
		},
	} {
		wantRefusal(t, means(), words)
	}
}

// TestOtherwise: a key signs in another way, and only a verifier of that way accepts.
func TestOtherwise(t *testing.T) {
	for _, row := range []struct {
		reason      string
		of, another KeyOptions
	}{
		{"PSS", KeyOptions{Algorithm: RSA2048}, KeyOptions{Algorithm: RSA2048, PSS: true}},
		{"Ed25519ph", KeyOptions{Algorithm: Ed25519}, KeyOptions{Algorithm: Ed25519, Prehash: true}},
		{"SHA-512", KeyOptions{}, KeyOptions{Hash: crypto.SHA512}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s := Must(New(Options{}))
			key := Must(KeySigner(row.of))
			signer := Must(key.Otherwise(row.another))
			claim := Claim{Signer: signer, Statement: CosignSignature(digest, nil), NoLog: true}
			data := Must(s.Bundle(claim))
			wantRefusal(t, check(data, trusting(t, s, keyVerifier(t, signer, row.another)), true, verify.WithNoObserverTimestamps()), "")
			if check(data, trusting(t, s, keyVerifier(t, key, row.of)), true, verify.WithNoObserverTimestamps()) == nil {
				t.Error("accepted as signed in the usual way")
			}
		})
	}
}
