package attestor

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

func (b *builder) cosign(doc *v1alpha1.Cosign, path string) ([]verify.Authority, error) {
	if err := one(path, "key, keyless and certificate", doc.Key != nil, doc.Keyless != nil, doc.Certificate != nil); err != nil {
		return nil, err
	}
	var errs [3]error
	common, err := b.terms(doc, path)
	errs[0] = err
	var list []verify.Authority
	switch {
	case doc.Key != nil:
		list, errs[1] = b.key(doc.Key, common, path+".key")
	case doc.Keyless != nil:
		a := common
		a.Keyless, errs[1] = b.keyless(doc.Keyless, doc.CTLog, path)
		list = []verify.Authority{a}
	default:
		a := common
		a.Certificate, errs[1] = b.certificate(doc.Certificate, doc.CTLog, path)
		list = []verify.Authority{a}
	}
	errs[2] = b.roots(doc, list, path)
	return list, errors.Join(errs[:]...)
}

// key compiles a key; each PEM block of data is a key of its own, of which any will
// do.
func (b *builder) key(doc *v1alpha1.Key, common verify.Authority, path string) ([]verify.Authority, error) {
	if !slices.Contains([]string{"", "sha224", "sha256", "sha384", "sha512"}, doc.HashAlgorithm) {
		return nil, field.Fail(path+".hashAlgorithm", "unknown algorithm %q: want sha224, sha256, sha384 or sha512", doc.HashAlgorithm)
	}
	if err := one(path, "data, kms and expression", doc.Data != "", doc.KMS != "", doc.Expression != ""); err != nil {
		return nil, err
	}
	text, place := doc.Data, path+".data"
	if doc.Expression != "" {
		var open bool
		var err error
		place = path + ".expression"
		text, open, err = b.expression(doc.Expression, place)
		if err != nil || open {
			return nil, err
		}
	}
	var references []string
	var err error
	switch {
	case doc.KMS != "":
		references, err = []string{doc.KMS}, b.service(doc.KMS, path+".kms")
	case doc.Expression != "" && trust.IsKMS(text): // as Kyverno has it
		references, err = []string{text}, b.service(text, place)
	default:
		references, err = publicKeys(text, place, doc.HashAlgorithm)
	}
	var list []verify.Authority
	for i, reference := range references {
		a := common
		a.Key = &verify.Key{Ref: reference, Hash: doc.HashAlgorithm}
		if len(references) > 1 {
			a.Name = fmt.Sprintf("%s.key[%d]", b.name, i)
		}
		list = append(list, a)
	}
	return list, err
}

// service checks the reference of a key that is looked up.
func (b *builder) service(reference, path string) error {
	if err := trust.CheckReference(reference); err != nil {
		return field.Below(path, err)
	}
	secret, is := strings.CutPrefix(reference, "k8s://")
	namespace, _, _ := strings.Cut(secret, "/")
	if is && b.options.Namespace != "" && namespace != b.options.Namespace {
		return field.Fail(path, "a policy of namespace %s cannot use a Secret of namespace %s", b.options.Namespace, namespace)
	}
	return nil
}

// certificate compiles a certificate that must have signed, or a chain that the
// signer's must lead to.
func (b *builder) certificate(doc *v1alpha1.Certificate, log *v1alpha1.CTLog, path string) (*verify.Certificate, error) {
	place := path + ".certificate"
	if doc.Certificate == nil && doc.CertificateChain == nil {
		return nil, field.Fail(place, "want cert, certChain or both")
	}
	out := &verify.Certificate{}
	var errs [3]error
	if doc.Certificate != nil {
		out.Leaf, errs[0] = b.leaf(doc.Certificate, place+".cert")
	}
	if doc.CertificateChain != nil {
		out.Chain, errs[1] = b.certificates(doc.CertificateChain, place+".certChain")
		if errs[1] == nil && len(out.Chain) > 0 {
			errs[1] = field.Below(place+".certChain", trust.CheckChain(out.Chain))
		}
	}
	out.CT, errs[2] = certificateLog(log, path+".ctlog")
	return out, errors.Join(errs[:]...)
}

