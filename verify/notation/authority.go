package notation

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// storeName names the trust stores made from the authority.
const storeName = "authority"

// identityPrefix is the only kind of trusted identity that notation can check without a plugin.
// It silently ignores any other, so this package refuses them.
const identityPrefix = "x509.subject:"

// CheckAuthority refuses authorities that this package does not support: unreadable certificates,
// identities of an unknown kind, impossible levels. So a policy fails when it is loaded and not
// when it is used.
func CheckAuthority(authority verify.Authority) error {
	if authority.Notation == nil {
		return fmt.Errorf("authority %s: it has no notation part", authority.Name)
	}
	t, err := newTerms(authority)
	if err != nil {
		return err
	}
	if err := t.document.Validate(); err != nil {
		return fmt.Errorf("authority %s: %w", authority.Name, err)
	}
	return nil
}

// terms are an authority's terms as notation's types.
type terms struct {
	document *trustpolicy.Document
	stores   stores
	level    verify.Level
}

// stores are trust stores in memory. It implements truststore.X509TrustStore.
type stores map[truststore.Type][]*x509.Certificate

// GetCertificates implements truststore.X509TrustStore.
func (s stores) GetCertificates(_ context.Context, kind truststore.Type, _ string) ([]*x509.Certificate, error) {
	return s[kind], nil
}

func newTerms(authority verify.Authority) (*terms, error) {
	given := authority.Notation
	t := &terms{stores: stores{}, level: given.Level}
	verification, err := signatureVerification(given.Level)
	if err != nil {
		return nil, fmt.Errorf("authority %s: level: %w", authority.Name, err)
	}
	statement := trustpolicy.TrustPolicy{
		Name: storeName, RegistryScopes: []string{"*"}, SignatureVerification: verification,
	}
	for _, store := range []struct {
		kind truststore.Type
		pem  [][]byte
	}{
		{truststore.TypeCA, [][]byte{given.CA}},
		{truststore.TypeSigningAuthority, [][]byte{given.SigningAuthority}},
		{truststore.TypeTSA, [][]byte{given.TSA, authority.Timestamp.Chain}},
	} {
		certificates, err := trustedCertificates(store.kind, store.pem)
		if err != nil {
			return nil, fmt.Errorf("authority %s: trust store %s: %w", authority.Name, store.kind, err)
		}
		if len(certificates) == 0 {
			continue
		}
		t.stores[store.kind] = certificates
		statement.TrustStores = append(statement.TrustStores, string(store.kind)+":"+storeName)
	}
	if len(t.stores[truststore.TypeCA])+len(t.stores[truststore.TypeSigningAuthority]) == 0 {
		return nil, fmt.Errorf("authority %s: want certificates of a certificate authority or signing authority", authority.Name)
	}
	if authority.Timestamp.Required && len(t.stores[truststore.TypeTSA]) == 0 {
		return nil, fmt.Errorf("authority %s: a timestamp is required, and no timestamp authority is given to prove one", authority.Name)
	}
	statement.TrustedIdentities, err = trustedIdentities(given.Identities)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", authority.Name, err)
	}
	t.document = &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{statement}}
	return t, nil
}

// signatureVerification translates a level into overrides of notation's level "strict". A
// timestamp is always verified where there is a tsa store, which is notation's default.
func signatureVerification(level verify.Level) (trustpolicy.SignatureVerification, error) {
	override := map[trustpolicy.ValidationType]trustpolicy.ValidationAction{}
	for _, check := range []struct {
		kind   trustpolicy.ValidationType
		action verify.Action
	}{
		{trustpolicy.TypeAuthenticity, level.Authenticity},
		{trustpolicy.TypeAuthenticTimestamp, level.AuthenticTimestamp},
		{trustpolicy.TypeExpiry, level.Expiry},
		{trustpolicy.TypeRevocation, level.Revocation},
	} {
		switch {
		case check.action == verify.Enforce:
		case check.action == verify.Note:
			override[check.kind] = trustpolicy.ActionLog
		case check.action == verify.Skip && check.kind == trustpolicy.TypeRevocation:
			override[check.kind] = trustpolicy.ActionSkip
		case check.action == verify.Skip:
			return trustpolicy.SignatureVerification{}, fmt.Errorf("%s cannot be skipped, only revocation can; use log to let it fail", check.kind)
		default:
			return trustpolicy.SignatureVerification{}, fmt.Errorf("%s: unknown action %q, want enforce, log or skip", check.kind, check.action)
		}
	}
	return trustpolicy.SignatureVerification{
		VerificationLevel: trustpolicy.LevelStrict.Name,
		Override:          override,
		VerifyTimestamp:   trustpolicy.OptionAlways,
	}, nil
}

func trustedIdentities(given []string) ([]string, error) {
	if len(given) == 0 {
		return []string{"*"}, nil
	}
	for _, identity := range given {
		if identity != "*" && !strings.HasPrefix(identity, identityPrefix) {
			return nil, fmt.Errorf("trusted identity %q: want %q or a name such as %q", identity, "*", identityPrefix+" C=US, ST=WA, O=example.com")
		}
	}
	return slices.Clone(given), nil
}

// CheckStore checks the PEM certificates of a trust store of certificate authorities, as the
// verifier does when it uses them.
func CheckStore(text []byte) error {
	_, err := trustedCertificates(truststore.TypeCA, [][]byte{text})
	return err
}

// trustedCertificates parses a trust store and enforces the rules of the trust store
// specification.
func trustedCertificates(kind truststore.Type, given [][]byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for _, text := range given {
		read, err := readPEM(text)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, read...)
	}
	for _, certificate := range certificates {
		self := bytes.Equal(certificate.RawSubject, certificate.RawIssuer) &&
			certificate.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature) == nil
		if kind == truststore.TypeTSA && (!self || !certificate.IsCA) {
			return nil, fmt.Errorf("certificate %q is no root certificate, which the store of timestamp authorities asks for", certificate.Subject)
		}
		if !certificate.IsCA && !self {
			return nil, fmt.Errorf("certificate %q is neither a certificate authority's nor self-signed; give the certificate that issued it", certificate.Subject)
		}
	}
	return certificates, nil
}

func readPEM(text []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return nil, errors.New("want PEM certificates, found something else")
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("want PEM certificates, found a block of type %q", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certificates)+1, err)
		}
		if err := limits.Key(certificate.PublicKey); err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}
