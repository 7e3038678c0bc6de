package notation_test

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
)

// longList is a list with many of the shortest usual entries, and with other content of some bytes.
func longList(t *testing.T, ca *party, entries, more int) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	list.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: make([]byte, more)}}
	entry := x509.RevocationListEntry{SerialNumber: big.NewInt(1), RevocationTime: time.Now().Add(-time.Minute)}
	for range entries {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, entry)
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, ca.certificate(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestAuthorityWithANewKey: it publishes at the URL of before, and the list of each key is only about the
// certificates of that key.
func TestAuthorityWithANewKey(t *testing.T) {
	for _, service := range []string{"ocsp", "crl"} {
		for _, row := range []struct {
			reason string
			status int
			isOld  bool // the server still signs with the old key
			code   verify.Code
			isGood bool
		}{
			{reason: "it is good", status: ocsp.Good, isGood: true},
			{reason: "it is revoked", status: ocsp.Revoked, code: verify.Revoked},
			{reason: "the list is still of the old key", status: ocsp.Good, isOld: true},
		} {
			before, after := newCA(t, "root"), newCA(t, "root")
			both := verify.Authority{Name: "release", Notation: &verify.Notation{CA: append(before.pem(), after.pem()...)}}
			server := newRegistrar(t, before)
			verifier := newVerifier(t, revocationRequests)
			old := sign(t, order{by: newSigner(t, before, "release", server.naming(service))})
			try := func() error {
				_, err := verifier.Verify(t.Context(), pinned(t, manifest), old, both)
				return err
			}
			if err := try(); err != nil {
				t.Fatalf("%s, of the old key: %v", service, err)
			}
			server.set(func(r *registrar) {
				r.status = row.status
				if !row.isOld {
					r.ca, r.signedBy = after, after
				}
			})
			_, err := verifier.Verify(t.Context(), pinned(t, manifest), sign(t, order{by: newSigner(t, after, "release", server.naming(service))}), both)
			switch {
			case row.isGood && err != nil, row.code != "" && codeOf(t, err) != row.code:
				t.Errorf("%s, %s: %v", service, row.reason, err)
			case !row.isGood && row.code == "" && image.KindOf(err) != image.Unavailable:
				t.Errorf("%s, %s: %v, want an unavailable error", service, row.reason, err)
			}
			if err := try(); err != nil {
				t.Errorf("%s, %s: the cached answer of the old key is lost: %v", service, row.reason, err)
			}
		}
	}
}

// TestExpiryOfAList: where a list replaces an OCSP answer, only the list bounds the fact.
func TestExpiryOfAList(t *testing.T) {
	ca := newCA(t, "root")
	soon, later := time.Now().Add(time.Hour).Truncate(time.Second), time.Now().Add(2*time.Hour).Truncate(time.Second)
	for _, row := range []struct {
		reason   string
		status   int
		ocsp     time.Time // its end
		list     time.Time
		expires  time.Time // zero: no fact
		requests int       // of two verifications
	}{
		{"the answer is good", ocsp.Good, soon, later, soon, 1},
		{"the answer has ended", ocsp.Good, time.Now().Add(-time.Hour), later, later, 3},
		{"the answer has no end", ocsp.Good, time.Time{}, later, later, 3},
		{"the status is unknown", ocsp.Unknown, soon, later, later, 3},
		{"both have ended", ocsp.Good, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour), time.Time{}, 4},
	} {
		server := newRegistrar(t, ca)
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming("ocsp", "crl"))})
		answer := word{ca: ca, by: ca, isBare: true, serial: serial, status: row.status, next: row.ocsp}.der(t)
		server.set(func(r *registrar) {
			r.respond = func(w http.ResponseWriter, request *http.Request) {
				if request.URL.Path != "/crl" {
					_, _ = w.Write(answer)
					return
				}
				r.next = row.list
				r.answerCRL(w)
			}
		})
		verifier := newVerifier(t, revocationRequests)
		for range 2 {
			fact, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
			if (err == nil) == row.expires.IsZero() || err == nil && !fact.Expires.Equal(row.expires) {
				t.Errorf("%s: the fact expires %s, want %s (%v)", row.reason, fact.Expires, row.expires, err)
			}
		}
		if got := server.requests(); got != row.requests {
			t.Errorf("%s: %d requests, want %d", row.reason, got, row.requests)
		}
	}
	server := newRegistrar(t, ca)
	server.set(func(r *registrar) { r.next = time.Now().Add(-time.Hour) })
	for _, service := range []string{"ocsp", "crl"} {
		noted := trusting(ca, func(a *verify.Authority) { a.Notation.Level.Revocation = verify.Note })
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming(service))})
		fact, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), good, noted)
		if err != nil || len(fact.Notes) != 1 || fact.Expires.Before(later) { // with the certificate
			t.Errorf("%s has ended, to be noted: notes %q, the fact expires %s (%v)", service, fact.Notes, fact.Expires, err)
		}
	}
}

