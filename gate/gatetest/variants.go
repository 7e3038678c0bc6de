package gatetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Signers and contents of the variants, for policies that match them.
const (
	ReleaseIssuer  = "https://token.example"
	ReleaseSubject = "https://git.example/org/app/release.yaml@refs/heads/main"
	// ScanType is the predicate type of the variants' attestations, whose predicate should
	// have the verdict "clean"; OtherType is that of others.
	ScanType  = "https://example.com/scan/v1"
	OtherType = "https://example.com/other/v1"
)

// Variant is an image with one combination of evidence.
type Variant struct {
	// Reason describes the evidence, or the fault; unique.
	Reason string
	// Name is the reference as a user writes it.
	Name string
}

// Variants are the images of an environment with all kinds of evidence from real signers, untrusted
// signers and a failing registry. All are below shop.
type Variants struct {
	*Env
	Second, Stranger *verifytest.Signer // keys, in addition to Env.Signer
	Notary, Other    *verifytest.Notary
	Images           []Variant

	release map[string]*verifytest.Signer // of certificates
	foreign *verifytest.Sigstore          // not trusted
	faults  []registrytest.Fault
}

// NewVariants builds and signs the variants in an environment, and makes its registry fail where
// a variant requires it; its client does not wait for a recovery.
func NewVariants(h *Env) (*Variants, error) {
	v := &Variants{Env: h}
	impatient, err := registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond))
	if err == nil {
		h.Client.Close()
		h.Client = impatient // failures here are permanent
		err = v.signers()
	}
	if err != nil {
		return nil, fmt.Errorf("variants: %w", err)
	}
	for i, one := range variants() {
		image := h.Build(fmt.Sprintf("shop/v%d", i), "1", one.reason)
		for _, do := range one.steps {
			if err := do(v, &image); err != nil {
				return nil, fmt.Errorf("variant %s: %w", one.reason, err)
			}
		}
		v.Images = append(v.Images, Variant{Reason: one.reason, Name: image.Name})
	}
	h.Registry.SetFaults(v.faults...)
	return v, nil
}

// Fill puts the registry and the signers into a text: HOST, and in quotes KEY, SECOND,
// NOTARY, ISSUER, SUBJECT (an expression) and SCAN.
func (v *Variants) Fill(text string) string {
	quoted := func(text string) string {
		out, err := json.Marshal(text)
		if err != nil {
			panic(err) // the input is constant
		}
		return string(out)
	}
	return strings.NewReplacer(
		"HOST", v.Registry.Host(), "KEY", quoted(string(v.Signer.PublicPEM())), "SECOND", quoted(string(v.Second.PublicPEM())),
		"NOTARY", quoted(string(v.Notary.RootPEM())), "ISSUER", quoted(ReleaseIssuer), "SCAN", quoted(ScanType),
		"SUBJECT", quoted(strings.ReplaceAll(ReleaseSubject, ".", `\.`)),
	).Replace(text)
}

func (v *Variants) signers() (err error) {
	v.Second, err = verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		return err
	}
	v.Stranger, err = verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		return err
	}
	v.Notary, err = verifytest.NewNotary(verifytest.NotaryOptions{Name: "release"})
	if err != nil {
		return err
	}
	v.Other, err = verifytest.NewNotary(verifytest.NotaryOptions{Name: "other"})
	if err != nil {
		return err
	}
	v.foreign, err = verifytest.New(verifytest.Options{Name: "foreign"})
	if err != nil {
		return err
	}
	v.release = map[string]*verifytest.Signer{}
	for name, id := range map[string]verifytest.Identity{
		"right":        {URI: ReleaseSubject, Issuer: ReleaseIssuer, NotBefore: time.Now().Add(-time.Hour)},
		"subject":      {URI: "https://git.example/org/other/release.yaml@refs/heads/main", Issuer: ReleaseIssuer},
		"longer":       {URI: "https://evil.example/" + ReleaseSubject, Issuer: ReleaseIssuer},
		"issuer":       {URI: ReleaseSubject, Issuer: "https://other.example"},
		"authority":    {URI: ReleaseSubject, Issuer: ReleaseIssuer, CA: v.foreign.CA},
		"no timestamp": {URI: ReleaseSubject, Issuer: ReleaseIssuer, NoSCT: true},
	} {
		v.release[name], err = v.Sigstore.Keyless(id)
		if err != nil {
			return err
		}
	}
	return nil
}

