package trust

import (
	"cmp"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/quaymaster/quaymaster/verify"
)

const (
	oidIssuerV1 = verify.FulcioArc + "1"
	oidIssuerV2 = verify.FulcioArc + "8"
	// rawExtensions: the extensions up to this number have the text itself as their value, later
	// ones a DER string.
	rawExtensions = 6
	// otherNameExtension is not an extension but the identifier of a name.
	otherNameExtension = 7
)

// oidSCT is the extension with embedded certificate timestamps.
var oidSCT = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}

// extensionNames are Fulcio's extensions by their last number.
var extensionNames = [...]string{
	1: "issuer", 2: "githubWorkflowTrigger", 3: "githubWorkflowSHA", 4: "githubWorkflowName",
	5: "githubWorkflowRepository", 6: "githubWorkflowRef", 8: "issuer", 9: "buildSignerURI",
	10: "buildSignerDigest", 11: "runnerEnvironment", 12: "sourceRepositoryURI",
	13: "sourceRepositoryDigest", 14: "sourceRepositoryRef", 15: "sourceRepositoryIdentifier",
	16: "sourceRepositoryOwnerURI", 17: "sourceRepositoryOwnerIdentifier", 18: "buildConfigURI",
	19: "buildConfigDigest", 20: "buildTrigger", 21: "runInvocationURI",
	22: "sourceRepositoryVisibilityAtSigning", 23: "deploymentEnvironment", 24: "tokenSubject",
}

// Summary is the identity in a signing certificate.
type Summary struct {
	// Subjects are all subject alternative names: URIs, email addresses,
	// Fulcio's OtherName, DNS names and IP addresses, in this order.
	Subjects []string
	// Issuer is the OpenID Connect issuer, from either of Fulcio's extensions;
	// empty for a certificate of another authority.
	Issuer string
	// Extensions are Fulcio's, by object identifier.
	Extensions map[string]string
	// Name and IssuerName are the distinguished names.
	Name, IssuerName string
	// Key is the fingerprint of the public key.
	Key string
}

// Summarize parses a certificate. It refuses one with extensions that cannot be parsed, or with
// two different issuer extensions.
func Summarize(c *x509.Certificate) (Summary, error) {
	s := Summary{
		Subjects:   subjects(c),
		Extensions: make(map[string]string),
		Name:       c.Subject.String(),
		IssuerName: c.Issuer.String(),
		Key:        verify.Fingerprint(c.PublicKey, c.RawSubjectPublicKeyInfo),
	}
	for _, extension := range c.Extensions {
		oid := extension.Id.String()
		number, ok := fulcioNumber(extension.Id)
		if !ok || number == otherNameExtension {
			continue
		}
		if _, twice := s.Extensions[oid]; twice {
			return Summary{}, fmt.Errorf("certificate extension %s stands there twice", oid)
		}
		if number <= rawExtensions {
			s.Extensions[oid] = string(extension.Value)
			continue
		}
		var text string
		rest, err := asn1.Unmarshal(extension.Value, &text)
		switch {
		case err == nil && len(rest) == 0:
			s.Extensions[oid] = text
		case number < len(extensionNames):
			return Summary{}, fmt.Errorf("certificate extension %s is no DER string", oid)
		default: // an extension newer than this list
		}
	}
	v1, hasV1 := s.Extensions[oidIssuerV1]
	v2, hasV2 := s.Extensions[oidIssuerV2]
	if hasV1 && hasV2 && v1 != v2 {
		return Summary{}, errors.New("the certificate's two issuer extensions disagree")
	}
	s.Issuer = v1
	if hasV2 {
		s.Issuer = v2
	}
	return s, nil
}

// Within returns the authority with the bounds of the retired identities that a certificate has.
func Within(authority verify.Authority, leaf *x509.Certificate) (verify.Authority, error) {
	if leaf == nil || len(authority.RetiredIdentities) == 0 {
		return authority, nil
	}
	summary, err := Summarize(leaf)
	return authority.Within(summary.Issuer, summary.Subjects), err
}

// fulcioNumber returns the last number of an identifier right under Fulcio's
// arc.
func fulcioNumber(oid asn1.ObjectIdentifier) (int, bool) {
	last := len(oid) - 1
	if last < 0 || !strings.HasPrefix(oid.String(), verify.FulcioArc) || oid[:last].String()+"." != verify.FulcioArc {
		return 0, false
	}
	return oid[last], true
}

