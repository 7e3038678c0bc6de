package verifytest_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/crl"
	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	. "github.com/quaymaster/quaymaster/verify/verifytest"
)

var target = ocispec.Descriptor{
	MediaType: ocispec.MediaTypeImageManifest, Digest: godigest.Digest(digest), Size: int64(len(artifact)),
}

// stores is a trust store in memory, by type and name.
type stores map[string][]*x509.Certificate

func (s stores) GetCertificates(_ context.Context, kind truststore.Type, name string) ([]*x509.Certificate, error) {
	if c, ok := s[string(kind)+":"+name]; ok {
		return c, nil
	}
	return nil, errors.New("no such trust store")
}

// transport answers requests from a handler.
type transport struct{ http.Handler }

func (h transport) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	if q.Body == nil { // a server never sees nil
		q.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	response := w.Result()
	response.Request = q
	return response, nil
}

func validator(t *testing.T, h http.Handler, p purpose.Purpose) revocation.Validator {
	t.Helper()
	client := &http.Client{Transport: transport{h}}
	fetcher, err := crl.NewHTTPFetcher(client)
	if err != nil {
		t.Fatal(err)
	}
	v, err := revocation.NewWithOptions(revocation.Options{OCSPHTTPClient: client, CRLFetcher: fetcher, CertChainPurpose: p})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// notaryCheck is how notation-go is asked.
type notaryCheck struct {
	notary   *Notary // trusted, with its identity
	tsa      *TSA    // trusted, if any
	handler  http.Handler
	identity string // trusted instead of the notary's
	metadata map[string]string
	target   ocispec.Descriptor
}

func (c notaryCheck) run(t *testing.T, envelope []byte, mediaType string) error {
	t.Helper()
	if c.handler == nil {
		c.handler = http.NotFoundHandler()
	}
	trusted := stores{
		"ca:test":               {c.notary.Root()},
		"signingAuthority:test": {c.notary.Root()},
	}
	statement := trustpolicy.TrustPolicy{
		Name: "test", RegistryScopes: []string{"*"},
		SignatureVerification: trustpolicy.SignatureVerification{VerificationLevel: "strict"},
		TrustStores:           []string{"ca:test", "signingAuthority:test"},
		TrustedIdentities:     []string{c.notary.Identity()},
	}
	if c.identity != "" {
		statement.TrustedIdentities = []string{c.identity}
	}
	if c.tsa != nil {
		root, err := cryptoutils.UnmarshalCertificatesFromPEM(c.tsa.RootPEM())
		if err != nil {
			t.Fatal(err)
		}
		trusted["tsa:test"] = root
		statement.TrustStores = append(statement.TrustStores, "tsa:test")
	}
	v, err := verifier.NewWithOptions(
		&trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{statement}}, trusted, nil,
		verifier.VerifierOptions{
			RevocationCodeSigningValidator:  validator(t, c.handler, purpose.CodeSigning),
			RevocationTimestampingValidator: validator(t, c.handler, purpose.Timestamping),
		})
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Verify(t.Context(), c.target, envelope, notation.VerifierVerifyOptions{
		ArtifactReference:  "registry.example/app@" + digest,
		SignatureMediaType: mediaType,
		UserMetadata:       c.metadata,
	})
	return err
}

