package background

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/set"
)

// A deleted trigger is known from its watch alone, by its last state. A deletion that a webhook
// refuses, or a dry run, is thus none, and no request to the gateway's endpoints can claim one. The
// watch continues from a saved position when another replica leads.

// maxDeletionTries bounds the attempts for a deleted trigger, about a quarter of an hour: its last state is
// in memory, and a rule may need what was deleted with it, as its namespace.
const maxDeletionTries = 11

// Position is the progress of a watch whose rules have deletions as triggers: all before Version is done.
type Position struct {
	Kind      Kind
	Namespace string // empty: all
	Version   string
}

// Position implements Follower.
func (s *triggerSink) Position() string {
	if !s.deletions {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.positions[s.watched]
}

// Reached implements Follower.
func (s *triggerSink) Reached(version string) {
	if s.deletions {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.positions[s.watched] = version
	}
}

// Missed implements Follower.
func (s *triggerSink) Missed(err error) {
	s.options.Observer.Failed(fmt.Errorf("deletions of %s may have been missed: rules with the operation DELETE were not applied to them: %w", s.kind.Resource, err))
}

// enqueueDeletion queues a deleted trigger, unless no rule matches its deletion. It waits while too much
// content is queued.
func (s *triggerSink) enqueueDeletion(t record.Trigger, object map[string]any) {
	set, at := s.current(), queue.KeyOf(t)
	if set == nil || s.excluded(at) {
		return
	}
	if subject := subjectOf(object, opDelete); !set.HasDownstream(&subject) {
		return
	}
	s.queue.AwaitRoom(s.at.ended)
	at.Deleted = t.UID
	s.queue.Add(at, queue.Work{Trigger: t, Object: object, Cause: queue.Deleted})
}

// reconcileDeletion applies the rules for a deleted trigger.
func reconcileDeletion(ctx context.Context, e *evaluation, set *set.Set) {
	e.object = e.work.Object
	e.self = inspect.Identity(e.object)
	e.identify()
	e.bringAbout(ctx, e.generate(ctx, set))
	e.alter(ctx, set)
}

// report passes the results of rules about an object on to reports; a deleted trigger has none.
func report(ctx context.Context, e *evaluation, object map[string]any, results ...policy.RuleResult) {
	if e.work.Cause&queue.Deleted == 0 || inspect.Identity(object).UID != e.self.UID {
		e.options.report(ctx, object, results...)
	}
}

// giveUp reports a deleted trigger for which there is no further attempt.
func giveUp(to Observer, w queue.Work) {
	to.Worked(Work{Trigger: w.Trigger, Err: errors.New("too many deleted triggers wait for another attempt"), Final: true})
}

// restorePositions returns the saved positions by their watches.
func restorePositions(list []Position) map[watched]string {
	positions := make(map[watched]string, len(list))
	for _, p := range list {
		positions[watched{kind: p.Kind, namespace: p.Namespace}] = p.Version
	}
	return positions
}

// positionsOf returns the positions of the current watches; the caller holds the lock.
func positionsOf(c *Controller) []Position {
	var list []Position
	for w, version := range c.positions {
		if at := c.watches[w]; at != nil && at.deletions {
			list = append(list, Position{w.kind, w.namespace, version})
		}
	}
	return list
}
