package verifytest

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// Extension is the last number of a Fulcio extension's object identifier,
// 1.3.6.1.4.1.57264.1.N.
type Extension int

// Fulcio's extensions, as in sigstore/fulcio docs/oid-info.md. The issuer (1 and 8) and the user
// name (7) have fields of their own in [Identity]. Numbers up to 27 without a name here can be
// given too.
const (
	WorkflowTrigger          Extension = 2
	WorkflowSHA              Extension = 3
	WorkflowName             Extension = 4
	WorkflowRepository       Extension = 5
	WorkflowRef              Extension = 6
	BuildSignerURI           Extension = 9
	BuildSignerDigest        Extension = 10
	RunnerEnvironment        Extension = 11
	SourceRepositoryURI      Extension = 12
	SourceRepositoryDigest   Extension = 13
	SourceRepositoryRef      Extension = 14
	SourceRepositoryID       Extension = 15
	SourceOwnerURI           Extension = 16
	SourceOwnerID            Extension = 17
	BuildConfigURI           Extension = 18
	BuildConfigDigest        Extension = 19
	BuildTrigger             Extension = 20
	RunInvocationURI         Extension = 21
	SourceVisibility         Extension = 22
	DeploymentEnvironment    Extension = 23
	lastExtension            Extension = 27
	lastUnencodedExtension   Extension = 6
	issuerExtension          Extension = 8
	issuerUnencodedExtension Extension = 1
)

// leafLifetime is the validity of Fulcio's certificates.
const leafLifetime = 10 * time.Minute

// Identity describes the certificate of a keyless signer. Exactly one of
// Email, URI, Username and NoSAN is set.
type Identity struct {
	Email    string // alternative name of a person; several with commas
	URI      string // alternative name of a workload, for example a workflow
	Username string // alternative name of type OtherName
	NoSAN    bool   // the certificate has no alternative name

	// Issuer is the OpenID issuer; it is written to extensions 1 and 8.
	Issuer string
	// OnlyOldIssuer leaves extension 8 out, OnlyNewIssuer leaves 1 out.
	OnlyOldIssuer, OnlyNewIssuer bool
	// Extensions are the other Fulcio extensions.
	Extensions map[Extension]string

	// Key describes the signer's key.
	Key KeyOptions
	// NotBefore is the start of validity; a minute ago if zero.
	NotBefore time.Time
	// Lifetime is the length of validity; ten minutes if zero.
	Lifetime time.Duration

	// CA issues the certificate; the Sigstore's own if nil.
	CA *CA
	// CTLog signs the embedded timestamp; the Sigstore's own if nil.
	CTLog *CTLog
	// Usage is the extended key usage; code signing if empty.
	Usage []x509.ExtKeyUsage

	// NoSCT omits the embedded timestamp.
	NoSCT bool
	// WrongSCT corrupts the signature of the embedded timestamp.
	WrongSCT bool
	// RepeatSCT embeds the timestamp twice, to be counted as two logs.
	RepeatSCT bool
	// SHA1 makes the authority sign the certificate with SHA-1.
	SHA1 bool
}

