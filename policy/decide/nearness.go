package decide

import (
	"cmp"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// nearness ranks rejections by how much of the verification succeeded: the nearest miss is the
// most useful one for a user.
var nearness = []verify.Code{
	verify.WrongFormat, verify.Malformed, verify.WrongDigest, verify.WrongPredicate, verify.BadSignature,
	verify.UntrustedChain, verify.WrongKey, verify.BadSCT, verify.NoSCT, verify.BadTimestamp, verify.BadLogEntry,
	verify.WrongIdentity, verify.WrongExtension, verify.ExpiredCertificate, verify.NoTimestamp, verify.NoLogEntry,
	verify.OutsideValidity, verify.Expired, verify.TooOld, verify.Revoked, verify.WrongAnnotation,
}

// near ranks a reason among those of others. A verified but insufficient claim is nearer than any
// rejection. Missing evidence and errors are no miss. A signature with another key ranks below an
// altered or copied signature, because it only shows that another signer exists.
func near(r policy.Reason) int {
	switch r.Code {
	case policy.TooFewSigners, policy.ConditionFailed, policy.Denied:
		return len(nearness)
	case policy.Code(verify.WrongKey):
		return slices.Index(nearness, verify.Malformed)
	}
	return slices.Index(nearness, verify.Code(r.Code))
}

// Shortcomings joins the reasons of alternative decisions, none of which sufficed: those with the
// final result first, then certain ones, then errors; among these the nearest miss, and of equal
// ones the first.
func Shortcomings(result policy.Result, missed []policy.Decision) []policy.Reason {
	ordered := slices.Clone(missed)
	slices.SortStableFunc(ordered, func(a, b policy.Decision) int {
		return cmp.Or(cmp.Compare(place(a.Result, result), place(b.Result, result)), cmp.Compare(nearOf(b), nearOf(a)))
	})
	var reasons []policy.Reason
	for _, one := range ordered {
		reasons = append(reasons, one.Reasons...)
	}
	return reasons
}

func place(of, result policy.Result) int {
	switch of {
	case result:
		return 0
	case policy.Fail:
		return 1
	}
	return 2
}

// nearOf ranks a decision by its first reason.
func nearOf(d policy.Decision) int {
	if len(d.Reasons) == 0 {
		return -1
	}
	return near(d.Reasons[0])
}

// nearest returns the rejection that came closest to a proof, or nil.
func nearest(rejections []*verify.Rejection) *verify.Rejection {
	if len(rejections) == 0 {
		return nil
	}
	return slices.MaxFunc(rejections, func(a, b *verify.Rejection) int {
		return cmp.Or(
			cmp.Compare(slices.Index(nearness, a.Code), slices.Index(nearness, b.Code)),
			cmp.Compare(b.Origin.String(), a.Origin.String()), // the same one every run
		)
	})
}
