package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// recent are the latest decisions, and separately the latest refusals.
type recent struct{ decisions, refusals ring }

func (r *recent) add(d kept) {
	r.decisions.add(d)
	if d.Verdict == Denied || d.Verdict == Errored {
		r.refusals.add(d)
	}
}

// find returns a decision by its ID; nil for none.
func (r *recent) find(id string) *kept {
	for _, ring := range []*ring{&r.decisions, &r.refusals} {
		for n := range ring.kept {
			if ring.kept[n].ID == id {
				return &ring.kept[n]
			}
		}
	}
	return nil
}

// kept is a decision with its compressed evidence; nil where that was too large, or evicted.
type kept struct {
	Decision
	proof []byte
}

// ring retains the latest decisions. Its zero value is empty.
type ring struct {
	kept []kept
	next int // the next index to overwrite once the ring is full
	size int // of the evidence, in bytes
}

func (r *ring) add(d kept) {
	if len(r.kept) < MaxDecisions {
		r.kept = append(r.kept, d)
	} else {
		r.size -= len(r.kept[r.next].proof)
		r.kept[r.next] = d
		r.next = (r.next + 1) % MaxDecisions
	}
	r.size += len(d.proof)
	for n := 0; r.size > maxDecisionEvidence && n < len(r.kept); n++ { // the oldest evidence is evicted first
		oldest := &r.kept[(r.next+n)%len(r.kept)]
		r.size -= len(oldest.proof)
		oldest.proof = nil
	}
}

// latest calls yield with each decision, the latest first, until it returns false.
func (r *ring) latest(yield func(*Decision) bool) {
	for n := range r.kept {
		at := (r.next + len(r.kept) - 1 - n) % len(r.kept)
		if !yield(&r.kept[at].Decision) {
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
	made.ID = idOfDecision(&made)
	if cause := causeOf(r); cause != nil {
		made.Cause = *cause
	}
	for n := range r.Images {
		if n == maxDecided {
			made.ImagesLeftOut = len(r.Images) - n
			break
		}
		image := &r.Images[n]
		made.Images = append(made.Images, DecidedImage{
			ID: idOf(image), Written: cut(image.Written, maxName), Verdict: verdict.OfImage(image), Container: cut(image.Container, maxName), Copy: isCopy(image),
		})
	}
	return made
}

// isCopy reports whether an image was evaluated as a mirror's copy of another name.
func isCopy(image *report.Image) bool {
	for n := range image.Decisions {
		if image.Decisions[n].JudgedAs != "" {
			return true
		}
	}
	return false
}

// idOfDecision returns an ID that a restored decision has, too.
func idOfDecision(d *Decision) string {
	r := &d.Resource
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %q %q %q", d.Time.UnixNano(), d.Endpoint, d.UID, d.Operation, r.Kind, r.Namespace, r.Name))
	return hex.EncodeToString(sum[:10])
}

// Decision returns a retained decision with its evidence, and false for an unknown one.
func (i *Inventory) Decision(id string) (DecisionDetails, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	found := i.recent.find(id)
	if found == nil {
		return DecisionDetails{}, false
	}
	return DecisionDetails{Decision: found.Decision, Record: evidence.Unpack(found.proof)}, true
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
