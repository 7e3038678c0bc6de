package verifytest_test

import (
	"bytes"
	"crypto"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/verify"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
	"golang.org/x/crypto/ocsp"

	. "github.com/quaymaster/quaymaster/verify/verifytest"
)

func TestOptions(t *testing.T) {
	usual := []verify.VerifierOption{
		verify.WithSignedCertificateTimestamps(1), verify.WithTransparencyLog(1),
		verify.WithIntegratedTimestamps(1), verify.WithSignedTimestamps(1),
	}
	then := time.Date(2031, 5, 6, 7, 8, 9, 10, time.UTC)
	for reason, options := range map[string]Options{
		"P-384":           {Algorithm: ECDSAP384},
		"RSA":             {Algorithm: RSA2048},
		"no intermediate": {NoIntermediate: true},
		"another time":    {Clock: func() time.Time { return then }},
	} {
		t.Run(reason, func(t *testing.T) {
			s, another := Must(New(options)), Must(New(options))
			claim := Claim{
				Signer:    Must(s.Keyless(Identity{Email: person, Issuer: issuer})),
				Statement: CosignSignature(digest, map[string]any{"env": "prod"}),
				Stamps:    []Stamp{{}},
			}
			data := Must(s.Bundle(claim))
			wantRefusal(t, check(data, trusting(t, s, nil), false, usual...), "")
			wantRefusal(t, check(data, trusting(t, another, nil), false, usual...), "failed to verify")
			wantRefusal(t, check(data, trusting(t, another, nil, s), false, usual...), "")
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		reason  string
		options Options
		words   string
	}{
		{"the name becomes part of URLs", Options{Name: "a b"}, "may hold lower-case letters"},
		{"RFC 3161 verifiers know no Ed25519", Options{Algorithm: Ed25519}, "verifiers take no"},
		{"an unknown algorithm", Options{Algorithm: "dsa"}, "not known"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := New(test.options)
			wantRefusal(t, err, test.words)
		})
	}
	_, err := NewNotary(NotaryOptions{Algorithm: Ed25519})
	wantRefusal(t, err, "no Ed25519")
	_, err = NewNotary(NotaryOptions{SelfSigned: true, OCSPURL: "http://notary.example"})
	wantRefusal(t, err, "cannot be revoked")
}

func TestClaimRefuses(t *testing.T) {
	s := Must(New(Options{}))
	key, pss := Must(KeySigner(KeyOptions{})), Must(KeySigner(KeyOptions{Algorithm: RSA2048, PSS: true}))
	pure, short := Must(KeySigner(KeyOptions{Algorithm: Ed25519})), Must(KeySigner(KeyOptions{Hash: crypto.SHA224}))
	statement := CosignSignature(digest, nil)
	write := map[string]func(Claim) error{
		"bundle":   func(c Claim) error { _, err := s.Bundle(c); return err },
		"layer":    func(c Claim) error { _, err := s.Layer(c); return err },
		"envelope": func(c Claim) error { _, err := s.Envelope(c); return err },
	}
	for _, test := range []struct {
		reason, form string
		claim        Claim
		words        string
	}{
		{"no signer", "bundle", Claim{Artifact: artifact}, "no signer"},
		{"nothing is signed", "bundle", Claim{Signer: key}, "exactly one of"},
		{"two things are signed", "bundle", Claim{Signer: key, Artifact: artifact, Statement: statement}, "exactly one of"},
		{"no such version", "bundle", Claim{Signer: key, Artifact: artifact, Version: "0.4"}, "not 0.1"},
		{"a message has no list of signatures", "bundle", Claim{Signer: key, Artifact: artifact, NoSignatures: true}, "are for envelopes"},
		{"log and no log", "bundle", Claim{Signer: key, Artifact: artifact, NoLog: true, Records: []Record{{}}}, "exclude each other"},
		{"an entry with no evidence", "bundle", Claim{Signer: key, Artifact: artifact, Records: []Record{{NoPromise: true, NoProof: true}}}, "neither a promise nor a proof"},
		{"a Rekor v2 entry with no proof", "bundle", Claim{Signer: key, Artifact: artifact, Records: []Record{{Log: s.Rekor2, NoProof: true}}}, "neither a promise nor a proof"},
		{"Rekor v2 makes no promises", "bundle", Claim{Signer: key, Artifact: artifact, Records: []Record{{Log: s.Rekor2, Fault: WrongPromise}}}, "no promises"},
		{"no such entry", "bundle", Claim{Signer: key, Artifact: artifact, Records: []Record{{Kind: "dsse"}}}, `no entry of type "dsse"`},
		{"no such entry of Rekor v2", "bundle", Claim{Signer: key, Statement: statement, Records: []Record{{Log: s.Rekor2, Kind: "intoto"}}}, `no entry of type "intoto"`},
		{"Rekor and PSS", "bundle", Claim{Signer: pss, Artifact: artifact}, "no RSASSA-PSS"},
		{"Rekor and pure Ed25519", "bundle", Claim{Signer: pure, Artifact: artifact}, "no pure Ed25519"},
		{"Rekor and SHA-224", "bundle", Claim{Signer: short, Artifact: artifact}, "no SHA-224"},
		{"Rekor v2 and SHA-224", "bundle", Claim{Signer: short, Statement: statement, Records: []Record{{Log: s.Rekor2}}}, "pairs with the key"},
		{"bundles have no name for SHA-224", "bundle", Claim{Signer: short, Artifact: artifact, NoLog: true}, "no name for SHA-224"},
		{"room for one entry", "layer", Claim{Signer: key, Artifact: artifact, Records: []Record{{}, {}}}, "room for one"},
		{"no room for Rekor v2", "layer", Claim{Signer: key, Artifact: artifact, Records: []Record{{Log: s.Rekor2}}}, "no room"},
		{"a bare envelope has no evidence", "envelope", Claim{Signer: key, Statement: statement, Stamps: []Stamp{{}}}, "carries no"},
		{"a message is no envelope", "envelope", Claim{Signer: key, Artifact: artifact}, "set Statement or Payload"},
		{"no such statement", "bundle", Claim{Signer: key, Statement: &Statement{Version: "v2"}}, "neither v1 nor v0.1"},
		{"a statement about nothing", "bundle", Claim{Signer: key, Statement: &Statement{}}, "either Subjects or NoSubjects"},
		{"a digest of no algorithm", "bundle", Claim{Signer: key, Statement: CosignSignature("abc", nil)}, "has no algorithm"},
	} {
		t.Run(test.reason, func(t *testing.T) { wantRefusal(t, write[test.form](test.claim), test.words) })
	}
}

func TestIdentityRefuses(t *testing.T) {
	s := Must(New(Options{}))
	for _, test := range []struct {
		reason string
		id     Identity
		words  string
	}{
		{"no name by mistake", Identity{}, "exactly one of"},
		{"two names", Identity{Email: person, URI: "https://x.example"}, "exactly one of"},
		{"no URI", Identity{URI: "://"}, "parse the URI"},
		{"the issuer has its own field", Identity{Email: person, Extensions: map[Extension]string{8: "x"}}, "extension 8"},
		{"Fulcio has no such extension", Identity{Email: person, Extensions: map[Extension]string{28: "x"}}, "extension 28"},
		{"ends before it begins", Identity{Email: person, Lifetime: -time.Minute}, "shorter than a second"},
		{"the key", Identity{Email: person, Key: KeyOptions{PSS: true}}, "PSS is for RSA"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := s.Keyless(test.id)
			wantRefusal(t, err, test.words)
		})
	}
}

