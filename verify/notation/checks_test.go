package notation_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/tspclient-go"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestStores: what may stand in a trust store, and what only looks like it.
func TestStores(t *testing.T) {
	ca := newCA(t, "root")
	between := issue(t, ca, &x509.Certificate{Subject: name("intermediate"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	alone := newSigner(t, nil, "alone")
	namesake := newSigner(t, newCA(t, "alone"), "alone")
	namesakeCA := issue(t, newCA(t, "root"), &x509.Certificate{Subject: name("root"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	const root, signer = "no root certificate", "the certificate that issued it"
	tests := []struct {
		reason string
		ca     []byte
		tsa    []byte
		says   string // empty: accepted
	}{
		{"an intermediate vouches for its certificates", between.pem(), nil, ""},
		{"a self-signed signer vouches for itself", alone.pem(), nil, ""},
		{"a signer of another's with the same name", namesake.pem(), nil, signer},
		{"a signer under another name, with the same key", renamed(t, alone), nil, signer},
		{"a certificate that cannot be read", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), nil, "certificate 1"},
		{"a key of 8192 bits", longStore(8192), nil, ""},
		{"a key of one bit more", longStore(8193), nil, "certificate 1: the RSA key of 8193 bits is longer"},
		{"a long key of timestamps", ca.pem(), longStore(8193), "certificate 1: the RSA key of 8193 bits is longer"},
		{"a root for timestamps", ca.pem(), ca.pem(), ""},
		{"an intermediate for timestamps", ca.pem(), between.pem(), root},
		{"an intermediate for timestamps with its issuer's name", ca.pem(), namesakeCA.pem(), root},
		{"a self-signed certificate for timestamps that is no authority", ca.pem(), alone.pem(), root},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			err := notation.CheckAuthority(verify.Authority{Name: "release", Notation: &verify.Notation{CA: test.ca, TSA: test.tsa}})
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
	unknown := trusting(ca, func(a *verify.Authority) { a.Notation.Level.Revocation = "warn" })
	if err := notation.CheckAuthority(unknown); err == nil || !strings.Contains(err.Error(), "unknown action") {
		t.Errorf("an unknown action for revocation: got %v", err)
	}
}

// longStore is a trust store of a certificate authority with a long key.
func longStore(bits int) []byte {
	certificate := verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits)))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// renamed is a party's certificate that names another issuer, signed with its own key.
func renamed(t *testing.T, p *party) []byte {
	t.Helper()
	template, issuer := *p.certificate(), *p.certificate()
	issuer.Subject, issuer.RawSubject = name("another"), nil
	template.SerialNumber = big.NewInt(1)
	der, err := x509.CreateCertificate(rand.Reader, &template, &issuer, p.key.Public(), p.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestBounds: input at the bound is read.
func TestBounds(t *testing.T) {
	ca := newCA(t, "root")
	good := sign(t, order{by: newSigner(t, ca, "release")})
	good.Payload = append(good.Payload, bytes.Repeat([]byte(" "), 256<<10-len(good.Payload))...)
	issuer := ca
	for range 8 {
		issuer = issue(t, issuer, &x509.Certificate{Subject: name("intermediate"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	}
	long := newSigner(t, issuer, "release")
	if len(long.chain) != 10 {
		t.Fatalf("a chain of %d, want the bound", len(long.chain))
	}
	runAll(t, []row{
		{reason: "an envelope of 256 KiB", evidence: good, authority: trusting(ca)},
		{reason: "a chain of ten", evidence: sign(t, order{by: long}), authority: trusting(ca)},
	})
}

// TestSigningAuthority: its word is a trusted time, and no timestamp.
func TestSigningAuthority(t *testing.T) {
	now := time.Now()
	then := now.Add(-2 * time.Hour).Truncate(time.Second)
	ca := newCA(t, "root")
	short := newSigner(t, ca, "release", func(c *x509.Certificate) { c.NotAfter = now.Add(time.Hour) })
	stamps := newTSA(t, then)
	authentic := sign(t, order{by: short, at: then, scheme: signature.SigningSchemeX509SigningAuthority})
	vouching := func(change func(*verify.Authority)) verify.Authority {
		return trusting(ca, func(a *verify.Authority) {
			a.Notation.CA, a.Notation.SigningAuthority, a.Notation.TSA = nil, ca.pem(), stamps.ca.pem()
			change(a)
		})
	}
	bounded := vouching(func(a *verify.Authority) { a.NotBefore, a.NotAfter = then.Add(-time.Hour), then.Add(time.Hour) })
	runAll(t, []row{
		{reason: "its time counts where timestamp authorities are known, too", evidence: authentic, authority: bounded},
		{reason: "its time does not count for a timestamp that is asked for", evidence: authentic,
			authority: vouching(func(a *verify.Authority) { a.Timestamp.Required = true }), code: verify.NoTimestamp},
	})
	noTSA := vouching(func(a *verify.Authority) { a.Notation.TSA = nil })
	fact, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), authentic, noTSA)
	if err != nil || !fact.Expires.IsZero() {
		t.Errorf("got %v, expires %s; want no end, since it is known when it was signed", err, fact.Expires)
	}
	if !fact.SignedAt.Equal(then) || fact.TimeSource != verify.OwnTime || !fact.VerifiedTime().IsZero() {
		t.Errorf("signed at %s by %s: the signer's own time must not count for an age", fact.SignedAt, fact.TimeSource)
	}
}

// TestTimestampAuthorityOfOtherUse: a certificate that may do more than stamp is none of a
// timestamp authority.
func TestTimestampAuthorityOfOtherUse(t *testing.T) {
	ca := newCA(t, "root")
	at := time.Now().Add(-time.Minute)
	stamps := newTSA(t, at)
	other := newTSA(t, at, func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageKeyEncipherment })
	good := sign(t, order{by: newSigner(t, ca, "release"), tsa: stamps})
	for _, test := range []struct {
		tsa  *tsa
		code verify.Code
	}{{stamps, ""}, {other, verify.BadTimestamp}} {
		stamped := jws(t, good, func(f map[string]any) {
			signed, err := base64.RawURLEncoding.DecodeString(f["signature"].(string))
			if err != nil {
				t.Fatal(err)
			}
			request, err := tspclient.NewRequest(tspclient.RequestOptions{Content: signed, HashAlgorithm: crypto.SHA256})
			if err != nil {
				t.Fatal(err)
			}
			response, err := test.tsa.Timestamp(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			f["header"].(map[string]any)["io.cncf.notary.timestampSignature"] = base64.StdEncoding.EncodeToString(response.TimestampToken.FullBytes)
		})
		authority := trusting(ca, func(a *verify.Authority) { a.Notation.TSA = test.tsa.ca.pem() })
		_, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), stamped, authority)
		if got := codeOf(t, err); got != test.code {
			t.Errorf("code %q (%v), want %q", got, err, test.code)
		}
	}
}

// TestFirstAnswerThatEnds: a fact rests on every answer about revocation.
func TestFirstAnswerThatEnds(t *testing.T) {
	ca := newCA(t, "root")
	soon, late := time.Now().Add(30*time.Minute), time.Now().Add(time.Hour)
	for _, nexts := range [][2]time.Time{{soon, late}, {late, soon}} {
		ofRoot := newRegistrar(t, ca)
		template := &x509.Certificate{
			Subject: name("intermediate"), IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		}
		ofRoot.naming("crl")(template)
		between := issue(t, ca, template)
		ofBetween := newRegistrar(t, between)
		ofRoot.set(func(r *registrar) { r.next = nexts[0] })
		ofBetween.set(func(r *registrar) { r.next = nexts[1] })
		good := sign(t, order{by: newSigner(t, between, "release", ofBetween.naming("crl"))})
		verifier := newVerifier(t, revocationRequests)
		for range 16 { // in whatever order the answers are looked at
			fact, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
			if err != nil {
				t.Fatal(err)
			}
			if !fact.Expires.Equal(soon.Truncate(time.Second)) {
				t.Fatalf("the fact expires %s, want with the first answer at %s", fact.Expires, soon)
			}
		}
	}
}

// TestDeltaThatEnds: a delta list is valid as long as both it and its base list.
func TestDeltaThatEnds(t *testing.T) {
	ca := newCA(t, "root")
	soon, late := time.Now().Add(30*time.Minute), time.Now().Add(time.Hour)
	for _, nexts := range [][2]time.Time{{soon, late}, {late, soon}} {
		server := newRegistrar(t, ca)
		location := []byte(server.URL + "/delta")
		freshest := append([]byte{0xa0, byte(len(location) + 4), 0xa0, byte(len(location) + 2), 0x86, byte(len(location))}, location...)
		freshest = append([]byte{0x30, byte(len(freshest) + 2), 0x30, byte(len(freshest))}, freshest...)
		server.set(func(r *registrar) {
			r.respond = func(w http.ResponseWriter, request *http.Request) {
				list := &x509.RevocationList{
					Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: nexts[0],
					ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 46}, Value: freshest}},
				}
				if request.URL.Path == "/delta" {
					list.Number, list.NextUpdate = big.NewInt(2), nexts[1]
					list.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}
				}
				der, err := x509.CreateRevocationList(rand.Reader, list, ca.certificate(), ca.key)
				if err != nil {
					t.Error(err)
				}
				_, _ = w.Write(der)
			}
		})
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming("crl"))})
		fact, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
		if err != nil {
			t.Fatal(err)
		}
		if !fact.Expires.Equal(soon.Truncate(time.Second)) {
			t.Errorf("the fact expires %s, want with the list that ends at %s", fact.Expires, soon)
		}
	}
}

