package convert

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// trustPolicyDocument is notation's trustpolicy.json, version 1.0.
type trustPolicyDocument struct {
	Version       string        `json:"version"`
	TrustPolicies []trustPolicy `json:"trustPolicies"`
}

type trustPolicy struct {
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

// stores returns the certificates of a trust store, in PEM.
type stores func(store, name, at string) ([]string, bool)

func (c *conversion) notation(documents []source) {
	d, ok := c.one(documents)
	if !ok {
		return
	}
	var doc trustPolicyDocument
	if c.decode(d.text, &doc, "") {
		c.trustPolicies(doc, "", "notation-", c.storeFolder)
	}
}

// trustPolicies makes a policy of each trust policy. An image is judged by the one
// that names its repository, or else by the one for all; or else it is denied.
func (c *conversion) trustPolicies(doc trustPolicyDocument, at, prefix string, certificates stores) {
	if doc.Version != "1.0" {
		c.refuse(below(at, "version"), fmt.Sprintf("%q", doc.Version), "want 1.0")
	}
	at = below(at, "trustPolicies")
	if len(doc.TrustPolicies) == 0 || len(doc.TrustPolicies) > maxRules {
		c.refuse(at, fmt.Sprintf("%d trust policies", len(doc.TrustPolicies)), fmt.Sprintf("want 1 to %d", maxRules))
		return
	}
	named, global := c.registryScopes(doc, at)
	for i, policy := range doc.TrustPolicies {
		p := &said{name: prefix + policy.Name}
		s := selection{spelling: byIdentity, takes: some(named[i])}
		if global == i {
			var taken []test
			for _, tests := range named {
				taken = append(taken, tests...)
			}
			s = others(byIdentity, taken)
		}
		p.images = []imageReference{s.reference(fmt.Sprintf("The repositories of trust policy %q.", policy.Name))}
		if c.trustPolicy(p, policy, index(at, i), certificates) {
			c.say(p)
		}
	}
	if global < 0 {
		var taken []test
		for _, tests := range named {
			taken = append(taken, tests...)
		}
		c.say(deny(prefix+"unmatched", others(byIdentity, taken).reference("The repositories that no trust policy names."),
			"no trust policy speaks of this repository", "notation refuses an image whose repository no trust policy names."))
	}
}

// registryScopes returns the repositories of each trust policy, and which one is
// for all others; -1 for none.
func (c *conversion) registryScopes(doc trustPolicyDocument, at string) (named [][]test, global int) {
	named, global = make([][]test, len(doc.TrustPolicies)), -1
	seen := map[string]bool{}
	for i, policy := range doc.TrustPolicies {
		path := index(at, i) + ".registryScopes"
		if len(policy.RegistryScopes) == 0 {
			c.refuse(path, "is empty", `name repositories, or "*" for all others`)
		}
		for j, scope := range policy.RegistryScopes {
			place := index(path, j)
			switch {
			case seen[scope]:
				c.refuse(place, fmt.Sprintf("%q is there twice", scope), "a repository has one trust policy: remove one")
			case scope == "*" && len(policy.RegistryScopes) > 1:
				c.refuse(place, `"*" stands beside other scopes`, "give it a trust policy of its own")
			case scope == "*":
				global = i
			case !isRepository(scope):
				c.refuse(place, fmt.Sprintf("%q", scope), "a scope is registry/repository without tag and wildcard, in lower case")
			default:
				named[i] = append(named[i], repositoryScope(scope))
			}
			seen[scope] = true
		}
	}
	return named, global
}

// trustPolicy fills in who must have signed; false if nobody must.
func (c *conversion) trustPolicy(p *said, policy trustPolicy, at string, certificates stores) bool {
	if policy.Name == "" {
		c.refuse(at+".name", "is missing", "name the trust policy")
	}
	v := policy.SignatureVerification
	if v.Level == "skip" {
		if len(v.Override)+len(policy.TrustStores)+len(policy.TrustedIdentities) > 0 {
			c.refuse(at, "skips verification and names signers", "remove override, trustStores and trustedIdentities, as notation wants it")
		}
		c.note("Trust policy %q skips verification: no policy speaks of its repositories, and every other one leaves them out.", policy.Name)
		return false
	}
	if v.Level == "" {
		c.refuse(at+".signatureVerification.level", "is missing", "say strict")
	}
	c.strict(v.Level, at+".signatureVerification.level")
	for _, check := range slices.Sorted(mapKeys(v.Override)) {
		if v.Override[check] != "enforce" {
			c.refuse(at+".signatureVerification.override."+check, fmt.Sprintf("%q", v.Override[check]),
				"an ImageValidatingPolicy's notary attestors enforce every check: remove it, or keep the policy where it is")
		}
	}
	c.always(v.VerifyTimestamp, at+".signatureVerification.verifyTimestamp")
	var certs, tsa []string
	for i, store := range policy.TrustStores {
		place := index(at+".trustStores", i)
		kind, name, ok := strings.Cut(store, ":")
		switch {
		case !ok || name == "" || path.Base(name) != name || name == "." || name == "..":
			c.refuse(place, fmt.Sprintf("%q", store), "want ca:NAME or tsa:NAME")
		case kind == "signingAuthority":
			c.refuse(place, fmt.Sprintf("%q", store), "an ImageValidatingPolicy's notary attestors have certificates of authorities (ca) and of timestamps (tsa) alone")
		case kind != "ca" && kind != "tsa":
			c.refuse(place, fmt.Sprintf("%q", store), "want ca:NAME or tsa:NAME")
		default:
			found, _ := certificates(kind, name, place)
			if kind == "ca" {
				certs = append(certs, found...)
			} else {
				tsa = append(tsa, found...)
			}
		}
	}
	if !slices.ContainsFunc(policy.TrustStores, func(s string) bool { return strings.HasPrefix(s, "ca:") }) {
		c.refuse(at+".trustStores", "has no store of the type ca", "name the store of the signers' authority")
	}
	c.notarySigner(p, certs, tsa, policy.TrustedIdentities, at+".trustedIdentities")
	return true
}

// notarySigner fills in a notary attestor, and the check that it has signed.
func (c *conversion) notarySigner(p *said, certs, tsa, identities []string, at string) {
	certs, remark := c.pinned(certs, identities, at)
	p.attestors = []attestor{{Name: "notary", Notary: trustStore(certs, tsa), comment: remark}}
	p.validations = []validation{{Expression: every(signed([]string{"notary"}, 1)), Message: "no notation signature that the trust policy accepts"}}
}

// pinned returns the certificates that sign for the identities. A notary attestor
// has no identities; but where every certificate is itself a signer's, and not an
// authority's, the ones with another subject can be left out, which says the same.
func (c *conversion) pinned(certs, identities []string, at string) ([]string, string) {
	if len(identities) == 0 {
		c.refuse(at, "is empty", `name signers, or "*" for all whom the trust stores vouch for`)
		return nil, ""
	}
	if slices.Contains(identities, "*") {
		if len(identities) > 1 {
			c.refuse(at, `"*" stands beside other identities`, "remove one or the other")
		}
		return certs, ""
	}
	wanted := make([][]string, 0, len(identities))
	for i, one := range identities {
		attributes, ok := subjectOf(one)
		if !ok {
			c.refuse(index(at, i), fmt.Sprintf("%q", one), `want "x509.subject: C=..., ST=..., O=...", without escapes`)
			return nil, ""
		}
		wanted = append(wanted, attributes)
	}
	var kept []string
	for _, text := range certs {
		cert, err := x509.ParseCertificate(decoded(text))
		if err != nil || cert.IsCA || !cert.BasicConstraintsValid && cert.KeyUsage&x509.KeyUsageCertSign != 0 {
			c.refuse(at, "names signers below a certificate authority", `a notary attestor trusts everybody whom its certificates vouch for: give "*" and an authority `+
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
		c.refuse(at, "is no certificate's subject in the trust store", "nobody could sign: mend the identities or the store")
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
		name, value, ok := strings.Cut(part, "=")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !ok || name == "" || value == "" {
			return nil, false
		}
		if name = strings.ToUpper(name); name == "S" {
			name = "ST"
		}
		if !slices.Contains([]string{"C", "ST", "L", "O", "OU", "CN"}, name) {
			return nil, false
		}
		attributes = append(attributes, name+"="+value)
	}
	return attributes, len(attributes) > 0
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
func (c *conversion) storeFolder(kind, name, at string) ([]string, bool) {
	if c.options.Files == nil {
		c.refuse(at, fmt.Sprintf("names the trust store %s:%s", kind, name), "give --root with notation's configuration folder, in which truststore/ lies")
		return nil, false
	}
	folder := path.Join("truststore/x509", kind, name)
	entries, err := fs.ReadDir(c.options.Files, folder)
	if err != nil {
		c.refuse(at, fmt.Sprintf("the trust store %s cannot be read: %v", folder, err), "mend --root or the name")
		return nil, false
	}
	if len(entries) == 0 || len(entries) > maxFiles {
		c.refuse(at, fmt.Sprintf("the trust store %s has %d files", folder, len(entries)), fmt.Sprintf("want 1 to %d", maxFiles))
		return nil, false
	}
	var certs []string
	for _, entry := range entries {
		data, err := readFile(c.options.Files, path.Join(folder, entry.Name()))
		if err != nil {
			c.refuse(at, fmt.Sprintf("%s/%s cannot be read: %v", folder, entry.Name(), err), "mend the trust store")
			return nil, false
		}
		if _, err := x509.ParseCertificate(data); err == nil { // notation takes DER, too
			data = pem.EncodeToMemory(&pem.Block{Type: certificate, Bytes: data})
		}
		certs = append(certs, c.pem(string(data), certificate, at+" ("+entry.Name()+")")...)
	}
	return certs, true
}
