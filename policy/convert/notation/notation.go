package notation

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// maxFiles bounds the files of one trust store.
const maxFiles = 100

// Document is notation's trustpolicy.json, version 1.0.
type Document struct {
	Version       string   `json:"version"`
	TrustPolicies []Policy `json:"trustPolicies"`
}

// Policy is one statement of the document.
type Policy struct {
	Name                  string                `json:"name"`
	RegistryScopes        []string              `json:"registryScopes"`
	SignatureVerification signatureVerification `json:"signatureVerification"`
	TrustStores           []string              `json:"trustStores"`
	TrustedIdentities     []string              `json:"trustedIdentities"`
}

type signatureVerification struct {
	Level           string            `json:"level"`
	Override        map[string]string `json:"override"`
	VerifyTimestamp string            `json:"verifyTimestamp"`
}

// Stores returns the certificates of a trust store, in PEM.
type Stores func(store, name, at string) []string

// reader converts the fields that it supports.
type reader struct{ *source.Conversion }

// Read adds the policies of the only document; the trust stores are looked up in
// the conversion's files.
func Read(conversion *source.Conversion, documents []source.Document) {
	c := reader{conversion}
	d, ok := c.One(documents)
	if !ok {
		return
	}
	var doc Document
	if c.Decode(d.Text, &doc, "") {
		c.trustPolicies(doc, "", "notation-", c.storeFolder)
	}
}

// TrustPolicies adds a policy for each trust policy of a document that is embedded at a
// path of another one; the names of the policies begin with prefix.
func TrustPolicies(conversion *source.Conversion, doc Document, at, prefix string, certificates Stores) {
	reader{conversion}.trustPolicies(doc, at, prefix, certificates)
}

// trustPolicies makes a policy of each trust policy. An image is judged by the one
// that names its repository, or else by the one for all; or else it is denied.
func (c reader) trustPolicies(doc Document, at, prefix string, certificates Stores) {
	if doc.Version != "1.0" {
		c.Refuse(source.Below(at, "version"), fmt.Sprintf("%q", doc.Version), "want 1.0")
	}
	at = source.Below(at, "trustPolicies")
	if len(doc.TrustPolicies) == 0 || len(doc.TrustPolicies) > source.MaxRules {
		c.Refuse(at, fmt.Sprintf("%d trust policies", len(doc.TrustPolicies)), fmt.Sprintf("want 1 to %d", source.MaxRules))
		return
	}
	named, global := c.registryScopes(doc, at)
	for i, policy := range doc.TrustPolicies {
		p := &ivp.Policy{Name: prefix + policy.Name}
		s := images.Selection{Spelling: images.ByIdentity, Takes: images.Some(named[i])}
		if global == i {
			var taken []images.Test
			for _, tests := range named {
				taken = append(taken, tests...)
			}
			s = images.Others(images.ByIdentity, taken)
		}
		p.Images = []ivp.ImageReference{s.Reference(fmt.Sprintf("The repositories of trust policy %q.", policy.Name))}
		if c.trustPolicy(p, policy, source.Index(at, i), certificates) {
			c.Say(p)
		}
	}
	if global < 0 {
		var taken []images.Test
		for _, tests := range named {
			taken = append(taken, tests...)
		}
		c.Say(ivp.Deny(prefix+"unmatched", images.Others(images.ByIdentity, taken).Reference("The repositories that no trust policy names."),
			"no trust policy matches this repository", "notation refuses the images of a repository that no trust policy names."))
	}
}

// registryScopes returns the repositories of each trust policy, and which one is
// for all others; -1 for none.
func (c reader) registryScopes(doc Document, at string) (named [][]images.Test, global int) {
	named, global = make([][]images.Test, len(doc.TrustPolicies)), -1
	seen := map[string]bool{}
	for i, policy := range doc.TrustPolicies {
		path := source.Index(at, i) + ".registryScopes"
		if len(policy.RegistryScopes) == 0 {
			c.Refuse(path, "is empty", `name repositories, or "*" for all others`)
		}
		for j, scope := range policy.RegistryScopes {
			place := source.Index(path, j)
			switch {
			case seen[scope]:
				c.Refuse(place, fmt.Sprintf("%q is there twice", scope), "a repository has one trust policy: remove one")
			case scope == "*" && len(policy.RegistryScopes) > 1:
				c.Refuse(place, `"*" is combined with other scopes`, "give it a trust policy of its own")
			case scope == "*":
				global = i
			case !images.IsRepository(scope):
				c.Refuse(place, fmt.Sprintf("%q", scope), "a scope is registry/repository without tag and wildcard, in lower case")
			case images.Unmatched(scope) != "":
				c.Refuse(place, fmt.Sprintf("%q matches nothing here", scope), images.Unmatched(scope))
			default:
				named[i] = append(named[i], images.RepositoryScope(scope))
			}
			seen[scope] = true
		}
	}
	return named, global
}

