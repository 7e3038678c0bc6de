package policy

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/verify"
)

// The codes of overrides.
const (
	OverrideAllowed Code = "override-allowed" // an ImageOverride allows what policies would not
	OverrideDenied  Code = "override-denied"  // an ImageOverride denies it, whatever policies say
)

// OverrideEffect is the effect of an override.
type OverrideEffect string

// The effects. Deny outweighs Allow, and every policy.
const (
	OverrideAllow OverrideEffect = "Allow"
	OverrideDeny  OverrideEffect = "Deny"
)

// Override is the operators' word on a bad day: images that run, or do not,
// whatever policies say of them, until it ends. It is immutable once it is in a
// Set.
type Override struct {
	// Name is the document's; Source is where it was read, and Hash is the SHA-256 of its content
	// in hexadecimal.
	Name, Source, Hash string
	Effect             OverrideEffect
	// Reason is the author's words.
	Reason string
	// Expires is when it ends. Zero is for a broken one alone: it holds until it is
	// mended or removed.
	Expires time.Time
	// Namespaces are patterns (* and ?) for namespaces; none means all of them, and
	// cluster-scoped objects.
	Namespaces []string
	// The override matches an image if any of the entries below matches.
	Digests []image.Digest
	// Repositories are names as image.Repository spells them, or patterns (* and ?)
	// for such names.
	Repositories []string
	Signers      []OverrideSigner
	// Broken is the reason why only a part of the document could be read. The readable part
	// denies; a broken override never allows.
	Broken error
}

// OverrideSigner is a signer in the words of an override: a key, or an identity.
type OverrideSigner struct {
	// KeyFingerprint is the SHA-256 of the PKIX public key in hexadecimal; empty for an identity.
	KeyFingerprint string
	// Identity is the required certificate identity.
	Identity verify.Identity
	// Authority verifies the signer. An Allow needs it; a Deny relies on the policies'
	// verifications, and has none.
	Authority *verify.Authority
}

// Is reports whether a verified claim has this signer: a key whatever certificate it has, since a leaked key
// must not pass by it, or any name of a certificate, since the policy decides which of them is its subject.
func (s *OverrideSigner) Is(signer verify.Signer) bool {
	if s.KeyFingerprint != "" {
		return s.KeyFingerprint == signer.KeyFingerprint || s.KeyFingerprint == signer.Key
	}
	return signer.KeyFingerprint == "" && s.Identity.Match(signer.Issuer, append([]string{signer.Subject}, signer.Names...))
}

// MayBe reports whether a claim that an authority verifies may have this signer. The keys of short-lived
// certificates are used once, and no override names them.
func (s *OverrideSigner) MayBe(authority *verify.Authority) bool {
	return s.KeyFingerprint != "" && authority.Keyless == nil || s.KeyFingerprint == "" && authority.Key == nil
}

// String returns a short name.
func (s *OverrideSigner) String() string {
	if s.KeyFingerprint != "" {
		return verify.Signer{KeyFingerprint: s.KeyFingerprint}.String()
	}
	return s.Identity.String()
}

// ID returns kind/name, unique in a Set.
func (o *Override) ID() string { return "ImageOverride/" + o.Name }

// Validate refuses an override that is incomplete.
func (o *Override) Validate() error {
	var errs []error
	wrong := func(is bool, what string) {
		if is {
			errs = append(errs, fmt.Errorf("override %s (%s): %s", o.Name, o.Source, what))
		}
	}
	wrong(o.Name == "", "it has no name")
	wrong(o.Effect != OverrideAllow && o.Effect != OverrideDeny, "the effect is neither Allow nor Deny")
	wrong(o.Effect == OverrideAllow && o.Broken != nil, "a broken one allows nothing")
	wrong(o.Reason == "" && o.Broken == nil, "it has no reason")
	wrong(o.Expires.IsZero() && o.Broken == nil, "it has no end")
	wrong(len(o.Digests)+len(o.Repositories)+len(o.Signers) == 0, "it names no image")
	for i := range o.Signers {
		wrong(o.Effect == OverrideAllow && o.Signers[i].Authority == nil, "the signer cannot be verified: "+o.Signers[i].String())
	}
	return errors.Join(errs...)
}

// Overruling is an override that matches an image.
type Overruling struct {
	Override *Override
	// By is the matching property of the image: a digest, a repository or a signer, in words.
	By string
	// ByName: the repository matched, and not a digest or a signer.
	ByName bool
	// Doubtful: it is unknown whether the override matches the object, because the request does
	// not name the image's namespace.
	Doubtful bool
}

// Reason names the deciding override, the matched property, the justification and the expiry.
func (o *Overruling) Reason() Reason {
	code, verb, next := OverrideAllowed, "allows", ""
	if o.Override.Effect == OverrideDeny {
		code, verb, next = OverrideDenied, "denies", hint.RemoveOverride(o.Override.Name)
	}
	text := fmt.Sprintf("the override %s %s %s until %s: %s", o.Override.Name, verb, o.By, o.Override.end(), cmp.Or(o.Override.Reason, "no reason can be read"))
	return Reason{Code: code, Path: o.Override.ID(), Message: text, Hint: next}
}

func (o *Override) end() string {
	if o.Expires.IsZero() {
		return "it is mended (the document is broken)"
	}
	return o.Expires.UTC().Format(time.RFC3339)
}