func subjects(c *x509.Certificate) []string {
	var names []string
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	names = append(names, c.EmailAddresses...)
	if other, err := cryptoutils.UnmarshalOtherNameSAN(c.Extensions); err == nil {
		names = append(names, other)
	}
	names = append(names, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// Signer returns the holder of the certificate: for Fulcio's, the subject that an identity
// matched; for others, the distinguished name.
func (s Summary) Signer(subject string) verify.Signer {
	signer := verify.Signer{ID: s.id(), Key: s.Key, Subject: subject, Names: s.Subjects, Issuer: s.Issuer, Extensions: s.named()}
	if subject == "" {
		signer.Subject = s.Name
		if signer.Subject == "" && len(s.Subjects) > 0 {
			signer.Subject = s.Subjects[0]
		}
	}
	if signer.Issuer == "" {
		signer.Issuer = s.IssuerName
	}
	return signer
}

// id combines all identifying fields of the certificate, so that two names of one certificate are
// not two signers. An identity of OpenID Connect outlives the certificate authority: Fulcio's.
func (s Summary) id() string {
	if s.Issuer != "" {
		s.IssuerName = ""
	}
	return fmt.Sprintf("%q %q %q %q", s.Issuer, s.IssuerName, s.Name, slices.Sorted(slices.Values(s.Subjects)))
}

func (s Summary) named() map[string]string {
	named := make(map[string]string, len(s.Extensions))
	for number, name := range extensionNames {
		if value, ok := s.Extensions[verify.FulcioArc+fmt.Sprint(number)]; ok {
			named[name] = value
		}
	}
	return named
}

// String returns "subject, subject (issuer)" for messages.
func (s Summary) String() string {
	who := cmp.Or(strings.Join(s.Subjects, ", "), "no subject alternative name")
	return who + " (" + cmp.Or(s.Issuer, "no OpenID Connect issuer; certificate of "+s.IssuerName) + ")"
}

// Admit decides whether the certificate meets the keyless authority: one identity, and all
// extensions. It returns the subject that matched. A certificate without a subject matches no
// identity.
func (s Summary) Admit(keyless verify.Keyless) (string, *verify.Rejection) {
	subject, ok := s.match(keyless.Identities)
	if !ok {
		return "", &verify.Rejection{Code: verify.WrongIdentity, Expected: keyless.Beside(s.Issuer, s.Subjects), Found: s.String()}
	}
	for _, extension := range keyless.Extensions {
		if found := s.Extensions[extension.OID]; !extension.Value.Match(found) {
			return "", &verify.Rejection{
				Code:     verify.WrongExtension,
				Expected: nameOf(extension) + "=" + extension.Value.Beside(found),
				Found:    nameOf(extension) + "=" + found,
			}
		}
	}
	return subject, nil
}

func (s Summary) match(identities []verify.Identity) (string, bool) {
	for _, identity := range identities {
		for _, subject := range s.Subjects {
			if identity.Match(s.Issuer, []string{subject}) {
				return subject, true
			}
		}
	}
	return "", false
}

func nameOf(extension verify.Extension) string {
	return cmp.Or(extension.Name, extension.OID)
}

// Checkable returns a copy of a certificate for Go's chain verification: Fulcio's OtherName is a
// critical extension that Go does not handle, and Summarize does.
func Checkable(c *x509.Certificate) *x509.Certificate {
	checkable := *c
	checkable.UnhandledCriticalExtensions = slices.DeleteFunc(slices.Clone(c.UnhandledCriticalExtensions), cryptoutils.SANOID.Equal)
	return &checkable
}

// HasSCT reports whether a certificate embeds certificate timestamps (RFC 6962, section 3.3),
// valid or not.
func HasSCT(c *x509.Certificate) bool {
	return slices.ContainsFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(oidSCT) })
}

// Describe formats the holder of a certificate for messages.
func Describe(c *x509.Certificate) string {
	summary, err := Summarize(c)
	if err != nil {
		return "a certificate of " + c.Issuer.String() + " that cannot be read"
	}
	return summary.String()
}

// ValidUntil verifies the chain of a certificate at a time, and returns its end: that of the first of the chain's
// certificates, or of the period of its authority.
func ValidUntil(c *x509.Certificate, trusted root.TrustedMaterial, at time.Time) (last time.Time, err error) {
	for _, authority := range trusted.FulcioCertificateAuthorities() {
		chains, failed := authority.Verify(Checkable(c), at)
		if failed != nil {
			err = failed
			continue
		}
		var given time.Time
		if known, ok := authority.(*root.FulcioCertificateAuthority); ok {
			given = known.ValidityPeriodEnd
		}
		for _, chain := range chains {
			later := endOf(given, chain...)
			if later.After(last) {
				last = later
			}
		}
		return last, nil
	}
	if err == nil {
		err = errors.New("no certificate authority is trusted")
	}
	return time.Time{}, fmt.Errorf("verify the certificate at %s: %w", at.UTC().Format(time.RFC3339), err)
}

// Validity formats the validity period of a certificate for messages.
func Validity(c *x509.Certificate) string {
	return "valid from " + c.NotBefore.UTC().Format(time.RFC3339) + " until " + c.NotAfter.UTC().Format(time.RFC3339)
}
