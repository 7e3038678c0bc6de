package notation_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"net/http"
	"net/url"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// notationReads so many bytes of an OCSP answer, and passes over what comes behind.
const notationReads = 20480

// word is an answer by OCSP.
type word struct {
	ca, by *party // the CA in its name, and its signer
	isBare bool   // does not show by's certificate
	serial *big.Int
	status int
	next   time.Time
	length int    // of just so many bytes, if not 0
	behind string // what comes after it
}

func (a word) der(t *testing.T) []byte {
	said := ocsp.Response{
		Status: a.status, SerialNumber: a.serial, ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: a.next,
		RevokedAt: time.Now().Add(-time.Minute), IssuerHash: crypto.SHA1,
	}
	if !a.isBare {
		said.Certificate = a.by.certificate()
	}
	var answer []byte
	for padding := a.length; answer == nil || a.length > 0 && len(answer) != a.length; padding += a.length - len(answer) { // signatures differ in length
		said.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: make([]byte, padding)}}
		var err error
		answer, err = ocsp.CreateResponse(a.ca.certificate(), a.by.certificate(), said, a.by.key)
		if err != nil {
			t.Error(err)
			return nil
		}
	}
	return append(answer, a.behind...)
}

// answering gives a ready answer to any question.
func answering(answer []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }
}

