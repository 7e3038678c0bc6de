package policy

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/hint"
)

// Judge makes the final decision of a rule with expressions over verified claims. The gate
// collects the answers to all questions of the rule's checks, once each for all rules and
// containers. It then evaluates the judge for all images together.
//
// The gate also evaluates the judge for a single image with partial answers, to find out whether
// further lookups could help. That result is never the final decision.
type Judge interface {
	// Judge judges the images that the rule's checks were made for. Those that an
	// exception leaves out or that did not change are not given, so there may be
	// none. It opens no connection and ends with ctx.
	Judge(ctx context.Context, given []Given) Judgement
}

// Given holds the collected answers for one image.
type Given struct {
	Check *Check
	// Pinned is the image with its resolved digest; zero if Err is the reason for its absence, or
	// if nothing needed it.
	Pinned image.Pinned
	// Err is the reason why the image could not be verified; nil if there was no error.
	Err error
	// Answers has an answer to each of the check's questions. Where Err is set, each
	// of them is that gap.
	Answers Answers
	// Data is the image's own manifests, if Check.WantsData requests them; DataErr is the reason
	// why they could not be fetched.
	Data    ImageData
	DataErr error
}

// ImageData is the content of an image's own manifests and configuration. It proves nothing but
// itself: each part was compared with its digest.
type ImageData struct {
	// Descriptor is of the manifest or index that the digest names.
	Descriptor image.Descriptor
	// Index is the image index in JSON, if the digest names one; else nil.
	Index []byte
	// Children are the images: the manifest itself, or those that the index lists for platforms,
	// as far as Check.WantsData requests them.
	Children []ImageManifest
}

// ImageManifest is one image of one platform.
type ImageManifest struct {
	Descriptor image.Descriptor
	// Manifest and Config are JSON.
	Manifest, Config []byte
}

// Judgement is the result of a judge.
type Judgement struct {
	// Decisions has one for each that was given, in their order.
	Decisions []Decision
	// Object is the ruling against the object as a whole.
	Object Ruling
	// AuditAnnotations are the author's words for the audit log, by key.
	AuditAnnotations map[string]string
}

// Ruling is a result with its reasons. The zero value is a pass.
type Ruling struct {
	Result  Result
	Reasons []Reason
}

// Passes reports whether nothing is held against it.
func (r Ruling) Passes() bool { return r.Result == "" || r.Result == Pass }

// OfObject is a Rule that may also apply to objects without images, or with unchanged ones. Its
// judge is then evaluated without an image.
type OfObject interface {
	Rule
	// AppliesToObject reports whether it does.
	AppliesToObject() bool
}

// Require turns a decision for one image into a failure if a rule requires a verification, its
// judge accepts an image without one, and no other rule provides one. Policies of a namespace do
// not count towards the requirements of cluster policies.
func Require(decisions []Decision) {
	for i := range decisions {
		d := &decisions[i]
		if d.Result != Pass || d.Check.Judge == nil || !d.Check.Required {
			continue
		}
		if slices.ContainsFunc(decisions, func(other Decision) bool {
			return other.Check.Image.Is(d.Check.Image) && other.Proves(d.Check.Policy)
		}) {
			continue
		}
		d.Result = Fail
		d.Reasons = []Reason{{
			Code: Unverified, Path: d.Check.Entry,
			Message: "no policy proved a signature or an attestation of it, and this one requires that",
			Hint:    hint.Of(Unverified),
		}}
	}
}

// Proves reports whether the decision has verified claims that count for another policy.
func (d Decision) Proves(of *Policy) bool {
	return len(d.Facts) > 0 && !d.IsOpen && (d.Check.Policy.Namespace == "" || d.Check.Policy.Namespace == of.Namespace)
}
