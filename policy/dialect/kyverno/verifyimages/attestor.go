package verifyimages

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// MaxSets bounds nested attestors.
const MaxSets = 10

// Attestors compiles attestor sets of a rule without variables, each of which must be met. The
// namespace is a Policy's, which may use no other's Secrets; empty for a ClusterPolicy. Name is the path of the list
// below path.
func Attestors(namespace string, list []imageverification.AttestorSet, path, name string) ([]policy.Requirement, error) {
	return builder{namespace: namespace, kind: "Cosign"}.sets(list, path, name)
}

// sets compiles a list of attestor sets, each of which must be met. Name is the
// list's path in the entry.
func (b builder) sets(list []imageverification.AttestorSet, path, name string) ([]policy.Requirement, error) {
	var out []policy.Requirement
	var errs []error
	for i, set := range list {
		r, err := b.set(set, path, fmt.Sprintf("%s[%d]", name, i), 0)
		errs = append(errs, err)
		out = append(out, r)
	}
	return out, errors.Join(errs...)
}

func (b builder) set(set imageverification.AttestorSet, path, name string, depth int) (policy.Requirement, error) {
	out := policy.Requirement{Name: name}
	place := document.Join(path, name)
	if depth > MaxSets {
		return out, field.Fail(place, "attestors are nested more than %d deep", MaxSets)
	}
	if len(set.Entries) == 0 {
		return out, field.Fail(place+".entries", "is empty, so that no signer would be accepted")
	}
	var errs []error
	open := false
	for i, one := range set.Entries {
		members, err := b.member(one, path, fmt.Sprintf("%s.entries[%d]", name, i), depth)
		errs = append(errs, err)
		out.Members = append(out.Members, members...)
		open = open || one.Keys != nil && b.open(one.Keys.PublicKeys)
	}
	out.Threshold = len(out.Members)
	if set.Count != nil {
		out.Threshold = *set.Count
	}
	if faulty := errors.Join(errs...); faulty != nil {
		return out, faulty // how many entries there are is not known
	}
	if out.Threshold < 1 || out.Threshold > len(out.Members) && !open {
		errs = append(errs, field.Fail(place+".count", "%d of %d entries can never be met as meant", out.Threshold, len(out.Members)))
	}
	return out, errors.Join(errs...)
}

// member compiles one entry: an authority, several for several keys, or a
// nested set.
func (b builder) member(one imageverification.Attestor, path, name string, depth int) ([]policy.Member, error) {
	place := document.Join(path, name)
	kinds := 0
	for _, is := range []bool{one.Keys != nil, one.Certificates != nil, one.Keyless != nil, one.Attestor != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return nil, field.Fail(place, "want one of keys, certificates, keyless and attestor, found %d", kinds)
	}
	if b.kind == "Notary" && (one.Keys != nil || one.Keyless != nil) {
		return nil, field.Fail(place, "signers of the type Notary are certificates")
	}
	if one.Attestor != nil {
		if len(one.Annotations) > 0 || one.Repository != "" || one.SignatureAlgorithm != "" {
			return nil, field.Fail(place, "annotations, repository and signatureAlgorithm belong to the entries of a nested attestor")
		}
		nested, err := b.set(*one.Attestor, path, name+".attestor", depth+1)
		return []policy.Member{{Set: &nested}}, err
	}
	sources, err := b.source(one.Repository, place+".repository")
	if err != nil {
		return nil, err
	}
	if err := b.algorithm(one.SignatureAlgorithm, place+".signatureAlgorithm"); err != nil {
		return nil, err
	}
	authorities, err := b.authorities(one, path, name)
	if err != nil {
		return nil, err
	}
	var members []policy.Member
	for _, a := range authorities {
		a.Annotations = one.Annotations
		members = append(members, policy.Member{Authority: &a, Sources: sources})
	}
	return members, nil
}

