package differential

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	notationgo "github.com/notaryproject/notation-go"
	notationregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"oras.land/oras-go/v2/registry/remote"
)

// The trusted signers of a question.
const (
	byKey        = "the key"
	byStranger   = "another key"
	byLeaf       = "the certificate's key"
	byIdentity   = "the identity"
	byExpression = "an expression for the identity"
	byPart       = "an expression for a part of the identity"
	bySubject    = "another subject"
	byIssuer     = "another issuer"
	byAuthority  = "the authority"
	byOther      = "another authority"
)

// wrongSigners must not be found, whatever lies there.
var wrongSigners = []string{byStranger, byPart, bySubject, byIssuer, byOther}

func rightSigners(r *recipe) []string {
	switch {
	case r.Format.isNotation():
		return []string{byAuthority}
	case r.Certified:
		return []string{byIdentity, byIdentity, byExpression}
	default:
		return []string{byKey}
	}
}

func wrongSignersOf(r *recipe) []string {
	switch {
	case r.Format.isNotation():
		return []string{byOther}
	case r.Certified:
		return []string{byPart, bySubject, byIssuer, byStranger, byLeaf}
	default:
		return []string{byStranger, byIdentity}
	}
}

// flags are the arguments that both sides get in the same words.
func (s *scene) flags() []string {
	q := s.recipe.Ask
	var flags []string
	switch q.By {
	case byKey:
		flags = []string{"--key", s.file("key.pem", s.key("the signer").PublicPEM())}
	case byStranger:
		flags = []string{"--key", s.file("key.pem", s.key("another").PublicPEM())}
	case byLeaf:
		flags = []string{"--key", s.file("key.pem", s.leaf.PublicPEM())}
	case byExpression:
		flags = []string{"--certificate-identity-regexp", `^https://github\.com/example/.*$`, "--certificate-oidc-issuer-regexp", "^https://token[.].*$"}
	case byPart:
		flags = []string{"--certificate-identity-regexp", `github\.com/example/app`, "--certificate-oidc-issuer", issuer}
	case bySubject:
		flags = []string{"--certificate-identity", strings.Replace(subject, "release", "nightly", 1), "--certificate-oidc-issuer", issuer}
	case byIssuer:
		flags = []string{"--certificate-identity", subject, "--certificate-oidc-issuer", "https://accounts.example.com"}
	default:
		flags = []string{"--certificate-identity", subject, "--certificate-oidc-issuer", issuer}
	}
	if q.IgnoreLog {
		flags = append(flags, "--insecure-ignore-tlog")
	}
	if q.IgnoreSCT {
		flags = append(flags, "--insecure-ignore-sct")
	}
	if q.OtherHash {
		flags = append(flags, "--signature-digest-algorithm", s.recipe.hashName())
	}
	return append(append(flags, s.annotationFlags()...), "--trusted-root", s.file("root.json", s.trustedRoot()))
}

func (s *scene) annotationFlags() []string {
	switch s.recipe.Ask.Annotation {
	case "right":
		return []string{"-a", annotationName + "=" + annotationValue}
	case "value":
		return []string{"-a", annotationName + "=test"}
	case "name":
		return []string{"-a", "team=blue"}
	}
	return nil
}

func (s *scene) trustedRoot() []byte {
	text := s.home.TrustedRoot()
	if !s.recipe.Ask.NoTSA {
		return text
	}
	tree, err := parse(text)
	s.check(err)
	tree.children = slices.DeleteFunc(tree.children, func(n *node) bool { return n.name == "timestampAuthorities" })
	return tree.text()
}

// asOurs are the arguments of quaymaster.
func (s *scene) asOurs(image string) []string {
	args := []string{"verify", "-o", "json"}
	if s.recipe.Format.isNotation() {
		args = append(append(args, "--notation-cert", s.file("ca.pem", s.root())), s.annotationFlags()...)
		return append(args, image)
	}
	args = append(args, s.flags()...)
	if kind := s.attestationAsked(); kind != "" {
		args = append(args, "--attestation", kind)
	}
	return append(args, image)
}