// TestNumberOfLists: notation downloads all lists that a certificate names, so there may be few.
func TestNumberOfLists(t *testing.T) {
	ca := newCA(t, "root")
	for _, row := range []struct {
		reason         string
		points         int
		same, withOCSP bool
		status         int
		isGood         bool
		requests       int
	}{
		{"as many as the bound", 4, false, false, ocsp.Good, true, 4},
		{"one more", 5, false, false, ocsp.Good, false, 0},
		{"one more of the same URL", 5, true, false, ocsp.Good, false, 0},
		{"more, and none is needed", 5, false, true, ocsp.Good, true, 1},
		{"more, and the OCSP answer needs them", 5, false, true, ocsp.Unknown, false, 1},
	} {
		server := newRegistrar(t, ca)
		server.set(func(r *registrar) { r.status = row.status })
		good := sign(t, order{by: newSigner(t, ca, "release", func(c *x509.Certificate) {
			c.SerialNumber = serial
			for i := range row.points {
				if row.same {
					i = 0
				}
				c.CRLDistributionPoints = append(c.CRLDistributionPoints, fmt.Sprintf("%s/crl/%d", server.URL, i))
			}
			if row.withOCSP {
				server.naming("ocsp")(c)
			}
		})})
		_, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
		if (err == nil) != row.isGood || !row.isGood && image.KindOf(err) != image.Unavailable || server.requests() != row.requests {
			t.Errorf("%s: %v, %d requests, want %d", row.reason, err, server.requests(), row.requests)
		}
	}
}

// TestParsedListSize: a cached list takes at most so many times its size as the cache counts.
func TestParsedListSize(t *testing.T) {
	const entries, factor = 50_000, 10
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	ca := newCA(t, "root")
	der := longList(t, ca, entries, 1)
	server := newRegistrar(t, ca)
	server.set(func(r *registrar) { r.respond = answering(der) })
	good := sign(t, order{by: newSigner(t, ca, "release", server.naming("crl"), func(c *x509.Certificate) { c.SerialNumber = big.NewInt(2) })})
	verifier := newVerifier(t, notation.Options{Transport: revocationRequests.Transport, InsecureLoopback: true, Timeout: time.Minute})
	before := heap()
	for range 2 {
		if _, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca)); err != nil || server.requests() != 1 {
			t.Fatalf("%v, %d requests, want 1", err, server.requests())
		}
	}
	if took := heap() - before; took > factor*int64(len(der)) || took < 5*int64(len(der)) {
		t.Errorf("a list of %d bytes takes %d, %.1f times its size, want at most %d times", len(der), took, float64(took)/float64(len(der)), factor)
	}
	runtime.KeepAlive(verifier)
}

// TestListsAreParsedInTurn: a list that cannot be read, or was redirected, does not block the next one.
func TestListsAreParsedInTurn(t *testing.T) {
	ca := newCA(t, "root")
	verifier := newVerifier(t, revocationRequests)
	var all sync.WaitGroup
	for i := range 24 {
		server := newRegistrar(t, ca)
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming("crl"))})
		server.set(func(r *registrar) {
			r.respond = func(w http.ResponseWriter, request *http.Request) {
				switch {
				case i%3 == 0:
					_, _ = w.Write([]byte("garbage"))
				case i%3 == 1 && request.URL.Path == "/crl":
					http.Redirect(w, request, "/crl/elsewhere", http.StatusFound)
				default:
					r.answerCRL(w)
				}
			}
		})
		all.Go(func() {
			_, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
			if isGood := i%3 != 0; (err == nil) != isGood || !isGood && image.KindOf(err) != image.Unavailable {
				t.Errorf("list %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

// TestLongLists: lists beyond the cache's size are not held: they are requested again, and count as before.
func TestLongLists(t *testing.T) {
	ca := newCA(t, "root")
	der := longList(t, ca, 1, 7<<20)
	server := newRegistrar(t, ca)
	server.set(func(r *registrar) { r.respond = answering(der) })
	verifier := newVerifier(t, notation.Options{Transport: revocationRequests.Transport, InsecureLoopback: true, Timeout: time.Minute})
	for number, want := range map[int64]verify.Code{1: verify.Revoked, 2: ""} {
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming("crl"), func(c *x509.Certificate) { c.SerialNumber = big.NewInt(number) })})
		for range 2 {
			asked := server.requests()
			fact, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
			if got := codeOf(t, err); got != want || server.requests() != asked+1 || err == nil && fact.Expires.IsZero() {
				t.Errorf("certificate %d: %v, the fact expires %s, %d requests, want one", number, err, fact.Expires, server.requests()-asked)
			}
		}
	}
}
