package attestor

import (
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// publicKeys splits keys in PEM, of which there must be nothing else, and each of which
// must be able to verify a signature with a digest algorithm.
func publicKeys(text, path, hash string) ([]string, error) {
	list, err := blocks(text, path, field.PublicKey, func([]byte) error { return nil })
	if err != nil {
		return nil, err
	}
	return list, field.Below(path, trust.CheckKeys([]byte(strings.Join(list, "")), hash))
}

// joinedKeys returns the keys of logs as they are hashed.
func joinedKeys(text, path string) ([]byte, error) {
	list, err := publicKeys(text, path, "")
	return []byte(strings.Join(list, "")), err
}

// certificatesPEM returns certificates as they are hashed. Between them there may
// be text, as OpenSSL writes it.
func certificatesPEM(text, path string) ([]byte, error) {
	list, err := blocks(text, path, field.Certificate, func(der []byte) error {
		_, err := x509.ParseCertificate(der)
		return err
	})
	return []byte(strings.Join(list, "")), err
}

// blocks splits PEM into its blocks, all of one type. A block that is broken is an
// error and not passed over: it may be a signer.
func blocks(text, path, kind string, check func(der []byte) error) ([]string, error) {
	if len(text) > maxPEM {
		return nil, field.Fail(path, "%d bytes are more than %d", len(text), maxPEM)
	}
	most := maxCertificates
	if kind == field.PublicKey {
		most = maxKeys
	}
	wanted := strings.Count(text, "-----BEGIN ")
	if wanted == 0 || wanted > most {
		return nil, field.Fail(path, "want 1 to %d PEM blocks of type %s, found %d in %q", most, kind, wanted, field.Shorten(text))
	}
	list, err := field.PEM(text, path, kind)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		block, _ := pem.Decode([]byte(one))
		if err := check(block.Bytes); err != nil {
			return nil, field.Below(path, err)
		}
	}
	return list, nil
}