// trustPolicy sets the required signers; false if there are none.
func (c reader) trustPolicy(p *ivp.Policy, policy Policy, at string, certificates Stores) bool {
	if policy.Name == "" {
		c.Refuse(at+".name", "is missing", "name the trust policy")
	}
	v := policy.SignatureVerification
	if v.Level == "skip" {
		if len(v.Override)+len(policy.TrustStores)+len(policy.TrustedIdentities) > 0 {
			c.Refuse(at, "skips verification and names signers", "remove override, trustStores and trustedIdentities, as notation wants it")
		}
		c.Note("Trust policy %q skips verification: no policy matches its repositories, and every other one excludes them.", policy.Name)
		return false
	}
	if v.Level == "" {
		c.Refuse(at+".signatureVerification.level", "is missing", "say strict")
	}
	c.CheckLevel(v.Level, at+".signatureVerification.level")
	for _, check := range slices.Sorted(maps.Keys(v.Override)) {
		if v.Override[check] != "enforce" {
			c.Refuse(at+".signatureVerification.override."+check, fmt.Sprintf("%q", v.Override[check]),
				"an ImageValidatingPolicy's notary attestors enforce every check: remove it, or keep the policy where it is")
		}
	}
	c.CheckTimestamp(v.VerifyTimestamp, at+".signatureVerification.verifyTimestamp")
	var certs, tsa []string
	for i, store := range policy.TrustStores {
		place := source.Index(at+".trustStores", i)
		kind, name, _ := strings.Cut(store, ":")
		switch {
		case name == "" || name == "." || name == ".." || strings.Contains(name, "/"): // it names a folder
			c.Refuse(place, fmt.Sprintf("%q", store), "want ca:NAME or tsa:NAME")
		case kind == "signingAuthority":
			c.Refuse(place, fmt.Sprintf("%q", store), "an ImageValidatingPolicy's notary attestors have certificates of authorities (ca) and of timestamps (tsa) alone")
		case kind != "ca" && kind != "tsa":
			c.Refuse(place, fmt.Sprintf("%q", store), "want ca:NAME or tsa:NAME")
		default:
			found := certificates(kind, name, place)
			if kind == "ca" {
				certs = append(certs, found...)
			} else {
				tsa = append(tsa, found...)
			}
		}
	}
	if !slices.ContainsFunc(policy.TrustStores, func(s string) bool { return strings.HasPrefix(s, "ca:") }) {
		c.Refuse(at+".trustStores", "has no store of the type ca", "name the store of the signers' authority")
	}
	c.notarySigner(p, certs, tsa, policy.TrustedIdentities, at+".trustedIdentities")
	return true
}

// notarySigner fills in a notary attestor, and the check that it has signed.
func (c reader) notarySigner(p *ivp.Policy, certs, tsa, identities []string, at string) {
	certs, remark := c.pinned(certs, identities, at)
	p.Attestors = []ivp.Attestor{{Name: "notary", Notary: ivp.TrustStore(certs, tsa), Comment: remark}}
	p.Validations = []ivp.Validation{{Expression: ivp.Every(ivp.Signed([]string{"notary"}, 1)), Message: "no notation signature that the trust policy accepts"}}
}

// Pinned returns the certificates that sign for the trusted identities, and a comment on
// omitted ones; identities that cannot be expressed this way are refused.
func Pinned(conversion *source.Conversion, certs, identities []string, at string) ([]string, string) {
	return reader{conversion}.pinned(certs, identities, at)
}