func (b builder) authorities(one imageverification.Attestor, path, name string) ([]verify.Authority, error) {
	switch {
	case one.Keys != nil:
		return b.keys(*one.Keys, one.SignatureAlgorithm, path, name+".keys")
	case one.Keyless != nil:
		a, err := b.keyless(*one.Keyless, document.Join(path, name+".keyless"))
		a.Name = name + ".keyless"
		return []verify.Authority{a}, err
	}
	a, err := b.certificates(*one.Certificates, one.SignatureAlgorithm, document.Join(path, name+".certificates"))
	a.Name = name + ".certificates"
	return []verify.Authority{a}, err
}

// algorithm refuses digest algorithms that Kyverno does not have.
func (b builder) algorithm(text, path string) error {
	if text == "" || b.open(text) || slices.Contains([]string{"sha224", "sha256", "sha384", "sha512"}, text) {
		return nil
	}
	return field.Fail(path, "unknown algorithm %q: want sha224, sha256, sha384 or sha512", text)
}

// keys compiles a key, or several: each PEM block of publicKeys is a signer of
// its own, so that a count counts them.
func (b builder) keys(doc imageverification.Keys, algorithm, path, name string) ([]verify.Authority, error) {
	place := document.Join(path, name)
	if err := b.algorithm(doc.SignatureAlgorithm, place+".signatureAlgorithm"); err != nil {
		return nil, err
	}
	if doc.SignatureAlgorithm != "" && algorithm != "" && doc.SignatureAlgorithm != algorithm {
		return nil, field.Fail(place+".signatureAlgorithm", "%s contradicts the entry's %s", doc.SignatureAlgorithm, algorithm)
	}
	if doc.SignatureAlgorithm != "" {
		algorithm = doc.SignatureAlgorithm
	}
	refs, err := b.keyRefs(doc, algorithm, place)
	if err != nil {
		return nil, err
	}
	common, err := b.common(doc.Rekor, doc.CTLog, place)
	if err != nil {
		return nil, err
	}
	var list []verify.Authority
	for i, ref := range refs {
		a := common
		a.Name = name
		if len(refs) > 1 {
			a.Name = fmt.Sprintf("%s.publicKeys[%d]", name, i)
		}
		a.Key = &verify.Key{Ref: ref, Hash: algorithm}
		list = append(list, a)
	}
	return list, nil
}

// keyRefs returns the references of keys: PEM, k8s://namespace/name or a KMS URI.
func (b builder) keyRefs(doc imageverification.Keys, algorithm, path string) ([]string, error) {
	ways := 0
	for _, is := range []bool{doc.PublicKeys != "", doc.KMS != "", doc.Secret != nil} {
		if is {
			ways++
		}
	}
	if ways != 1 {
		return nil, field.Fail(path, "want one of publicKeys, kms and secret, found %d", ways)
	}
	switch {
	case doc.KMS != "":
		return []string{doc.KMS}, b.reference(doc.KMS, path+".kms")
	case doc.Secret != nil:
		if doc.Secret.Name == "" || doc.Secret.Namespace == "" {
			return nil, field.Fail(path+".secret", "want a name and a namespace")
		}
		ref := "k8s://" + doc.Secret.Namespace + "/" + doc.Secret.Name
		if !b.open(ref) {
			if err := trust.CheckReference(ref); err != nil {
				return nil, field.Below(path+".secret", err)
			}
		}
		return []string{ref}, b.allowed(doc.Secret.Namespace, path+".secret.namespace")
	}
	return b.publicKeys(strings.TrimSpace(doc.PublicKeys), algorithm, path+".publicKeys")
}

func (b builder) publicKeys(text, algorithm, path string) ([]string, error) {
	if b.open(text) || trust.IsLookup(text) {
		return []string{text}, b.reference(text, path)
	}
	blocks, err := field.PEM(text, path, field.PublicKey)
	if err != nil || b.open(algorithm) {
		return blocks, err
	}
	return blocks, field.Below(path, trust.CheckKeys([]byte(strings.Join(blocks, "")), algorithm))
}