// TestResponders: of the certificates of a CA only a responder's (OCSPSigning) may sign its
// answers; least of all the revoked one for itself. A refused answer is not cached either.
func TestResponders(t *testing.T) {
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
		length int
		behind string
		isGood bool
	}{
		{"a responder", responder(), 0, "", true},
		{"a responder, at length", responder(), notationReads, "", true},
		{"a responder, at more length than notation reads", responder(), notationReads, "more", false},
		{"the CA itself, which shows its certificate", ca, 0, "", true},
		{"another CA, which shows its own", newCA(t, "root"), 0, "", false},
		{"the signer itself", signer, 0, "", false},
		{"the signer itself, at length", signer, notationReads, "", false},
		{"the signer itself, at more length than notation reads", signer, notationReads, "more", false},
		{"another signer", newSigner(t, ca, "another team"), 0, "", false},
		{"a responder with an expired certificate", responder(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), 0, "", false},
		{"one with a certificate of the future", responder(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		}), 0, "", false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			verifier := newVerifier(t, revocationRequests)
			said := word{ca: ca, by: row.by, serial: serial, next: time.Now().AddDate(50, 0, 0), length: row.length, behind: row.behind}.der(t)
			server.set(func(r *registrar) { r.respond = answering(said) })
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

// TestScopeOfAList: a list that excludes a certificate by its scope has no answer for it.
func TestScopeOfAList(t *testing.T) {
	type scope struct {
		Point         asn1.RawValue  `asn1:"optional,tag:0"`
		OnlyUser      bool           `asn1:"optional,tag:1"`
		OnlyCA        bool           `asn1:"optional,tag:2"`
		Reasons       asn1.BitString `asn1:"optional,tag:3"`
		Indirect      bool           `asn1:"optional,tag:4"`
		OnlyAttribute bool           `asn1:"optional,tag:5"`
	}
	encoded := func(value any) []byte {
		der, err := asn1.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	of := func(id int, value any, behind ...byte) []pkix.Extension {
		return []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, id}, Critical: true, Value: append(encoded(value), behind...)}}
	}
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	between := &x509.Certificate{Subject: name("team"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	server.naming("crl")(between)
	signer, team := newSigner(t, ca, "release", server.naming("crl")), issue(t, ca, between)
	user, authority := sign(t, order{by: signer}), sign(t, order{by: newSigner(t, team, "release")})

	const application, specific = asn1.ClassApplication, asn1.ClassContextSpecific
	tagged := func(class, tag int, content ...[]byte) []byte {
		return encoded(asn1.RawValue{Class: class, Tag: tag, IsCompound: true, Bytes: bytes.Join(content, nil)})
	}
	called := func(class, tag int, text string) []byte {
		return encoded(asn1.RawValue{Class: class, Tag: tag, Bytes: []byte(text)})
	}
	point := func(content ...[]byte) []pkix.Extension {
		return of(28, scope{Point: asn1.RawValue{FullBytes: tagged(specific, 0, content...)}})
	}
	at := func(names ...[]byte) []pkix.Extension { return point(tagged(specific, 0, names...)) }
	address := signer.certificate().CRLDistributionPoints[0]
	own, other := called(specific, 6, address), called(specific, 6, address+"/2")
	for _, row := range []struct {
		reason     string
		looked     attest.Evidence // with the certificate that is looked up
		extensions []pkix.Extension
		isGood     bool
	}{
		{"all certificates", user, nil, true},
		{"all certificates, explicitly", user, of(28, scope{}), true},
		{"all certificates, explicitly, and trailing data", user, of(28, scope{}, 5, 0), false},
		{"all certificates, also authorities'", authority, of(28, scope{}), true},
		{"end-entity certificates", user, of(28, scope{OnlyUser: true}), true},
		{"end-entity certificates, as this is an authority", authority, of(28, scope{OnlyUser: true}), false},
		{"certificate authorities", authority, of(28, scope{OnlyCA: true}), true},
		{"certificate authorities, as this is none", user, of(28, scope{OnlyCA: true}), false},
		{"those of this address", user, at(own), true},
		{"those of this address, too", user, at(other, own), true},
		{"those of another address", user, at(other), false},
		{"those of a host that is called as the address", user, at(called(specific, 2, address)), false},
		{"those of a name of another class", user, at(called(application, 6, address)), false},
		{"those of this address and of what cannot be read", user, at(own, own[:2]), false},
		{"those of no name", user, at(), false},
		{"those of a point without names", user, point(), false},
		{"those of a name within the issuer's", user, point(tagged(specific, 1, own)), false},
		{"those of names of another class", user, point(tagged(application, 0, own)), false},
		{"some reasons", user, of(28, scope{Reasons: asn1.BitString{Bytes: []byte{0x40}, BitLength: 2}}), false},
		{"others' certificates", user, of(28, scope{Indirect: true}), false},
		{"attributes", user, of(28, scope{OnlyAttribute: true}), false},
		{"what cannot be read", user, of(28, "text"), false},
		{"a delta list", user, of(27, big.NewInt(1)), false},
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
			verifier := newVerifier(t, revocationRequests)
			for range 2 { // the second time from memory
				if _, err := verifier.Verify(t.Context(), pinned(t, manifest), row.looked, trusting(ca)); (err == nil) != row.isGood {
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
	}{{"another CA's answer", stranger, false}, {"the CA's own", ca, true}} {
		verifier := newVerifier(t, revocationRequests)
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

// TestAnAnswerIsToItsQuestion: an honest answer about another certificate of the chain is none,
// and is not kept either where a list answers in its place.
func TestAnAnswerIsToItsQuestion(t *testing.T) {
	ca := newCA(t, "root")
	team := issue(t, ca, &x509.Certificate{
		Subject: name("team"), SerialNumber: big.NewInt(12), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
	server, list := newRegistrar(t, team), newRegistrar(t, team) // the list is of yesterday
	good := sign(t, order{by: newSigner(t, team, "release", server.naming("ocsp"), list.naming("crl"))})
	next := time.Now().Add(time.Hour)
	for _, row := range []struct {
		reason string
		said   word
		isGood bool
	}{
		{"about the signer", word{ca: team, by: team, isBare: true, serial: serial, next: next}, true},
		{"about the signer's issuer", word{ca: ca, by: ca, serial: big.NewInt(12), next: next}, false},
	} {
		verifier := newVerifier(t, revocationRequests)
		said := row.said.der(t)
		server.set(func(r *registrar) { r.respond = answering(said) })
		if _, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca)); err != nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		said = word{ca: team, by: team, isBare: true, serial: serial, next: next, status: ocsp.Revoked}.der(t)
		server.set(func(r *registrar) { r.respond = answering(said) })
		_, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
		if (err == nil) != row.isGood || !row.isGood && codeOf(t, err) != verify.Revoked {
			t.Errorf("%s, and then the signer is revoked: %v", row.reason, err)
		}
	}
}

// TestAChainIsAskedAbout: each certificate of it needs an answer of its own.
func TestAChainIsAskedAbout(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	between := &x509.Certificate{Subject: name("team"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	server.naming("ocsp")(between)
	team := issue(t, ca, between)
	good := sign(t, order{by: newSigner(t, team, "release")})
	next := time.Now().Add(time.Hour)
	for _, row := range []struct {
		reason string
		said   word
		isGood bool
	}{
		{"of the issuer about the issued", word{ca: ca, by: ca, serial: serial, next: next}, true},
		{"of the issued about itself", word{ca: team, by: team, serial: serial, next: next}, false},
		{"of the issued about itself, without a certificate", word{ca: team, by: team, isBare: true, serial: serial, next: next}, false},
		{"of the issuer about another", word{ca: ca, by: ca, serial: big.NewInt(1), next: next}, false},
	} {
		said := row.said.der(t)
		server.set(func(r *registrar) { r.respond = answering(said) })
		_, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
		if (err == nil) != row.isGood || !row.isGood && image.KindOf(err) != image.Unavailable {
			t.Errorf("an answer %s: %v", row.reason, err)
		}
	}
}

// TestAddressesOfResponders: the question is found in whatever address a certificate names.
func TestAddressesOfResponders(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	for _, address := range []string{"", "/", "/ocsp", "/ocsp/", "/ocsp/a%2Fb", "/ocsp?team=1", "/ocsp/?team=a/b"} {
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming("ocsp"), func(c *x509.Certificate) { c.OCSPServer = []string{server.URL + address} })})
		for status, want := range map[int]verify.Code{ocsp.Good: "", ocsp.Revoked: verify.Revoked} {
			said := word{ca: ca, by: ca, serial: serial, next: time.Now().Add(time.Hour), status: status}.der(t)
			server.set(func(r *registrar) { r.respond = answering(said) })
			_, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
			if got := codeOf(t, err); got != want {
				t.Errorf("%q: code %q (%v), want %q", address, got, err, want)
			}
		}
	}
}

// TestARedirectKeepsTheQuestion: an answer after a redirect is cached for the original
// request, and not for the redirected one.
func TestARedirectKeepsTheQuestion(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	first, second := big.NewInt(1), big.NewInt(2)
	numbered := func(serial *big.Int) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.SerialNumber = serial }
	}
	one := sign(t, order{by: newSigner(t, ca, "one", server.naming("ocsp"), numbered(first))})
	two := newSigner(t, ca, "two", server.naming("ocsp"), numbered(second))
	question, err := ocsp.CreateRequest(two.certificate(), ca.certificate(), nil)
	if err != nil {
		t.Fatal(err)
	}
	honest := func(serial *big.Int, status int) []byte {
		return word{ca: ca, by: ca, serial: serial, next: time.Now().Add(time.Hour), status: status}.der(t)
	}
	for _, row := range []struct{ reason, to string }{
		{"to another address", "/ocsp/elsewhere"},
		{"to the question about another certificate", "/ocsp/" + url.QueryEscape(base64.StdEncoding.EncodeToString(question))},
	} {
		verifier := newVerifier(t, revocationRequests)
		said := honest(first, ocsp.Good)
		server.set(func(r *registrar) {
			r.asked = map[string]int{}
			r.respond = func(w http.ResponseWriter, request *http.Request) {
				if request.URL.EscapedPath() == row.to {
					_, _ = w.Write(said)
					return
				}
				http.Redirect(w, request, row.to, http.StatusFound)
			}
		})
		for range 2 { // the second time from memory
			if _, err := verifier.Verify(t.Context(), pinned(t, manifest), one, trusting(ca)); err != nil || server.requests() != 2 {
				t.Errorf("%s: %v, %d requests; want 2", row.reason, err, server.requests())
			}
		}
		said = honest(second, ocsp.Revoked)
		server.set(func(r *registrar) { r.respond = answering(said) })
		_, err := verifier.Verify(t.Context(), pinned(t, manifest), sign(t, order{by: two}), trusting(ca))
		if codeOf(t, err) != verify.Revoked {
			t.Errorf("%s, and then the other is revoked: %v", row.reason, err)
		}
	}
}

// TestAnAnswerEndsWithItsResponder: nothing rests on it for longer than on the certificate
// that signed it.
func TestAnAnswerEndsWithItsResponder(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	good := sign(t, order{by: newSigner(t, ca, "release", server.naming("ocsp"))})
	soon, later := time.Now().Add(time.Hour).Truncate(time.Second), time.Now().Add(2*time.Hour).Truncate(time.Second)
	for _, row := range []struct {
		reason          string
		responder, next time.Time
		isBare          bool
	}{
		{"the answer ends first", later, soon, false},
		{"the responder's certificate ends first", soon, later, false},
		{"the CA's own answer, without a certificate", time.Time{}, soon, true},
	} {
		by := ca
		if !row.isBare {
			by = newSigner(t, ca, "responder", func(c *x509.Certificate) {
				c.ExtKeyUsage, c.NotAfter = []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning}, row.responder
			})
		}
		said := word{ca: ca, by: by, isBare: row.isBare, serial: serial, next: row.next}.der(t)
		server.set(func(r *registrar) { r.respond = answering(said) })
		fact, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
		if err != nil || !fact.Expires.Equal(soon) {
			t.Errorf("%s: %v, the fact expires %s, want %s", row.reason, err, fact.Expires, soon)
		}
	}
}