func TestExtensions(t *testing.T) {
	s := Must(New(Options{}))
	extensions := map[Extension]string{
		WorkflowTrigger: "push", WorkflowSHA: "s", WorkflowName: "n", WorkflowRepository: "r", WorkflowRef: "f",
		BuildSignerURI: "9", BuildSignerDigest: "10", RunnerEnvironment: "11", SourceRepositoryURI: "12",
		SourceRepositoryDigest: "13", SourceRepositoryRef: "14", SourceRepositoryID: "15", SourceOwnerURI: "16",
		SourceOwnerID: "17", BuildConfigURI: "18", BuildConfigDigest: "19", BuildTrigger: "20", RunInvocationURI: "21",
		SourceVisibility: "22", DeploymentEnvironment: "23", 24: "24", 27: "27",
	}
	signer := Must(s.Keyless(Identity{URI: "https://ci.example/workflow", Issuer: issuer, Extensions: extensions}))
	summary, err := certificate.SummarizeCertificate(signer.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	want := certificate.Summary{
		CertificateIssuer:      "CN=verifytest fulcio intermediate,O=verifytest",
		SubjectAlternativeName: "https://ci.example/workflow",
		Extensions: certificate.Extensions{
			Issuer: issuer, GithubWorkflowTrigger: "push", GithubWorkflowSHA: "s", GithubWorkflowName: "n",
			GithubWorkflowRepository: "r", GithubWorkflowRef: "f", BuildSignerURI: "9", BuildSignerDigest: "10",
			RunnerEnvironment: "11", SourceRepositoryURI: "12", SourceRepositoryDigest: "13", SourceRepositoryRef: "14",
			SourceRepositoryIdentifier: "15", SourceRepositoryOwnerURI: "16", SourceRepositoryOwnerIdentifier: "17",
			BuildConfigURI: "18", BuildConfigDigest: "19", BuildTrigger: "20", RunInvocationURI: "21",
			SourceRepositoryVisibilityAtSigning: "22",
		},
	}
	if summary != want {
		t.Errorf("got %+v, want %+v", summary, want)
	}
	var numbers []int
	for _, e := range signer.Certificate().Extensions {
		if id := e.Id.String(); strings.HasPrefix(id, "1.3.6.1.4.1.57264.1.") {
			numbers = append(numbers, e.Id[len(e.Id)-1])
		}
	}
	wantNumbers := []int{1, 8}
	for n := range maps.Keys(extensions) {
		wantNumbers = append(wantNumbers, int(n))
	}
	slices.Sort(wantNumbers)
	if !slices.Equal(numbers, wantNumbers) {
		t.Errorf("extensions %v, want %v", numbers, wantNumbers)
	}
}

func TestUsername(t *testing.T) {
	s := Must(New(Options{}))
	signer := Must(s.Keyless(Identity{Username: "someone", Issuer: issuer}))
	data := Must(s.Bundle(Claim{Signer: signer, Artifact: artifact}))
	usual := []verify.VerifierOption{
		verify.WithSignedCertificateTimestamps(1), verify.WithTransparencyLog(1), verify.WithIntegratedTimestamps(1),
	}
	// All but the name, which is not the person's, is in order.
	wantRefusal(t, check(data, trusting(t, s, nil), false, usual...), `got "someone"`)
}

func TestEnvelope(t *testing.T) {
	s, key := Must(New(Options{})), Must(KeySigner(KeyOptions{}))
	data := Must(s.Envelope(Claim{Signer: key, Payload: []byte("hello"), PayloadType: "text/plain"}))
	var e dsse.Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	verifyWith := func(k *Signer) error {
		v, err := dsse.NewEnvelopeVerifier(&sigdsse.VerifierAdapter{SignatureVerifier: keyVerifier(t, k, KeyOptions{}), Pub: k.Public()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Verify(t.Context(), &e)
		return err
	}
	wantRefusal(t, verifyWith(key), "")
	wantRefusal(t, verifyWith(Must(KeySigner(KeyOptions{}))), "accepted signatures do not match")
	if payload, err := e.DecodeB64Payload(); err != nil || string(payload) != "hello" || e.PayloadType != "text/plain" {
		t.Errorf("envelope %s", data)
	}
	none := Must(s.Envelope(Claim{Signer: key, Payload: []byte("hello"), NoSignatures: true}))
	if !bytes.Contains(none, []byte(`"signatures":[]`)) {
		t.Errorf("envelope %s, want an empty list of signatures", none)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := Must(New(Options{}))
	signer := Must(s.Keyless(Identity{Email: person, Issuer: issuer}))
	material := trusting(t, s, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			data, err := s.Bundle(Claim{Signer: signer, Artifact: artifact})
			if err == nil {
				err = check(data, material, false, verify.WithSignedCertificateTimestamps(1), verify.WithTransparencyLog(1), verify.WithIntegratedTimestamps(1))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		Must(New(Options{}))
	}
}

func BenchmarkBundle(b *testing.B) {
	s := Must(New(Options{}))
	signer := Must(s.Keyless(Identity{Email: person, Issuer: issuer}))
	for b.Loop() {
		Must(s.Bundle(Claim{Signer: signer, Artifact: artifact}))
	}
}

// The responder reads whatever a client sends.
func FuzzOCSP(f *testing.F) {
	n := Must(NewNotary(NotaryOptions{OCSPURL: "http://notary.example"}))
	request, err := ocsp.CreateRequest(n.Certificate(), n.Root(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(request)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		n.OCSP().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
	})
}