func TestNotation(t *testing.T) {
	s, foreign := Must(New(Options{})), Must(New(Options{Name: "foreign"}))
	notary := Must(NewNotary(NotaryOptions{}))
	otherName := Must(NewNotary(NotaryOptions{Name: "else"}))
	now := time.Now()
	past := Must(NewNotary(NotaryOptions{NotBefore: now.AddDate(-2, 0, 0), NotAfter: now.AddDate(-1, 0, 0)}))
	then := now.AddDate(-1, -6, 0)
	metadata := map[string]string{"env": "prod"}
	otherTarget := target
	otherTarget.Digest = other

	tests := []struct {
		reason string
		signer *Notary
		claim  Notation
		check  notaryCheck
		refuse string
	}{
		{reason: "the usual"},
		{reason: "metadata", claim: Notation{Metadata: metadata}, check: notaryCheck{metadata: metadata}},
		{reason: "not yet expired", claim: Notation{Expiry: time.Hour}},
		{reason: "signing authority", claim: Notation{SigningAuthority: true}},
		{reason: "self-signed", signer: Must(NewNotary(NotaryOptions{SelfSigned: true}))},
		{reason: "P-384", signer: Must(NewNotary(NotaryOptions{Algorithm: ECDSAP384}))},
		{reason: "P-521", signer: Must(NewNotary(NotaryOptions{Algorithm: ECDSAP521}))},
		{reason: "RSA", signer: Must(NewNotary(NotaryOptions{Algorithm: RSA2048}))},
		{reason: "timestamp", claim: Notation{TSA: s.TSA}, check: notaryCheck{tsa: s.TSA}},
		{reason: "past certificate with timestamp", signer: past, claim: Notation{Time: then, TSA: s.TSA}, check: notaryCheck{tsa: s.TSA}},
		{reason: "past certificate of a signing authority", signer: past, claim: Notation{Time: then, SigningAuthority: true}},

		{reason: "another target", claim: Notation{Target: otherTarget}, refuse: "descriptor mismatch"},
		{reason: "other metadata", claim: Notation{Metadata: map[string]string{"env": "dev"}}, check: notaryCheck{metadata: metadata}, refuse: "metadata"},
		{reason: "expired", claim: Notation{Time: now.Add(-time.Hour), Expiry: time.Minute}, refuse: "expired on"},
		{reason: "past certificate without timestamp", signer: past, claim: Notation{Time: then}, refuse: "it was expired at"},
		{reason: "another authority", check: notaryCheck{notary: Must(NewNotary(NotaryOptions{}))}, refuse: "does not contain any trusted certificate"},
		{reason: "another self-signed", signer: Must(NewNotary(NotaryOptions{SelfSigned: true})), check: notaryCheck{notary: Must(NewNotary(NotaryOptions{SelfSigned: true}))}, refuse: "does not contain any trusted certificate"},
		{reason: "another name", check: notaryCheck{identity: otherName.Identity()}, refuse: "trusted identities"},
		{reason: "no timestamp", check: notaryCheck{tsa: s.TSA}, refuse: "no timestamp countersignature"},
		{reason: "foreign timestamp", claim: Notation{TSA: foreign.TSA}, check: notaryCheck{tsa: s.TSA}, refuse: "failed to verify the timestamp countersignature"},
		{reason: "timestamp of another signature", claim: Notation{TSA: s.TSA, OtherTimestamp: true}, check: notaryCheck{tsa: s.TSA}, refuse: "mismatch"},
		{reason: "timestamp after the certificate's end", signer: past, claim: Notation{Time: then, TSA: s.TSA, TSATime: now}, check: notaryCheck{tsa: s.TSA}, refuse: "timestamp can be after certificate"},
		{reason: "wrong signature", claim: Notation{WrongSignature: true}, refuse: "signature is invalid|verification error"},
		{reason: "plugin", claim: Notation{Plugin: "some-plugin"}, refuse: "plugin unsupported"},
		{reason: "wrong payload type", claim: Notation{PayloadType: "text/plain"}, refuse: "not supported"},
	}
	for _, test := range tests {
		for _, mediaType := range []string{NotationJWS, NotationCOSE} {
			t.Run(test.reason+"/"+mediaType, func(t *testing.T) {
				signer, claim, check := test.signer, test.claim, test.check
				if signer == nil {
					signer = notary
				}
				if check.notary == nil {
					check.notary = signer
				}
				if claim.Target.Digest == "" {
					claim.Target = target
				}
				claim.MediaType, check.target = mediaType, target
				envelope, err := signer.Sign(claim)
				if err != nil {
					t.Fatal(err)
				}
				wantRefusal(t, check.run(t, envelope, mediaType), test.refuse)
			})
		}
	}
}

func TestRevocation(t *testing.T) {
	tests := []struct {
		reason    string
		state     Revocation
		ocsp, crl string // refusals by either
	}{
		{"good", Good, "", ""},
		{"revoked", Revoked, "is revoked", "is revoked"},
		{"a list does not distinguish unknown from good", Unknown, "revocation status is unknown", ""},
		{"stale", Stale, "revocation status is unknown", "revocation status is unknown"},
		{"down", Down, "revocation status is unknown", "revocation status is unknown"},
	}
	byOCSP := Must(NewNotary(NotaryOptions{OCSPURL: "http://notary.example/ocsp"}))
	byCRL := Must(NewNotary(NotaryOptions{CRLURL: "http://notary.example/crl"}))
	for _, test := range tests {
		for name, one := range map[string]struct {
			notary  *Notary
			handler http.Handler
			refuse  string
		}{
			"OCSP": {byOCSP, byOCSP.OCSP(), test.ocsp},
			"CRL":  {byCRL, byCRL.CRL(), test.crl},
		} {
			t.Run(test.reason+"/"+name, func(t *testing.T) {
				one.notary.SetRevocation(test.state)
				envelope := Must(one.notary.Sign(Notation{Target: target}))
				check := notaryCheck{notary: one.notary, handler: one.handler, target: target}
				wantRefusal(t, check.run(t, envelope, NotationJWS), one.refuse)
			})
		}
	}
}
