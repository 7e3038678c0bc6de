package notation_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
)

// asking may query the servers of these tests.
var revocationRequests = notation.Options{Transport: &http.Transport{DialContext: dial.New(dial.Config{}).DialContext}, InsecureLoopback: true}

// registrar answers requests about revocation as configured.
type registrar struct {
	*httptest.Server
	ca *party

	mu       sync.Mutex
	status   int // ocsp.Good, ocsp.Revoked, ocsp.Unknown
	signedBy *party
	next     time.Time
	respond  http.HandlerFunc // in place of an honest answer
	asked    map[string]int
}

func newRegistrar(t testing.TB, ca *party) *registrar {
	r := &registrar{ca: ca, signedBy: ca, next: time.Now().Add(time.Hour), asked: map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *registrar) set(change func(r *registrar)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

func (r *registrar) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked["ocsp"] + r.asked["crl"]
}

// ServeHTTP answers /ocsp and /crl.
func (r *registrar) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	service := strings.Split(strings.Trim(request.URL.Path, "/"), "/")[0]
	r.asked[service]++
	switch {
	case r.respond != nil:
		r.respond(w, request)
	case service == "ocsp":
		r.answerOCSP(w, request)
	case service == "crl":
		r.answerCRL(w)
	default:
		http.NotFound(w, request)
	}
}

// The certificates of these tests have one serial number, so that an answer
// needs no look at the question.
var serial = big.NewInt(4711)

func (r *registrar) answerOCSP(w http.ResponseWriter, request *http.Request) {
	if _, err := io.ReadAll(request.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := ocsp.CreateResponse(r.ca.certificate(), r.ca.certificate(), ocsp.Response{
		Status: r.status, SerialNumber: serial, ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: r.next,
		RevokedAt: time.Now().Add(-time.Minute), IssuerHash: crypto.SHA1,
	}, r.signedBy.key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(answer)
}

func (r *registrar) answerCRL(w http.ResponseWriter) {
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: r.next}
	if r.status == ocsp.Revoked {
		list.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: serial, RevocationTime: time.Now().Add(-time.Minute)}}
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, r.signedBy.certificate(), r.signedBy.key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(der)
}

// naming makes a certificate name the registrar's services.
func (r *registrar) naming(services ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.SerialNumber = serial
		for _, service := range services {
			switch service {
			case "ocsp":
				c.OCSPServer = append(c.OCSPServer, r.URL+"/ocsp")
			case "crl":
				c.CRLDistributionPoints = append(c.CRLDistributionPoints, r.URL+"/crl")
			}
		}
	}
}

func TestRevocation(t *testing.T) {
	ca, stranger := newCA(t, "root"), newCA(t, "root")
	revoked := func(r *registrar) { r.status = ocsp.Revoked }
	respond := func(h http.HandlerFunc) func(*registrar) { return func(r *registrar) { r.respond = h } }
	level := func(action verify.Action) verify.Authority {
		return trusting(ca, func(a *verify.Authority) { a.Notation.Level.Revocation = action })
	}
	const indeterminate = "indeterminate"
	for service, tooMuch := range map[string]string{"ocsp": "more than 20480 bytes", "crl": "more than 16777216 bytes"} {
		for _, row := range []struct {
			reason    string
			change    func(*registrar)
			authority verify.Authority
			code      string // indeterminate, a verify.Code, or empty for a fact
			notes     int
			asks      int
			says      string // a part of the error if indeterminate
		}{
			{reason: "it was not revoked", authority: trusting(ca), asks: 1},
			{reason: "it was revoked", change: revoked, authority: trusting(ca), code: string(verify.Revoked), asks: 1},
			{reason: "it was revoked, to be noted", change: revoked, authority: level(verify.Note), notes: 1, asks: 1},
			{reason: "it was revoked, and that is not checked", change: revoked, authority: level(verify.Skip), notes: 1, asks: 0},
			{reason: "the answer is signed by another identity", change: func(r *registrar) { r.signedBy = stranger }, authority: trusting(ca), code: indeterminate, asks: 1},
			{reason: "the answer is out of date", change: func(r *registrar) { r.next = time.Now().Add(-time.Minute) }, authority: trusting(ca), code: indeterminate, asks: 1},
			{reason: "the server is broken", change: respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }), authority: trusting(ca), code: indeterminate, asks: 1},
			{reason: "the server is broken, to be noted", change: respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }), authority: level(verify.Note), notes: 1, asks: 1},
			{reason: "the answer is garbage", change: respond(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("garbage")) }), authority: trusting(ca), code: indeterminate, asks: 1},
			{reason: "the answer never ends", change: respond(endless), authority: trusting(ca), code: indeterminate, asks: 1, says: tooMuch},
			{reason: "a redirect to another scheme", change: respond(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://revocation.example/", http.StatusFound)
			}), authority: trusting(ca), code: indeterminate, asks: 1, says: "redirect from http to https"},
			{reason: "a redirect to itself", change: respond(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, r.URL.Path, http.StatusFound)
			}), authority: trusting(ca), code: indeterminate, asks: 4, says: "more than 3 redirects"},
		} {
			t.Run(service+"/"+row.reason, func(t *testing.T) {
				server := newRegistrar(t, ca)
				if row.change != nil {
					server.set(row.change)
				}
				good := sign(t, order{by: newSigner(t, ca, "release", server.naming(service))})
				fact, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), good, row.authority)
				if got := server.requests(); got != row.asks {
					t.Errorf("%d requests, want %d", got, row.asks)
				}
				if row.code == indeterminate {
					if _, rejected := errors.AsType[*verify.Rejection](err); err == nil || rejected || image.KindOf(err) != image.Unavailable {
						t.Fatalf("got %v, want an error that is no rejection", err)
					}
					if !strings.Contains(err.Error(), row.says) {
						t.Errorf("got %q, want %q in it", err, row.says)
					}
					return
				}
				if got := codeOf(t, err); string(got) != row.code {
					t.Fatalf("code %q (%v), want %q", got, err, row.code)
				}
				if err == nil && len(fact.Notes) != row.notes {
					t.Errorf("notes %q, want %d", fact.Notes, row.notes)
				}
				if r, ok := errors.AsType[*verify.Rejection](err); ok && !strings.Contains(r.Found, "CN=release") {
					t.Errorf("found %q, want the certificate's name", r.Found)
				}
			})
		}
	}
}

