package verifytest

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"
)

const (
	organization = "verifytest"
	// The authorities are valid for longer than any test or demonstration needs.
	yearsBefore, yearsAfter = 5, 20
)

// Options configure a whole Sigstore; the zero value is sensible.
type Options struct {
	// Name distinguishes several Sigstores: it is part of their URLs, checkpoint origins and
	// certificate subjects. Lower-case letters, digits and hyphens; "verifytest" if empty.
	Name string
	// Clock returns the time of signing; time.Now if nil.
	Clock func() time.Time
	// Algorithm is the kind of key of the certificate authority and of the timestamp authority;
	// ECDSAP256 if empty. The logs always have ECDSA P-256 keys, except Rekor v2, which has an
	// Ed25519 key.
	Algorithm Algorithm
	// NoIntermediate makes the root of the certificate authority issue leaf
	// certificates itself.
	NoIntermediate bool
}

// Sigstore is a temporary Sigstore. Its parts can replace another Sigstore's parts, to make
// invalid signatures. It is safe for concurrent use.
type Sigstore struct {
	CA     *CA    // issues the certificates of keyless signers
	CTLog  *CTLog // signs the timestamps embedded in them
	Rekor  *Log   // a Rekor v1 log
	Rekor2 *Log   // a Rekor v2 log: no promises, no integrated time
	TSA    *TSA   // signs RFC 3161 timestamps

	clock func() time.Time
}

// New makes a Sigstore, in a few milliseconds with ECDSA keys.
func New(o Options) (*Sigstore, error) {
	if o.Name == "" {
		o.Name = "verifytest"
	}
	if strings.Trim(o.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, fmt.Errorf("make a Sigstore: name %q may hold lower-case letters, digits and hyphens only", o.Name)
	}
	if o.Algorithm == "" {
		o.Algorithm = ECDSAP256
	}
	if o.Algorithm == Ed25519 {
		return nil, fmt.Errorf("make a Sigstore: verifiers take no timestamps signed by %s", o.Algorithm)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	s := &Sigstore{clock: o.Clock}
	valid := span{from: s.now().AddDate(-yearsBefore, 0, 0), to: s.now().AddDate(yearsAfter, 0, 0)}
	url := func(service string) string { return "https://" + service + "." + o.Name + ".example" }

	var err error
	s.CA, err = newCA(o.Name+" fulcio", o.Algorithm, valid, x509.ExtKeyUsageCodeSigning, o.NoIntermediate)
	if err != nil {
		return nil, err
	}
	s.CA.url = url("fulcio")
	s.CTLog, err = newCTLog(url("ctfe"), valid)
	if err != nil {
		return nil, err
	}
	s.Rekor, err = newRekor(url("rekor"), valid)
	if err != nil {
		return nil, err
	}
	s.Rekor2, err = newRekor2(url("rekor2"), valid)
	if err != nil {
		return nil, err
	}
	s.TSA, err = newTSA(o.Name+" tsa", url("tsa"), o.Algorithm, valid)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Must returns the value or panics; it keeps tests and examples short.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// now is the time of signing: certificates and logs count in whole seconds.
func (s *Sigstore) now() time.Time { return s.clock().Truncate(time.Second).UTC() }
