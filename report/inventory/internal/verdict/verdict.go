package verdict

import (
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Verdict is the verdict on an image or an object. The values are a contract: URLs and the API
// contain them.
type Verdict string

// The verdicts.
const (
	// Allowed: policies match it, and all of them pass.
	Allowed Verdict = "allowed"
	// Warned: it is allowed with a problem: a failure under audit, a failure that an override
	// outweighs, or an admitted verification error.
	Warned Verdict = "warned"
	// Unchecked: no policy matches it.
	Unchecked Verdict = "unchecked"
	Denied    Verdict = "denied"
	// Errored: something could not be verified.
	Errored Verdict = "error"
)

// Verdicts returns all verdicts, the most severe first.
func Verdicts() []Verdict { return []Verdict{Denied, Errored, Warned, Unchecked, Allowed} }

// Tally counts by verdict.
type Tally struct {
	Allowed   int64 `json:"allowed"`
	Warned    int64 `json:"warned"`
	Unchecked int64 `json:"unchecked"`
	Denied    int64 `json:"denied"`
	Errored   int64 `json:"error"`
}

// Add counts one verdict.
func (t *Tally) Add(v Verdict) {
	switch v {
	case Allowed:
		t.Allowed++
	case Warned:
		t.Warned++
	case Unchecked:
		t.Unchecked++
	case Denied:
		t.Denied++
	case Errored:
		t.Errored++
	}
}

// Of returns the verdict on the object as a whole.
func Of(o report.Occasion, r report.Record) Verdict {
	switch {
	case o.Undecided != "" || r.Result == gate.Error:
		return Errored
	case r.Result == gate.Deny:
		return Denied
	case len(r.Warnings) > 0:
		return Warned
	}
	matched := false
	for n := range r.Images {
		switch OfImage(&r.Images[n]) {
		case Warned:
			return Warned
		case Unchecked:
		default:
			matched = true
		}
	}
	for n := range r.Rules {
		if rule := &r.Rules[n]; rule.Result == policy.Fail || rule.Result == policy.Indeterminate {
			return Warned
		}
		matched = matched || r.Rules[n].Result != ""
	}
	if !matched {
		return Unchecked
	}
	return Allowed
}

// OfImage returns the verdict on one image.
func OfImage(image *report.Image) Verdict {
	switch {
	case image.Result == gate.Deny:
		return Denied
	case image.Result == gate.Error:
		return Errored
	case len(image.Warnings) > 0:
		return Warned
	}
	for n := range image.Decisions {
		if image.Decisions[n].Effect == report.EffectWarn {
			return Warned
		}
	}
	if !image.Matched && image.Override == "" {
		return Unchecked
	}
	return Allowed
}

// Telling returns the reasons for any verdict other than allowed.
func Telling(image *report.Image, verdict Verdict) []policy.Reason {
	switch {
	case !image.Result.Admits():
		return image.Reasons
	case verdict != Warned || len(image.Warnings) > 0:
		return image.Warnings
	}
	for n := range image.Decisions {
		if d := &image.Decisions[n]; d.Effect == report.EffectWarn && len(d.Reasons) > 0 {
			return d.Reasons
		}
	}
	return image.Reasons
}

// Gravity is greater for a graver verdict: where uses of one image differ, the gravest counts. An
// evaluation counts before none.
func (v Verdict) Gravity() int {
	return slices.Index([]Verdict{"", Unchecked, Allowed, Warned, Errored, Denied}, v)
}
