package sigstore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// signer is a compiled authority: one that decides by itself (static), or any of
// several keys, or an identity.
type signer struct {
	path, name string
	static     *clusterimagepolicy.Static
	// any are authorities of which one must have signed, without the TrustRoots that refs
	// name.
	any  []verify.Authority
	refs refs
	// keySecret and caSecret hold the key and the certificates; nil where they do not.
	keySecret, caSecret *clusterimagepolicy.SecretRef
	sources             []attest.Source
	secrets             []string // names, in the namespace of the object
	attestations        []statement
}

// refs are the names of TrustRoots; empty means the gateway's own root.
type refs struct{ ca, log, tsa string }

// short is the authority's place in the policy, for verdicts.
func (s *signer) short() string { return strings.TrimPrefix(s.path, "spec.") }

// nameOf returns an authority's name; without one it is named by its place.
func nameOf(doc clusterimagepolicy.Authority, i int) string {
	return cmp.Or(doc.Name, "authority-"+strconv.Itoa(i))
}

func (c *Compiler) signer(doc clusterimagepolicy.Authority, i int) (*signer, error) {
	s := &signer{path: "spec.authorities[" + strconv.Itoa(i) + "]", name: nameOf(doc, i)}
	kinds := 0
	for _, is := range []bool{doc.Key != nil, doc.Keyless != nil, doc.Static != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return s, field.Fail(s.path, "want one of key, keyless and static, found %d", kinds)
	}
	if doc.Static != nil {
		s.static = doc.Static
		return s, checkStatic(doc, s.path)
	}
	var errs [5]error
	if doc.Key != nil {
		s.any, errs[0] = c.keys(s, *doc.Key)
	} else {
		s.any, errs[0] = c.keyless(s, *doc.Keyless)
	}
	errs[1] = s.terms(doc)
	s.sources, errs[2] = s.source(doc.Source)
	s.attestations, errs[3] = c.statements(doc.Attestations, s.path)
	errs[4] = s.bundleRefs(doc)
	return s, errors.Join(errs[:]...)
}

func checkStatic(doc clusterimagepolicy.Authority, path string) error {
	var errs []error
	if doc.Static.Action != "pass" && doc.Static.Action != "fail" {
		errs = append(errs, field.Fail(path+".static.action", "unknown action %q: want pass or fail", doc.Static.Action))
	}
	for _, beside := range []struct {
		name string
		is   bool
	}{
		{"attestations", len(doc.Attestations) > 0}, {"source", len(doc.Source) > 0}, {"ctlog", doc.CTLog != nil},
		{"rfc3161timestamp", doc.RFC3161Timestamp != nil}, {"signatureFormat", doc.SignatureFormat != ""},
	} {
		if beside.is {
			errs = append(errs, field.Fail(path+"."+beside.name, "has no effect with static, which verifies nothing"))
		}
	}
	return errors.Join(errs...)
}

// keys compiles a key; each PEM block of data is a key of its own, of which any
// will do.
func (c *Compiler) keys(s *signer, doc clusterimagepolicy.Key) ([]verify.Authority, error) {
	path := s.path + ".key"
	if doc.HashAlgorithm != "" && !slices.Contains([]string{"sha224", "sha256", "sha384", "sha512"}, doc.HashAlgorithm) {
		return nil, field.Fail(path+".hashAlgorithm", "unknown algorithm %q: want sha224, sha256, sha384 or sha512", doc.HashAlgorithm)
	}
	if err := oneWay(doc, path); err != nil {
		return nil, err
	}
	name := s.short() + ".key"
	one := func(reference string) []verify.Authority {
		return []verify.Authority{{Name: name, Key: &verify.Key{Ref: reference, Hash: doc.HashAlgorithm}}}
	}
	switch {
	case doc.KMS != "":
		if !trust.IsKMS(doc.KMS) {
			return nil, field.Fail(path+".kms", "%q: want awskms://, azurekms://, gcpkms:// or hashivault://", field.Shorten(doc.KMS))
		}
		return one(doc.KMS), field.Below(path+".kms", trust.CheckReference(doc.KMS))
	case doc.SecretRef != nil:
		secret, err := c.secret(*doc.SecretRef, path+".secretRef")
		if err != nil {
			return nil, err
		}
		if c.options.Secrets != nil {
			s.keySecret = &secret
		}
		return one("k8s://" + secret.Namespace + "/" + secret.Name), nil
	}
	blocks, err := publicKeys(doc.Data, path+".data", doc.HashAlgorithm)
	return eachKey(one("")[0], blocks, name+".data"), err
}

// publicKeys splits keys in PEM, each of which must be able to verify a signature.
func publicKeys(text, path, hash string) ([]string, error) {
	blocks, err := field.PEM(text, path, field.PublicKey)
	if err != nil {
		return nil, err
	}
	return blocks, field.Below(path, trust.CheckKeys([]byte(strings.Join(blocks, "")), hash))
}

