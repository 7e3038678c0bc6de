package kyverno

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
)

// maxDepth bounds sets of attestors within sets.
const maxDepth = 10

// builder makes the attestors of an entry, and the conditions on them.
type builder struct {
	reader
	ivp   *ivp.Policy
	entry imageverification.Entry
	taken map[string]bool
}

// set returns a set's condition on the signatures of an image, or of a named attestation.
func (b *builder) set(set imageverification.AttestorSet, attestation, at string, depth int) string {
	if depth > maxDepth {
		b.Refuse(at, fmt.Sprintf("attestors are nested more than %d deep", maxDepth), "write them flat")
		return ""
	}
	var names, nested []string
	var signers [][]ivp.Attestor // of what counts: each nested set, and each key
	for i, one := range set.Entries {
		place, before := source.Index(at+".entries", i), len(b.ivp.Attestors)
		if one.Attestor != nil {
			if one.Keys != nil || one.Keyless != nil || one.Certificates != nil || len(one.Annotations) > 0 || one.Repository != "" || one.SignatureAlgorithm != "" {
				b.Refuse(place, "has a nested attestor beside other fields", "write them into the nested entries")
			}
			nested = append(nested, b.set(*one.Attestor, attestation, place+".attestor", depth+1))
			signers = append(signers, b.ivp.Attestors[before:])
			continue
		}
		names = append(names, b.member(one, place)...)
		signers = slices.AppendSeq(signers, slices.Chunk(b.ivp.Attestors[before:], 1))
	}
	total := len(names) + len(nested)
	least := total
	if set.Count != nil {
		least = *set.Count
	}
	if least < 1 || least > total {
		b.Refuse(at, fmt.Sprintf("asks for %d of %d signers", least, total), "ask for at least one, and for no more than there are")
		return ""
	}
	if len(nested) == 0 {
		return asked(attestation, names, least)
	}
	if least > 1 {
		b.overlap(signers, least, at)
	}
	demands := nested
	for _, name := range names {
		demands = append(demands, asked(attestation, []string{name}, 1))
	}
	return "[" + strings.Join(demands, ", ") + "].filter(met, met).size() >= " + strconv.Itoa(least)
}

// overlap refuses a signer that is in two of the entries, or twice in one, and notes that one may be:
// here each of them counts, and this gateway counts different signers in Kyverno's rules.
func (b *builder) overlap(entries [][]ivp.Attestor, least int, at string) {
	for i, earlier := range entries {
		for _, one := range earlier {
			for _, other := range slices.Concat(entries[i+1:]...) {
				switch isSame, isKnown := compare(one, other); {
				case isSame:
					b.Refuse(at, fmt.Sprintf("asks for %d different signers, and has one of them in several entries, or twice in one", least),
						"write each signer once, or the entries flat, or keep the rule as it is (this gateway takes it, too)")
					return
				case !isKnown:
					b.Note("%s: a signer that satisfies several entries counts as several, as in Kyverno.", at)
				}
			}
		}
	}
}

// compare reports whether two attestors are one signer, and whether that is known from their text:
// not where a key is elsewhere, or an identity is an expression.
func compare(a, b ivp.Attestor) (isSame, isKnown bool) {
	switch {
	case a.Notary != nil && b.Notary != nil:
		return shares(a.Notary.Certs, b.Notary.Certs), false // the certificates of authorities
	case a.Cosign == nil || b.Cosign == nil:
		return false, false
	case a.Cosign.Certificate != nil && b.Cosign.Certificate != nil:
		one, other := a.Cosign.Certificate, b.Cosign.Certificate
		if one.Certificate != nil && other.Certificate != nil {
			return shares(one.Certificate, other.Certificate), false // another one may have the same key
		}
		return shares(one.Chain, other.Chain) || shares(one.Certificate, other.Chain) || shares(one.Chain, other.Certificate), false
	case a.Cosign.Key != nil && b.Cosign.Key != nil:
		one, other := *a.Cosign.Key, *b.Cosign.Key
		return one.Data == other.Data && one.KMS == other.KMS, one.Data != "" && other.Data != ""
	case a.Cosign.Keyless != nil && b.Cosign.Keyless != nil:
		one, other := a.Cosign.Keyless.Identities[0], b.Cosign.Keyless.Identities[0]
		return one == other, one.IssuerRegExp+one.SubjectRegExp+other.IssuerRegExp+other.SubjectRegExp == ""
	}
	return false, false
}

// shares reports whether a certificate is in both texts.
func shares(one, other *ivp.Value) bool {
	if one == nil || other == nil {
		return false
	}
	for block := range strings.SplitAfterSeq(one.Value, "-----END CERTIFICATE-----\n") {
		if block != "" && strings.Contains(other.Value, block) {
			return true
		}
	}
	return false
}

