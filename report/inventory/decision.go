package inventory

import (
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// ring retains the latest decisions. Its zero value is empty.
type ring struct {
	kept []Decision
	next int // the next index to overwrite once the ring is full
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
		Time: o.Time.UTC(), Endpoint: cut(o.Endpoint, maxName), Operation: cut(o.Operation, maxName), UID: cut(o.UID, maxName),
		User: cut(o.User, maxName), Allowed: o.Allowed, Shadow: o.Shadow, Undecided: cut(o.Undecided, maxName),
		Resource: cutResource(about), DurationMilliseconds: r.DurationMilliseconds, Verdict: verdict.Of(o, r),
	}
	if reason, ok := verdict.Reason(r); ok {
		made.Code, made.Message = string(reason.Code), cut(reason.Message, maxMessage)
	}
	for n := range r.Images {
		if n == maxDecided {
			made.ImagesLeftOut = len(r.Images) - n
			break
		}
		image := &r.Images[n]
		made.Images = append(made.Images, DecidedImage{ID: idOf(image), Written: cut(image.Written, maxName), Verdict: verdict.OfImage(image)})
	}
	return made
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

// cut bounds untrusted text.
func cut(text string, most int) string { return evidence.Cut(text, most) }