// pinned returns the certificates that sign for the identities. A notary attestor has no
// identities. Where every certificate is itself a signer's, and not an authority's,
// omitting the ones with another subject has the same effect.
func (c reader) pinned(certs, identities []string, at string) ([]string, string) {
	if len(identities) == 0 {
		c.Refuse(at, "is empty", `name signers, or "*" for every signer with a certificate from the trust stores`)
		return nil, ""
	}
	if slices.Contains(identities, "*") {
		if len(identities) > 1 {
			c.Refuse(at, `"*" is combined with other identities`, "remove one or the other")
		}
		return certs, ""
	}
	wanted := make([][]string, 0, len(identities))
	for i, one := range identities {
		attributes, ok := subjectOf(one)
		if !ok {
			c.Refuse(source.Index(at, i), fmt.Sprintf("%q", one), `want "x509.subject: C=..., ST=..., O=...", without escapes`)
			return nil, ""
		}
		wanted = append(wanted, attributes)
	}
	var kept []string
	for _, text := range certs {
		cert, err := x509.ParseCertificate(decoded(text))
		if err != nil || cert.IsCA || !cert.BasicConstraintsValid && cert.KeyUsage&x509.KeyUsageCertSign != 0 {
			c.Refuse(at, "names signers below a certificate authority", `a notary attestor trusts every signer below its certificates: give "*" and an authority `+
				"that serves these signers alone, or put the signers' own self-signed certificates into the trust store")
			return nil, ""
		}
		has := subjectAttributes(cert)
		if slices.ContainsFunc(wanted, func(list []string) bool {
			return !slices.ContainsFunc(list, func(a string) bool { return !slices.Contains(has, a) })
		}) {
			kept = append(kept, text)
		}
	}
	if len(kept) == 0 && len(certs) > 0 {
		c.Refuse(at, "is no certificate's subject in the trust store", "no signer would be accepted: correct the identities or the store")
	}
	return kept, "The trusted identities are kept by keeping these signers' own certificates alone."
}

func decoded(text string) []byte {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	return block.Bytes
}

// subjectOf returns the attributes of a trusted identity.
func subjectOf(identity string) ([]string, bool) {
	text, ok := strings.CutPrefix(identity, "x509.subject:")
	if !ok || strings.ContainsAny(text, `\"+;<>#*`) {
		return nil, false
	}
	var attributes []string
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name, value = strings.ToUpper(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == "S" {
			name = "ST"
		}
		if value == "" || !slices.Contains([]string{"C", "ST", "L", "O", "OU", "CN"}, name) {
			return nil, false
		}
		attributes = append(attributes, name+"="+value)
	}
	return attributes, true
}

// subjectAttributes are a certificate's, in the same form.
func subjectAttributes(cert *x509.Certificate) []string {
	var list []string
	add := func(name string, values ...string) {
		for _, v := range values {
			list = append(list, name+"="+v)
		}
	}
	s := cert.Subject
	add("C", s.Country...)
	add("ST", s.Province...)
	add("L", s.Locality...)
	add("O", s.Organization...)
	add("OU", s.OrganizationalUnit...)
	add("CN", s.CommonName)
	return list
}

// storeFolder reads a trust store as notation keeps it: the files of the folder
// truststore/x509/TYPE/NAME, in the order of their names.
func (c reader) storeFolder(kind, name, at string) []string {
	if c.Files == nil {
		c.Refuse(at, fmt.Sprintf("names the trust store %s:%s", kind, name), "give --root with notation's configuration folder, in which truststore/ lies")
		return nil
	}
	folder := path.Join("truststore/x509", kind, name)
	entries, err := fs.ReadDir(c.Files, folder)
	if err != nil {
		c.Refuse(at, fmt.Sprintf("the trust store %s cannot be read: %v", folder, err), "mend --root or the name")
		return nil
	}
	if len(entries) == 0 || len(entries) > maxFiles {
		c.Refuse(at, fmt.Sprintf("the trust store %s has %d files", folder, len(entries)), fmt.Sprintf("want 1 to %d", maxFiles))
		return nil
	}
	var certs []string
	for _, entry := range entries {
		data, err := source.ReadFile(c.Files, path.Join(folder, entry.Name()))
		if err != nil {
			c.Refuse(at, fmt.Sprintf("%s/%s cannot be read: %v", folder, entry.Name(), err), "mend the trust store")
			return nil
		}
		if _, err := x509.ParseCertificate(data); err == nil { // notation takes DER, too
			data = pem.EncodeToMemory(&pem.Block{Type: source.Certificate, Bytes: data})
		}
		certs = append(certs, c.PEM(string(data), source.Certificate, at+" ("+entry.Name()+")")...)
	}
	return certs
}
