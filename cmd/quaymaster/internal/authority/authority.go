// Package authority compiles the flags that name signers into a policy.
package authority

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Flags are the flags that define a policy: the trusted keys and identities.
type Flags struct {
	Keys                        []string
	certificate                 certificateFlags
	ignoreTlog                  bool
	rekorKey, notationCert      string
	attestations                []string
	annotations                 []string
	platforms                   string
	times                       timeFlags
	builds                      buildFlags
	repository, digestAlgorithm string
	accept                      acceptFlags
	// Bundled are public keys of a bundle, used like those of --key.
	Bundled []bundle.Item

	// fetched are the keys that are URLs and standard input, by their names; nil if there may be none.
	fetched map[string][]byte
}

// certificateFlags are the requirements of a signing certificate.
type certificateFlags struct {
	identity, identityRegexp string
	issuer, issuerRegexp     string
	chain                    string
	ignoreSCT                bool
}

func (f *certificateFlags) namesIdentity() bool {
	return f.identity+f.identityRegexp+f.issuer+f.issuerRegexp != ""
}

func (f *certificateFlags) given() bool { return f.namesIdentity() || f.chain != "" }

// defaultDigest is the digest algorithm of signatures by key.
const defaultDigest = "sha256"

// OfKeys returns the flags with keys alone.
func OfKeys(names []string, ignoreTlog bool) *Flags {
	return &Flags{Keys: names, ignoreTlog: ignoreTlog, digestAlgorithm: defaultDigest}
}

// Register registers the flags.
func (f *Flags) Register(cmd *cobra.Command) {
	f.fetched = map[string][]byte{}
	f.accept.register(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Keys, "key", nil, "public key `file`, https URL, KMS URI or - for standard input; one of several must match")
	flags.StringVar(&f.certificate.identity, "certificate-identity", "", "`subject` of the signing certificate")
	flags.StringVar(&f.certificate.identityRegexp, "certificate-identity-regexp", "", "`expression` for the whole subject")
	flags.StringVar(&f.certificate.issuer, "certificate-oidc-issuer", "", "`issuer` of the OIDC token for the subject")
	flags.StringVar(&f.certificate.issuerRegexp, "certificate-oidc-issuer-regexp", "", "`expression` for the whole issuer")
	flags.BoolVar(&f.ignoreTlog, "insecure-ignore-tlog", false, "accept signatures without a transparency log entry")
	flags.BoolVar(&f.certificate.ignoreSCT, "insecure-ignore-sct", false, "accept certificates without a certificate transparency timestamp")
	flags.StringVar(&f.rekorKey, "rekor-key", "", "public key `file` of the transparency log (default: the trusted root's)")
	flags.StringVar(&f.certificate.chain, "certificate-chain", "", "PEM `file` of the certificate chain for signing certificates")
	flags.StringVar(&f.notationCert, "notation-cert", "", "PEM `file` of the certificate authority for notation signatures")
	flags.StringArrayVar(&f.attestations, "attestation", nil, "require an attestation of this `type` (URI or cosign short name) in place of a signature")
	usage.Complete(cmd, "attestation", attestationTypes()...)
	flags.StringArrayVarP(&f.annotations, "annotation", "a", nil, "`key=value` annotation that the signed payload must contain")
	flags.StringVar(&f.platforms, "platforms", "index", "`scope` of an index to verify: index, each or any (any trusts the index for the others)")
	usage.Complete(cmd, "platforms", platforms()...)
	f.times.register(cmd)
	f.builds.register(cmd)
	flags.StringVar(&f.repository, "signature-repository", "", "`repository` of signatures and attestations (default: the image's own)")
	flags.StringVar(&f.digestAlgorithm, "signature-digest-algorithm", defaultDigest, "digest `algorithm` of signatures by key: sha224, sha256, sha384 or sha512")
	usage.Complete(cmd, "signature-digest-algorithm", "sha224", "sha256", "sha384", "sha512")
}

// terms are the flags that restrict or change the requirements of --key and similar flags.
var terms = []string{"insecure-ignore-tlog", "insecure-ignore-sct", "rekor-key", "attestation", "annotation", "platforms",
	"signed-not-before", "signed-not-after", "signature-digest-algorithm", "signature-repository"}

