package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// Material is the trust for the signatures of one authority. It is immutable, and implements
// sigstore-go's root.TrustedMaterial.
type Material struct {
	key          *PublicKey
	leaf         *x509.Certificate
	authorities  []root.CertificateAuthority
	logs, ctLogs map[string]*root.TransparencyLog
	timestamping []root.TimestampingAuthority
	confirming   []root.TimestampingAuthority
}

var _ root.TrustedMaterial = (*Material)(nil)

// TimestampingAuthorities implements root.TrustedMaterial.
func (m *Material) TimestampingAuthorities() []root.TimestampingAuthority { return m.timestamping }

// FulcioCertificateAuthorities implements root.TrustedMaterial.
func (m *Material) FulcioCertificateAuthorities() []root.CertificateAuthority { return m.authorities }

// RekorLogs implements root.TrustedMaterial.
func (m *Material) RekorLogs() map[string]*root.TransparencyLog { return m.logs }

// CTLogs implements root.TrustedMaterial.
func (m *Material) CTLogs() map[string]*root.TransparencyLog { return m.ctLogs }

// ConfirmedTime returns the earliest time that a timestamp authority of the trusted root confirms for a
// signature; zero if there is none. It is only for bounds of validity where the terms have no other source of
// time: such a timestamp may be missing or invalid.
func (m *Material) ConfirmedTime(stamps [][]byte, signature []byte) time.Time {
	var earliest time.Time
	for _, stamp := range stamps {
		for _, authority := range m.confirming {
			proved, err := authority.Verify(stamp, signature)
			if err == nil && (earliest.IsZero() || proved.Time.Before(earliest)) {
				earliest = proved.Time
			}
		}
	}
	return earliest.UTC()
}

// PublicKeyVerifier implements root.TrustedMaterial. It returns the authority's one key and
// ignores the bundle's hint, which is not verified.
func (m *Material) PublicKeyVerifier(string) (root.TimeConstrainedVerifier, error) {
	if m.key == nil {
		return nil, errors.New("the authority has no public key")
	}
	return m.key, nil
}

// Key returns the authority's public key; nil if certificates identify the authority.
func (m *Material) Key() *PublicKey { return m.key }

// Leaf returns the required signing certificate; nil if any may sign that leads to a certificate
// authority of the material. It is a copy: sigstore-go edits certificates that it verifies.
func (m *Material) Leaf() *x509.Certificate {
	if m.leaf == nil {
		return nil
	}
	leaf := *m.leaf
	return &leaf
}

// WithIntermediates returns the material with further certificates for building chains. They are
// untrusted: only those that an authority's root has certified are added. An authority with
// intermediates of its own gets none: it trusts certificates from these intermediates, not all
// that its root has signed. The caller bounds them by MaxChain.
func (m *Material) WithIntermediates(certificates []*x509.Certificate) *Material {
	if len(certificates) == 0 {
		return m
	}
	extended := *m
	extended.authorities = make([]root.CertificateAuthority, 0, len(m.authorities))
	for _, authority := range m.authorities {
		if fulcio, ok := authority.(*root.FulcioCertificateAuthority); ok && len(fulcio.Intermediates) == 0 {
			with := *fulcio
			with.Intermediates = limits.Certified(certificates, []*x509.Certificate{fulcio.Root})
			authority = &with
		}
		extended.authorities = append(extended.authorities, authority)
	}
	return &extended
}

// composer composes the material of one authority.
type composer struct {
	authority verify.Authority
	root      func() (root.TrustedMaterial, error)
	material  Material
}

func (c *composer) compose() (*Material, error) {
	steps := []func() error{c.signer, c.log, c.certificateLog, c.timestamps}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &c.material, nil
}

func (c *composer) signer() (err error) {
	a := c.authority
	switch {
	case a.Key != nil:
		c.material.key, err = ParsePublicKey(a.Key.PEM, a.Key.Hash)
		return err
	case a.Keyless != nil && len(a.Keyless.Roots) > 0:
		c.material.authorities, err = composeAuthorities(a.Keyless.Roots)
		if err != nil {
			return fmt.Errorf("roots: %w", err)
		}
		return nil
	case a.Keyless != nil:
		trusted, err := c.root()
		if err != nil {
			return err
		}
		c.material.authorities = trusted.FulcioCertificateAuthorities()
		if len(c.material.authorities) == 0 {
			return errors.New("the trusted root has no certificate authority; give roots, or another trusted root")
		}
		return nil
	case a.Certificate != nil:
		return c.certificate()
	default:
		return fmt.Errorf("authorities of kind %q have no trusted material here", a.Kind())
	}
}

