package background

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/subresource"
)

// Requests for subresources are derived from the watches of their objects. As with deletions, a request
// that a webhook refuses, or a dry run, is thus none.

// enqueueRequests queues the requests for subresources that a state of an object shows and that a rule may
// match. Without the state before, as after a change of leader, a request counts if the object shows that it may
// have been made since the saved progress: it may then be applied a second time.
func (s *triggerSink) enqueueRequests(object map[string]any, why queue.Cause) {
	t, set := inspect.Identity(object), s.current()
	at := queue.KeyOf(t)
	if set == nil || inspect.IsLeaving(object) || s.excluded(at) {
		return
	}
	of, wanted, names := subjectOf(object, opUpdate), map[string]bool{}, subresource.Of(at.Group, at.Kind)
	for _, name := range names {
		s := subresource.Subject(&of, name)
		if set.HasDownstream(&s) {
			wanted[name] = true
		}
	}
	if len(wanted) == 0 {
		s.parts.Remove(t)
		return
	}
	add := func(name string, why queue.Cause) {
		if wanted[name] {
			at.Subresource = name
			s.queue.Add(at, queue.Work{Trigger: t, Object: object, Cause: why})
		}
	}
	var differing []string
	for _, name := range names { // all of them: one request may write the parts of two
		differs, known := s.parts.Compare(t, name, inspect.SumOf(subresource.Part(object, name)))
		switch {
		case why == queue.Came: // nothing but the object itself was written
		case differs:
			differing = append(differing, name)
		case !known && mayBeRecent(s.Controller, object, name):
			add(name, queue.Listed)
		}
	}
	for _, name := range subresource.Requested(object, differing, why == queue.Changed) {
		add(name, queue.Changed)
	}
}

// mayBeRecent reports whether a subresource may have been requested since the saved progress.
func mayBeRecent(c *Controller, object map[string]any, name string) bool {
	at, known := subresource.WrittenAt(object, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	return !known || !at.Before(c.progress.Until.Truncate(time.Second))
}

// reconcileRequest applies the rules for a request for a subresource. Its objects are not synchronized, and so
// none is deleted.
func reconcileRequest(ctx context.Context, e *evaluation, set *set.Set) {
	there, err := e.read(ctx)
	switch {
	case err != nil:
		e.failed(Work{Trigger: e.work.Trigger, Err: err})
	case there && !inspect.IsLeaving(e.object) && e.self.UID == e.work.Trigger.UID:
		e.identify()
		e.bringAbout(ctx, e.generate(ctx, set))
		e.alter(ctx, set)
	}
}

// requested reports whether the subresource was requested since the due time of a rule. A request at an unknown time
// counts, unless the rule is newer than the saved progress.
func requested(e *evaluation, due time.Time) bool {
	at, known := subresource.WrittenAt(e.object, e.at.Subresource)
	if known {
		return !at.Before(due)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return !due.After(e.progress.Until)
}