// authorityChain returns certificates that signers' certificates must lead to.
func authorityChain(text, path string) ([]byte, error) {
	blocks, err := field.PEM(text, path, field.Certificate)
	if err != nil {
		return nil, err
	}
	chain := []byte(strings.Join(blocks, ""))
	return chain, field.Below(path, trust.CheckChain(chain))
}

// eachKey returns an authority for each of several keys.
func eachKey(like verify.Authority, blocks []string, path string) []verify.Authority {
	list := make([]verify.Authority, len(blocks))
	for i, block := range blocks {
		list[i] = like
		list[i].Key = &verify.Key{Ref: block, Hash: like.Key.Hash}
		if len(blocks) > 1 {
			list[i].Name = fmt.Sprintf("%s[%d]", path, i)
		}
	}
	return list
}

// secret checks the name of a Secret.
func (c *Compiler) secret(ref clusterimagepolicy.SecretRef, path string) (clusterimagepolicy.SecretRef, error) {
	ref.Namespace = cmp.Or(ref.Namespace, c.options.Namespace)
	switch {
	case ref.Name == "":
		return ref, field.Fail(path+".name", "is empty")
	case ref.Namespace != c.options.Namespace:
		return ref, field.Fail(path+".namespace", "keys are read from Secrets of namespace %s alone, found %q", c.options.Namespace, ref.Namespace)
	}
	return ref, nil
}

func oneWay(k clusterimagepolicy.Key, path string) error {
	ways := 0
	for _, is := range []bool{k.Data != "", k.KMS != "", k.SecretRef != nil} {
		if is {
			ways++
		}
	}
	if ways != 1 {
		return field.Fail(path, "want one of data, kms and secretRef, found %d", ways)
	}
	return nil
}

func (c *Compiler) keyless(s *signer, doc clusterimagepolicy.Keyless) ([]verify.Authority, error) {
	path := s.path + ".keyless"
	a := verify.Authority{Name: strings.TrimPrefix(path, "spec."), Keyless: &verify.Keyless{CT: verify.CT{Ignore: doc.InsecureIgnoreSCT}}}
	var errs []error
	if doc.URL != "" {
		errs = append(errs, field.URL(doc.URL, path+".url"))
	}
	if doc.CACert != nil {
		place := path + ".ca-cert"
		if doc.URL != "" {
			errs = append(errs, field.Fail(place, "cannot be combined with url: want one of them"))
		}
		var err error
		a.Keyless.Roots, err = c.certificates(s, *doc.CACert, place)
		errs = append(errs, err)
	}
	if len(doc.Identities) == 0 {
		errs = append(errs, field.Fail(path+".identities", "is empty, so that any certificate would be accepted: name the identities"))
	}
	for i, one := range doc.Identities {
		identity, err := compileIdentity(one, path+".identities["+strconv.Itoa(i)+"]")
		errs = append(errs, err)
		a.Keyless.Identities = append(a.Keyless.Identities, identity)
	}
	return []verify.Authority{a}, errors.Join(errs...)
}

// certificates reads ca-cert, from the document or from a Secret.
func (c *Compiler) certificates(s *signer, doc clusterimagepolicy.Key, path string) ([]byte, error) {
	if err := oneWay(doc, path); err != nil {
		return nil, err
	}
	switch {
	case doc.KMS != "":
		return nil, field.Fail(path+".kms", "a certificate is in no KMS: want data or secretRef")
	case doc.HashAlgorithm != "":
		return nil, field.Fail(path+".hashAlgorithm", "has no effect on a certificate")
	case doc.SecretRef == nil:
		return authorityChain(doc.Data, path+".data")
	case c.options.Secrets == nil:
		return nil, field.Fail(path+".secretRef", "Secrets are not read here: write the certificate into data")
	}
	secret, err := c.secret(*doc.SecretRef, path+".secretRef")
	s.caSecret = &secret
	return nil, err
}

func compileIdentity(i clusterimagepolicy.Identity, path string) (verify.Identity, error) {
	var out verify.Identity
	var errs [2]error
	out.Issuer, errs[0] = matcher(i.Issuer, i.IssuerRegExp, path, "issuer")
	out.Subject, errs[1] = matcher(i.Subject, i.SubjectRegExp, path, "subject")
	return out, errors.Join(errs[:]...)
}

