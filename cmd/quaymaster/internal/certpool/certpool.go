// Package certpool reads files of certificate authorities in PEM (RFC 7468).
package certpool

import (
	"crypto/x509"
	"fmt"
	"os"
)

// Read reads certificate authorities, in addition to the system's or alone. A file without one is an error.
func Read(path string, system bool) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if system {
		if known, err := x509.SystemCertPool(); err == nil {
			pool = known
		}
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no PEM certificate in it", path)
	}
	return pool, nil
}
