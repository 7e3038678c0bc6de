package attestor

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
)

const (
	publicKey   = "PUBLIC KEY"
	certificate = "CERTIFICATE"
)

// publicKeys splits keys in PEM, of which there must be nothing else.
func publicKeys(text, path string) ([]string, error) {
	return blocks(text, path, publicKey, func(der []byte) error {
		_, err := x509.ParsePKIXPublicKey(der)
		return err
	})
}

// joinedKeys returns keys as they are hashed.
func joinedKeys(text, path string) ([]byte, error) {
	list, err := publicKeys(text, path)
	return []byte(strings.Join(list, "")), err
}

// certificatesPEM returns certificates as they are hashed. Between them there may
// be text, as OpenSSL writes it.
func certificatesPEM(text, path string) ([]byte, error) {
	list, err := blocks(text, path, certificate, func(der []byte) error {
		_, err := x509.ParseCertificate(der)
		return err
	})
	return []byte(strings.Join(list, "")), err
}

// blocks splits PEM into its blocks, all of one type. A block that is broken is an
// error and not passed over: it may be a signer.
func blocks(text, path, kind string, check func(der []byte) error) ([]string, error) {
	if len(text) > maxPEM {
		return nil, fail(path, "%d bytes are more than %d", len(text), maxPEM)
	}
	most := maxCertificates
	if kind == publicKey {
		most = maxKeys
	}
	wanted := strings.Count(text, "-----BEGIN ")
	if wanted == 0 || wanted > most {
		return nil, fail(path, "want 1 to %d PEM blocks of type %s, found %d in %q", most, kind, wanted, shorten(text))
	}
	var out []string
	for rest := []byte(text); ; {
		left := strings.TrimSpace(string(rest))
		if kind == publicKey && left != "" && !strings.HasPrefix(left, "-----BEGIN ") {
			return nil, fail(path, "want PEM blocks of type %s and nothing else, found %q", kind, shorten(left))
		}
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != kind {
			return nil, fail(path, "a PEM block is of type %q: want %s", block.Type, kind)
		}
		if err := check(block.Bytes); err != nil {
			return nil, below(path, err)
		}
		out = append(out, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: block.Bytes})))
		rest = after
	}
	if len(out) != wanted {
		return nil, fail(path, "%d of %d PEM blocks are broken", wanted-len(out), wanted)
	}
	return out, nil
}