// endless answers as long as the client reads.
func endless(w http.ResponseWriter, _ *http.Request) {
	block := bytes.Repeat([]byte{0}, 1<<20)
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func TestRevocationOfTheTimestampAuthority(t *testing.T) {
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	server := newRegistrar(t, nil)
	stamps := newTSA(t, time.Now().Add(-time.Minute), server.naming("ocsp"))
	server.set(func(r *registrar) { r.ca, r.signedBy = stamps.ca, stamps.ca })
	authority := trusting(ca, func(a *verify.Authority) { a.Notation.TSA = stamps.ca.pem() })
	good := sign(t, order{by: by, tsa: stamps})
	try := func() error {
		_, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), good, authority)
		return err
	}
	if err := try(); err != nil {
		t.Fatal(err)
	}
	server.set(func(r *registrar) { r.status = ocsp.Revoked })
	if got := codeOf(t, try()); got != verify.Revoked {
		t.Errorf("code %q, want %q", got, verify.Revoked)
	}
	server.set(func(r *registrar) {
		r.respond = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	})
	if err := try(); image.KindOf(err) != image.Unavailable {
		t.Errorf("got %v, want an unavailable error", err)
	}
}

func TestOfflineSendsNoRequest(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	for _, service := range []string{"ocsp", "crl"} {
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming(service))})
		_, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
		if image.KindOf(err) != image.Unavailable || !strings.Contains(err.Error(), "offline") {
			t.Errorf("%s: got %v, want an unavailable error that contains offline", service, err)
		}
	}
	if server.requests() != 0 {
		t.Error("the server was asked")
	}
}

// TestReplayedSignature: the signature of another image is rejected, whether or not a revocation
// server is available.
func TestReplayedSignature(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	other := manifest
	other.Size++
	for _, service := range []string{"ocsp", "crl"} {
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming(service))})
		for _, options := range []notation.Options{{}, revocationRequests} {
			_, err := newVerifier(t, options).Verify(t.Context(), pinned(t, other), good, trusting(ca))
			if rejection, ok := errors.AsType[*verify.Rejection](err); !ok || rejection.Code != verify.WrongDigest {
				t.Errorf("%s: got %v, want %s", service, err, verify.WrongDigest)
			}
		}
	}
}

func TestAnswersAreRememberedUntilTheyEnd(t *testing.T) {
	ca := newCA(t, "root")
	for _, service := range []string{"ocsp", "crl"} {
		t.Run(service, func(t *testing.T) {
			server := newRegistrar(t, ca)
			good := sign(t, order{by: newSigner(t, ca, "release", server.naming(service))})
			verifier := newVerifier(t, revocationRequests)
			var next time.Time
			server.set(func(r *registrar) { next = r.next })
			for range 3 {
				fact, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
				if err != nil {
					t.Fatal(err)
				}
				if !fact.Expires.Equal(next.Truncate(time.Second)) {
					t.Errorf("the fact expires %s, want with the answer at %s", fact.Expires, next)
				}
			}
			if got := server.requests(); got != 1 {
				t.Errorf("%d requests for three looks, want 1", got)
			}
		})
	}
}

