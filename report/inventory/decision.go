package inventory

import (
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// ring keeps the latest decisions. Its zero value is empty.
type ring struct {
	kept []Decision
	next int // where the next one goes once the ring is full
}

func (r *ring) add(d Decision) {
	if len(r.kept) < MaxDecisions {
		r.kept = append(r.kept, d)
		return
	}
	r.kept[r.next] = d
	r.next = (r.next + 1) % MaxDecisions
}

// latest calls yield with each decision, the latest first, until it returns false.
func (r *ring) latest(yield func(*Decision) bool) {
	for n := range r.kept {
		at := (r.next + len(r.kept) - 1 - n) % len(r.kept)
		if !yield(&r.kept[at]) {
			return
		}
	}
}

func newDecision(o report.Occasion, r report.Record, about report.Resource) Decision {
	made := Decision{
		Time: o.Time.UTC(), Door: cut(o.Door, maxName), Operation: cut(o.Operation, maxName), UID: cut(o.UID, maxName),
		User: cut(o.User, maxName), Allowed: o.Allowed, Undecided: cut(o.Undecided, maxName),
		Resource: cutResource(about), DurationMilliseconds: r.DurationMilliseconds, Verdict: verdictOf(o, r),
	}
	if reason, ok := reasonOf(r); ok {
		made.Code, made.Message = string(reason.Code), cut(reason.Message, maxMessage)
	}
	for n := range r.Images {
		if n == maxDecided {
			made.ImagesLeftOut = len(r.Images) - n
			break
		}
		image := &r.Images[n]
		made.Images = append(made.Images, DecidedImage{ID: idOf(image), Written: cut(image.Written, maxName), Verdict: verdictOfImage(image)})
	}
	return made
}

// verdictOf says what was decided about the object as a whole.
func verdictOf(o report.Occasion, r report.Record) Verdict {
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
		switch verdictOfImage(&r.Images[n]) {
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

func verdictOfImage(image *report.Image) Verdict {
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

// reasonOf returns the most telling reason of the whole.
func reasonOf(r report.Record) (policy.Reason, bool) {
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

func cutResource(r report.Resource) report.Resource {
	r.APIVersion, r.Kind, r.UID = cut(r.APIVersion, maxName), cut(r.Kind, maxName), cut(r.UID, maxName)
	r.Namespace, r.Name = cut(r.Namespace, maxName), cut(r.Name, maxName)
	if r.Owner != nil {
		owner := *r.Owner
		owner.APIVersion, owner.Kind = cut(owner.APIVersion, maxName), cut(owner.Kind, maxName)
		owner.Name, owner.UID = cut(owner.Name, maxName), cut(owner.UID, maxName)
		r.Owner = &owner
	}
	return r
}

// cut bounds a text that a stranger chose. The copy holds on to nothing larger.
func cut(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(strings.Clone(text), "\uFFFD")
	}
	return strings.ToValidUTF8(text[:most], "\uFFFD") + "…"
}
