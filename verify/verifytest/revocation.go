package verifytest

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"
)

// Revocation is the status of a notary's signing certificate in the OCSP responder and the
// revocation list. The intermediate is always good.
type Revocation int

// The statuses of a signing certificate.
const (
	Good    Revocation = iota
	Revoked            // revoked an hour ago
	Unknown            // status unknown in OCSP, not in the list
	Stale              // good, but the response has expired
	Down               // only server errors
)

// maxOCSPRequest bounds a request's body; a real one has about 100 bytes.
const maxOCSPRequest = 64 << 10

type revocation struct {
	notary *Notary
	mu     sync.Mutex
	state  Revocation
}

// SetRevocation sets the status for later requests.
func (n *Notary) SetRevocation(r Revocation) {
	n.revocation.mu.Lock()
	defer n.revocation.mu.Unlock()
	n.revocation.state = r
}

func (r *revocation) current() Revocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// until is the end of a response's validity.
func (r *revocation) until(state Revocation) time.Time {
	if state == Stale {
		return r.notary.now().Add(-time.Hour)
	}
	return r.notary.now().Add(24 * time.Hour)
}

// OCSP answers OCSP requests (RFC 6960) about the signing certificate and the
// intermediate, by GET and POST.
func (n *Notary) OCSP() http.Handler { return http.HandlerFunc(n.revocation.serveOCSP) }

// CRL serves the revocation lists (RFC 5280) of the two issuers, at issuing.crl
// and root.crl.
func (n *Notary) CRL() http.Handler { return http.HandlerFunc(n.revocation.serveCRL) }

func (r *revocation) serveOCSP(w http.ResponseWriter, q *http.Request) {
	state := r.current()
	request, err := readOCSP(q)
	switch {
	case r.notary.ca == nil:
		http.NotFound(w, q)
		return
	case state == Down:
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := ocsp.Response{
		Status:       ocsp.Unknown,
		SerialNumber: request.SerialNumber,
		ThisUpdate:   r.notary.now().Add(-2 * time.Hour),
		NextUpdate:   r.until(state),
	}
	by := r.notary.ca.issuing()
	switch {
	case same(request.SerialNumber, r.notary.ca.intermediate.certificate):
		by = r.notary.ca.root
		answer.Status = ocsp.Good
	case !same(request.SerialNumber, r.notary.leaf) || state == Unknown:
	case state == Revoked:
		answer.Status, answer.RevokedAt = ocsp.Revoked, r.notary.now().Add(-time.Hour)
	default:
		answer.Status = ocsp.Good
	}
	der, err := ocsp.CreateResponse(by.certificate, by.certificate, answer, by.key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/ocsp-response")
	_, _ = w.Write(der) // client disconnected
}

func readOCSP(q *http.Request) (*ocsp.Request, error) {
	if q.Method == http.MethodPost {
		der, err := io.ReadAll(http.MaxBytesReader(nil, q.Body, maxOCSPRequest))
		if err != nil {
			return nil, err
		}
		return ocsp.ParseRequest(der)
	}
	// The last part of the path; base64 may contain a slash, which is escaped.
	path := q.URL.EscapedPath()
	text, err := url.PathUnescape(path[strings.LastIndex(path, "/")+1:])
	if err != nil {
		return nil, err
	}
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return ocsp.ParseRequest(der)
}

func (r *revocation) serveCRL(w http.ResponseWriter, q *http.Request) {
	state := r.current()
	if r.notary.ca == nil {
		http.NotFound(w, q)
		return
	}
	list := &x509.RevocationList{
		Number:     big.NewInt(1),
		ThisUpdate: r.notary.now().Add(-2 * time.Hour),
		NextUpdate: r.until(state),
	}
	by := r.notary.ca.root
	switch {
	case state == Down:
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case strings.HasSuffix(q.URL.Path, "/issuing.crl"):
		by = r.notary.ca.issuing()
		if state == Revoked {
			list.RevokedCertificateEntries = []x509.RevocationListEntry{
				{SerialNumber: r.notary.leaf.SerialNumber, RevocationTime: r.notary.now().Add(-time.Hour)},
			}
		}
	case !strings.HasSuffix(q.URL.Path, "/root.crl"):
		http.NotFound(w, q)
		return
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, by.certificate, by.key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/pkix-crl")
	_, _ = w.Write(der) // client disconnected
}

func same(serial *big.Int, c *x509.Certificate) bool { return serial.Cmp(c.SerialNumber) == 0 }