// step changes an image before it is evaluated.
type step func(v *Variants, image *Image) error

// by selects the signer and the format: at most one of the names of Variants.signers.
type by struct {
	key         string // key (if empty), second, stranger or a certificate
	claim       verifytest.Claim
	annotations map[string]any
	of          string // content of another image, if not empty
}

func (b by) signs(v *Variants) verifytest.Claim {
	claim := b.claim
	switch b.key {
	case "":
		claim.Signer = v.Signer
	case "second":
		claim.Signer = v.Second
	case "stranger":
		claim.Signer = v.Stranger
	default:
		claim.Signer = v.release[b.key]
	}
	return claim
}

// digest is the digest to sign.
func (b by) digest(v *Variants, image *Image) string {
	if b.of == "" {
		return image.Manifest.Digest
	}
	return v.Registry.PutImage(image.Repository, "other", b.of).Digest
}

// layer signs below cosign's tag; bundle in a referrer.
func (b by) layer(v *Variants, image *Image) error {
	claim := b.signs(v)
	claim.Image = &verifytest.SimpleSigning{Reference: v.Registry.Host() + "/" + image.Repository, Digest: b.digest(v, image), Annotations: b.annotations}
	layer, err := v.Sigstore.Layer(claim)
	if err != nil {
		return err
	}
	return v.PutLegacy(*image, ".sig", layer)
}

func (b by) bundle(v *Variants, image *Image) error {
	claim := b.signs(v)
	claim.Statement = verifytest.CosignSignature(b.digest(v, image), b.annotations)
	content, err := v.Sigstore.Bundle(claim)
	if err != nil {
		return err
	}
	return v.PutBundle(*image, content, verifytest.CosignSignPredicateType)
}

// states attests below cosign's tag; stating does so in a referrer.
func (b by) states(predicateType string, predicate any) step {
	return func(v *Variants, image *Image) error {
		claim := b.signs(v)
		claim.Statement = verifytest.Attestation(b.digest(v, image), predicateType, predicate)
		claim.Statement.Version = "v0.1"
		layer, err := v.Sigstore.Layer(claim)
		if err != nil {
			return err
		}
		return v.PutLegacy(*image, ".att", layer)
	}
}

func (b by) stating(predicateType string, predicate any) step {
	return func(v *Variants, image *Image) error {
		return v.AttestBundle(*image, b.signs(v), predicateType, predicate)
	}
}

func byDigest(_ *Variants, image *Image) error {
	image.Name = image.ByDigest()
	return nil
}

// missing names a tag or a digest that the registry does not have.
func missing(reference string) step {
	return func(_ *Variants, image *Image) error {
		image.Name = strings.TrimSuffix(image.Name, ":1") + reference
		return nil
	}
}

// failing makes the registry fail requests of a kind in the image's repository.
func failing(kind registrytest.Kind, reference string, action registrytest.Action) step {
	return func(v *Variants, image *Image) error {
		reference := strings.NewReplacer("DIGEST", image.Manifest.Digest, "HEX", strings.TrimPrefix(image.Manifest.Digest, "sha256:")).Replace(reference)
		v.faults = append(v.faults, registrytest.Fault{Kind: kind, Repository: image.Repository, Reference: reference, Do: action})
		return nil
	}
}

func broken() registrytest.Action { return registrytest.Status(http.StatusInternalServerError) }

// junk is evidence that cannot be parsed. Any user with push access can create it.
func junk(v *Variants, image *Image) error {
	layer := &verifytest.Layer{
		MediaType: verifytest.SimpleSigningMediaType, Payload: []byte(`{"critical":`),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": "AAAA"},
	}
	if err := v.PutLegacy(*image, ".sig", layer); err != nil {
		return err
	}
	return v.PutBundle(*image, []byte(`{"mediaType":`), verifytest.CosignSignPredicateType)
}

func notarized(by func(v *Variants) *verifytest.Notary, how verifytest.Notation) step {
	return func(v *Variants, image *Image) error { return v.SignNotation(*image, by(v), how) }
}

func ours(v *Variants) *verifytest.Notary   { return v.Notary }
func theirs(v *Variants) *verifytest.Notary { return v.Other }