// leaf reads one certificate, which Kyverno also accepts in base64.
func (b *builder) leaf(doc *v1alpha1.StringOrExpression, path string) ([]byte, error) {
	text, err := b.either(doc, path)
	if err != nil || text.open {
		return nil, err
	}
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text.text)); err == nil {
		text.text = string(decoded)
	}
	leaf, err := certificatesPEM(text.text, text.path)
	if err == nil && strings.Count(string(leaf), "-----BEGIN ") > 1 {
		return nil, field.Fail(text.path, "want one certificate: the others belong in certChain")
	}
	if err == nil {
		err = field.Below(text.path, trust.CheckCertificate(leaf))
	}
	return leaf, err
}

// log reads the settings of the transparency log and of timestamp authorities. Without ctlog an
// entry is required. The settings of an ignored log are validated, and have no effect.
func (b *builder) log(a *verify.Authority, cosign *v1alpha1.Cosign, path string) error {
	doc := cosign.CTLog
	if doc == nil {
		return nil
	}
	var errs [3]error
	if doc.URL != "" {
		errs[0] = address(doc.URL, path+".url")
	}
	var keys []byte
	if doc.RekorPubKey != "" {
		keys, errs[1] = joinedKeys(doc.RekorPubKey, path+".rekorPubKey")
	}
	a.Log.Ignore = doc.InsecureIgnoreTlog
	if !a.Log.Ignore {
		a.Log.Keys = keys
		if ownRoot := cosign.TrustedRoot != nil || cosign.TUF != nil; ownRoot || !field.IsPublicRekor(doc.URL) {
			a.Log.URL = doc.URL
		}
	}
	if doc.TSACertChain != "" {
		a.Timestamp.Required = true
		a.Timestamp.Chain, errs[2] = certificatesPEM(doc.TSACertChain, path+".tsaCertChain")
		if errs[2] == nil {
			errs[2] = field.Below(path+".tsaCertChain", trust.CheckTimestampChain(a.Timestamp.Chain))
		}
	}
	return errors.Join(errs[:]...)
}

// certificateLog reads the settings of certificate transparency logs.
func certificateLog(doc *v1alpha1.CTLog, path string) (verify.CT, error) {
	if doc == nil {
		return verify.CT{}, nil
	}
	out := verify.CT{Ignore: doc.InsecureIgnoreSCT}
	if doc.CTLogPubKey == "" {
		return out, nil
	}
	keys, err := joinedKeys(doc.CTLogPubKey, path+".ctLogPubKey")
	if !out.Ignore {
		out.Keys = keys
	}
	return out, err
}

// address requires the address of a service.
func address(text, path string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return field.Fail(path, "%q: want https://host[/path]", field.Shorten(text))
	}
	return nil
}

// source is where evidence is kept, and the names of the pull secrets for it.
func source(cosign *v1alpha1.Cosign, path string) ([]attest.Source, []string, error) {
	if cosign == nil || cosign.Source == nil {
		return nil, nil, nil
	}
	doc := cosign.Source
	var out attest.Source
	var errs []error
	var err error
	if doc.Repository != "" {
		out.Repository, err = image.ParseRepository(doc.Repository)
		errs = append(errs, field.Below(path+".repository", err))
	}
	out.TagPrefix = doc.TagPrefix
	if !isTagPrefix(doc.TagPrefix) {
		errs = append(errs, field.Fail(path+".tagPrefix", "%q: want the beginning of a tag, of at most %d letters", field.Shorten(doc.TagPrefix), maxTagPrefix))
	}
	if len(doc.SignaturePullSecrets) > maxEntries {
		errs = append(errs, field.Fail(path+".PullSecrets", "%d are more than %d", len(doc.SignaturePullSecrets), maxEntries))
	}
	var secrets []string
	for i, secret := range doc.SignaturePullSecrets {
		if secret.Name == "" || strings.Contains(secret.Name, "/") {
			errs = append(errs, field.Fail(fmt.Sprintf("%s.PullSecrets[%d].name", path, i), "%q: want the name of a Secret in the object's namespace", secret.Name))
		}
		secrets = append(secrets, secret.Name)
	}
	if cmp.Or(doc.Repository, doc.TagPrefix) == "" {
		return nil, secrets, errors.Join(errs...)
	}
	return []attest.Source{out}, secrets, errors.Join(errs...)
}

func isTagPrefix(text string) bool {
	const word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	return len(text) <= maxTagPrefix && strings.Trim(text, word+".-") == "" && !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "-")
}
