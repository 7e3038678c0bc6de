package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxDepth bounds sets of attestors within sets.
const maxDepth = 10

// kyvernoBuilder makes attestors of an entry, and what is asked of them.
type kyvernoBuilder struct {
	*conversion
	said  *said
	entry kyvernoEntry
	taken map[string]bool
}

// set returns what a set asks of the signatures of an image, or of an attestation
// that has a name.
func (b *kyvernoBuilder) set(set kyvernoSet, attestation, at string, depth int) string {
	if depth > maxDepth {
		b.refuse(at, fmt.Sprintf("attestors are nested more than %d deep", maxDepth), "write them flat")
		return ""
	}
	var names, nested []string
	for i, one := range set.Entries {
		place := index(at+".entries", i)
		if one.Attestor != nil {
			if one.Keys != nil || one.Keyless != nil || one.Certificates != nil || len(one.Annotations) > 0 || one.Repository != "" || one.SignatureAlgorithm != "" {
				b.refuse(place, "has a nested attestor beside other fields", "write them into the nested entries")
			}
			nested = append(nested, b.set(*one.Attestor, attestation, place+".attestor", depth+1))
			continue
		}
		names = append(names, b.member(one, place)...)
	}
	total := len(names) + len(nested)
	least := total
	if set.Count != nil {
		least = *set.Count
	}
	if total == 0 || least < 1 || least > total {
		b.refuse(at, fmt.Sprintf("asks for %d of %d signers", least, total), "ask for at least one, and for no more than there are")
		return ""
	}
	if len(nested) == 0 {
		return asked(attestation, names, least)
	}
	demands := nested
	for _, name := range names {
		demands = append(demands, asked(attestation, []string{name}, 1))
	}
	return "[" + strings.Join(demands, ", ") + "].filter(met, met).size() >= " + itoa(least)
}

func asked(attestation string, names []string, least int) string {
	if attestation == "" {
		return signed(names, least)
	}
	return attested(attestation, names, least)
}

// member adds the attestors of one entry: several for several keys, each of which
// counts.
func (b *kyvernoBuilder) member(one kyvernoAttestor, at string) []string {
	kinds := 0
	for _, is := range []bool{one.Keys != nil, one.Certificates != nil, one.Keyless != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		b.refuse(at, fmt.Sprintf("has %d of keys, certificates, keyless and attestor", kinds), "give exactly one")
		return nil
	}
	if b.entry.Type == "Notary" {
		return b.notary(one, at)
	}
	var list []attestor
	switch {
	case one.Keys != nil:
		for _, k := range b.keys(*one.Keys, one.SignatureAlgorithm, at+".keys") {
			list = append(list, attestor{Name: "key", Cosign: &cosign{Key: &k, CTLog: b.logs(one.Keys.kyvernoLogs, at+".keys")}})
		}
	case one.Keyless != nil:
		list = append(list, b.keyless(*one.Keyless, at+".keyless"))
	default:
		list = append(list, b.certificates(*one.Certificates, one.SignatureAlgorithm, at+".certificates"))
	}
	repository := one.Repository
	if repository == "" {
		repository = b.entry.Repository
	}
	var names []string
	for _, a := range list {
		a.Name = attestorName(a.Name, b.taken)
		a.Cosign.Annotations = one.Annotations
		if repository != "" {
			a.Cosign.Source = &location{Repository: repository}
		}
		b.said.attestors = append(b.said.attestors, a)
		names = append(names, a.Name)
	}
	return names
}

func (b *kyvernoBuilder) notary(one kyvernoAttestor, at string) []string {
	if one.Certificates == nil || one.Certificates.Rekor != nil || one.Certificates.CTLog != nil || len(one.Annotations) > 0 || one.SignatureAlgorithm != "" {
		b.refuse(at, "is not a certificate alone", "the type is Notary, whose signers are certificates without rekor, ctlog and annotations")
		return nil
	}
	if one.Repository != "" || b.entry.Repository != "" {
		b.refuse(at+".repository", "is another place for signatures", "a notary attestor has none: keep the rule as it is")
	}
	certs := append(b.blocks(one.Certificates.Certificate, at+".certificates.cert"), b.blocks(one.Certificates.CertificateChain, at+".certificates.certChain")...)
	if len(certs) == 0 {
		b.refuse(at+".certificates", "is empty", "give cert or certChain")
	}
	name := attestorName("notary", b.taken)
	b.said.attestors = append(b.said.attestors, attestor{Name: name, Notary: trustStore(certs, nil)})
	return []string{name}
}

func (b *kyvernoBuilder) blocks(text, at string) []string {
	if text == "" {
		return nil
	}
	return b.pem(text, certificate, at)
}

// keys returns each key; a Secret stays a reference.
func (b *kyvernoBuilder) keys(k kyvernoKeys, algorithm, at string) []key {
	if k.SignatureAlgorithm != "" {
		algorithm = k.SignatureAlgorithm
	}
	if !slices.Contains([]string{"", "sha224", "sha256", "sha384", "sha512"}, algorithm) {
		b.refuse(at+".signatureAlgorithm", fmt.Sprintf("%q", algorithm), "want sha224, sha256, sha384 or sha512")
	}
	given := 0
	for _, is := range []bool{k.PublicKeys != "", k.KMS != "", k.Secret != nil} {
		if is {
			given++
		}
	}
	text := strings.TrimSpace(k.PublicKeys)
	switch {
	case given != 1:
		b.refuse(at, fmt.Sprintf("has %d of publicKeys, kms and secret", given), "give exactly one")
	case k.Secret != nil && (k.Secret.Name == "" || k.Secret.Namespace == ""):
		b.refuse(at+".secret", "has no name or no namespace", "give both")
	case k.Secret != nil:
		return []key{{KMS: "k8s://" + k.Secret.Namespace + "/" + k.Secret.Name, Hash: algorithm}}
	case k.KMS != "" && !isKMS(k.KMS):
		b.refuse(at+".kms", fmt.Sprintf("%q", k.KMS), "want awskms://, azurekms://, gcpkms:// or hashivault://")
	case k.KMS != "":
		return []key{{KMS: k.KMS, Hash: algorithm}}
	case isKMS(text) || regexp.MustCompile(`^k8s://[^/\s]+/[^/\s]+$`).MatchString(text):
		return []key{{KMS: text, Hash: algorithm}}
	}
	var list []key
	if given == 1 && text != "" {
		for _, block := range b.pem(text, publicKey, at+".publicKeys") {
			list = append(list, key{Data: block, Hash: algorithm})
		}
	}
	return list
}

