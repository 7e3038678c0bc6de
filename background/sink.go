package background

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// triggerSink is told of triggers.
type triggerSink struct {
	*Controller
	watched
	at *watching
	// rules came or changed before the first list.
	rules map[ruleID]bool
	// seen are the triggers of a list because of which something is there.
	seen map[key]bool
}

// Listing implements Sink.
func (s *triggerSink) Listing() { s.seen = map[key]bool{} }

// Listed implements Sink.
func (s *triggerSink) Listed(object map[string]any) {
	if at := keyOf(identity(object)); s.there.has(at) {
		s.seen[at] = true
	}
	s.look(object, listed, s.rules)
}

// Synced implements Sink: what is there because of a trigger that is not, is looked
// at.
func (s *triggerSink) Synced() {
	for _, k := range s.there.all(func(k *kept) bool {
		trigger := keyOf(k.origin.Trigger)
		return trigger.kind == s.kind.Kind && trigger.group == s.kind.Group && !s.seen[trigger] &&
			(s.namespace == "" || trigger.namespace == s.namespace)
	}) {
		s.enqueue(k.origin.Trigger)
	}
	s.rules, s.seen = nil, nil
	s.at.settle(true)
}

// Changed implements Sink.
func (s *triggerSink) Changed(object map[string]any, is bool) {
	why := changed
	if is {
		why = came
	}
	s.look(object, why, nil)
}

// Deleted implements Sink.
func (s *triggerSink) Deleted(object map[string]any) {
	t := identity(object)
	at := keyOf(t)
	s.mu.Lock()
	delete(s.hashes, at)
	s.mu.Unlock()
	if s.there.has(at) {
		s.enqueue(t)
	}
}

// Failed implements Sink.
func (s *triggerSink) Failed(err error) {
	s.at.settle(false)
	s.options.Observer.Failed(fmt.Errorf("watch %s, which rules about other objects speak of: %w", s.kind.Resource, err))
}

// look has a trigger looked at, unless no rule speaks of it or nothing has changed
// that a rule could be about.
func (c *Controller) look(object map[string]any, why cause, rules map[ruleID]bool) {
	t := identity(object)
	at := keyOf(t)
	if leaving(object) || c.excluded(at) {
		return
	}
	if !c.speaksOf(object) && !c.there.has(at) {
		c.mu.Lock()
		delete(c.hashes, at)
		c.mu.Unlock()
		return
	}
	is := sumOf(essence(object))
	c.mu.Lock()
	same := c.hashes[at] == is
	c.hashes[at] = is
	c.mu.Unlock()
	if same && why == changed {
		return // its status alone
	}
	c.queue.add(at, work{trigger: t, object: object, cause: why, rules: rules})
}

// excluded reports whether a trigger is in a namespace that is left alone, or is that.
func (c *Controller) excluded(at key) bool {
	namespace := at.namespace
	if at.kind == "Namespace" && at.group == "" {
		namespace = at.name
	}
	return slices.Contains(c.options.Excluded, namespace)
}

// speaksOf reports whether a rule may speak of an object.
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

// The operations by which a trigger comes and changes.
const (
	opCreate = "CREATE"
	opUpdate = "UPDATE"
)

// subjectOf returns what is known of a trigger without asking anybody. What it was
// before an update, nobody knows.
func subjectOf(object map[string]any, operation string) policy.Subject {
	t := identity(object)
	s := policy.Subject{
		Object: policy.ContentOf(object), Group: groupOf(t.APIVersion), Version: versionOf(t.APIVersion), Kind: t.Kind,
		Namespace: t.Namespace, Name: t.Name, Operation: operation,
	}
	if s.Kind == "Namespace" && s.Group == "" {
		s.Namespace = s.Name // as the API server asks about one
	}
	return s
}

// downstreamSink is told of what is there because of rules.
type downstreamSink struct {
	*Controller
	kind Kind
	at   *watching
	seen map[key]bool // of a list
}

// Listing implements Sink.
func (s *downstreamSink) Listing() { s.seen = map[key]bool{} }

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
	at := keyOf(identity(object))
	if s.seen != nil {
		s.seen[at] = true
	}
	had, known := s.there.get(at)
	origin, err := s.options.Records.ReadOrigin(object)
	if err != nil {
		if known { // somebody changed the record
			s.putBack(had.origin.Trigger, had.origin)
		}
		return
	}
	s.there.put(at, s.kind, origin)
	if origin.Synchronize && had.is != sumOf(essence(object)) {
		s.putBack(origin.Trigger, origin)
	}
}

// Deleted implements Sink.
func (s *downstreamSink) Deleted(object map[string]any) { s.lost(keyOf(identity(object))) }

func (s *downstreamSink) lost(at key) {
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
