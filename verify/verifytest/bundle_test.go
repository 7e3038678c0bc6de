package verifytest_test

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	. "github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	person = "signer@example.com"
	issuer = "https://accounts.example"
	other  = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

var (
	artifact = []byte(`{"schemaVersion":2}`)
	digest   = "sha256:" + hex.EncodeToString(sha256Of(artifact))
)

func sha256Of(data []byte) []byte {
	h := crypto.SHA256.New()
	h.Write(data)
	return h.Sum(nil)
}

// trust is trusted material with, for bare keys, one key.
type trust struct {
	root.TrustedMaterial
	key root.TrustedMaterial
}

func (t trust) PublicKeyVerifier(hint string) (root.TimeConstrainedVerifier, error) {
	return t.key.PublicKeyVerifier(hint)
}

func trusting(t *testing.T, s *Sigstore, key signature.Verifier, also ...*Sigstore) root.TrustedMaterial {
	t.Helper()
	trusted, err := root.NewTrustedRootFromJSON(s.TrustedRoot(also...))
	if err != nil {
		t.Fatalf("trusted root: %v", err)
	}
	if key == nil {
		return trusted
	}
	expiring := root.NewExpiringKey(key, time.Time{}, time.Time{})
	return trust{trusted, root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return expiring, nil
	})}
}

// check verifies a bundle about the artifact with sigstore-go.
func check(data []byte, material root.TrustedMaterial, key bool, options ...verify.VerifierOption) error {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(data); err != nil {
		return err
	}
	v, err := verify.NewVerifier(material, options...)
	if err != nil {
		return err
	}
	identity := verify.WithKey()
	if !key {
		id, err := verify.NewShortCertificateIdentity(issuer, "", person, "")
		if err != nil {
			return err
		}
		identity = verify.WithCertificateIdentity(id)
	}
	_, err = v.Verify(&b, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(artifact)), identity))
	return err
}

