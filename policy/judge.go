package policy

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/image"
)

// Judge has the last word on a rule whose author wrote expressions over what was
// proved. The gate finds out everything that the rule's checks ask, once each for
// all rules and containers, and then asks the judge about all images together.
//
// A judge is also asked about one image alone, with what is known by then, to find
// out whether looking further could help: what it says then is never the answer.
type Judge interface {
	// Judge judges the images that the rule's checks were made for. Those that an
	// exception leaves out or that did not change are not given, so there may be
	// none. It opens no connection and ends with ctx.
	Judge(ctx context.Context, given []Given) Judgement
}

// Given is what was found out about one image.
type Given struct {
	Check *Check
	// Pinned is the image by the digest that was looked at; zero where Err says why
	// there is none, and where nothing needed it.
	Pinned image.Pinned
	// Err says why the image could not be looked at; nil where it was.
	Err error
	// Answers has an answer to each of the check's questions. Where Err is set, each
	// of them is that gap.
	Answers Answers
	// Data is the image's own manifests, where Check.WantsData asked for them;
	// DataErr says why they could not be had.
	Data    ImageData
	DataErr error
}

// ImageData is what an image says of itself. It is no proof of anything but its
// own content, since each part was compared with its digest.
type ImageData struct {
	// Descriptor is of the manifest or index that the digest names.
	Descriptor image.Descriptor
	// Index is the image index in JSON, if the digest names one; else nil.
	Index []byte
	// Children are the images: the manifest itself, or those that the index lists
	// for platforms, as far as Check.WantsData asks.
	Children []ImageManifest
}

// ImageManifest is one image of one platform.
type ImageManifest struct {
	Descriptor image.Descriptor
	// Manifest and Config are JSON.
	Manifest, Config []byte
}

// Judgement is what a judge says.
type Judgement struct {
	// Decisions has one for each that was given, in their order.
	Decisions []Decision
	// Object is what holds against the object and none of its images.
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

// OfObject is a Rule that may say something of objects whose images are none, or
// did not change: its judge is asked about them with no image given.
type OfObject interface {
	Rule
	// SpeaksOfObject reports whether it does.
	SpeaksOfObject() bool
}

// Require turns decisions about one image into failures where a rule requires a
// proof, its judge is content without one, and no other rule has one. Who writes
// policies of a namespace has no say in what those of the cluster require.
func Require(decisions []Decision) {
	for i := range decisions {
		d := &decisions[i]
		if d.Result != Pass || d.Check.Judge == nil || !d.Check.Required {
			continue
		}
		if slices.ContainsFunc(decisions, func(other Decision) bool { return other.proves(d.Check.Policy) }) {
			continue
		}
		d.Result = Fail
		d.Reasons = []Reason{{
			Code: Unverified, Path: d.Check.Entry,
			Message: "no policy proved a signature or an attestation of it, and this one requires that",
			Hint:    "let an expression verify the image, or say required: false",
		}}
	}
}

// proves reports whether something was proved that counts for another policy.
func (d Decision) proves(of *Policy) bool {
	return len(d.Facts) > 0 && (d.Check.Policy.Namespace == "" || d.Check.Policy.Namespace == of.Namespace)
}
