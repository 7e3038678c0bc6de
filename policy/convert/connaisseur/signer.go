package connaisseur

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// trustRoots returns the indices of the trust roots that a rule names.
func (c reader) trustRoots(v validator, name, at, ruleAt string) []int {
	if name == "" {
		name = "default"
	}
	var found []int
	for i, root := range v.TrustRoots {
		if root.Name == name || name == "*" {
			found = append(found, i)
		}
		if slices.ContainsFunc(v.TrustRoots[:i], func(other trustRoot) bool { return other.Name == root.Name }) {
			c.Refuse(source.Index(at+".trustRoots", i)+".name", fmt.Sprintf("%q is there twice", root.Name), "rename one")
		}
	}
	if len(found) == 0 {
		c.Refuse(ruleAt+".trustRoot", fmt.Sprintf("names %q, which %s does not have", name, at), "name one of its trust roots")
	}
	return found
}

func (c reader) cosign(p *ivp.Policy, v validator, w with, at, ruleAt string) {
	if w.VerificationLevel != "" || w.VerifyTimestamp != "" {
		c.Refuse(ruleAt, "verificationLevel or verifyTimestamp", "belong to notation validators: remove them")
	}
	var host host
	if len(v.Host) > 0 {
		c.Decode(v.Host, &host, at+".host")
	}
	log := ivp.CTLog{
		URL: host.Rekor, IgnoreTlog: w.VerifyTLog != nil && !*w.VerifyTLog, IgnoreSCT: w.VerifySCT != nil && !*w.VerifySCT,
		RekorKey: c.OptionalPEM(host.RekorPubkey, source.PublicKey, at+".host.rekorPubkey"),
		CTKey:    c.OptionalPEM(host.CTLogPubkey, source.PublicKey, at+".host.ctLogPubkey"),
	}
	roots := c.OptionalPEM(host.FulcioCert, source.Certificate, at+".host.fulcioCert")
	names, taken := map[string]string{}, map[string]bool{}
	chosen := c.trustRoots(v, w.TrustRoot, at, ruleAt)
	for _, i := range chosen {
		root := v.TrustRoots[i]
		one := c.signer(root, roots, source.Index(at+".trustRoots", i))
		one.Name = ivp.AttestorName(root.Name, taken)
		if one.Cosign != nil {
			own := log
			one.Cosign.CTLog = &own
		}
		names[root.Name] = one.Name
		p.Attestors = append(p.Attestors, one)
	}
	c.count(p, w, names, len(chosen), ruleAt)
}

// count sets the number of required signatures.
func (c reader) count(p *ivp.Policy, w with, names map[string]string, roots int, at string) {
	var everyone []string
	for _, a := range p.Attestors {
		everyone = append(everyone, a.Name)
	}
	if w.TrustRoot != "*" {
		if w.Threshold != nil || len(w.Required) > 0 {
			c.Refuse(at, "threshold or required beside a single trust root, which Connaisseur does not count", `remove it, or say trustRoot "*"`)
		}
		p.Validations = append(p.Validations, ivp.Validation{Expression: ivp.Every(ivp.Signed(everyone, 1)),
			Message: "no signature by the trust root of the policy"})
		return
	}
	var required []string
	for i, name := range w.Required {
		if names[name] == "" {
			c.Refuse(source.Index(at+".required", i), fmt.Sprintf("%q is no trust root of the validator", name), "name one of them")
		}
		if slices.Contains(required, names[name]) {
			c.Refuse(source.Index(at+".required", i), fmt.Sprintf("%q is there twice", name), "remove one")
		}
		required = append(required, names[name])
	}
	if len(required) > 0 {
		p.Validations = append(p.Validations, ivp.Validation{
			Expression: ivp.Every(ivp.Signed(required, len(required))), Message: "a signature that the policy requires is missing",
		})
	}
	threshold := roots
	if w.Threshold != nil {
		threshold = *w.Threshold
		if threshold < 1 || threshold > roots {
			c.Refuse(at+".threshold", strconv.Itoa(threshold), fmt.Sprintf("want 1 to %d, the number of trust roots", roots))
		}
	} else if len(required) > 0 {
		return
	}
	// Connaisseur looks at no more than the required ones if they are enough.
	if threshold > len(required) {
		p.Validations = append(p.Validations, ivp.Validation{
			Expression: ivp.Every(ivp.Signed(everyone, threshold)), Message: "fewer signatures than the policy asks for",
			Comment: "Each attestor counts once, however often it has signed.",
		})
	}
}

// signer is one trust root of a cosign validator.
func (c reader) signer(root trustRoot, roots, at string) ivp.Attestor {
	if root.Name == "" {
		c.Refuse(at+".name", "is missing", "name the trust root")
	}
	if root.Cert != "" || root.TSCert != "" || (root.Key != "") == (root.Keyless != nil) {
		c.Refuse(at, "is not exactly one of key and keyless", "a cosign validator's trust root is one of them")
		return ivp.Attestor{}
	}
	if root.Key != "" {
		return ivp.Attestor{Cosign: &ivp.Cosign{Key: c.SigningKey(root.Key, at+".key")}}
	}
	k := root.Keyless
	one := ivp.Identity{Issuer: k.Issuer, IssuerRegExp: k.IssuerRegex, Subject: k.Subject, SubjectRegExp: k.SubjectRegex}
	c.CheckIdentity(one, at+".keyless")
	return ivp.Attestor{Comment: source.Anchored(one), Cosign: &ivp.Cosign{Keyless: &ivp.Keyless{Identities: []ivp.Identity{one}, Roots: roots}}}
}

func (c reader) notation(p *ivp.Policy, v validator, w with, at, ruleAt string) {
	if w.Threshold != nil || len(w.Required) > 0 || w.VerifyTLog != nil || w.VerifySCT != nil {
		c.Refuse(ruleAt, "threshold, required, verifyInTransparencyLog or verifySCT", "belong to cosign validators: remove them")
	}
	if len(v.Host) > 0 {
		c.Refuse(at+".host", "is given", "belongs to cosign and Notary v1 validators: remove it")
	}
	c.CheckLevel(w.VerificationLevel, ruleAt+".verificationLevel")
	c.CheckTimestamp(w.VerifyTimestamp, ruleAt+".verifyTimestamp")
	var certs, tsa []string
	for _, i := range c.trustRoots(v, w.TrustRoot, at, ruleAt) {
		root, path := v.TrustRoots[i], source.Index(at+".trustRoots", i)
		if root.Key != "" || root.Keyless != nil || root.Cert == "" {
			c.Refuse(path, "is not a cert", "a notation validator's trust root is a certificate")
			continue
		}
		certs = append(certs, c.PEM(root.Cert, source.Certificate, path+".cert")...)
		if root.TSCert != "" {
			tsa = append(tsa, c.PEM(root.TSCert, source.Certificate, path+".tsCert")...)
		}
	}
	p.Attestors = []ivp.Attestor{{Name: "notary", Notary: ivp.TrustStore(certs, tsa)}}
	p.Validations = []ivp.Validation{{Expression: ivp.Every(ivp.Signed([]string{"notary"}, 1)), Message: "no notation signature by the policy's certificates"}}
}