func (b *kyvernoBuilder) keyless(k kyvernoKeyless, at string) attestor {
	one := identity{IssuerRegExp: k.IssuerRegExp, SubjectRegExp: k.SubjectRegExp}
	one.Issuer, one.IssuerRegExp = letters(k.Issuer, k.IssuerRegExp)
	one.Subject, one.SubjectRegExp = letters(k.Subject, k.SubjectRegExp)
	if k.Issuer != "" && k.IssuerRegExp != "" || k.Subject != "" && k.SubjectRegExp != "" {
		b.refuse(at, "has a text and an expression for the same", "give one of them")
	} else {
		b.checkIdentity(one, at)
	}
	return attestor{Name: "keyless", comment: anchored(identity{IssuerRegExp: k.IssuerRegExp, SubjectRegExp: k.SubjectRegExp}), Cosign: &cosign{
		Keyless: &keyless{
			Identities: []identity{one}, Extensions: k.AdditionalExtensions,
			Roots: strings.Join(b.blocks(k.Roots, at+".roots"), ""),
		},
		CTLog: b.logs(k.kyvernoLogs, at),
	}}
}

// letters makes an expression of a text with wildcards, which an
// ImageValidatingPolicy compares letter by letter.
func letters(text, expression string) (string, string) {
	if !hasWildcard(text) {
		return text, expression
	}
	return "", anyOf([]string{text})
}

func (b *kyvernoBuilder) certificates(k kyvernoCertificates, algorithm, at string) attestor {
	if algorithm != "" && algorithm != "sha256" {
		b.refuse(at, fmt.Sprintf("the signatureAlgorithm %q", algorithm), "a certificate attestor has sha256 alone")
	}
	cert, chain := b.blocks(k.Certificate, at+".cert"), b.blocks(k.CertificateChain, at+".certChain")
	c := &certificates{}
	if len(cert) > 0 {
		c.Certificate = &value{Value: strings.Join(cert, "")}
	}
	if len(chain) > 0 {
		c.Chain = &value{Value: strings.Join(chain, "")}
	}
	if k.Certificate == "" && k.CertificateChain == "" {
		b.refuse(at, "is empty", "give cert or certChain")
	}
	return attestor{Name: "certificate", Cosign: &cosign{Certificate: c, CTLog: b.logs(k.kyvernoLogs, at)}}
}

func (b *kyvernoBuilder) logs(l kyvernoLogs, at string) *ctlog {
	out := &ctlog{}
	if l.Rekor != nil {
		out.URL, out.IgnoreTlog = l.Rekor.URL, l.Rekor.IgnoreTlog
		out.RekorKey = b.optionalPEM(l.Rekor.PublicKey, publicKey, at+".rekor.pubkey")
	}
	if l.CTLog != nil {
		out.IgnoreSCT = l.CTLog.IgnoreSCT
		out.CTKey = b.optionalPEM(l.CTLog.PublicKey, publicKey, at+".ctlog.pubkey")
		out.TSAChain = b.optionalPEM(l.CTLog.TSACertChain, certificate, at+".ctlog.tsaCertChain")
	}
	if *out == (ctlog{}) {
		return nil
	}
	return out
}

// attestations carries statements and who must have made them.
func (b *kyvernoBuilder) attestations(at string) {
	names := map[string]bool{}
	for i, a := range b.entry.Attestations {
		place := index(at, i)
		kind := a.Type
		if kind == "" {
			kind = a.PredicateType
		}
		switch {
		case kind == "":
			b.refuse(place+".type", "is missing", "say which statements are meant")
		case a.Type != "" && a.PredicateType != "" && a.Type != a.PredicateType:
			b.refuse(place+".predicateType", "contradicts type", "give one of them")
		case len(a.Conditions) > 0 && string(a.Conditions) != "[]":
			b.refuse(place+".conditions", "conditions in JMESPath are given", "write them in CEL into the new policy by hand, over extractPayload(image, attestations.NAME), or keep the rule as it is")
		case len(a.Attestors) == 0:
			b.refuse(place+".attestors", "is missing, so that anybody could have made the statement", "say who must have")
		}
		name := a.Name
		if name == "" {
			name = "attestation"
		}
		one := attestation{Name: attestorName(name, names)}
		if b.entry.Type == "Notary" {
			one.Referrer = &ofType{Type: kind}
		} else {
			one.InToto = &ofType{Type: kind}
		}
		b.said.attestations = append(b.said.attestations, one)
		for j, set := range a.Attestors {
			if demand := b.set(set, one.Name, index(place+".attestors", j), 0); demand != "" {
				b.said.validations = append(b.said.validations, validation{Expression: every(demand), Message: "no statement of the type " + kind + " by a signer that the policy accepts"})
			}
		}
	}
}