// matcher compiles a text or an expression, which must match the whole text. One of them
// is required: any signer can get an identity of which half is left open.
func matcher(text, expression, path, name string) (verify.Matcher, error) {
	switch {
	case text != "" && expression != "":
		return verify.Matcher{}, field.Fail(path+"."+name, "cannot be combined with %sRegExp: want one of them", name)
	case text != "":
		return verify.Exactly(text), nil
	case expression != "":
		m, err := verify.Expression(expression)
		return m, field.Below(path+"."+name+"RegExp", err)
	}
	return verify.Matcher{}, field.Fail(path+"."+name, "is missing, so that any %s would do: name it, or write %sRegExp: .+ if that is meant", name, name)
}

// terms reads the requirements on log, time and format. A key requires no log unless one
// is named. A short-lived certificate is worthless without a trusted time, which the log
// provides unless a timestamp authority is named.
func (s *signer) terms(doc clusterimagepolicy.Authority) error {
	var errs []error
	var common verify.Authority
	if doc.Keyless != nil {
		s.refs.ca = doc.Keyless.TrustRootRef
	}
	logged := false
	if doc.CTLog != nil {
		logged = doc.CTLog.URL != "" || doc.CTLog.TrustRootRef != ""
		s.refs.log = doc.CTLog.TrustRootRef
		if doc.CTLog.URL != "" {
			errs = append(errs, field.URL(doc.CTLog.URL, s.path+".ctlog.url"))
		}
		if !field.IsPublicRekor(doc.CTLog.URL) || s.refs.log != "" || s.refs.ca != "" {
			common.Log.URL = doc.CTLog.URL
		}
	}
	if doc.RFC3161Timestamp != nil {
		s.refs.tsa = doc.RFC3161Timestamp.TrustRootRef
		common.Timestamp.Required = true
	}
	common.Log.Ignore = !logged && (doc.Key != nil || doc.RFC3161Timestamp != nil)
	switch doc.SignatureFormat {
	case "":
	case "legacy":
		common.Formats = []attest.Format{attest.Cosign}
	case "bundle":
		common.Formats = []attest.Format{attest.Bundle}
	default:
		errs = append(errs, field.Fail(s.path+".signatureFormat", "unknown format %q: want legacy or bundle", doc.SignatureFormat))
	}
	for i := range s.any {
		a := &s.any[i]
		a.Log, a.Timestamp, a.Formats = common.Log, common.Timestamp, common.Formats
	}
	return errors.Join(errs...)
}

// bundleRefs: a bundle is verified against one root, as in policy-controller.
func (s *signer) bundleRefs(doc clusterimagepolicy.Authority) error {
	if doc.SignatureFormat != "bundle" || doc.Keyless == nil {
		return nil
	}
	var errs []error
	if s.refs.log != "" && s.refs.log != s.refs.ca {
		errs = append(errs, field.Fail(s.path+".ctlog.trustRootRef",
			"%q: a bundle is verified against one root, want keyless.trustRootRef, %q", s.refs.log, s.refs.ca))
	}
	if s.refs.tsa != "" && s.refs.tsa != s.refs.ca {
		errs = append(errs, field.Fail(s.path+".rfc3161timestamp.trustRootRef",
			"%q: a bundle is verified against one root, want keyless.trustRootRef, %q", s.refs.tsa, s.refs.ca))
	}
	return errors.Join(errs...)
}

// source is the repository of evidence; without one, or without a repository in it, it is
// the image's own.
func (s *signer) source(list []clusterimagepolicy.Source) ([]attest.Source, error) {
	if len(list) == 0 {
		return nil, nil
	}
	path := s.path + ".source"
	if len(list) > 1 {
		return nil, field.Fail(path, "want one source, found %d", len(list))
	}
	path += "[0]"
	one := attest.Source{TagPrefix: list[0].TagPrefix}
	if list[0].OCI != "" {
		var err error
		one.Repository, err = image.ParseRepository(list[0].OCI)
		if err != nil {
			return nil, field.Below(path+".oci", err)
		}
	}
	for i, secret := range list[0].SignaturePullSecrets {
		if secret.Name == "" || strings.Contains(secret.Name, "/") {
			return nil, field.Fail(fmt.Sprintf("%s.signaturePullSecrets[%d].name", path, i), "%q: want the name of a Secret in the object's namespace", secret.Name)
		}
		s.secrets = append(s.secrets, secret.Name)
	}
	if i := strings.IndexFunc(one.TagPrefix, notInTag); i >= 0 || len(one.TagPrefix) > maxTagPrefix {
		return nil, field.Fail(path+".tagPrefix", "%q: want the beginning of a tag, of at most %d letters", one.TagPrefix, maxTagPrefix)
	}
	switch {
	case one != attest.Source{}:
		return []attest.Source{one}, nil
	case len(s.secrets) == 0:
		return nil, field.Fail(path, "is empty: want oci, tagPrefix or signaturePullSecrets")
	}
	return nil, nil
}

// maxTagPrefix leaves space for sha256-<64 letters>.sig in the 128 characters of a tag.
const maxTagPrefix = 52

func notInTag(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", r)
}
