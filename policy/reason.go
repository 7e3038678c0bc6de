package policy

import (
	"cmp"
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/hint"
)

// Code is the machine-readable result of a check. Codes are a contract. Every verify.Code is one,
// too. Their next steps are in package hint, their meanings in docs/reason-codes.md.
type Code string

// The codes of decisions.
const (
	Verified        Code = "verified"             // every requirement passed
	Unsigned        Code = "unsigned"             // no signature of a required kind
	NoAttestation   Code = "no-attestation"       // no attestation of the type
	ConditionFailed Code = "condition-failed"     // the statement does not meet its condition
	Denied          Code = "denied-by-condition"  // the policy's own deny condition holds
	MissingDigest   Code = "missing-digest"       // the image is named by tag alone
	Violated        Code = "violated"             // the object violates a rule
	Unverified      Code = "unverified"           // the policy requires a verification, and no policy has one
	TooYoung        Code = "too-young"            // first signed more recently than a requirement's minimum age
	NoVerifiedTime  Code = "no-verified-time"     // an age is required, and no verified time gives it
	WrongBuilder    Code = "wrong-builder"        // provenance of a builder that is not accepted, or by another signer
	LowBuildLevel   Code = "low-build-level"      // provenance of a builder of a lower SLSA build level
	WrongSource     Code = "wrong-source"         // provenance of another repository or reference
	TooFewSigners   Code = "too-few-signers"      // some signed, fewer than required
	SkippedByPolicy Code = "skipped"              // the policy leaves the image alone
	Excepted        Code = "excepted"             // a policy exception leaves it alone
	Unchanged       Code = "unchanged"            // the object ran it before this update
	NotPinned       Code = "not-pinned"           // verified, and the runtime may resolve the tag anew
	NotConcerned    Code = "no-policy"            // no policy matches the image
	DigestPinned    Code = "pinned"               // nothing to verify; the digest was pinned
	ImageNotFound   Code = "image-not-found"      // the registry does not have it
	AccessRefused   Code = "access-refused"       // the registry refuses us
	Unavailable     Code = "registry-unavailable" // the registry did not answer
	TooMuch         Code = "bound-reached"        // a bound of bytes or items was reached
	Contradiction   Code = "contradiction"        // the registry contradicts itself
	PolicyError     Code = "policy-error"         // the policy could not be evaluated
	CannotProve     Code = "cannot-prove"         // trust or a key that the verification needs is missing
	TimedOut        Code = "timed-out"            // the deadline passed first
	Mirrored        Code = "mirrored"             // redirected to a mirror that serves the same digest
	NotMirrored     Code = "not-mirrored"         // no mirror qualifies; it stays where it was written
	NoMirror        Code = "no-mirror"            // no mirror qualifies, and the mapping denies that
	MirrorDiffers   Code = "mirror-differs"       // the tag resolves to another digest at the other side
	Stale           Code = "stale"                // the registry does not answer; an earlier response is used
	NoPullSecret    Code = "no-pull-secret"       // a Secret that a mirror needs is not in the namespace
	Internal        Code = "internal-error"       // a defect; denied to be safe
	Malformed       Code = "malformed-reference"  // the reference cannot be read
)

// Gravity orders the reasons of a denial, the gravest first: a requirement that the image or the
// object fails, a required verification that no policy has, a missing digest, and then errors.
func (c Code) Gravity() int {
	switch c {
	case Unverified:
		return 1
	case MissingDigest:
		return 2
	case ImageNotFound, AccessRefused, Unavailable, TooMuch, Contradiction, PolicyError, CannotProve, NoVerifiedTime, TimedOut, Internal:
		return 3
	}
	return 0
}

// Reason is one argument for or against an image, as text for a user.
type Reason struct {
	Code Code `json:"code"`
	// Path is the part of the policy that it is about.
	Path string `json:"path,omitempty"`
	// Message is one sentence.
	Message string `json:"message"`
	// Expected and Found are the nearest miss.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	// Where is the evidence that it is about.
	Where string `json:"where,omitempty"`
	// Hint is the recommended next step.
	Hint string `json:"hint,omitempty"`
}

// ErrCrowdedOut means that the time passed before an image was begun, mostly because the other images of the request
// used all the time. It does not count as an unresponsive registry: the author of an object
// controls its other images.
var ErrCrowdedOut = errors.New("not verified: the time for the request passed before its turn")

// LookReason returns the reason for an error; the error itself names the operation that failed.
func LookReason(err error, path string) Reason {
	text, advice := image.SplitAdvice(err)
	reason := Reason{Code: lookCode(err), Path: path, Message: text}
	reason.Hint = cmp.Or(advice, hint.Of(reason.Code))
	if reason.Code == TooMuch && errors.Is(err, ErrCrowdedOut) {
		reason.Hint = hint.FewerImages
	}
	return reason
}

func lookCode(err error) Code {
	_, fetched := errors.AsType[image.Failure](err)
	switch kind := image.KindOf(err); {
	case errors.Is(err, age.ErrUnknown):
		return NoVerifiedTime
	case !fetched && errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case !fetched && errors.Is(err, ErrCrowdedOut), fetched && kind == image.Bound:
		return TooMuch
	case !fetched:
		return CannotProve
	case kind == image.NotFound:
		return ImageNotFound
	case kind == image.Refused, kind == image.Unavailable && (image.ByCredential(err) || image.IsByHost(err)): // see image.Attributed
		return AccessRefused
	case kind == image.Corrupt:
		return Contradiction
	}
	return Unavailable
}
