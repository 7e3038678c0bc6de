package record

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	// reportPause is the least time between two rounds of a Reporter by default, so that an unstable
	// state does not cause a flood of writes.
	reportPause = 2 * time.Second
	// retryPause is the time before a failed write is repeated; it doubles up to reportResync.
	retryPause = 2 * time.Second
	// reportResync is the longest time between two rounds.
	reportResync = time.Minute
	// statusQPS bounds the statuses written in a second, and statusBurst a burst.
	statusQPS   = 10
	statusBurst = 20
	// maxWrites bounds the writes of one object in a round: an unstable status delays no other one.
	maxWrites = 5
)

// Reporter writes the status of objects whenever it changes. One replica runs it, and its caller
// ensures that no other engine owns the status.
type Reporter struct {
	// Kind is the kind of the objects, for errors; empty means their resource.
	Kind   string
	Client dynamic.Interface
	// Desired returns the status of each object.
	Desired func() []Desired
	// Changed returns a channel that is closed at the next change of a status. Run requires it.
	Changed func() <-chan struct{}
	// Failed is called when a status was not written, once for the same error.
	Failed func(error)
	// Pause is the least time between two rounds; zero means the default.
	Pause time.Duration

	written, failed map[types.UID]string
	// refused are objects whose last write the API server refused.
	refused map[types.UID]bool
	limiter *rate.Limiter
}

// Run writes changed statuses until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	retry := retryPause
	for ctx.Err() == nil {
		done, again := r.round(ctx), reportResync
		if done.failing {
			again, retry = retry, min(2*retry, reportResync)
		} else {
			retry = retryPause
		}
		if done.postponed {
			again = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(cmp.Or(r.Pause, reportPause)):
		}
		select {
		case <-ctx.Done():
		case <-done.changed:
		case <-time.After(again):
		}
	}
}

// Round writes each changed status. It returns false if a write is to be repeated soon.
func (r *Reporter) Round(ctx context.Context) (complete bool) {
	done := r.round(ctx)
	return !done.failing && !done.postponed
}

// round is one pass over the objects.
type round struct {
	*Reporter
	pending []Desired // in the order of their writes
	desired map[types.UID]string
	urgent  map[types.UID]bool // changed during the round
	tried   map[types.UID]string
	writes  map[types.UID]int
	// changed is closed when pending is outdated.
	changed <-chan struct{}
	// failing: a failed write is to be repeated soon. postponed: an object reached maxWrites.
	failing, postponed bool
}

// round writes until no object has another status than the desired one. It starts again with the
// current state whenever that changes: a round of many objects takes minutes.
func (r *Reporter) round(ctx context.Context) *round {
	if r.limiter == nil {
		r.limiter = rate.NewLimiter(statusQPS, statusBurst)
		r.written, r.failed, r.refused = map[types.UID]string{}, map[types.UID]string{}, map[types.UID]bool{}
	}
	p := &round{Reporter: r, urgent: map[types.UID]bool{}, tried: map[types.UID]string{}, writes: map[types.UID]int{}}
	p.read()
	for len(p.pending) > 0 && r.limiter.Wait(ctx) == nil {
		select {
		case <-p.changed:
			p.read()
		default:
		}
		if len(p.pending) == 0 {
			break
		}
		next := p.pending[0]
		p.pending = p.pending[1:]
		p.write(ctx, next)
	}
	return p
}

// read lists what to write in the current state. Objects that changed during the round are first,
// and refused ones last: they delay no write that can succeed.
func (p *round) read() {
	if p.Changed != nil {
		p.changed = p.Changed()
	}
	before := p.desired
	p.desired, p.postponed = map[types.UID]string{}, false
	var urgent, usual, refused []Desired
	for _, d := range p.Desired() {
		text := fmt.Sprintf("%+v %s", d.Condition, canonical(d.Fields))
		p.desired[d.UID] = text
		if before != nil && before[d.UID] != text {
			p.urgent[d.UID] = true
		}
		switch {
		case p.written[d.UID] == text, p.tried[d.UID] == text:
		case p.writes[d.UID] >= maxWrites:
			p.postponed = true
		case p.refused[d.UID]:
			refused = append(refused, d)
		case p.urgent[d.UID]:
			urgent = append(urgent, d)
		default:
			usual = append(usual, d)
		}
	}
	p.pending = slices.Concat(urgent, usual, refused)
	maps.DeleteFunc(p.written, p.unlisted)
	maps.DeleteFunc(p.failed, p.unlisted)
	maps.DeleteFunc(p.refused, func(id types.UID, _ bool) bool { return p.unlisted(id, "") })
}

func (p *round) unlisted(id types.UID, _ string) bool { _, is := p.desired[id]; return !is }

// write writes one status, and reports a failure.
func (p *round) write(ctx context.Context, d Desired) {
	text := p.desired[d.UID]
	p.tried[d.UID] = text
	p.writes[d.UID]++
	delete(p.urgent, d.UID)
	err := write(ctx, p.Client, d)
	if ctx.Err() != nil && err != nil {
		return
	}
	delete(p.refused, d.UID)
	delete(p.written, d.UID) // a failed write may have been applied
	if err == nil || apierrors.IsNotFound(err) {
		p.written[d.UID] = text
		delete(p.failed, d.UID)
		return
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		p.refused[d.UID] = true
	} else {
		p.failing = true
	}
	before := p.failed[d.UID]
	p.failed[d.UID] = err.Error()
	if before != err.Error() {
		p.Failed(fmt.Errorf("write the status of %s %s: %w%s", cmp.Or(p.Kind, d.Resource.Resource), d.Name, err, remedy(d, err)))
	}
}

// remedy completes the error of a forbidden write.
func remedy(d Desired, err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	resource := d.Resource.GroupResource().String()
	text := fmt.Sprintf("; grant the gateway's service account get of %s and patch of its subresource status", resource)
	if d.Remedy != "" {
		text += ", or " + d.Remedy
	}
	return text
}
