package notation_test

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/http"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/quaymaster/quaymaster/verify"
)

// vouching answers OCSP with "good", signed by a certificate of the CA.
func vouching(t *testing.T, ca, by *party) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer, err := ocsp.CreateResponse(ca.certificate(), by.certificate(), ocsp.Response{
			Status: ocsp.Good, SerialNumber: serial, ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().AddDate(50, 0, 0),
			IssuerHash: crypto.SHA1, Certificate: by.certificate(),
		}, by.key)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(answer)
	}
}

// TestWhoMayAnswer: of the certificates of a CA only a responder's (OCSPSigning) may speak for
// it; least of all the revoked one for itself. What was not believed is not kept either.
func TestWhoMayAnswer(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	signer := newSigner(t, ca, "release", server.naming("ocsp"))
	good := sign(t, order{by: signer})
	responder := func(change ...func(*x509.Certificate)) *party {
		return newSigner(t, ca, "responder", append(change, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning} })...)
	}
	for _, row := range []struct {
		reason string
		by     *party
		isGood bool
	}{
		{"a responder", responder(), true},
		{"the signer itself", signer, false},
		{"another signer", newSigner(t, ca, "another team"), false},
		{"a responder whose certificate has ended", responder(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), false},
		{"one whose certificate is of the future", responder(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		}), false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			verifier := newVerifier(t, asking)
			server.set(func(r *registrar) { r.respond = vouching(t, ca, row.by) })
			if _, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca)); (err == nil) != row.isGood {
				t.Errorf("%v", err)
			}
			server.set(func(r *registrar) { r.respond, r.status = nil, ocsp.Revoked })
			_, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
			if (err == nil) != row.isGood || !row.isGood && codeOf(t, err) != verify.Revoked {
				t.Errorf("afterwards, %v", err)
			}
		})
	}
}

// TestWhatAListSpeaksOf: a list on which a certificate cannot be says nothing of it.
func TestWhatAListSpeaksOf(t *testing.T) {
	type scope struct {
		Point         asn1.RawValue  `asn1:"optional,tag:0"`
		OnlyUser      bool           `asn1:"optional,tag:1"`
		OnlyCA        bool           `asn1:"optional,tag:2"`
		Reasons       asn1.BitString `asn1:"optional,tag:3"`
		Indirect      bool           `asn1:"optional,tag:4"`
		OnlyAttribute bool           `asn1:"optional,tag:5"`
	}
	of := func(id int, value any) pkix.Extension {
		der, err := asn1.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, id}, Critical: true, Value: der}
	}
	wrapped := func(tag int, isCompound bool, content []byte) asn1.RawValue {
		der, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, IsCompound: isCompound, Bytes: content})
		if err != nil {
			t.Fatal(err)
		}
		return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, IsCompound: isCompound, Bytes: content, FullBytes: der}
	}
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	signer := newSigner(t, ca, "release", server.naming("crl"))
	good := sign(t, order{by: signer})
	at := func(address string) asn1.RawValue {
		return wrapped(0, true, wrapped(0, true, wrapped(6, false, []byte(address)).FullBytes).FullBytes)
	}
	own := signer.certificate().CRLDistributionPoints[0]
	for _, row := range []struct {
		reason     string
		extensions []pkix.Extension
		isGood     bool
	}{
		{"all certificates", nil, true},
		{"all certificates, it says", []pkix.Extension{of(28, scope{})}, true},
		{"what is no certificate authority", []pkix.Extension{of(28, scope{OnlyUser: true})}, true},
		{"those of this address", []pkix.Extension{of(28, scope{Point: at(own)})}, true},
		{"those of another address", []pkix.Extension{of(28, scope{Point: at(own + "/2")})}, false},
		{"those of a name that is no address", []pkix.Extension{of(28, scope{Point: wrapped(0, true, wrapped(1, true, nil).FullBytes)})}, false},
		{"certificate authorities", []pkix.Extension{of(28, scope{OnlyCA: true})}, false},
		{"some reasons", []pkix.Extension{of(28, scope{Reasons: asn1.BitString{Bytes: []byte{0x40}, BitLength: 2}})}, false},
		{"others' certificates", []pkix.Extension{of(28, scope{Indirect: true})}, false},
		{"attributes", []pkix.Extension{of(28, scope{OnlyAttribute: true})}, false},
		{"what cannot be read", []pkix.Extension{of(28, "text")}, false},
		{"what is new since another list", []pkix.Extension{of(27, big.NewInt(1))}, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			server.set(func(r *registrar) {
				r.respond = func(w http.ResponseWriter, _ *http.Request) {
					list, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
						Number: big.NewInt(2), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour), ExtraExtensions: row.extensions,
					}, ca.certificate(), ca.key)
					if err != nil {
						t.Error(err)
					}
					_, _ = w.Write(list)
				}
			})
			verifier := newVerifier(t, asking)
			for range 2 { // the second time from memory
				if _, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca)); (err == nil) != row.isGood {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// TestASpoiltAnswerIsNotKept: where a list answers in the place of an OCSP answer that does
// not hold, the server is asked again the next time.
func TestASpoiltAnswerIsNotKept(t *testing.T) {
	ca, stranger := newCA(t, "root"), newCA(t, "root")
	server, list := newRegistrar(t, ca), newRegistrar(t, ca) // the list is of yesterday
	good := sign(t, order{by: newSigner(t, ca, "release", server.naming("ocsp"), list.naming("crl"))})
	for _, row := range []struct {
		reason string
		by     *party
		isGood bool
	}{{"a stranger's answer", stranger, false}, {"the CA's own", ca, true}} {
		verifier := newVerifier(t, asking)
		server.set(func(r *registrar) { r.signedBy, r.status = row.by, ocsp.Good })
		if _, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca)); err != nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		server.set(func(r *registrar) { r.signedBy, r.status = ca, ocsp.Revoked })
		_, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
		if (err == nil) != row.isGood || !row.isGood && codeOf(t, err) != verify.Revoked {
			t.Errorf("%s, and then the signer is revoked: %v", row.reason, err)
		}
	}
}
