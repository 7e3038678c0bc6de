package inventory

import (
	"cmp"
	"slices"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/state"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// change changes the states of an image, and accounts for their evidence.
func (i *Inventory) change(e *entry, by func(s *state.States)) {
	i.evidence -= e.states.Size()
	by(&e.states)
	i.evidence += e.states.Size()
}

// name adds a reference to those of an image.
func (e *entry) name(reference string) {
	if name := cut(reference, maxName); !slices.Contains(e.references, name) {
		e.references = append(e.references, name)
		e.references = e.references[max(0, len(e.references)-maxReferences):]
	}
}

// lighter returns the use that matters least, if it matters less than one with this verdict, and false
// for none: a graver result is not left out for the number of others.
func (e *entry) lighter(running bool, v Verdict) (place, bool) {
	weight := func(running bool, v Verdict) int {
		if running {
			return v.Gravity()
		}
		return 0
	}
	var least place
	var found *use
	for at, u := range e.uses {
		if found == nil || cmp.Or(weight(u.running, u.verdict)-weight(found.running, found.verdict), u.seen.Compare(found.seen)) < 0 {
			least, found = at, u
		}
	}
	return least, found != nil && weight(found.running, found.verdict) < weight(running, v)
}

// gravestLast are the images of a record in an order in which the gravest result of an image that
// several containers run is the last.
func gravestLast(r report.Record) []*report.Image {
	images := make([]*report.Image, len(r.Images))
	for n := range r.Images {
		images[n] = &r.Images[n]
	}
	slices.SortStableFunc(images, func(a, b *report.Image) int {
		return verdict.OfImage(a).Gravity() - verdict.OfImage(b).Gravity()
	})
	return images
}

// shown returns the state of the image.
func (e *entry) shown() *state.State { return e.states.Shown(e.runs(), e.image.Refused > 0) }

// results returns the current results of rules for the image.
func (e *entry) results() []state.Result { return e.states.Results(e.runs(), e.image.Refused > 0) }

// describeState sets the state of the image.
func (e *entry) describeState() {
	now := e.shown()
	e.image.Reference, e.image.Verdict, e.image.Code, e.image.Message, e.image.Signers = now.Reference, now.Verdict, now.Code, now.Message, now.Signers
	if e.runs() {
		e.image.Cause = nil
	}
}

// causeOf returns the cause of a refusal, with texts of bounded length; nil if the record has none.
func causeOf(r report.Record) *Cause {
	found, ok := verdict.CauseOf(r)
	if !ok {
		return nil
	}
	for _, name := range []*string{&found.Container, &found.Image, &found.Policy, &found.Rule, &found.Code} {
		*name = cut(*name, maxName)
	}
	for _, text := range []*string{&found.Message, &found.Expected, &found.Found, &found.Fix} {
		*text = cut(*text, maxMessage)
	}
	return &found
}