// reference checks a key that is looked up: in a KMS, or as k8s://namespace/name.
func (b builder) reference(ref, path string) error {
	if b.open(ref) {
		return nil
	}
	if err := trust.CheckReference(ref); err != nil {
		return field.Below(path, err)
	}
	if secret, is := strings.CutPrefix(ref, "k8s://"); is {
		namespace, _, _ := strings.Cut(secret, "/")
		return b.allowed(namespace, path)
	}
	return nil
}

// pem checks PEM of several blocks and returns it as it will be hashed.
func (b builder) pem(text, path, kind string, check func([]byte) error) ([]byte, error) {
	if text == "" || b.open(text) {
		return nil, nil
	}
	blocks, err := field.PEM(text, path, kind)
	if err != nil {
		return nil, err
	}
	joined := []byte(strings.Join(blocks, ""))
	return joined, field.Below(path, check(joined))
}

// logKeys checks the keys of logs.
func logKeys(text []byte) error { return trust.CheckKeys(text, "") }

// common compiles the shared settings of Sigstore authorities: without rekor a log entry is
// required, without ctlog a certificate timestamp.
func (b builder) common(log *imageverification.Rekor, ct *imageverification.CTLog, path string) (verify.Authority, error) {
	var a verify.Authority
	var errs [2]error
	if log != nil {
		a.Log.Ignore = log.IgnoreTlog
		a.Log.Keys, errs[0] = b.pem(log.PublicKey, path+".rekor.pubkey", field.PublicKey, logKeys)
		if !field.IsPublicRekor(log.URL) {
			a.Log.URL = log.URL
		}
	}
	if ct != nil {
		a.Timestamp.Chain, errs[1] = b.pem(ct.TSACertChain, path+".ctlog.tsaCertChain", field.Certificate, trust.CheckTimestampChain)
		a.Timestamp.Required = ct.TSACertChain != ""
	}
	return a, errors.Join(errs[:]...)
}

func (b builder) ct(doc *imageverification.CTLog, path string) (verify.CT, error) {
	if doc == nil {
		return verify.CT{}, nil
	}
	keys, err := b.pem(doc.PublicKey, path+".ctlog.pubkey", field.PublicKey, logKeys)
	return verify.CT{Ignore: doc.IgnoreSCT, Keys: keys}, err
}

// certificates compiles a certificate that must have signed, or a chain that
// the signer's must lead to; for notation a certificate to trust.
func (b builder) certificates(doc imageverification.Certificates, algorithm, path string) (verify.Authority, error) {
	if doc.Certificate == "" && doc.CertificateChain == "" {
		return verify.Authority{}, field.Fail(path, "want a cert or a certChain")
	}
	var errs [4]error
	var leaf, chain []byte
	checkLeaf, checkChain := trust.CheckCertificate, trust.CheckChain
	if b.kind == "Notary" {
		checkLeaf, checkChain = notation.CheckStore, notation.CheckStore
	}
	leaf, errs[0] = b.pem(doc.Certificate, path+".cert", field.Certificate, checkLeaf)
	chain, errs[1] = b.pem(doc.CertificateChain, path+".certChain", field.Certificate, checkChain)
	if b.kind == "Notary" {
		if doc.Rekor != nil || doc.CTLog != nil {
			return verify.Authority{}, field.Fail(path, "rekor and ctlog say nothing about a Notary signature: remove them")
		}
		return verify.Authority{Notation: &verify.Notation{CA: append(leaf, chain...)}}, errors.Join(errs[:]...)
	}
	a, err := b.common(doc.Rekor, doc.CTLog, path)
	errs[2] = err
	a.Certificate = &verify.Certificate{Leaf: leaf, Chain: chain, Hash: algorithm}
	a.Certificate.CT, errs[3] = b.ct(doc.CTLog, path)
	return a, errors.Join(errs[:]...)
}
