// Package trustedroot parses trusted_root.json and finds its logs by their keys.
//
// It follows the Sigstore client specification and RFC 6962, 3.2; sigstore-go parses the document.
package trustedroot

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	prototrust "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/rekor-tiles/v2/pkg/note"
	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// Root is a trusted root that finds its logs by the identifiers of their keys as well.
// sigstore-go finds a log only by the logId of the document, so a wrong one would refuse every
// entry, and of two logs with one logId the first would be lost.
type Root struct {
	*root.TrustedRoot
	logs, ctLogs map[string]*root.TransparencyLog
}

// RekorLogs implements root.TrustedMaterial.
func (r *Root) RekorLogs() map[string]*root.TransparencyLog { return r.logs }

// CTLogs implements root.TrustedMaterial.
func (r *Root) CTLogs() map[string]*root.TransparencyLog { return r.ctLogs }

// Parse parses trusted_root.json. The caller bounds its size. It refuses keys and certificates of authorities
// and logs with RSA keys of more than 8192 bits.
func Parse(text []byte) (*Root, error) {
	if err := limits.Document(text); err != nil {
		return nil, err
	}
	document, err := root.NewTrustedRootProtobuf(text)
	if err != nil {
		return nil, readable(err)
	}
	parsed, err := root.NewTrustedRootFromProtobuf(document)
	if err != nil {
		return nil, err
	}
	if err := measure(parsed); err != nil {
		return nil, err
	}
	r := &Root{TrustedRoot: parsed}
	r.logs, err = identified(document.GetTlogs())
	if err != nil {
		return nil, fmt.Errorf("tlogs%w", err)
	}
	r.ctLogs, err = identified(document.GetCtlogs())
	if err != nil {
		return nil, fmt.Errorf("ctlogs%w", err)
	}
	return r, nil
}

// readable returns an error about the document without the names of its parsers.
func readable(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return errors.New(strings.TrimSpace(strings.TrimPrefix(err.Error(), "proto:")))
}

// measure refuses long keys of certificate and timestamp authorities.
func measure(parsed *root.TrustedRoot) error {
	check := func(list string, i int, chain ...*x509.Certificate) error {
		for _, c := range chain {
			if c == nil {
				continue
			}
			if err := limits.Key(c.PublicKey); err != nil {
				return fmt.Errorf("%s[%d]: certificate of %s: %w", list, i, c.Subject, err)
			}
		}
		return nil
	}
	for i, authority := range parsed.FulcioCertificateAuthorities() {
		if a, ok := authority.(*root.FulcioCertificateAuthority); ok {
			if err := check("certificateAuthorities", i, append(slices.Clone(a.Intermediates), a.Root)...); err != nil {
				return err
			}
		}
	}
	for i, authority := range parsed.TimestampingAuthorities() {
		if a, ok := authority.(*root.SigstoreTimestampingAuthority); ok {
			if err := check("timestampAuthorities", i, append(slices.Clone(a.Intermediates), a.Root, a.Leaf)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// identified returns logs by their logId, and those with a logId of another key by the
// identifiers of their own as well. A signature by the key is required under each identifier.
func identified(documents []*prototrust.TransparencyLogInstance) (map[string]*root.TransparencyLog, error) {
	logs := make(map[string]*root.TransparencyLog, len(documents))
	keys := make(map[string]string, len(documents))
	more := make(map[string]*root.TransparencyLog)
	for i := range documents {
		parsed, err := root.ParseTransparencyLogs(documents[i : i+1])
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		for id, log := range parsed {
			if err := limits.Key(log.PublicKey); err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			key, err := keyIdentifier(log)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			if other, ok := keys[id]; ok && other != key {
				return nil, fmt.Errorf("[%d]: its logId %s is the one of an earlier log with another key; give each log the identifier of its key", i, id)
			}
			logs[id], keys[id] = log, key
			if of := identifiers(log, key); !slices.Contains(of, id) {
				for _, one := range of {
					more[one] = log
				}
			}
		}
	}
	for id, log := range more {
		if _, ok := logs[id]; !ok {
			logs[id] = log
		}
	}
	return logs, nil
}

// keyIdentifier is the SHA-256 of the key in PKIX form.
func keyIdentifier(log *root.TransparencyLog) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(log.PublicKey)
	if err != nil {
		return "", fmt.Errorf("public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// identifiers are those of RFC 6962 (Rekor v1, certificate transparency) and of a signed note
// (Rekor v2), which covers the host's name.
func identifiers(log *root.TransparencyLog, key string) []string {
	ids := []string{key}
	u, err := url.Parse(log.BaseURL)
	if err != nil {
		return ids
	}
	if _, named, err := note.KeyHash(u.Hostname(), log.PublicKey); err == nil {
		ids = append(ids, hex.EncodeToString(named))
	}
	return ids
}
