package background

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy"
)

// triggerSink receives triggers.
type triggerSink struct {
	*Controller
	watched
	at *watching
	// rules were added or changed before the first list.
	rules map[queue.RuleID]bool
	// deletions: some rule has them as triggers.
	deletions bool
	// seen are the triggers of a list that have generated objects.
	seen map[queue.Key]bool
}

// Listing implements Sink.
func (s *triggerSink) Listing() { s.seen = map[queue.Key]bool{} }

// Listed implements Sink.
func (s *triggerSink) Listed(object map[string]any) {
	if at := queue.KeyOf(inspect.Identity(object)); s.there.has(at) {
		s.seen[at] = true
	}
	s.enqueueTrigger(object, queue.Listed, s.rules)
	s.enqueueRequests(object, queue.Listed)
}

// Synced implements Sink. It queues the missing triggers of generated objects.
func (s *triggerSink) Synced() {
	for _, k := range s.there.all(func(k *kept) bool {
		trigger := queue.KeyOf(k.origin.Trigger)
		return trigger.Kind == s.kind.Kind && trigger.Group == s.kind.Group && !s.seen[trigger] &&
			(s.namespace == "" || trigger.Namespace == s.namespace)
	}) {
		s.enqueue(k.origin.Trigger)
	}
	s.rules, s.seen = nil, nil
	s.at.settle(true)
}

// Changed implements Sink.
func (s *triggerSink) Changed(object map[string]any, is bool) {
	why := queue.Changed
	if is {
		why = queue.Came
	}
	s.enqueueTrigger(object, why, nil)
	s.enqueueRequests(object, why)
}

// Deleted implements Sink.
func (s *triggerSink) Deleted(object map[string]any) {
	t := inspect.Identity(object)
	at := queue.KeyOf(t)
	s.mu.Lock()
	delete(s.hashes, at)
	s.mu.Unlock()
	s.parts.Remove(t)
	if s.there.has(at) {
		s.enqueue(t)
	}
	if s.deletions {
		s.enqueueDeletion(t, object)
	}
}

// Failed implements Sink.
func (s *triggerSink) Failed(err error) {
	s.at.settle(false)
	s.options.Observer.Failed(fmt.Errorf("watch %s, triggers of rules about other objects: %w", s.kind.Resource, err))
}

// enqueueTrigger queues a trigger, unless no rule matches it or nothing relevant to rules has changed.
func (c *Controller) enqueueTrigger(object map[string]any, why queue.Cause, rules map[queue.RuleID]bool) {
	t := inspect.Identity(object)
	at := queue.KeyOf(t)
	if inspect.IsLeaving(object) || c.excluded(at) {
		return
	}
	if !c.speaksOf(object) && !c.there.has(at) {
		c.mu.Lock()
		delete(c.hashes, at)
		c.mu.Unlock()
		return
	}
	is := inspect.SumOf(inspect.Essence(object))
	c.mu.Lock()
	same := c.hashes[at] == is
	c.hashes[at] = is
	c.mu.Unlock()
	if same && why == queue.Changed {
		return // only its status
	}
	c.queue.Add(at, queue.Work{Trigger: t, Object: object, Cause: why, Rules: rules})
}

// excluded reports whether a trigger is in an excluded namespace, or is one.
func (c *Controller) excluded(at queue.Key) bool {
	namespace := at.Namespace
	if at.Kind == "Namespace" && at.Group == "" {
		namespace = at.Name
	}
	return slices.Contains(c.options.Excluded, namespace)
}

// speaksOf reports whether a rule may match an object.
func (c *Controller) speaksOf(object map[string]any) bool {
	set := c.current()
	if set == nil {
		return false
	}
	for _, operation := range []string{opCreate, opUpdate} {
		s := subjectOf(object, operation)
		if set.HasDownstream(&s) {
			return true
		}
	}
	return false
}

// The operations that create, change and delete a trigger.
const (
	opCreate = "CREATE"
	opUpdate = "UPDATE"
	opDelete = "DELETE"
)

// subjectOf returns a trigger without lookups. Its state before an update is unknown.
func subjectOf(object map[string]any, operation string) policy.Subject {
	t := inspect.Identity(object)
	s := policy.Subject{
		Group: inspect.Group(t.APIVersion), Version: inspect.Version(t.APIVersion), Kind: t.Kind,
		Namespace: t.Namespace, Name: t.Name, Operation: operation,
	}
	if operation == opDelete {
		s.OldObject = policy.ContentOf(object)
	} else {
		s.Object = policy.ContentOf(object)
	}
	if s.Kind == "Namespace" && s.Group == "" {
		s.Namespace = s.Name // as in requests for a namespace
	}
	return s
}

// downstreamSink receives generated objects.
type downstreamSink struct {
	*Controller
	kind Kind
	at   *watching
	seen map[queue.Key]bool // of a list
}

// Listing implements Sink.
func (s *downstreamSink) Listing() { s.seen = map[queue.Key]bool{} }

// Listed implements Sink.
func (s *downstreamSink) Listed(object map[string]any) { s.Changed(object, false) }

// Synced implements Sink.
func (s *downstreamSink) Synced() {
	for _, k := range s.there.all(func(k *kept) bool { return k.kind == s.kind && !s.seen[k.at] }) {
		s.lost(k.at)
	}
	s.seen = nil
	s.at.settle(true)
}

// Changed implements Sink.
func (s *downstreamSink) Changed(object map[string]any, _ bool) {
	at := queue.KeyOf(inspect.Identity(object))
	if s.seen != nil {
		s.seen[at] = true
	}
	had, known := s.there.get(at)
	origin, err := s.options.Records.ReadOrigin(object)
	if err != nil {
		if known { // a user changed the record
			s.putBack(had.origin.Trigger, had.origin)
		}
		return
	}
	s.there.put(at, s.kind, origin)
	if origin.Synchronize && had.is != inspect.SumOf(inspect.Essence(object)) {
		s.putBack(origin.Trigger, origin)
	}
}

// Deleted implements Sink.
func (s *downstreamSink) Deleted(object map[string]any) {
	s.lost(queue.KeyOf(inspect.Identity(object)))
}

func (s *downstreamSink) lost(at queue.Key) {
	if k, was := s.there.remove(at); was && k.origin.Synchronize {
		s.putBack(k.origin.Trigger, k.origin)
		for _, other := range k.others {
			s.putBack(other, k.origin)
		}
	}
}

// Failed implements Sink.
func (s *downstreamSink) Failed(err error) {
	s.at.settle(false)
	s.options.Observer.Failed(fmt.Errorf("watch %s, which rules make: %w", s.kind.Resource, err))
}
