package decide

import (
	"cmp"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// near ranks a reason among those of others. A verified but insufficient claim is nearer than any
// rejection. Missing evidence and errors are no miss. A signature with another key ranks below an
// altered or copied signature, because it only shows that another signer exists.
func near(r policy.Reason) int {
	switch r.Code {
	case policy.TooFewSigners, policy.ConditionFailed, policy.Denied:
		return verify.Furthest()
	case policy.Code(verify.WrongKey):
		return verify.Nearness(verify.Malformed)
	}
	return verify.Nearness(verify.Code(r.Code))
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