// TestForeignAnswersAreNotRemembered: answers are sent without TLS, so an on-path
// attacker can spoil one. The effect must end with the attack.
func TestForeignAnswersAreNotRemembered(t *testing.T) {
	ca, stranger := newCA(t, "root"), newCA(t, "root")
	for _, service := range []string{"ocsp", "crl"} {
		server := newRegistrar(t, ca)
		server.set(func(r *registrar) { r.signedBy = stranger })
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming(service))})
		verifier := newVerifier(t, revocationRequests)
		if _, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca)); image.KindOf(err) != image.Unavailable {
			t.Fatalf("%s: got %v, want an unavailable error", service, err)
		}
		server.set(func(r *registrar) { r.signedBy = ca })
		if _, err := verifier.Verify(t.Context(), pinned(t, manifest), good, trusting(ca)); err != nil {
			t.Errorf("%s: a foreign answer was remembered: %v", service, err)
		}
	}
}

// stuck is a transport that never answers.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAskingHasADeadline(t *testing.T) {
	ca := newCA(t, "root")
	server := newRegistrar(t, ca)
	for _, service := range []string{"ocsp", "crl"} {
		good := sign(t, order{by: newSigner(t, ca, "release", server.naming(service))})
		_, err := newVerifier(t, notation.Options{Transport: stuck{}, Timeout: 10 * time.Millisecond, InsecureLoopback: true}).
			Verify(t.Context(), pinned(t, manifest), good, trusting(ca))
		if _, rejected := errors.AsType[*verify.Rejection](err); rejected || image.KindOf(err) != image.Unavailable {
			t.Errorf("%s: got %v, want an unavailable error", service, err)
		}
	}
	if _, err := notation.New(notation.Options{Timeout: -time.Second}); err == nil {
		t.Error("a negative timeout was accepted")
	}
}

// TestRevocationAddresses: a certificate's author must not choose the gateway's connections.
func TestRevocationAddresses(t *testing.T) {
	ca, stranger := newCA(t, "root"), newCA(t, "another root")
	audit := func(a *verify.Authority) { a.Notation.Level = verify.Audit() }
	for _, service := range []string{"ocsp", "crl"} {
		server := newRegistrar(t, stranger)
		by := newSigner(t, stranger, "release", server.naming(service))

		fact, err := newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), sign(t, order{by: by}), trusting(stranger, audit))
		if err != nil || len(fact.Notes) != 0 || server.requests() != 1 {
			t.Errorf("%s of a trusted signer: %v, notes %q, %d requests; want 1", service, err, fact.Notes, server.requests())
		}
		fact, err = newVerifier(t, revocationRequests).Verify(t.Context(), pinned(t, manifest), sign(t, order{by: by}), trusting(ca, audit))
		if err != nil || len(fact.Notes) != 2 || server.requests() != 1 {
			t.Errorf("%s of an untrusted signer that the level admits: %v, notes %q, %d requests; want no further one", service, err, fact.Notes, server.requests())
		}
		_, err = newVerifier(t, notation.Options{Transport: revocationRequests.Transport}).Verify(t.Context(), pinned(t, manifest), sign(t, order{by: by}), trusting(stranger))
		if image.KindOf(err) != image.Unavailable || !strings.Contains(err.Error(), "on this machine") || server.requests() != 1 {
			t.Errorf("%s on this machine: %v, %d requests; want an unavailable error and no further one", service, err, server.requests())
		}
	}
}

// TestTheCallerLeaves: a caller that leaves during a request gets its context's error, and no
// verdict about the signature, whatever the level makes of a missing answer.
func TestTheCallerLeaves(t *testing.T) {
	ca := newCA(t, "root")
	r := newRegistrar(t, ca)
	signature := sign(t, order{by: newSigner(t, ca, "release", r.naming("ocsp"))})
	for name, level := range map[string]verify.Level{"enforced": verify.Strict(), "noted": verify.Permissive()} {
		authority := trusting(ca, func(a *verify.Authority) { a.Notation.Level = level })
		for _, leaves := range []bool{true, false} {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r.set(func(r *registrar) {
				r.respond = func(w http.ResponseWriter, request *http.Request) {
					if leaves {
						leave()
						<-request.Context().Done()
						return
					}
					r.answerOCSP(w, request)
				}
			})
			_, err := newVerifier(t, revocationRequests).Verify(ctx, pinned(t, manifest), signature, authority)
			_, rejected := errors.AsType[*verify.Rejection](err)
			if left := errors.Is(err, context.Canceled); rejected || left != leaves || !left && err != nil {
				t.Errorf("%s: the caller leaves %t: %v", name, leaves, err)
			}
		}
	}
}