func (s *scene) attestationAsked() string {
	switch s.recipe.Ask.Attestation {
	case "own":
		return scanType
	case "other":
		return otherType
	}
	return ""
}

// asCosign are the arguments of cosign, of either version, and its
// environment.
func (s *scene) asCosign(name, image string) (args, env []string) {
	args = []string{"verify"}
	kind := s.attestationAsked()
	if kind != "" {
		args = []string{"verify-attestation", "--type", kind}
	}
	args = append(args, s.flags()...)
	if keyless := s.recipe.Ask.By != byKey && s.recipe.Ask.By != byStranger && s.recipe.Ask.By != byLeaf; name == cosign2 && s.recipe.Format == tags && kind != "" && keyless {
		args, env = args[:len(args)-2], s.environment() // it takes no trusted root here
	}
	args = append(args, "--offline=true", fmt.Sprintf("--new-bundle-format=%t", s.recipe.Format == bundles))
	if s.recipe.Ask.Stamps {
		args = append(args, "--use-signed-timestamps")
	}
	return append(args, image), env
}

// environment is the trusted root in the words of cosign 2's environment.
func (s *scene) environment() []string {
	env := []string{
		"SIGSTORE_ROOT_FILE=" + s.file("fulcio.pem", s.home.CA.ChainPEM()),
		"SIGSTORE_CT_LOG_PUBLIC_KEY_FILE=" + s.file("ctlog.pem", s.home.CTLog.PublicPEM()),
		"SIGSTORE_REKOR_PUBLIC_KEY=" + s.file("rekor.pem", s.home.Rekor.PublicPEM()),
	}
	if s.recipe.Ask.NoTSA {
		return env
	}
	return append(env, "SIGSTORE_TSA_CERTIFICATE_FILE="+s.file("tsa.pem", s.home.TSA.ChainPEM()))
}

// root is the certificate that a notation signature must lead to.
func (s *scene) root() []byte {
	n := notarial{who: usual}
	switch f := s.recipe.Fault; {
	case s.recipe.Ask.By == byOther:
		n.who = other
	case f == "a critical attribute" || f == "an attribute" || len(s.recipe.Oddities) > 0:
		return s.penman().root
	case f == "a signer with an expired certificate":
		n.who = over
	case f == "a signer of today alone":
		n.who = alone
	}
	return s.notary(n.who).RootPEM()
}

// askNotation asks notation-go, as its command line wires it.
func (s *scene) askNotation(image string) answer {
	s.t.Helper()
	kind := truststore.TypeCA
	checker, err := verifier.NewWithOptions(&trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{{
		Name: "all", RegistryScopes: []string{"*"}, TrustStores: []string{string(kind) + ":all"}, TrustedIdentities: []string{"*"},
		SignatureVerification: trustpolicy.SignatureVerification{VerificationLevel: trustpolicy.LevelStrict.Name},
	}}}, trusting(blocksToCertificates(s, s.root())), nil, verifier.VerifierOptions{})
	s.check(err)
	repository, err := remote.NewRepository(s.registry.Host() + "/" + s.repository)
	s.check(err)
	repository.PlainHTTP = true
	options := notationgo.VerifyOptions{ArtifactReference: image, MaxSignatureAttempts: 50}
	if flags := s.annotationFlags(); len(flags) > 0 {
		name, value, _ := strings.Cut(flags[1], "=")
		options.UserMetadata = map[string]string{name: value}
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if _, _, err = notationgo.Verify(ctx, checker, notationregistry.NewRepository(repository), options); err != nil {
		return answer{Said: err.Error()}
	}
	return answer{Accepted: true}
}

// trusting is a trust store in memory.
type trusting []*x509.Certificate

// GetCertificates implements truststore.X509TrustStore.
func (t trusting) GetCertificates(_ context.Context, kind truststore.Type, _ string) ([]*x509.Certificate, error) {
	if kind != truststore.TypeCA {
		return nil, nil
	}
	return t, nil
}

func blocksToCertificates(s *scene, text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for _, block := range blocks(text) {
		c, err := x509.ParseCertificate(block.Bytes)
		s.check(err)
		all = append(all, c)
	}
	return all
}
