package verify

import (
	"cmp"
	"slices"
)

// nearness ranks rejections by how much of the verification succeeded: the nearest miss is the
// most useful one for a user.
var nearness = []Code{
	WrongFormat, Malformed, WrongDigest, WrongPredicate, BadSignature,
	UntrustedChain, WrongKey, BadSCT, NoSCT, BadTimestamp, BadLogEntry,
	WrongIdentity, WrongExtension, ExpiredCertificate, NoTimestamp, NoLogEntry,
	OutsideValidity, Expired, TooOld, Revoked, WrongAnnotation,
}

// Nearness ranks a code by how much of the verification succeeded; -1 for one of no rejection, and less
// than Furthest for each.
func Nearness(code Code) int { return slices.Index(nearness, code) }

// Furthest is the rank of a claim that verified.
func Furthest() int { return len(nearness) }

// Nearest returns the rejection that came closest to a verification, or nil.
func Nearest(rejections []*Rejection) *Rejection {
	if len(rejections) == 0 {
		return nil
	}
	return slices.MaxFunc(rejections, func(a, b *Rejection) int {
		return cmp.Or(
			cmp.Compare(Nearness(a.Code), Nearness(b.Code)),
			cmp.Compare(b.Origin.String(), a.Origin.String()), // the same one every run
		)
	})
}