func TestKeylessBundle(t *testing.T) {
	s := Must(New(Options{}))
	foreign := Must(New(Options{Name: "foreign"}))
	sct, logged := verify.WithSignedCertificateTimestamps(1), verify.WithTransparencyLog(1)
	integrated, stamped := verify.WithIntegratedTimestamps(1), verify.WithSignedTimestamps(1)
	usual := []verify.VerifierOption{sct, logged, integrated}
	withTSA := []verify.VerifierOption{sct, logged, stamped}
	two := []verify.VerifierOption{sct, verify.WithTransparencyLog(2), verify.WithSignedTimestamps(2)}
	statement := CosignSignature(digest, nil)
	v2 := Record{Log: s.Rekor2}
	twoLogs := []verify.VerifierOption{verify.WithSignedCertificateTimestamps(2), logged, integrated}
	somebody := Must(s.Keyless(Identity{Email: person, Issuer: issuer}))
	misissued := Must(s.TSA.Misissued())

	tests := []struct {
		reason  string
		id      Identity
		claim   Claim
		options []verify.VerifierOption
		also    *Sigstore // trusted, too
		refuse  string    // part of the refusal; empty: accepted
	}{
		{reason: "the usual", claim: Claim{Statement: statement}},
		{reason: "bundle 0.2", claim: Claim{Statement: statement, Version: "0.2"}},
		{reason: "bundle 0.1", claim: Claim{Statement: statement, Version: "0.1"}},
		{reason: "bundle 0.1 with a promise only", claim: Claim{Statement: statement, Version: "0.1", Records: []Record{{NoProof: true}}}},
		{reason: "bundle 0.3 without proof", claim: Claim{Statement: statement, Records: []Record{{NoProof: true}}}, refuse: "inclusion proof missing in bundle"},
		{reason: "in-toto v0.1", claim: Claim{Statement: &Statement{Version: "v0.1", Subjects: statement.Subjects}}},
		{reason: "intoto entry", claim: Claim{Statement: statement, Records: []Record{{Kind: "intoto"}}}},
		{reason: "message signature", claim: Claim{Artifact: artifact}},
		{reason: "message signature, bundle 0.1", claim: Claim{Artifact: artifact, Version: "0.1"}},
		{reason: "timestamp", claim: Claim{Statement: statement, Stamps: []Stamp{{}}}, options: withTSA},
		{reason: "proof without promise, with timestamp", claim: Claim{Statement: statement, Records: []Record{{NoPromise: true}}, Stamps: []Stamp{{}}}, options: withTSA},
		{reason: "Rekor v2", claim: Claim{Statement: statement, Records: []Record{v2}, Stamps: []Stamp{{}}}, options: withTSA},
		{reason: "Rekor v2, message", claim: Claim{Artifact: artifact, Records: []Record{v2}, Stamps: []Stamp{{}}}, options: withTSA},
		{reason: "both logs", claim: Claim{Statement: statement, Records: []Record{{}, v2}, Stamps: []Stamp{{}}},
			options: []verify.VerifierOption{sct, verify.WithTransparencyLog(2), stamped, integrated}},
		{reason: "certificate of the past, with entry of its time", id: Identity{NotBefore: time.Now().AddDate(-1, 0, 0)}, claim: Claim{Statement: statement}},
		{reason: "no log, timestamp only", claim: Claim{Statement: statement, NoLog: true, Stamps: []Stamp{{}}}, options: []verify.VerifierOption{sct, stamped}},
		{reason: "P-384", id: Identity{Key: KeyOptions{Algorithm: ECDSAP384}}, claim: Claim{Artifact: artifact}},
		{reason: "P-384 envelope", id: Identity{Key: KeyOptions{Algorithm: ECDSAP384}}, claim: Claim{Statement: statement}},
		{reason: "Ed25519 envelope", id: Identity{Key: KeyOptions{Algorithm: Ed25519}}, claim: Claim{Statement: statement}},
		{reason: "P-521 in Rekor v2", id: Identity{Key: KeyOptions{Algorithm: ECDSAP521}}, claim: Claim{Statement: statement, Records: []Record{v2}, Stamps: []Stamp{{}}}, options: withTSA},
		{reason: "only the new issuer extension", id: Identity{OnlyNewIssuer: true}, claim: Claim{Statement: statement}},
		{reason: "only the old issuer extension", id: Identity{OnlyOldIssuer: true}, claim: Claim{Statement: statement}},

		{reason: "two of each", claim: Claim{Statement: statement, Records: []Record{{}, {Log: foreign.Rekor}}, Stamps: []Stamp{{}, {TSA: foreign.TSA}}}, options: two, also: foreign},
		{reason: "one log for two", claim: Claim{Statement: statement, Records: []Record{{}, {}}, Stamps: []Stamp{{}, {TSA: foreign.TSA}}}, options: two, also: foreign, refuse: "1 < 2"},
		{reason: "one timestamp authority for two", claim: Claim{Statement: statement, Records: []Record{{}, {Log: foreign.Rekor}}, Stamps: []Stamp{{}, {}}}, options: two, also: foreign, refuse: "1 < 2"},
		{reason: "timestamp without certificate", claim: Claim{Statement: statement, Stamps: []Stamp{{NoCertificate: true}}}, options: withTSA},
		{reason: "certificate without its chain", claim: Claim{Statement: statement, Version: "0.2", NoChain: true}},
		{reason: "statement without predicate", claim: Claim{Statement: &Statement{Subjects: statement.Subjects, NoPredicate: true}}},

		{reason: "unsigned integrated time", claim: Claim{Statement: statement, Records: []Record{{NoPromise: true}}}, refuse: "threshold not met for verified log entry integrated timestamps"},
		{reason: "two signatures", claim: Claim{Statement: statement, CoSigner: Must(KeySigner(KeyOptions{}))}, refuse: "exactly one signature"},
		{reason: "no entry", claim: Claim{Statement: statement, NoLog: true}, refuse: "not enough verified log entries"},
		{reason: "wrong promise", claim: Claim{Statement: statement, Records: []Record{{Fault: WrongPromise}}}, refuse: "not enough verified log entries"},
		{reason: "wrong proof", claim: Claim{Statement: statement, Records: []Record{{Fault: WrongProof}}}, refuse: "does not match expected root"},
		{reason: "wrong checkpoint", claim: Claim{Statement: statement, Records: []Record{{Fault: WrongCheckpoint}}}, refuse: "signature on checkpoint did not verify"},
		{reason: "old checkpoint", claim: Claim{Statement: statement, Records: []Record{{Fault: OldCheckpoint}}}, refuse: "does not match signed tree head"},
		{reason: "entry of another signature", claim: Claim{Statement: statement, Records: []Record{{Fault: OtherSignature}}}, refuse: "log signature does not match"},
		{reason: "entry of another message", claim: Claim{Artifact: artifact, Records: []Record{{Fault: OtherSignature}}}, refuse: "log signature does not match"},
		{reason: "repeated entry", claim: Claim{Statement: statement, Records: []Record{{Fault: Repeated}}}, refuse: "duplicate tlog entries"},
		{reason: "foreign log", claim: Claim{Statement: statement, Records: []Record{{Log: foreign.Rekor}}}, refuse: "not enough verified log entries"},
		{reason: "foreign log under our log's ID", claim: Claim{Statement: statement, Records: []Record{{Log: foreign.Rekor, As: s.Rekor}}}, refuse: "not enough verified log entries"},
		{reason: "entry after the certificate's end", claim: Claim{Statement: statement, Records: []Record{{Time: time.Now().Add(time.Hour)}}}, refuse: "integrated time outside certificate validity"},
		{reason: "Rekor v2, wrong proof", claim: Claim{Statement: statement, Records: []Record{{Log: s.Rekor2, Fault: WrongProof}}, Stamps: []Stamp{{}}}, options: withTSA, refuse: "does not match expected root"},
		{reason: "Rekor v2, wrong checkpoint", claim: Claim{Statement: statement, Records: []Record{{Log: s.Rekor2, Fault: WrongCheckpoint}}, Stamps: []Stamp{{}}}, options: withTSA, refuse: "invalid signature for key"},
		{reason: "Rekor v2, old checkpoint", claim: Claim{Statement: statement, Records: []Record{{Log: s.Rekor2, Fault: OldCheckpoint}}, Stamps: []Stamp{{}}}, options: withTSA, refuse: "index is beyond size"},
		{reason: "Rekor v2, another signature", claim: Claim{Statement: statement, Records: []Record{{Log: s.Rekor2, Fault: OtherSignature}}, Stamps: []Stamp{{}}}, options: withTSA, refuse: "does not match expected root"},
		{reason: "Rekor v2, foreign", claim: Claim{Statement: statement, Records: []Record{{Log: foreign.Rekor2}}, Stamps: []Stamp{{}}}, options: withTSA, refuse: "not enough verified log entries"},
		{reason: "Rekor v2 without timestamp", claim: Claim{Statement: statement, Records: []Record{v2}}, options: withTSA, refuse: "threshold not met for verified signed timestamps"},
		{reason: "Rekor v2, deprecated type dsse", claim: Claim{Statement: statement, Records: []Record{{Log: s.Rekor2, Kind: "dsse"}}, Stamps: []Stamp{{}}}, options: withTSA, refuse: "not a recognizable Rekor v1 or Rekor v2 type"},
		{reason: "foreign timestamp", claim: Claim{Statement: statement, Stamps: []Stamp{{TSA: foreign.TSA}}}, options: withTSA, refuse: "does not match the provided TSA certificate"},
		{reason: "timestamp after the certificate's end", claim: Claim{Statement: statement, Stamps: []Stamp{{Time: time.Now().Add(time.Hour)}}}, options: withTSA, refuse: "leaf certificate verification failed"},
		{reason: "timestamp of another signature", claim: Claim{Statement: statement, Stamps: []Stamp{{OtherSignature: true}}}, options: withTSA, refuse: "hashed messages don't match"},
		{reason: "no certificate timestamp", id: Identity{NoSCT: true}, claim: Claim{Statement: statement}, refuse: "unable to meet threshold of 1"},
		{reason: "wrong certificate timestamp", id: Identity{WrongSCT: true}, claim: Claim{Statement: statement}, refuse: "unable to meet threshold of 1"},
		{reason: "certificate timestamp of a foreign log", id: Identity{CTLog: foreign.CTLog}, claim: Claim{Statement: statement}, refuse: "unable to meet threshold of 1"},
		{reason: "certificate timestamp twice", id: Identity{RepeatSCT: true}, claim: Claim{Statement: statement}},
		{reason: "one certificate log for two", id: Identity{RepeatSCT: true}, claim: Claim{Statement: statement}, options: twoLogs, refuse: "unable to meet threshold of 2"},
		{reason: "another signer's certificate", claim: Claim{Statement: statement, Shown: somebody}, refuse: "log certificate does not match"},
		{reason: "another signer's certificate on a message", claim: Claim{Artifact: artifact, Shown: somebody}, refuse: "log certificate does not match"},
		{reason: "timestamp of a signer of software", claim: Claim{Statement: statement, Stamps: []Stamp{{TSA: misissued}}}, options: withTSA, refuse: "does not match the provided TSA certificate"},
		{reason: "the same behind a forged certificate", claim: Claim{Statement: statement, Stamps: []Stamp{{TSA: misissued, ForgedCertificate: true}}}, options: withTSA, refuse: "error parsing response|does not match the provided TSA certificate|certificate"},
		{reason: "foreign authority", id: Identity{CA: foreign.CA}, claim: Claim{Statement: statement}, refuse: "leaf certificate verification failed"},
		{reason: "branch of the authority", id: Identity{CA: Must(s.CA.Branch(BranchOptions{}))}, claim: Claim{Statement: statement}, refuse: "leaf certificate verification failed"},
		{reason: "certificate by SHA-1", id: Identity{SHA1: true}, claim: Claim{Statement: statement}, refuse: "leaf certificate verification failed"},
		{reason: "no alternative name", id: Identity{NoSAN: true}, claim: Claim{Statement: statement}, refuse: "no Subject Alternative Name found"},
		{reason: "another person", id: Identity{Email: "else@example.com"}, claim: Claim{Statement: statement}, refuse: "no matching CertificateIdentity"},
		{reason: "wrong usage", id: Identity{Usage: serverAuth}, claim: Claim{Statement: statement}, refuse: "leaf certificate verification failed"},
		{reason: "another digest", claim: Claim{Statement: CosignSignature(other, nil)}, refuse: "do not match digests in statement"},
		{reason: "another artifact", claim: Claim{Artifact: []byte("other")}, refuse: "could not verify message"},
		{reason: "no subject", claim: Claim{Statement: &Statement{NoSubjects: true}}, refuse: "no subjects found"},
		{reason: "another payload type", claim: Claim{Statement: statement, PayloadType: "text/plain"}, refuse: "unsupported DSSE payload type"},
		{reason: "wrong signature", claim: Claim{Statement: statement, WrongSignature: true}, refuse: "accepted signatures do not match threshold"},
		{reason: "wrong message signature", claim: Claim{Artifact: artifact, WrongSignature: true}, refuse: "digest"},
		{reason: "no signatures", claim: Claim{Statement: statement, NoSignatures: true}, refuse: "log signature does not match"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if test.id.Email == "" && !test.id.NoSAN {
				test.id.Email = person
			}
			test.id.Issuer = issuer
			signer, err := s.Keyless(test.id)
			if err != nil {
				t.Fatal(err)
			}
			test.claim.Signer = signer
			data, err := s.Bundle(test.claim)
			if err != nil {
				t.Fatal(err)
			}
			options := test.options
			if options == nil {
				options = usual
			}
			material := trusting(t, s, nil)
			if test.also != nil {
				material = trusting(t, s, nil, test.also)
			}
			err = check(data, material, false, options...)
			wantRefusal(t, err, test.refuse)
		})
	}
}
