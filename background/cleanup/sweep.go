package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/ttl"
)

// maxReported bounds the objects with a label that has no effect and that are reported once each.
// Further ones are counted and not reported.
const maxReported = 5000

// sweepAll deletes the objects whose lifetime has ended, until ctx ends.
func (c *Controller) sweepAll(ctx context.Context) {
	known := map[string]string{} // the labels without effect that were reported, by UID
	for ctx.Err() == nil {
		began := c.options.Now()
		s := &sweep{Controller: c, began: began, reported: known}
		s.guarded(ctx)
		wait(ctx, max(sweepInterval-c.options.Now().Sub(began), time.Second))
	}
}

// sweep is one pass over all objects with the label.
type sweep struct {
	*Controller
	began    time.Time
	reported map[string]string
	used     int
	result   Run
}

// guarded makes the pass. A panic ends it with an error.
func (s *sweep) guarded(ctx context.Context) {
	s.result = Run{Scheduled: s.began, End: Completed}
	defer func() {
		if p := recover(); p != nil {
			s.failed(ctx, fmt.Errorf("the lifetimes of objects: internal error, which is a defect: %v", p))
			s.result.End = Errors
		}
		s.result.Duration = s.options.Now().Sub(s.began)
		s.options.Observer.Ended(s.result)
	}()
	if err := s.do(ctx); err != nil {
		switch {
		case ctx.Err() != nil:
			s.result.End = Handover
		case errors.Is(err, errLimit):
			s.result.End = LimitReached
		default:
			s.result.End = Errors
			s.result.note(err.Error())
		}
	}
}

// do looks at each kind that this process may delete everywhere.
func (s *sweep) do(ctx context.Context) error {
	kinds, err := s.options.Cluster.Served(ctx, policy.Target{Group: "*", Version: "*", Kind: "*"})
	if err != nil {
		return fmt.Errorf("which kinds does the API server serve: %w", err)
	}
	for _, kind := range kinds {
		missing, err := s.missing(ctx, kind, "")
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			continue
		}
		err = s.options.Cluster.Each(ctx, kind, "", ttl.Label, func(object map[string]any) error {
			s.result.Examined++
			return s.object(ctx, kind, object)
		})
		switch {
		case err == nil:
		case errors.Is(err, errLimit), ctx.Err() != nil:
			return err
		default:
			s.result.Failed++
			s.result.note(fmt.Sprintf("list %s: %v", kind.Resource, err))
		}
	}
	return nil
}

// object deletes an object if its lifetime has ended. An error stops the pass.
func (s *sweep) object(ctx context.Context, kind background.Kind, listed map[string]any) error {
	at := identityOf(listed)
	if at.leaving || at.uid == "" {
		return nil
	}
	of := s.lifetime(kind, listed)
	if of.outcome != Deleted {
		s.reportOnce(of)
		return nil
	}
	if of.deadline.After(s.options.Now()) {
		return nil
	}
	current, err := s.options.Cluster.Get(ctx, kind, at.namespace, at.name)
	switch {
	case errors.Is(err, background.ErrNotFound):
		return nil
	case err != nil:
		of.outcome, of.message = Failed, fmt.Sprintf("read it again: %v", err)
		s.report(of)
		return ctx.Err()
	}
	now := identityOf(current)
	of = s.lifetime(kind, current)
	if now.uid != at.uid || now.leaving || of.outcome != Deleted || of.deadline.After(s.options.Now()) {
		return nil // it was replaced or changed: the next pass decides
	}
	if s.used >= s.options.Limit {
		return errLimit
	}
	s.used++
	switch err := s.options.Cluster.Delete(ctx, kind, current, of.how); {
	case errors.Is(err, background.ErrNotFound), errors.Is(err, background.ErrConflict):
		return nil // the next pass decides
	case err != nil:
		if errors.Is(err, background.ErrRefused) {
			s.used--
		}
		of.outcome, of.message = Failed, err.Error()
	}
	s.report(of)
	return ctx.Err()
}

// lifetime is the lifetime of an object, and the outcome at its end.
type lifetime struct {
	identity
	served   background.Kind
	value    string
	deadline time.Time
	by       string
	how      policy.Propagation
	outcome  Outcome // Deleted, Protected or Ignored
	message  string
}

// lifetime reads the label of an object.
func (s *sweep) lifetime(kind background.Kind, object map[string]any) lifetime {
	of := lifetime{identity: identityOf(object), served: kind, outcome: Ignored}
	of.value = of.labels[ttl.Label]
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	created, _ := time.Parse(time.RFC3339, textOf(metadata, "creationTimestamp")) // zero is refused
	var err error
	of.deadline, err = ttl.Deadline(of.value, created)
	if err == nil {
		of.by, err = s.options.Grants.ReadLifetime(object)
	}
	how := ""
	if err == nil {
		how, err = ttl.Propagation(textOf(annotations, ttl.PropagationAnnotation))
	}
	if err != nil {
		of.message = "its label " + ttl.Label + " has no effect: " + err.Error()
		return of
	}
	of.how, of.outcome = policy.Propagation(how), Deleted
	labels, _ := metadata["labels"].(map[string]any)
	subject := &policy.Subject{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: of.namespace, Name: of.name}
	if why := s.options.Protection.Of(labelled{group: kind.Group, kind: kind.Kind}, subject, labels); why != "" {
		of.outcome, of.message = Protected, "its label "+ttl.Label+" has no effect: "+why
	}
	return of
}

// reportOnce reports an object with a label that has no effect, once for each value.
func (s *sweep) reportOnce(of lifetime) {
	if s.reported[of.uid] == of.value+of.message || len(s.reported) >= maxReported && s.reported[of.uid] == "" {
		s.result.count(of.outcome, of.message)
		return
	}
	s.reported[of.uid] = of.value + of.message
	s.report(of)
}

func (s *sweep) report(of lifetime) {
	s.result.count(of.outcome, of.served.Kind+" "+of.String()+": "+of.message)
	s.options.Observer.Deleted(Deletion{
		Scheduled: of.deadline, By: of.by, APIVersion: of.apiVersion, Kind: of.served, Namespace: of.namespace, Name: of.name, UID: of.uid,
		Propagation: of.how, Outcome: of.outcome, Message: of.message,
	})
}

// labelled is the rule of a label: an object with it names its own kind, so that a setting may allow
// protected kinds as for a policy that names them.
type labelled struct{ group, kind string }

func (labelled) Name() string { return ttl.Label }
func (l labelled) Targets() []policy.Target {
	return []policy.Target{{Group: l.group, Version: "*", Kind: l.kind}}
}
func (labelled) Labels() string                  { return ttl.Label }
func (labelled) Propagation() policy.Propagation { return "" }
func (labelled) Next(time.Time) time.Time        { return time.Time{} }
func (labelled) Decide(context.Context, policy.Case) policy.DeletionDecision {
	return policy.DeletionDecision{}
}