// index replaces the image by an index of two images; sign selects the signed one, and
// name the named one.
func index(sign, name func(index, child Image) Image) step {
	return func(v *Variants, image *Image) error {
		child, sibling := *image, v.Build(image.Repository, "sibling", "sibling of "+image.Name)
		list := v.BuildIndex(image.Repository, "1", child, sibling)
		signed := sign(list, child)
		*image = name(list, child)
		return by{claim: unlogged()}.layer(v, &signed)
	}
}

func theIndex(index, _ Image) Image { return index }
func theChild(_, child Image) Image { child.Name = child.ByDigest(); return child }

// theListed is the child by the index's tag and its own digest.
func theListed(index, child Image) Image {
	child.Name = index.Name + "@" + child.Manifest.Digest
	return child
}

func unlogged() verifytest.Claim { return verifytest.Claim{NoLog: true} }

func recorded(records ...verifytest.Record) verifytest.Claim {
	return verifytest.Claim{Records: records}
}

// foreignLog records in an untrusted log.
func foreignLog(v *Variants, image *Image) error {
	return by{claim: recorded(verifytest.Record{Log: v.foreign.Rekor})}.layer(v, image)
}

// late is recorded after the short life of the certificate.
func late() verifytest.Claim { return recorded(verifytest.Record{Time: time.Now()}) }

// stamped has a timestamp, and no log entry.
func stamped() verifytest.Claim {
	return verifytest.Claim{NoLog: true, Stamps: []verifytest.Stamp{{}}}
}

func clean() any { return map[string]any{"verdict": "clean"} }
func dirty() any { return map[string]any{"verdict": "dirty"} }

