package convert

import (
	"fmt"
	"slices"
)

// trustRoots returns the indices of the trust roots that a rule names.
func (c *conversion) trustRoots(v connaisseurValidator, name, at, ruleAt string) []int {
	if name == "" {
		name = "default"
	}
	var found []int
	for i, root := range v.TrustRoots {
		if root.Name == name || name == "*" {
			found = append(found, i)
		}
		if slices.ContainsFunc(v.TrustRoots[:i], func(other connaisseurTrustRoot) bool { return other.Name == root.Name }) {
			c.refuse(index(at+".trustRoots", i)+".name", fmt.Sprintf("%q is there twice", root.Name), "rename one")
		}
	}
	if len(found) == 0 {
		c.refuse(ruleAt+".trustRoot", fmt.Sprintf("names %q, which %s does not have", name, at), "name one of its trust roots")
	}
	return found
}

func (c *conversion) connaisseurCosign(p *said, v connaisseurValidator, w connaisseurWith, at, ruleAt string) {
	if w.VerificationLevel != "" || w.VerifyTimestamp != "" {
		c.refuse(ruleAt, "verificationLevel or verifyTimestamp", "belong to notation validators: remove them")
	}
	var host connaisseurHost
	if len(v.Host) > 0 && !c.decode(v.Host, &host, at+".host") {
		return
	}
	log := ctlog{
		URL: host.Rekor, IgnoreTlog: w.VerifyTLog != nil && !*w.VerifyTLog, IgnoreSCT: w.VerifySCT != nil && !*w.VerifySCT,
		RekorKey: c.optionalPEM(host.RekorPubkey, publicKey, at+".host.rekorPubkey"),
		CTKey:    c.optionalPEM(host.CTLogPubkey, publicKey, at+".host.ctLogPubkey"),
	}
	roots := c.optionalPEM(host.FulcioCert, certificate, at+".host.fulcioCert")
	names, taken := map[string]string{}, map[string]bool{}
	chosen := c.trustRoots(v, w.TrustRoot, at, ruleAt)
	for _, i := range chosen {
		root := v.TrustRoots[i]
		one := c.connaisseurSigner(root, roots, index(at+".trustRoots", i))
		one.Name = attestorName(root.Name, taken)
		if one.Cosign != nil {
			own := log
			one.Cosign.CTLog = &own
		}
		names[root.Name] = one.Name
		p.attestors = append(p.attestors, one)
	}
	c.connaisseurCount(p, w, names, len(chosen), ruleAt)
}

// connaisseurCount says how many must have signed.
func (c *conversion) connaisseurCount(p *said, w connaisseurWith, names map[string]string, roots int, at string) {
	var everyone []string
	for _, a := range p.attestors {
		everyone = append(everyone, a.Name)
	}
	if w.TrustRoot != "*" {
		if w.Threshold != nil || len(w.Required) > 0 {
			c.refuse(at, "threshold or required beside a single trust root, which Connaisseur does not count", `remove it, or say trustRoot "*"`)
		}
		p.validations = append(p.validations, validation{Expression: every(signed(everyone, 1)), Message: "no signature by the trust root of the policy"})
		return
	}
	var required []string
	for i, name := range w.Required {
		if names[name] == "" {
			c.refuse(index(at+".required", i), fmt.Sprintf("%q is no trust root of the validator", name), "name one of them")
		}
		if slices.Contains(required, names[name]) {
			c.refuse(index(at+".required", i), fmt.Sprintf("%q is there twice", name), "remove one")
		}
		required = append(required, names[name])
	}
	if len(required) > 0 {
		p.validations = append(p.validations, validation{
			Expression: every(signed(required, len(required))), Message: "a signature that the policy requires is missing",
		})
	}
	threshold := roots
	if w.Threshold != nil {
		threshold = *w.Threshold
		if threshold < 1 || threshold > roots {
			c.refuse(at+".threshold", itoa(threshold), fmt.Sprintf("want 1 to %d, the number of trust roots", roots))
		}
	} else if len(required) > 0 {
		return
	}
	// Connaisseur looks at no more than the required ones if they are enough.
	if threshold > len(required) {
		p.validations = append(p.validations, validation{
			Expression: every(signed(everyone, threshold)), Message: "fewer signatures than the policy asks for",
			comment: "Each attestor counts once, however often it has signed.",
		})
	}
}

// connaisseurSigner is one trust root of a cosign validator.
func (c *conversion) connaisseurSigner(root connaisseurTrustRoot, roots, at string) attestor {
	if root.Name == "" {
		c.refuse(at+".name", "is missing", "name the trust root")
	}
	if root.Cert != "" || root.TSCert != "" || (root.Key != "") == (root.Keyless != nil) {
		c.refuse(at, "is not exactly one of key and keyless", "a cosign validator's trust root is one of them")
		return attestor{}
	}
	if root.Key != "" {
		return attestor{Cosign: &cosign{Key: c.signingKey(root.Key, at+".key")}}
	}
	k := root.Keyless
	one := identity{Issuer: k.Issuer, IssuerRegExp: k.IssuerRegex, Subject: k.Subject, SubjectRegExp: k.SubjectRegex}
	c.checkIdentity(one, at+".keyless")
	return attestor{comment: anchored(one), Cosign: &cosign{Keyless: &keyless{Identities: []identity{one}, Roots: roots}}}
}

func (c *conversion) connaisseurNotation(p *said, v connaisseurValidator, w connaisseurWith, at, ruleAt string) {
	if w.Threshold != nil || len(w.Required) > 0 || w.VerifyTLog != nil || w.VerifySCT != nil {
		c.refuse(ruleAt, "threshold, required, verifyInTransparencyLog or verifySCT", "belong to cosign validators: remove them")
	}
	if len(v.Host) > 0 {
		c.refuse(at+".host", "is given", "belongs to cosign and Notary v1 validators: remove it")
	}
	c.strict(w.VerificationLevel, ruleAt+".verificationLevel")
	c.always(w.VerifyTimestamp, ruleAt+".verifyTimestamp")
	var certs, tsa []string
	for _, i := range c.trustRoots(v, w.TrustRoot, at, ruleAt) {
		root, path := v.TrustRoots[i], index(at+".trustRoots", i)
		if root.Key != "" || root.Keyless != nil || root.Cert == "" {
			c.refuse(path, "is not a cert", "a notation validator's trust root is a certificate")
			continue
		}
		certs = append(certs, c.pem(root.Cert, certificate, path+".cert")...)
		if root.TSCert != "" {
			tsa = append(tsa, c.pem(root.TSCert, certificate, path+".tsCert")...)
		}
	}
	p.attestors = []attestor{{Name: "notary", Notary: trustStore(certs, tsa)}}
	p.validations = []validation{{Expression: every(signed([]string{"notary"}, 1)), Message: "no notation signature by the policy's certificates"}}
}