// Check refuses flags without effect, and ambiguous combinations of signers.
func (f *Flags) Check(cmd *cobra.Command) error {
	for _, name := range append([]string{"certificate-identity", "certificate-identity-regexp", "certificate-oidc-issuer",
		"certificate-oidc-issuer-regexp", "certificate-chain", "notation-cert"}, terms...) {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return fmt.Errorf("--%s is empty; a variable may be unset", name)
		}
	}
	if err := errors.Join(f.accept.check(cmd, f.Given()), f.times.check(cmd), f.builds.check(cmd)); err != nil {
		return err
	}
	if !f.Given() {
		for _, name := range terms {
			if cmd.Flags().Changed(name) && (name != "signature-repository" || !f.builds.isGiven()) {
				return fmt.Errorf("--%s has no effect without --key, --certificate-identity, --certificate-chain or --notation-cert; requirements of a policy are set in the policy", name)
			}
		}
		return nil
	}
	kinds := 0
	for _, is := range []bool{len(f.Keys)+len(f.Bundled) > 0, f.certificate.given(), f.notationCert != ""} {
		if is {
			kinds++
		}
	}
	if kinds > 1 {
		return errors.New("--key, --certificate-... and --notation-cert name different kinds of signers: give one kind, or define in a policy which of them must have signed")
	}
	for _, name := range []string{"rekor-key", "signature-digest-algorithm"} { // restrictions
		if f.notationCert != "" && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s has no effect with --notation-cert: notation has no transparency log, and its signatures name their algorithm", name)
		}
	}
	return nil
}

// Given reports whether any flag names an authority.
func (f *Flags) Given() bool {
	return len(f.Keys)+len(f.Bundled) > 0 || f.certificate.given() || f.notationCert != ""
}

// Policy compiles the flags into a policy; nil when they name no authority.
func (f *Flags) Policy() (*policy.Policy, error) {
	if !f.Given() {
		return nil, nil
	}
	types, err := f.predicateTypes()
	if err != nil {
		return nil, err
	}
	authorities, err := f.authorities()
	if err != nil {
		return nil, err
	}
	platforms, err := platformsOf(f.platforms)
	if err != nil {
		return nil, err
	}
	sources, err := f.sources()
	if err != nil {
		return nil, err
	}
	members := make([]policy.Member, len(authorities))
	for i := range authorities {
		members[i].Authority = &authorities[i]
	}
	signers := []policy.Requirement{{Name: "flags", Threshold: 1, Members: members}}
	rule := &flagRule{accept: f.accept, signers: signers, check: policy.Check{
		Entry: "flags", Action: policy.Enforce,
		Pinning: policy.Pinning{MutateDigest: true},
		Claims:  policy.Claims{Required: true},
		Lookup:  policy.Lookup{Platforms: platforms, Sources: sources},
	}}
	if len(f.attestations) == 0 && f.accept.Verifier == "" {
		rule.check.Requirements = signers
	}
	for i, name := range f.attestations {
		rule.check.Attestations = append(rule.check.Attestations, policy.Attestation{
			Path: "--attestation " + name, PredicateType: types[i], Signers: signers,
		})
	}
	if err := rule.check.Validate(); err != nil {
		return nil, err
	}
	hash, err := hashOf(authorities, rule.check, f.repository, f.accept)
	if err != nil {
		return nil, err
	}
	return &policy.Policy{Kind: FlagsKind, Name: "command-line", Source: "command line", Hash: hash, Rules: []policy.Rule{rule}}, nil
}

func platformsOf(name string) (policy.Platforms, error) {
	switch name {
	case "index", "":
		return policy.PlatformIndex, nil
	case "each":
		return policy.PlatformEach, nil
	case "any":
		return policy.PlatformAny, nil
	}
	return "", usage.Choice("--platforms", name, platforms()...)
}

func platforms() []string { return []string{"index", "each", "any"} }