// variants are the images, with the steps of each.
func variants() []struct {
	reason string
	steps  []step
} {
	never := unlogged()
	prod := map[string]any{"env": "prod", "team": "a"}
	return []struct {
		reason string
		steps  []step
	}{
		{"nothing", nil},
		{"nothing, by digest", []step{byDigest}},
		{"no such tag", []step{missing(":gone")}},
		{"no such digest", []step{missing("@sha256:" + strings.Repeat("0", 64))}},
		{"the tag: error 500", []step{by{}.layer, failing(registrytest.Manifest, "1", broken())}},
		{"the tag: refused", []step{by{}.layer, failing(registrytest.Manifest, "1", registrytest.Status(http.StatusForbidden))}},
		{"the tag: a page that asks to sign in", []step{by{}.layer, failing(registrytest.Manifest, "1", registrytest.HTML())}},
		{"the tag: the digest of no image", []step{by{}.layer, failing(registrytest.Manifest, "1", registrytest.LieDigest("sha256:"+strings.Repeat("0", 64)))}},
		{"cosign's tag of signatures: error 500", []step{by{}.layer, failing(registrytest.Manifest, "sha256-HEX.sig", broken())}},
		{"all evidence, by digest: error 500", []step{by{}.layer, failing(registrytest.Manifest, "sha256-HEX.sig", broken()), failing(registrytest.Manifest, "sha256-HEX.att", broken()), failing(registrytest.Referrers, "", broken()), byDigest}},
		{"all blobs: other bytes than the manifests list", []step{by{}.layer, by{}.states(ScanType, clean()), failing(registrytest.Blob, "", registrytest.Body([]byte("x")))}},
		{"signed by the key and logged; referrers: error 500", []step{by{}.layer, failing(registrytest.Referrers, "", broken())}},

		{"signed by the key", []step{by{claim: never}.layer}},
		{"signed by the key, by digest", []step{by{claim: never}.layer, byDigest}},
		{"signed by the key, in a bundle", []step{by{claim: never}.bundle}},
		{"signed by the key and logged", []step{by{}.layer}},
		{"signed by the key and logged, in a bundle", []step{by{}.bundle}},
		{"signed by the key and logged, in a bundle, by digest", []step{by{}.bundle, byDigest}},
		{"signed by the key, and a log's broken promise", []step{by{claim: recorded(verifytest.Record{Fault: verifytest.WrongPromise})}.layer}},
		{"signed by the key, and an invalid inclusion proof in a bundle", []step{by{claim: recorded(verifytest.Record{Fault: verifytest.WrongProof})}.bundle}},
		{"signed by the key, and logged by an untrusted log", []step{foreignLog}},
		{"signed by the key, and stamped", []step{by{claim: stamped()}.layer}},
		{"signed by the key, twice", []step{by{}.layer, by{claim: never}.bundle}},

		{"signed with another key", []step{by{key: "stranger"}.layer}},
		{"signed with another key, in a bundle, by digest", []step{by{key: "stranger"}.bundle, byDigest}},
		{"signed by the second key", []step{by{key: "second"}.layer}},
		{"signed by both keys", []step{by{}.layer, by{key: "second"}.layer}},
		{"signed by both keys, in both formats, by digest", []step{by{}.layer, by{key: "second"}.bundle, byDigest}},
		{"signed by the key, among other keys and junk", []step{by{key: "stranger"}.layer, junk, by{}.layer, by{key: "stranger"}.bundle}},
		{"signed by the key in a bundle, among other keys and junk", []step{by{key: "stranger"}.layer, junk, by{}.bundle}},
		{"junk", []step{junk}},
		{"signature of other bytes", []step{by{claim: verifytest.Claim{WrongSignature: true}}.layer}},
		{"signature of another image", []step{by{of: "another"}.layer}},
		{"signature of another image, in a bundle", []step{by{of: "another"}.bundle}},

		{"attested by the key", []step{by{}.states(ScanType, clean())}},
		{"attested by the key, in a bundle", []step{by{}.stating(ScanType, clean())}},
		{"attested by the key, of another type", []step{by{}.states(OtherType, clean())}},
		{"attested by the key, and the verdict is another", []step{by{}.states(ScanType, dirty())}},
		{"attested by the key, without a verdict", []step{by{}.states(ScanType, map[string]any{})}},
		{"attested by the key, once dirty and once clean, by digest", []step{by{}.states(ScanType, dirty()), by{}.states(ScanType, clean()), byDigest}},
		{"attested with another key", []step{by{key: "stranger"}.states(ScanType, clean())}},
		{"attested clean with another key and dirty by the key, by digest", []step{by{key: "stranger"}.states(ScanType, clean()), by{}.states(ScanType, dirty()), byDigest}},
		{"attestation of another image", []step{by{of: "another"}.states(ScanType, clean())}},
		{"signed and attested by the key", []step{by{}.layer, by{}.states(ScanType, clean())}},

		{"signed by the identity", []step{by{key: "right"}.layer}},
		{"signed by the identity, in a bundle, by digest", []step{by{key: "right"}.bundle, byDigest}},
		{"signed by another subject", []step{by{key: "subject"}.layer}},
		{"signed by a subject that ends like the right one, by digest", []step{by{key: "longer"}.layer, byDigest}},
		{"signed by the subject of another issuer", []step{by{key: "issuer"}.layer}},
		{"signed by the identity, of another authority", []step{by{key: "authority"}.layer}},
		{"signed by the identity, without a certificate timestamp", []step{by{key: "no timestamp"}.layer}},
		{"signed by the identity, with neither log nor timestamp", []step{by{key: "right", claim: never}.layer}},
		{"signed by the identity, and stamped", []step{by{key: "right", claim: stamped()}.layer}},
		{"signed by the identity, after its certificate expired", []step{by{key: "right", claim: late()}.layer}},

		{"signed by the key for prod", []step{by{annotations: prod}.layer}},
		{"signed by the key for prod, in a bundle", []step{by{annotations: prod}.bundle}},
		{"signed by the key for test, by digest", []step{by{annotations: map[string]any{"env": "test", "team": "a"}}.layer, byDigest}},
		{"signed by the key for prod, and for team a", []step{by{annotations: map[string]any{"env": "prod"}}.layer, by{annotations: map[string]any{"team": "a"}}.layer}},

		{"notarised", []step{notarized(ours, verifytest.Notation{})}},
		{"notarised, in COSE, by digest", []step{notarized(ours, verifytest.Notation{MediaType: verifytest.NotationCOSE}), byDigest}},
		{"notarised by another, by digest", []step{notarized(theirs, verifytest.Notation{}), byDigest}},
		{"notarised by another, and by the right one", []step{notarized(theirs, verifytest.Notation{}), notarized(ours, verifytest.Notation{})}},
		{"notarised with other bytes", []step{notarized(ours, verifytest.Notation{WrongSignature: true})}},

		{"an index, signed", []step{index(theIndex, theIndex)}},
		{"an index, of which an image is signed", []step{index(theChild, theIndex)}},
		{"an image by its digest, of an index that is signed", []step{index(theIndex, theListed)}},
		{"an image by its digest alone, of an index that is signed", []step{index(theIndex, theChild)}},
	}
}