// Keyless makes a key and issues a certificate for it.
func (s *Sigstore) Keyless(id Identity) (*Signer, error) {
	template, err := id.template(s.now())
	if err != nil {
		return nil, err
	}
	signer, err := KeySigner(id.Key)
	if err != nil {
		return nil, err
	}
	ca, ctlog := s.CA, s.CTLog
	if id.CA != nil {
		ca = id.CA
	}
	if id.CTLog != nil {
		ctlog = id.CTLog
	}
	issuing := ca.issuing()
	if id.SHA1 {
		template.SignatureAlgorithm = issuing.sha1()
	}
	// RFC 6962 signs the certificate without the extension. It is the last one, so removing it
	// again gives the same bytes.
	leaf, err := issuing.issue(template, signer.Public())
	if err != nil {
		return nil, err
	}
	if !id.NoSCT {
		sct, err := ctlog.timestamp(issuing.certificate, leaf.RawTBSCertificate, template.NotBefore, id.WrongSCT)
		if err != nil {
			return nil, err
		}
		list := []*ct.SignedCertificateTimestamp{sct}
		if id.RepeatSCT {
			list = append(list, sct)
		}
		extension, err := sctExtension(list)
		if err != nil {
			return nil, err
		}
		template.ExtraExtensions = append(template.ExtraExtensions, extension)
		leaf, err = issuing.issue(template, signer.Public())
		if err != nil {
			return nil, err
		}
	}
	signer.leaf, signer.issuers = leaf, ca.chain()
	signer.time = template.NotBefore.Add(min(time.Minute, template.NotAfter.Sub(template.NotBefore)))
	return signer, nil
}

func (id Identity) template(now time.Time) (*x509.Certificate, error) {
	t := &x509.Certificate{
		NotBefore:   id.NotBefore.Truncate(time.Second).UTC(),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: id.Usage,
	}
	if id.NotBefore.IsZero() {
		t.NotBefore = now.Add(-time.Minute)
	}
	lifetime := id.Lifetime
	if lifetime == 0 {
		lifetime = leafLifetime
	}
	if lifetime < time.Second {
		return nil, fmt.Errorf("identity: a lifetime of %s is shorter than a second", lifetime)
	}
	t.NotAfter = t.NotBefore.Add(lifetime)
	if len(t.ExtKeyUsage) == 0 {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	}
	if err := id.name(t); err != nil {
		return nil, err
	}
	extensions, err := id.extensions()
	if err != nil {
		return nil, err
	}
	t.ExtraExtensions = append(t.ExtraExtensions, extensions...)
	return t, nil
}

// name sets the alternative name.
func (id Identity) name(t *x509.Certificate) error {
	given := 0
	for _, is := range []bool{id.Email != "", id.URI != "", id.Username != "", id.NoSAN} {
		if is {
			given++
		}
	}
	if given != 1 {
		return errors.New("identity: set exactly one of Email, URI, Username and NoSAN")
	}
	switch {
	case id.Email != "":
		t.EmailAddresses = strings.Split(id.Email, ",")
	case id.URI != "":
		u, err := url.Parse(id.URI)
		if err != nil {
			return fmt.Errorf("identity: parse the URI: %w", err)
		}
		t.URIs = []*url.URL{u}
	case id.Username != "":
		san, err := cryptoutils.MarshalOtherNameSAN(id.Username, true)
		if err != nil {
			return fmt.Errorf("identity: encode the user name: %w", err)
		}
		t.ExtraExtensions = append(t.ExtraExtensions, *san)
	}
	return nil
}

func (id Identity) extensions() ([]pkix.Extension, error) {
	values := map[Extension]string{}
	for n, v := range id.Extensions {
		if n < WorkflowTrigger || n == issuerExtension || n == 7 || n > lastExtension {
			return nil, fmt.Errorf("identity: extension %d cannot be set; 2 to 6 and 9 to 27 can", n)
		}
		values[n] = v
	}
	if id.Issuer != "" && !id.OnlyNewIssuer {
		values[issuerUnencodedExtension] = id.Issuer
	}
	if id.Issuer != "" && !id.OnlyOldIssuer {
		values[issuerExtension] = id.Issuer
	}
	var all []pkix.Extension
	for n := issuerUnencodedExtension; n <= lastExtension; n++ {
		text, ok := values[n]
		if !ok {
			continue
		}
		value := []byte(text)
		if n > lastUnencodedExtension {
			var err error
			value, err = asn1.MarshalWithParams(text, "utf8")
			if err != nil {
				return nil, fmt.Errorf("identity: encode extension %d: %w", n, err)
			}
		}
		all = append(all, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, int(n)}, Value: value})
	}
	return all, nil
}