func hashOf(authorities []verify.Authority, check policy.Check, repository string, accept acceptFlags) (string, error) {
	var keys []string
	for _, a := range authorities {
		if a.Key != nil {
			keys = append(keys, a.Key.Ref)
		}
	}
	content, err := json.Marshal([]any{authorities, keys, check.Attestations, check.Platforms, repository, accept})
	if err != nil {
		return "", fmt.Errorf("hash of the flags: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// authorities returns the authorities that the flags name.
func (f *Flags) authorities() ([]verify.Authority, error) {
	common, err := f.common()
	if err != nil {
		return nil, err
	}
	out, err := f.keyHolders(common)
	if err != nil {
		return nil, err
	}
	certified, err := f.certified(common)
	if err != nil {
		return nil, err
	}
	out = append(out, certified...)
	if f.notationCert == "" {
		return out, nil
	}
	notary, err := f.notary(common)
	if err != nil {
		return nil, err
	}
	return append(out, notary), nil
}

// keyHolders are the authorities of the keys of --key and of a bundle.
func (f *Flags) keyHolders(common verify.Authority) (out []verify.Authority, err error) {
	for _, name := range f.Keys {
		a := common
		a.Name = "--key " + Shown(name)
		a.Key, err = f.key(name)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	for _, item := range f.Bundled {
		if _, err := trust.ParsePublicKey(item.Text, f.digestAlgorithm); err != nil {
			return nil, fmt.Errorf("the bundle's %s: %w", item.Name, err)
		}
		a := common
		a.Name, a.Key = item.Name, &verify.Key{Ref: string(item.Text), Hash: f.digestAlgorithm}
		out = append(out, a)
	}
	return out, nil
}

// certified are the authorities with a certificate: of the identity if one is named, else of any
// identity under the chain.
func (f *Flags) certified(common verify.Authority) ([]verify.Authority, error) {
	chain, err := command.OptionalFile("--certificate-chain", f.certificate.chain)
	if err != nil {
		return nil, err
	}
	if len(chain) > 0 {
		if _, err := trust.ParseCertificates(chain, trust.MaxChain); err != nil {
			return nil, fmt.Errorf("--certificate-chain %s: %w", f.certificate.chain, err)
		}
	}
	a := common
	switch {
	case f.certificate.namesIdentity():
		identity, err := f.keyless()
		if err != nil {
			return nil, err
		}
		a.Name = "--certificate-identity"
		a.Keyless = &verify.Keyless{Identities: []verify.Identity{identity}, Roots: chain, CT: verify.CT{Ignore: f.certificate.ignoreSCT}}
	case len(chain) > 0:
		a.Name = "--certificate-chain " + f.certificate.chain
		a.Certificate = &verify.Certificate{Chain: chain, CT: verify.CT{Ignore: f.certificate.ignoreSCT}}
	default:
		return nil, nil
	}
	return []verify.Authority{a}, nil
}

// notary is the authority of --notation-cert; notation uses no transparency log.
func (f *Flags) notary(common verify.Authority) (verify.Authority, error) {
	ca, err := command.OptionalFile("--notation-cert", f.notationCert)
	if err != nil {
		return verify.Authority{}, err
	}
	a := verify.Authority{
		Name: "--notation-cert " + f.notationCert, Annotations: common.Annotations,
		NotBefore: common.NotBefore, NotAfter: common.NotAfter, Notation: &verify.Notation{CA: ca},
	}
	if err := notation.CheckAuthority(a); err != nil {
		return verify.Authority{}, fmt.Errorf("--notation-cert %s: %w", f.notationCert, err)
	}
	return a, nil
}

// common returns the requirements that all authorities of the flags share.
func (f *Flags) common() (verify.Authority, error) {
	a := verify.Authority{Log: verify.Log{Ignore: f.ignoreTlog}}
	var err error
	a.Log.Keys, err = command.OptionalFile("--rekor-key", f.rekorKey)
	if err != nil {
		return a, err
	}
	if err := trust.CheckKeys(a.Log.Keys, ""); err != nil && a.Log.Keys != nil {
		return a, fmt.Errorf("--rekor-key %s: %w", f.rekorKey, err)
	}
	for _, pair := range f.annotations {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return a, fmt.Errorf("--annotation %s: want key=value", pair)
		}
		if a.Annotations == nil {
			a.Annotations = map[string]string{}
		}
		if before, twice := a.Annotations[key]; twice && before != value {
			return a, fmt.Errorf("--annotation %s: it cannot be both %q and %q", key, before, value)
		}
		a.Annotations[key] = value
	}
	a.NotBefore, a.NotAfter, err = f.times.bounds()
	return a, err
}

func (f *Flags) keyless() (verify.Identity, error) {
	subject, err := matcher("--certificate-identity", f.certificate.identity, f.certificate.identityRegexp)
	if err != nil {
		return verify.Identity{}, err
	}
	issuer, err := matcher("--certificate-oidc-issuer", f.certificate.issuer, f.certificate.issuerRegexp)
	return verify.Identity{Subject: subject, Issuer: issuer}, err
}

func matcher(flag, exact, expression string) (verify.Matcher, error) {
	switch {
	case exact != "" && expression != "":
		return verify.Matcher{}, fmt.Errorf("%s and %s-regexp contradict one another: give one", flag, flag)
	case exact != "":
		return verify.Exactly(exact), nil
	case expression != "":
		m, err := verify.Expression(expression)
		if err != nil {
			return m, fmt.Errorf("%s-regexp: %w", flag, err)
		}
		return m, nil
	}
	return verify.Matcher{}, fmt.Errorf("want %s or %s-regexp: a keyless signature is verified by subject and issuer together", flag, flag)
}

// flagRule has the same requirements for every image.
type flagRule struct {
	check   policy.Check
	accept  acceptFlags // without a verifier, it has no effect
	signers []policy.Requirement
}

// Name implements policy.Rule.
func (*flagRule) Name() string { return "flags" }

// Extractors implements policy.Rule.
func (*flagRule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Plan implements policy.Rule.
func (r *flagRule) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	for _, found := range images {
		check := r.check
		check.Image = found
		if r.accept.Verifier != "" {
			check.Attestations = append(slices.Clone(check.Attestations), r.accept.attestation(found.Ref.Repository(), r.signers))
		}
		plan.Checks = append(plan.Checks, check)
	}
	return plan, nil
}
