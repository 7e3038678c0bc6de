package tree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/notation"
)

// Tree is what a registry has about one digest.
type Tree struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Reference  string     `json:"reference"`
	Digest     string     `json:"digest,omitempty"`
	Platforms  []Platform `json:"platforms,omitempty"`
	Claims     []Claim    `json:"claims"`
	// Malformed is evidence that cannot be parsed, and so claims nothing.
	Malformed []string `json:"malformed,omitempty"`
	// Errors are the parts that could not be read or verified.
	Errors []string `json:"errors,omitempty"`

	verified bool // policies were given
}

// Platform is an image of an index.
type Platform struct {
	Platform string `json:"platform,omitempty"`
	Digest   string `json:"digest"`
}

// Claim is one claim about the digest.
type Claim struct {
	// Type is signature, attestation, SBOM or document.
	Type          string `json:"type"`
	Format        string `json:"format,omitempty"`
	PredicateType string `json:"predicateType,omitempty"`
	// Digest is that of the signed document, which Repository has in the manifest Manifest.
	Digest     string `json:"digest,omitempty"`
	Repository string `json:"repository"`
	Manifest   string `json:"manifest,omitempty"`
	// Claimed is the signer that the claim names, and Hint that of a key. They are not verified.
	Claimed *verify.Signer `json:"claimedSigner,omitempty"`
	Hint    string         `json:"claimedKeyHint,omitempty"`
	// Unreadable is the reason why no signer can be read.
	Unreadable string `json:"unreadable,omitempty"`
	// VerifiesFor are the attestors that it verifies for, and Unverified the reasons if there is none;
	// both are empty without policies.
	VerifiesFor []Trust  `json:"verifiesFor,omitempty"`
	Unverified  []string `json:"unverified,omitempty"`
}

// Trust is an attestor of a policy that a claim verifies for.
type Trust struct {
	Policy   string        `json:"policy"`
	Rule     string        `json:"rule"`
	Attestor string        `json:"attestor"`
	Signer   verify.Signer `json:"signer"`
}

// sbomTypes are the artifact types of documents next to an image that are SBOMs.
var sbomTypes = []string{
	"application/spdx+json", "application/vnd.cyclonedx+json", "text/spdx+json", "text/spdx", "application/vnd.cyclonedx+xml", "application/vnd.syft+json",
}

// maxPredicates bounds the types of attestations that are found by their lists: a user with push access
// may write any number.
const maxPredicates = 100

// reader reads the tree of an image.
type reader struct {
	ref     image.Ref
	session gate.Session
	trust   *trusting // nil without policies
}

func (r *reader) tree(ctx context.Context) *Tree {
	tree := &Tree{APIVersion: report.APIVersion, Kind: "ClaimTree", Reference: r.ref.String(), Claims: []Claim{}, verified: r.trust != nil}
	pinned, err := r.pin(ctx)
	if err != nil {
		tree.Errors = append(tree.Errors, err.Error())
		return tree
	}
	tree.Digest = pinned.Digest().String()
	index := content.Reader{Fetcher: r.session, Parallel: 1}.Index(ctx, pinned)
	if index.Err != nil {
		tree.Errors = append(tree.Errors, index.Err.Error())
	}
	for _, child := range index.Children {
		one := Platform{Digest: child.Digest.String()}
		if child.Platform != nil {
			one.Platform = child.Platform.String()
		}
		tree.Platforms = append(tree.Platforms, one)
	}
	found, more := r.find(ctx, pinned)
	if more {
		tree.Errors = append(tree.Errors, fmt.Sprintf("it has more than %d further types of attestations, which are not shown", maxPredicates))
	}
	for _, e := range found.Evidence {
		tree.Claims = append(tree.Claims, r.claim(ctx, tree, pinned, e))
	}
	for _, e := range found.Unsigned {
		tree.Claims = append(tree.Claims, Claim{
			Type: typeOf(e), PredicateType: e.PredicateType, Repository: e.Origin.Repository.String(),
			Manifest: digestText(e.Origin.Manifest), Unreadable: "it is not signed",
		})
	}
	for _, gap := range found.Gaps {
		tree.Errors = append(tree.Errors, gap.Error())
	}
	for _, one := range found.Malformed {
		tree.Malformed = append(tree.Malformed, one.Error())
	}
	if r.trust != nil {
		tree.Errors = append(tree.Errors, r.trust.errors...)
	}
	slices.SortStableFunc(tree.Claims, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.PredicateType, b.PredicateType),
			cmp.Compare(a.Format, b.Format), cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.Manifest, b.Manifest))
	})
	return tree
}

