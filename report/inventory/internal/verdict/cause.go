package verdict

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/report"
)

// Cause is the image or the rule that a verdict on an object results from, with its most relevant
// reason.
type Cause struct {
	// Container and Image name the image, as it is written; empty where the object as a whole is
	// the cause.
	Container string `json:"container,omitempty"`
	Image     string `json:"image,omitempty"`
	// Policy is the ID of the policy, and Rule its rule; empty where none is the cause.
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// Code and Message are those of the reason, Expected and Found its nearest miss, and Fix the
	// recommended next step.
	Code     string `json:"code,omitempty"`
	Message  string `json:"message,omitempty"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Fix      string `json:"fix,omitempty"`
}

// because sets the reason; none leaves it empty.
func (c Cause) because(reasons []policy.Reason) Cause {
	if len(reasons) > 0 {
		r := reasons[0]
		c.Code, c.Message, c.Expected, c.Found, c.Fix = string(r.Code), r.Message, r.Expected, r.Found, hint.ForGateway(r.Hint)
	}
	return c
}

// CauseOf returns the cause of the verdict on an object, and false if there is none: a denial or an
// error, or else a warning.
func CauseOf(r report.Record) (Cause, bool) {
	if len(r.Reasons) > 0 {
		return Cause{}.because(r.Reasons), true
	}
	for n := range r.Images {
		if image := &r.Images[n]; !image.Result.Admits() {
			return causeOfImage(image, image.Reasons), true
		}
	}
	for _, enforced := range []bool{true, false} { // a rule that denies comes before one that warns
		for n := range r.Rules {
			if rule := &r.Rules[n]; !rule.Action.Admits() == enforced && fails(rule) {
				return causeOfRule(rule), true
			}
		}
	}
	if len(r.Warnings) > 0 {
		return Cause{}.because(r.Warnings), true
	}
	for n := range r.Images {
		if image := &r.Images[n]; OfImage(image) == Warned {
			return causeOfImage(image, Telling(image, Warned)), true
		}
	}
	return Cause{}, false
}

// fails reports whether a rule about the object failed, or could not be evaluated.
func fails(r *report.Rule) bool {
	return r.Error != "" || r.Skipped == "" && (r.Result == policy.Fail || r.Result == policy.Indeterminate)
}

func causeOfRule(r *report.Rule) Cause {
	c := Cause{Policy: r.Policy.String(), Rule: r.Rule}.because(r.Reasons)
	if r.Error != "" {
		c.Code, c.Message = string(policy.PolicyError), r.Error
	}
	return c
}

// causeOfImage names the policy with the reason, where one has it.
func causeOfImage(image *report.Image, reasons []policy.Reason) Cause {
	c := Cause{Container: image.Container, Image: image.Written}.because(reasons)
	for n := range image.Decisions {
		d := &image.Decisions[n]
		if d.Effect == report.EffectAllow || d.Effect == "" {
			continue
		}
		for _, each := range d.Reasons {
			if string(each.Code) == c.Code && each.Message == c.Message {
				c.Policy, c.Rule = d.Policy.String(), d.Rule
				return c
			}
		}
	}
	return c
}