func asked(attestation string, names []string, least int) string {
	if attestation == "" {
		return ivp.Signed(names, least)
	}
	return ivp.Attested(attestation, names, least)
}

// member adds the attestors of one entry: several for several keys, each of which
// counts.
func (b *builder) member(one imageverification.Attestor, at string) []string {
	kinds := 0
	for _, is := range []bool{one.Keys != nil, one.Certificates != nil, one.Keyless != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		b.Refuse(at, fmt.Sprintf("has %d of keys, certificates, keyless and attestor", kinds), "give exactly one")
		return nil
	}
	if b.entry.Type == "Notary" {
		return b.notary(one, at)
	}
	var list []ivp.Attestor
	switch {
	case one.Keys != nil:
		for _, k := range b.keys(*one.Keys, one.SignatureAlgorithm, at+".keys") {
			list = append(list, ivp.Attestor{Name: "key", Cosign: &ivp.Cosign{Key: &k, CTLog: b.logs(one.Keys.Rekor, one.Keys.CTLog, at+".keys")}})
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
		a.Name = ivp.AttestorName(a.Name, b.taken)
		a.Cosign.Annotations = one.Annotations
		if repository != "" {
			a.Cosign.Source = &ivp.Location{Repository: repository}
		}
		b.ivp.Attestors = append(b.ivp.Attestors, a)
		names = append(names, a.Name)
	}
	return names
}

func (b *builder) notary(one imageverification.Attestor, at string) []string {
	if one.Certificates == nil || one.Certificates.Rekor != nil || one.Certificates.CTLog != nil || len(one.Annotations) > 0 || one.SignatureAlgorithm != "" {
		b.Refuse(at, "is not a certificate alone", "signers of the type Notary are certificates without rekor, ctlog and annotations")
		return nil
	}
	if one.Repository != "" || b.entry.Repository != "" {
		b.Refuse(at+".repository", "is another place for signatures", "a notary attestor has none: keep the rule as it is")
	}
	certs := append(b.blocks(one.Certificates.Certificate, at+".certificates.cert"), b.blocks(one.Certificates.CertificateChain, at+".certificates.certChain")...)
	if len(certs) == 0 {
		b.Refuse(at+".certificates", "is empty", "give cert or certChain")
	}
	name := ivp.AttestorName("notary", b.taken)
	b.ivp.Attestors = append(b.ivp.Attestors, ivp.Attestor{Name: name, Notary: ivp.TrustStore(certs, nil)})
	return []string{name}
}

func (b *builder) blocks(text, at string) []string {
	if text == "" {
		return nil
	}
	return b.PEM(text, source.Certificate, at)
}

// keys returns each key; a Secret stays a reference.
func (b *builder) keys(k imageverification.Keys, algorithm, at string) []ivp.Key {
	if k.SignatureAlgorithm != "" {
		algorithm = k.SignatureAlgorithm
	}
	if !slices.Contains([]string{"", "sha224", "sha256", "sha384", "sha512"}, algorithm) {
		b.Refuse(at+".signatureAlgorithm", fmt.Sprintf("%q", algorithm), "want sha224, sha256, sha384 or sha512")
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
		b.Refuse(at, fmt.Sprintf("has %d of publicKeys, kms and secret", given), "give exactly one")
	case k.Secret != nil && (k.Secret.Name == "" || k.Secret.Namespace == ""):
		b.Refuse(at+".secret", "has no name or no namespace", "give both")
	case k.Secret != nil:
		return []ivp.Key{{KMS: "k8s://" + k.Secret.Namespace + "/" + k.Secret.Name, Hash: algorithm}}
	case k.KMS != "" && !source.IsKMS(k.KMS):
		b.Refuse(at+".kms", fmt.Sprintf("%q", k.KMS), "want awskms://, azurekms://, gcpkms:// or hashivault://")
	case k.KMS != "":
		return []ivp.Key{{KMS: k.KMS, Hash: algorithm}}
	case source.IsKMS(text) || regexp.MustCompile(`^k8s://[^/\s]+/[^/\s]+$`).MatchString(text):
		return []ivp.Key{{KMS: text, Hash: algorithm}}
	default:
		var list []ivp.Key
		for _, block := range b.PEM(text, source.PublicKey, at+".publicKeys") {
			list = append(list, ivp.Key{Data: block, Hash: algorithm})
		}
		return list
	}
	return nil
}

func (b *builder) keyless(k imageverification.Keyless, at string) ivp.Attestor {
	one := ivp.Identity{IssuerRegExp: k.IssuerRegExp, SubjectRegExp: k.SubjectRegExp}
	one.Issuer, one.IssuerRegExp = letters(k.Issuer, k.IssuerRegExp)
	one.Subject, one.SubjectRegExp = letters(k.Subject, k.SubjectRegExp)
	if k.Issuer != "" && k.IssuerRegExp != "" || k.Subject != "" && k.SubjectRegExp != "" {
		b.Refuse(at, "has a text and an expression for the same", "give one of them")
	} else {
		b.CheckIdentity(one, at)
	}
	return ivp.Attestor{Name: "keyless", Comment: source.Anchored(ivp.Identity{IssuerRegExp: k.IssuerRegExp, SubjectRegExp: k.SubjectRegExp}),
		Cosign: &ivp.Cosign{
			Keyless: &ivp.Keyless{
				Identities: []ivp.Identity{one}, Extensions: k.AdditionalExtensions,
				Roots: strings.Join(b.blocks(k.Roots, at+".roots"), ""),
			},
			CTLog: b.logs(k.Rekor, k.CTLog, at),
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

func (b *builder) certificates(k imageverification.Certificates, algorithm, at string) ivp.Attestor {
	if algorithm != "" && algorithm != "sha256" {
		b.Refuse(at, fmt.Sprintf("the signatureAlgorithm %q", algorithm), "a certificate attestor has sha256 alone")
	}
	cert, chain := b.blocks(k.Certificate, at+".cert"), b.blocks(k.CertificateChain, at+".certChain")
	c := &ivp.Certificates{}
	if len(cert) > 0 {
		c.Certificate = &ivp.Value{Value: strings.Join(cert, "")}
	}
	if len(chain) > 0 {
		c.Chain = &ivp.Value{Value: strings.Join(chain, "")}
	}
	if k.Certificate == "" && k.CertificateChain == "" {
		b.Refuse(at, "is empty", "give cert or certChain")
	}
	return ivp.Attestor{Name: "certificate", Cosign: &ivp.Cosign{Certificate: c, CTLog: b.logs(k.Rekor, k.CTLog, at)}}
}

func (b *builder) logs(rekor *imageverification.Rekor, ctlog *imageverification.CTLog, at string) *ivp.CTLog {
	out := &ivp.CTLog{}
	if rekor != nil {
		out.URL, out.IgnoreTlog = rekor.URL, rekor.IgnoreTlog
		out.RekorKey = b.OptionalPEM(rekor.PublicKey, source.PublicKey, at+".rekor.pubkey")
	}
	if ctlog != nil {
		out.IgnoreSCT = ctlog.IgnoreSCT
		out.CTKey = b.OptionalPEM(ctlog.PublicKey, source.PublicKey, at+".ctlog.pubkey")
		out.TSAChain = b.OptionalPEM(ctlog.TSACertChain, source.Certificate, at+".ctlog.tsaCertChain")
	}
	if *out == (ivp.CTLog{}) {
		return nil
	}
	return out
}

// attestations converts statements and their required signers.
func (b *builder) attestations(at string) {
	names := map[string]bool{}
	for i, a := range b.entry.Attestations {
		place := source.Index(at, i)
		kind := a.Type
		if kind == "" {
			kind = a.PredicateType
		}
		switch {
		case kind == "":
			b.Refuse(place+".type", "is missing", "say which statements are meant")
		case a.Type != "" && a.PredicateType != "" && a.Type != a.PredicateType:
			b.Refuse(place+".predicateType", "contradicts type", "give one of them")
		case b.entry.Type != "Notary" && attest.PredicateURI(kind) != kind:
			b.Refuse(place+".type", fmt.Sprintf("%q is compared letter by letter, and is short for %s in an ImageValidatingPolicy", kind, attest.PredicateURI(kind)),
				"write the type of the statements in full")
		case !isEmpty(a.Conditions):
			b.Refuse(place+".conditions", "conditions in JMESPath are given",
				"write them in CEL into the new policy by hand, over extractPayload(image, attestations.NAME), or keep the rule as it is")
		case len(a.Attestors) == 0:
			b.Refuse(place+".attestors", "is missing, so that any signer would be accepted", "name the required signers")
		}
		name := a.Name
		if name == "" {
			name = "attestation"
		}
		one := ivp.Attestation{Name: ivp.AttestorName(name, names)}
		if b.entry.Type == "Notary" {
			one.Referrer = &ivp.OfType{Type: kind}
		} else {
			one.InToto = &ivp.OfType{Type: kind}
		}
		b.ivp.Attestations = append(b.ivp.Attestations, one)
		for j, set := range a.Attestors {
			if demand := b.set(set, one.Name, source.Index(place+".attestors", j), 0); demand != "" {
				b.ivp.Validations = append(b.ivp.Validations, ivp.Validation{Expression: ivp.Every(demand),
					Message: "no statement of the type " + kind + " by a signer that the policy accepts"})
			}
		}
	}
}

// isEmpty reports whether conditions are absent, or a list of none.
func isEmpty(conditions any) bool {
	list, isList := conditions.([]any)
	return conditions == nil || isList && len(list) == 0
}