func rank(c Claim) int {
	return slices.Index([]string{typeSignature, typeAttestation, typeSBOM, typeDocument}, c.Type)
}

// pin resolves the reference to its digest, with the media type and size that notation needs.
func (r *reader) pin(ctx context.Context) (image.Pinned, error) {
	pinned, err := r.session.Resolve(ctx, r.ref)
	if err != nil || pinned.Descriptor().IsComplete() {
		return pinned, err
	}
	return r.session.Describe(ctx, pinned)
}

// find finds all evidence. Types of attestations are not known in advance: those that the registry
// lists are requested in another search, which may list more. More reports that there are too many.
func (r *reader) find(ctx context.Context, pinned image.Pinned) (found attest.Found, more bool) {
	want := attest.Want{Signatures: true, Artifacts: sbomTypes, Predicates: []string{
		attest.PredicateSLSAv02, attest.PredicateSLSAv1, attest.PredicateSPDX, attest.PredicateCycloneDX, attest.PredicateLink,
		attest.PredicateVuln, attest.PredicateCustom, attest.PredicateOpenVEX, attest.PredicateVSA,
	}}
	if r.trust != nil {
		want.Predicates, want.Artifacts, want.Sources = r.trust.wanted(want.Predicates, want.Artifacts)
	}
	known := len(want.Predicates)
	for {
		found = attest.Find(ctx, r.session, pinned, want)
		before := len(want.Predicates)
		for _, other := range found.Unasked {
			if other.PredicateType != "" && !slices.Contains(want.Predicates, other.PredicateType) {
				want.Predicates = append(want.Predicates, other.PredicateType)
			}
		}
		if len(want.Predicates) == before {
			return found, false
		}
		if before >= known+maxPredicates {
			return found, true
		}
	}
}

// claim describes one piece of evidence.
func (r *reader) claim(ctx context.Context, tree *Tree, pinned image.Pinned, e attest.Evidence) Claim {
	sum := sha256.Sum256(e.Payload)
	c := Claim{
		Type: typeOf(e), Format: string(e.Format), PredicateType: e.PredicateType, Digest: "sha256:" + hex.EncodeToString(sum[:]),
		Repository: e.Origin.Repository.String(), Manifest: digestText(e.Origin.Manifest),
	}
	signer, hint, err := claimed(e)
	switch {
	case err != nil:
		c.Unreadable = err.Error()
	case signer.Subject != "":
		c.Claimed = &verify.Signer{Subject: signer.Subject, Issuer: signer.Issuer}
	default:
		c.Hint = hint
	}
	if r.trust != nil {
		var failed []string
		c.VerifiesFor, c.Unverified, failed = r.trust.of(ctx, pinned, e)
		tree.Errors = append(tree.Errors, failed...)
	}
	return c
}

// claimed returns the signer that evidence names, which nothing has verified.
func claimed(e attest.Evidence) (verify.Signer, string, error) {
	switch e.Format {
	case attest.Bundle:
		return bundle.Claimed(e.Payload)
	case attest.Notation:
		signer, err := notation.Claimed(e)
		return signer, "", err
	}
	signer, err := cosign.Claimed(e)
	return signer, "", err
}

// The types of claims.
const typeSignature, typeAttestation, typeSBOM, typeDocument = "signature", "attestation", "SBOM", "document"

func typeOf(e attest.Evidence) string {
	switch {
	case e.PredicateType == attest.PredicateSPDX, e.PredicateType == attest.PredicateCycloneDX, slices.Contains(sbomTypes, e.PredicateType):
		return typeSBOM
	case !e.Target.Digest.IsZero():
		return typeDocument
	case e.Role == attest.Attestation:
		return typeAttestation
	}
	return typeSignature
}

func digestText(d image.Digest) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}
