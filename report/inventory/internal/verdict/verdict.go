package verdict

import (
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Verdict is what was decided about an image or an object, in one word. The words are
// a contract: they stand in addresses and in the API.
type Verdict string

// The verdicts.
const (
	// Allowed: policies speak of it, and all of them are content.
	Allowed Verdict = "allowed"
	// Warned: it is allowed, and something is held against it: a failure under audit, a
	// failure that an override outweighs, or a look that failed and is admitted.
	Warned Verdict = "warned"
	// Unchecked: no policy speaks of it.
	Unchecked Verdict = "unchecked"
	Denied    Verdict = "denied"
	// Unable: something could not be looked at.
	Unable Verdict = "unable"
)

// Verdicts are all of them, the one that asks for most attention first.
func Verdicts() []Verdict { return []Verdict{Denied, Unable, Warned, Unchecked, Allowed} }

// Tally counts by verdict.
type Tally struct {
	Allowed   int64 `json:"allowed"`
	Warned    int64 `json:"warned"`
	Unchecked int64 `json:"unchecked"`
	Denied    int64 `json:"denied"`
	Unable    int64 `json:"unable"`
}

// Add counts one.
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
	case Unable:
		t.Unable++
	}
}

// Of says what was decided about the object as a whole.
func Of(o report.Occasion, r report.Record) Verdict {
	switch {
	case o.Undecided != "" || r.Answer == gate.Unable:
		return Unable
	case r.Answer == gate.Deny:
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
		if rule := &r.Rules[n]; rule.Result == policy.Fail || rule.Result == policy.Undecided {
			return Warned
		}
		matched = matched || r.Rules[n].Result != ""
	}
	if !matched {
		return Unchecked
	}
	return Allowed
}

// OfImage says what was decided about one image.
func OfImage(image *report.Image) Verdict {
	switch {
	case image.Answer == gate.Deny:
		return Denied
	case image.Answer == gate.Unable:
		return Unable
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

// Reason returns the most telling reason of the whole.
func Reason(r report.Record) (policy.Reason, bool) {
	lists := [][]policy.Reason{r.Reasons}
	for n := range r.Images {
		if r.Images[n].Answer != gate.Allow {
			lists = append(lists, r.Images[n].Reasons)
		}
	}
	for n := range r.Rules {
		lists = append(lists, r.Rules[n].Reasons)
	}
	lists = append(lists, r.Warnings)
	for n := range r.Images {
		lists = append(lists, r.Images[n].Warnings)
	}
	for _, reasons := range lists {
		if len(reasons) > 0 {
			return reasons[0], true
		}
	}
	return policy.Reason{}, false
}

// Telling are the reasons why it is not simply allowed.
func Telling(image *report.Image, verdict Verdict) []policy.Reason {
	switch {
	case image.Answer != gate.Allow:
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
