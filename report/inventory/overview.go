package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/report/inventory/internal/view"
)

// Span is the period of an Overview.
type Span string

// The spans, with the grain of their moments.
const (
	Hour Span = "1h"  // by minute
	Day  Span = "24h" // by 15 minutes
	Week Span = "7d"  // by 2 hours
)

// Overview summarizes the inventory.
type Overview struct {
	About About `json:"about"`
	// Images counts the images by verdict; Workloads counts their users.
	Images    Tally `json:"images"`
	Workloads int   `json:"workloads"`
	Policies  int   `json:"policies"`
	// Apart counts the same by state.
	Apart view.Apart `json:"apart"`
	// Moments count the requests over the span, the oldest first. GrainSeconds is the length of
	// each.
	Span         Span     `json:"span"`
	GrainSeconds int      `json:"grainSeconds"`
	Moments      []Moment `json:"moments"`
	// Attention are images that are denied, could not be verified, or have warnings; running ones
	// come first.
	Attention []Image `json:"attention"`
	// Refused are the last images that objects were refused with, and that no workload runs.
	Refused []Image `json:"refused"`
	// Failing are policies that an image fails now, or that failed in the span.
	Failing []Policy `json:"failing"`
	// Latest are the last denials and errors.
	Latest []Decision `json:"latest"`
}

// Overview summarizes the inventory over a span. An unknown span is an error.
func (i *Inventory) Overview(span Span) (Overview, error) {
	span = cmp.Or(span, Day)
	if err := oneOf("span", span, []Span{Hour, Day, Week}); err != nil {
		return Overview{}, err
	}
	o := Overview{About: i.About(), Span: span, Attention: []Image{}, Refused: []Image{}, Failing: []Policy{}, Latest: []Decision{}}
	policies := i.Policies()
	now := i.now()
	i.mu.RLock()
	defer i.mu.RUnlock()
	o.Moments, o.GrainSeconds = i.history.over(span, now)
	o.Workloads, o.Policies = len(i.places), len(policies)
	o.Apart.RunningWorkloads = runningWorkloads(i.places)
	o.Apart.RefusedWorkloads = len(i.places) - o.Apart.RunningWorkloads
	var urgent, refused []*entry
	for _, e := range i.images {
		o.Images.Add(e.image.Verdict)
		o.Apart.Add(&e.image)
		if e.image.State() == Refused {
			refused = append(refused, e)
		}
		if e.image.Verdict != Allowed && e.image.Verdict != Unchecked {
			urgent = append(urgent, e)
		}
	}
	slices.SortFunc(urgent, func(a, b *entry) int {
		return cmp.Or(
			-cmp.Compare(min(a.image.Workloads, 1), min(b.image.Workloads, 1)),
			cmp.Compare(slices.Index(Verdicts(), a.image.Verdict), slices.Index(Verdicts(), b.image.Verdict)),
			b.image.LastSeen.Compare(a.image.LastSeen), strings.Compare(a.image.ID, b.image.ID))
	})
	for _, e := range urgent[:min(len(urgent), attention)] {
		o.Attention = append(o.Attention, e.image)
	}
	slices.SortFunc(refused, func(a, b *entry) int {
		return cmp.Or(b.image.LastSeen.Compare(a.image.LastSeen), strings.Compare(a.image.Reference, b.image.Reference), strings.Compare(a.image.ID, b.image.ID))
	})
	for _, e := range refused[:min(len(refused), attention)] {
		o.Refused = append(o.Refused, e.image)
	}
	for _, p := range policies {
		failed := p.Images.Fail+p.Images.Error > 0 || !p.LastFail.IsZero() && !p.LastFail.Before(o.Moments[0].Start)
		if failed && len(o.Failing) < attention {
			o.Failing = append(o.Failing, p)
		}
	}
	i.recent.refusals.latest(func(d *Decision) bool {
		o.Latest = append(o.Latest, *d)
		return len(o.Latest) < attention
	})
	return o, nil
}

// attention bounds each list of an Overview.
const attention = 6

// runningWorkloads counts the workloads that run an image.
func runningWorkloads(places map[place]map[*entry]struct{}) int {
	running := 0
	for at, entries := range places {
		for e := range entries {
			if e.uses[at].running {
				running++
				break
			}
		}
	}
	return running
}
