package decide

import (
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/verify"
)

// Ages decides the checks that bound the age of an image as a whole, by the evidence with which its
// other checks pass. first returns the earliest evidence of the decision at a position, nil for none
// with a verified time. An image without such evidence is indeterminate. Policies of a namespace
// date no image for a requirement of the cluster: their authors choose the timestamp authorities.
func Ages(decisions []policy.Decision, first func(i int) *verify.Fact) {
	for i := range decisions {
		if check := decisions[i].Check; check.Age.Whole && check.Skip == "" {
			decisions[i] = aged(check, decisions, first)
		}
	}
}

func aged(check *policy.Check, decisions []policy.Decision, first func(i int) *verify.Fact) policy.Decision {
	var earliest *verify.Fact
	verified, open := false, false
	for i, d := range decisions {
		if d.Check.Age.Whole || !d.Check.Image.Is(check.Image) {
			continue
		}
		open = open || d.Result == policy.Indeterminate
		if d.Result == policy.Pass && d.Proves(check.Policy) {
			verified, earliest = true, age.Earlier(earliest, first(i))
		}
	}
	bounds := check.Age
	reason := policy.Reason{Code: policy.NoVerifiedTime, Path: bounds.By, Hint: hint.Of(policy.NoVerifiedTime)}
	switch {
	case bounds.At.IsZero():
		reason.Code, reason.Message, reason.Hint = policy.Internal, age.ErrNoClock.Error(), hint.Of(policy.Internal)
	case !verified:
		reason.Message = "the age of the image is not known: no policy verified a signature or an attestation of it"
	case earliest == nil:
		reason.Message = "the age of the image is not known: " + age.ErrUnknown.Error()
	case bounds.At.Sub(earliest.VerifiedTime()) >= bounds.Minimum:
		return policy.Decision{Check: check, Result: policy.Pass, Facts: []verify.Fact{*earliest}, Reasons: []policy.Reason{{
			Code: policy.Verified, Path: bounds.By, Message: "first " + bounds.Describe(earliest),
		}}}
	default:
		tooYoung := policy.Decision{Check: check, Result: policy.Fail, Reasons: []policy.Reason{{
			Code: policy.TooYoung, Path: bounds.By, Message: "the image is younger than the minimum age", Where: earliest.Origin.String(),
			Expected: "first signed at least " + age.Text(bounds.Minimum) + " ago", Found: "first " + bounds.Describe(earliest),
			Hint: hint.WaitUntil(earliest.VerifiedTime().Add(bounds.Minimum)),
		}}}
		if open { // earlier evidence may be unread
			tooYoung.Result = policy.Indeterminate
		}
		return tooYoung
	}
	return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
}

// Evidence is the known evidence about the digests of one image.
type Evidence struct {
	// Named is the digest of the reference, and Index that of the index which lists it; zero: none.
	Named, Index image.Digest
	// Children are those that Named lists, where a check selects platforms.
	Children []image.Descriptor
	Answers  func(about image.Digest) policy.Answers
}

// First returns the earliest evidence, by verified time, of the authorities by which a decision passes;
// nil if none has such a time. Evidence of the named digest and of the index that lists it dates the
// image. Evidence of platforms dates an index only where each of them is verified, by the platform
// that came last: else a new platform beside an old one would seem old.
func (e Evidence) First(d policy.Decision) (first *verify.Fact) {
	platforms := map[image.Digest]*verify.Fact{}
	for i, fact := range d.Facts {
		subject := fact.Subject
		if slices.ContainsFunc(d.Facts[:i], func(before verify.Fact) bool { return before.Subject == subject }) {
			continue
		}
		switch one := e.firstAbout(d, subject); {
		case subject.IsZero():
		case subject == e.Named || subject == e.Index:
			first = age.Earlier(first, one)
		default:
			platforms[subject] = one
		}
	}
	if first != nil || d.Check.Platforms != policy.PlatformEach {
		return first
	}
	for _, child := range e.Children {
		one := platforms[child.Digest]
		if one == nil {
			return nil
		}
		if first == nil || one.VerifiedTime().After(first.VerifiedTime()) {
			first = one
		}
	}
	return first
}

// IsYoung reports whether an image has no evidence as old as one of its checks requires, so that more
// evidence may matter.
func (e Evidence) IsYoung(checks []*policy.Check) bool {
	var first *verify.Fact
	var at time.Time
	var minimum time.Duration
	for _, check := range checks {
		if check.Age.Minimum == 0 || !check.NeedsProof() {
			continue
		}
		at, minimum = check.Age.At, max(minimum, check.Age.Minimum)
		for _, q := range check.Questions() {
			first = age.Earlier(first, age.First(e.Answers(e.Named)(q).Facts))
			if !e.Index.IsZero() {
				first = age.Earlier(first, age.First(e.Answers(e.Index)(q).Facts))
			}
		}
	}
	return minimum > 0 && (first == nil || at.Sub(first.VerifiedTime()) < minimum)
}

// firstAbout is the earliest evidence about one digest. A statement counts whatever a condition says of it: an
// earlier one of the same signer shows that the image was there. One of another signer does not, although the
// authority is the same: a condition may confine an authority that is open to everyone. Provenance is confined by
// its builder and source alone, so that only what met a requirement counts.
func (e Evidence) firstAbout(d policy.Decision, about image.Digest) (first *verify.Fact) {
	if d.BuildLevel > 0 {
		return age.First(slices.DeleteFunc(slices.Clone(d.Facts), func(f verify.Fact) bool { return f.Subject != about }))
	}
	answers := e.Answers(about)
	for _, q := range d.Check.Questions() {
		facts := answers(q).Facts
		met := slices.DeleteFunc(slices.Clone(d.Facts), func(met verify.Fact) bool {
			return !slices.ContainsFunc(facts, func(f verify.Fact) bool { return isSame(f, met) })
		})
		if len(met) == 0 {
			continue
		}
		first = age.Earlier(first, age.First(slices.DeleteFunc(slices.Clone(facts), func(f verify.Fact) bool {
			return f.Role != attest.Signature && !slices.ContainsFunc(met, func(met verify.Fact) bool { return met.Signer.String() == f.Signer.String() })
		})))
	}
	return first
}

func isSame(a, b verify.Fact) bool {
	return a.Subject == b.Subject && a.Role == b.Role && a.Origin == b.Origin && a.Signer.String() == b.Signer.String()
}