func (c *composer) certificate() error {
	given := c.authority.Certificate
	if len(given.Leaf) > 0 {
		leaf, err := parseLeaf(given.Leaf)
		if err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
		c.material.leaf = leaf
	}
	if len(given.Chain) == 0 {
		c.material.authorities = []root.CertificateAuthority{&root.FulcioCertificateAuthority{Root: c.material.leaf}}
		return nil
	}
	var err error
	c.material.authorities, err = composeAuthorities(given.Chain)
	if err != nil {
		return fmt.Errorf("certificate chain: %w", err)
	}
	return nil
}

func (c *composer) log() error {
	wanted := c.authority.Log
	if wanted.Ignore {
		return nil
	}
	var err error
	if len(wanted.Keys) > 0 {
		c.material.logs, err = composeLogs(wanted.Keys, wanted.URL)
		if err != nil {
			return fmt.Errorf("transparency log keys: %w", err)
		}
		return nil
	}
	trusted, err := c.rootOr(wanted.Root)
	if err != nil {
		return err
	}
	if len(trusted.RekorLogs()) == 0 {
		return errors.New("the trusted root has no transparency log; give its public key, another trusted root, or switch the log off")
	}
	if len(wanted.Root) > 0 {
		c.material.logs = trusted.RekorLogs()
		return nil
	}
	c.material.logs, err = selectLog(trusted.RekorLogs(), wanted.URL)
	return err
}

// rootOr returns the root of one part of the trust; without one, the authority's.
func (c *composer) rootOr(text []byte) (root.TrustedMaterial, error) {
	if len(text) == 0 {
		return c.root()
	}
	return parseRoot("of the authority", text)
}

func (c *composer) certificateLog() error {
	wanted := c.authority.CT()
	if wanted.Ignore {
		return nil
	}
	var err error
	if len(wanted.Keys) > 0 {
		c.material.ctLogs, err = composeLogs(wanted.Keys, "")
		if err != nil {
			return fmt.Errorf("certificate transparency keys: %w", err)
		}
		return nil
	}
	trusted, err := c.root()
	if err != nil {
		return err
	}
	c.material.ctLogs = trusted.CTLogs()
	if len(c.material.ctLogs) == 0 {
		return errors.New("the trusted root has no certificate transparency log; give its public key, another trusted root, or ignore certificate timestamps")
	}
	return nil
}

// timestamps uses the given chain. Without one it uses the trusted root's authorities in three
// cases: a timestamp is required, the root also supplies the signer's authorities or the log, or
// a validity bound has no other source of time. A bound that only some signers have, or that the
// log may give a time for, must not make timestamps necessary: then they only confirm a time.
func (c *composer) timestamps() error {
	a := c.authority
	if len(a.Timestamp.Chain) > 0 {
		tsa, err := composeTimestampAuthority(bytes.TrimSpace(a.Timestamp.Chain))
		if err != nil {
			return err
		}
		c.material.timestamping = guarded([]root.TimestampingAuthority{tsa})
		return nil
	}
	bounded := !a.NotBefore.IsZero() || !a.NotAfter.IsZero()
	rootsSigner := a.Keyless != nil && len(a.Keyless.Roots) == 0
	rootsLog := !a.Log.Ignore && len(a.Log.Keys)+len(a.Log.Root) == 0
	onlyTime := bounded && a.Log.Ignore
	required := a.Timestamp.Required || rootsSigner || rootsLog || onlyTime
	if !required && !bounded && len(a.Retired)+len(a.RetiredIdentities) == 0 {
		return nil
	}
	trusted, err := c.rootOr(a.Timestamp.Root)
	switch {
	case err != nil && required:
		return err
	case !required:
		if err == nil { // without a root no time is confirmed
			c.material.confirming = guarded(trusted.TimestampingAuthorities())
		}
		return nil
	}
	c.material.timestamping = guarded(trusted.TimestampingAuthorities())
	if a.Timestamp.Required && len(c.material.timestamping) == 0 {
		return errors.New("the trusted root has no timestamp authority; give its certificate chain, or another trusted root")
	}
	return nil
}