// elsewhere carries questions to a registrar, whatever host they name.
type elsewhere struct{ to *url.URL }

func (e elsewhere) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Host = e.to.Host
	return http.DefaultTransport.RoundTrip(request)
}

// TestServersElsewhereAreAsked is the control of the servers on this machine that are not.
func TestServersElsewhereAreAsked(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	by := newSigner(t, ca, "release", func(c *x509.Certificate) {
		c.SerialNumber, c.OCSPServer = serial, []string{"http://revocation.example/ocsp"}
	})
	_, err = newVerifier(t, notation.Options{Transport: elsewhere{at}}).Verify(t.Context(), pinned(t, manifest), sign(t, order{by: by}), trusting(ca))
	if err != nil || server.requests() != 1 {
		t.Errorf("got %v after %d requests, want one and a fact", err, server.requests())
	}
}

// broken is a context that panics when it is asked, as a library might on foreign bytes.
type broken struct{ context.Context }

func (broken) Err() error { panic("broken") }

// TestPanic: a panic is no proof, whatever it came from.
func TestPanic(t *testing.T) {
	ca := newCA(t, "root")
	good := sign(t, order{by: newSigner(t, ca, "release")})
	for ctx, want := range map[context.Context]verify.Code{t.Context(): "", broken{t.Context()}: verify.Malformed} {
		_, err := newVerifier(t, notation.Options{}).Verify(ctx, pinned(t, manifest), good, trusting(ca))
		if got := codeOf(t, err); got != want {
			t.Errorf("code %q (%v), want %q", got, err, want)
		}
	}
}

// TestPolicyOfNoUse: terms that notation refuses say nothing about the signature.
func TestPolicyOfNoUse(t *testing.T) {
	ca := newCA(t, "root")
	good := sign(t, order{by: newSigner(t, ca, "release")})
	authority := trusting(ca, func(a *verify.Authority) { a.Notation.Identities = []string{"x509.subject: CN=release"} })
	_, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), good, authority)
	if _, rejected := errors.AsType[*verify.Rejection](err); err == nil || rejected {
		t.Errorf("got %v, want an error that is no rejection", err)
	}
	_, err = newVerifier(t, notation.Options{}).Verify(t.Context(), image.Pinned{}, attest.Evidence{MediaType: good.MediaType, Payload: good.Payload}, trusting(ca))
	if _, rejected := errors.AsType[*verify.Rejection](err); err == nil || rejected {
		t.Errorf("an image without a digest: got %v, want an error that is no rejection", err)
	}
}
