package background

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/outcome"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/background/internal/writelimit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/subresource"
)

// evaluation is one evaluation of a trigger.
type evaluation struct {
	*Controller
	at   queue.Key
	work queue.Work

	// again: a part must be retried; pause is when, zero for increasing pauses.
	again bool
	pause time.Duration

	object map[string]any
	self   record.Trigger
	// depth is the length of the chain of generated objects that led to the trigger.
	depth int
	// user created the trigger; unknown is the reason why the user is not known.
	user    policy.User
	unknown error
}

// reconcile applies the rules for the trigger.
func (e *evaluation) reconcile(ctx context.Context) {
	set := e.current()
	if set == nil {
		e.again = true
		return
	}
	if e.excluded(e.at) {
		return
	}
	switch {
	case e.work.Cause&queue.Deleted != 0:
		reconcileDeletion(ctx, e, set)
		return
	case e.at.Subresource != "":
		reconcileRequest(ctx, e, set)
		return
	}
	there, err := e.read(ctx)
	if err != nil {
		e.failed(Work{Trigger: e.work.Trigger, Err: err})
		return
	}
	var results map[queue.RuleID]*generated
	var wanted map[queue.Key]bool
	stays := there && !inspect.IsLeaving(e.object)
	if stays {
		e.identify()
		moment := e.sources.Moment()
		results = e.generate(ctx, set)
		wanted = e.bringAbout(ctx, results)
		followSources(ctx, e, set, results, moment)
	} else {
		e.sources.Keep(e.at, func(queue.RuleID) bool { return false })
	}
	for _, k := range e.there.of(e.at) {
		switch {
		case wanted[k.at]:
		case !there || k.origin.Trigger.UID != e.self.UID: // another object with that name
			e.inherit(ctx, set, k)
		case stays:
			e.retire(ctx, set, results, k)
		}
	}
	if stays {
		e.alter(ctx, set)
	}
}

// read reads the trigger, unless the work contains it. It reports whether it exists.
func (e *evaluation) read(ctx context.Context) (bool, error) {
	e.object = e.work.Object
	if e.object == nil {
		kind, err := e.options.Cluster.Kind(ctx, policy.ObjectKind{APIVersion: e.work.Trigger.APIVersion, Kind: e.work.Trigger.Kind})
		if err != nil {
			return false, fmt.Errorf("read the trigger: %w", err)
		}
		e.object, err = e.options.Cluster.Get(ctx, kind, e.at.Namespace, e.at.Name)
		switch {
		case errors.Is(err, ErrNotFound):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read the trigger: %w", err)
		}
	}
	e.self = inspect.Identity(e.object)
	return true, nil
}

// identify reads the records in the trigger.
func (e *evaluation) identify() {
	e.user, e.unknown = e.options.Records.ReadRequester(e.object)
	if own, err := e.options.Records.ReadOrigin(e.object); err == nil {
		e.depth = own.Depth
	}
}

// failed reports failed work, and schedules a retry unless the error is final. It returns false for an
// error that is not reported yet.
func (e *evaluation) failed(w Work) bool {
	if w.Trigger.Name == "" {
		w.Trigger = e.self
	}
	if busy, is := errors.AsType[*writelimit.BusyError](w.Err); is {
		e.pause = max(e.pause, busy.Pause)
	}
	w.Final = w.Final || e.work.Cause&queue.Deleted != 0 && e.work.Tries >= maxDeletionTries
	e.again = e.again || !w.Final
	if e.work.Tries < quietTries && (errors.Is(w.Err, ErrConflict) || errors.Is(w.Err, ErrExists)) {
		return false // a concurrent change, which the next attempt will read
	}
	e.options.Observer.Worked(w)
	return true
}

// report passes the results of rules about an object on to reports. When the lead ends, errors are of
// no rule.
func (o *Options) report(ctx context.Context, object map[string]any, results ...policy.RuleResult) {
	if o.Reports == nil || len(results) == 0 || ctx.Err() != nil {
		return
	}
	s := subjectOf(object, "")
	o.Reports.Report(ctx, &s, results)
}

// quietTries is the number of conflicts that are not reported.
const quietTries = 3

// did reports completed work.
func (e *evaluation) did(id queue.RuleID, action Action, at queue.Key) {
	e.options.Observer.Worked(Work{Trigger: e.self, Policy: id.Policy, Rule: id.Rule, Action: action, Object: at.String()})
}

// generated is the result of a generate rule, and whether it may create a missing object.
type generated struct {
	set.GenerateResult
	entitled bool
}

func (g *generated) id() queue.RuleID { return queue.RuleID{Policy: g.Policy.ID(), Rule: g.Rule} }

// operations returns the operations under which rules may match the trigger: the actual one
// first. The second counts only for existing objects.
func (e *evaluation) operations() []string {
	switch {
	case e.work.Cause&queue.Deleted != 0:
		return []string{opDelete}
	case e.at.Subresource != "":
		return []string{subresource.Operation(e.at.Subresource)}
	}
	if e.work.Cause&queue.Changed != 0 && e.work.Cause&queue.Came == 0 {
		return []string{opUpdate, opCreate}
	}
	return []string{opCreate, opUpdate}
}

// generate evaluates the generate rules for the trigger.
func (e *evaluation) generate(ctx context.Context, set *set.Set) map[queue.RuleID]*generated {
	found := map[queue.RuleID]*generated{}
	operations := e.operations()
	for i, operation := range operations {
		if i > 0 && e.work.Cause&(queue.Listed|queue.Restore) == 0 && !e.there.has(e.at) {
			break // no objects that could be retained
		}
		s := e.subject(ctx, operation)
		for _, r := range set.Generate(ctx, policy.Case{Subject: &s, Find: e.finder(&s), Sources: e.options.Sources}) {
			one := &generated{GenerateResult: r}
			one.entitled = e.entitled(one, operation, i == 0)
			had := found[one.id()]
			switch {
			case had == nil || one.Skip == "" && had.Skip != "":
				found[one.id()] = one
			case one.Skip == "" && had.Skip == "":
				had.entitled = had.entitled || one.entitled
			}
		}
	}
	return found
}

// entitled reports whether a missing object must be created. The rule matches the trigger under
// an operation, which, if it is the first, is the actual one.
func (e *evaluation) entitled(g *generated, operation string, first bool) bool {
	terms, cause := g.Terms, e.work.Cause
	if first && cause&(queue.Came|queue.Changed|queue.Deleted) != 0 {
		return true
	}
	if cause&queue.Restore != 0 && terms.Synchronize && e.work.Rules[g.id()] {
		return true
	}
	switch {
	case cause&queue.Listed == 0:
		return false
	case e.at.Subresource != "":
		return e.happened(g.Policy, g.Rule)
	case terms.Existing && (terms.Synchronize || e.arrived(g)):
		return true
	case terms.Synchronize && !g.Policy.Created.IsZero() && !inspect.CreatedAt(e.object).Before(g.Policy.Created.Truncate(time.Second)):
		return true // the object must exist, whatever the event
	case operation == opCreate:
		return !inspect.CreatedAt(e.object).Before(e.due(g.Policy, g.Rule))
	}
	return e.happened(g.Policy, g.Rule)
}

// arrived reports whether the rule was added or changed, so that existing triggers are evaluated
// for the first time. A rule that existed before this replica led was the previous leader's task,
// unless the leader did not get to it.
func (e *evaluation) arrived(g *generated) bool {
	if !e.work.Rules[g.id()] {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	created := g.Policy.Created
	return created.IsZero() || !e.rules[g.id()].since.IsZero() || !created.Before(e.progress.Until)
}

// happened reports whether the trigger was created or changed, or its subresource requested, since the
// rule's due time.
func (e *evaluation) happened(p *policy.Policy, name string) bool {
	if e.at.Subresource != "" {
		return requested(e, e.due(p, name))
	}
	return !inspect.ChangedAt(e.object).Before(e.due(p, name))
}

// subject is the trigger in the form that rules evaluate.
func (e *evaluation) subject(ctx context.Context, operation string) policy.Subject {
	s := subjectOf(e.object, operation)
	if e.at.Subresource != "" {
		s = subresource.Subject(&s, e.at.Subresource)
	}
	s.User, s.Time = e.user, e.options.Now()
	if s.Namespace != "" && s.Kind != "Namespace" {
		if labels, err := e.options.Namespaces.Labels(ctx, s.Namespace); err == nil {
			s.NamespaceLabels, s.NamespaceKnown = labels, true
		}
	}
	return s
}

// finder finds the images of a trigger.
func (e *evaluation) finder(of *policy.Subject) policy.Finder {
	content := of.Object
	switch {
	case e.options.Images == nil:
		return nil
	case content.IsZero():
		content = of.OldObject
	}
	return e.options.Images.Finder(content.Map())
}

// bringAbout creates and updates the objects that the rules require. It returns their keys,
// whether the write succeeded or not.
func (e *evaluation) bringAbout(ctx context.Context, results map[queue.RuleID]*generated) map[queue.Key]bool {
	wanted := map[queue.Key]bool{}
	var reported []policy.RuleResult
	for id, r := range results {
		about := Work{Policy: id.Policy, Rule: id.Rule}
		switch {
		case r.Terms.SkipGenerated && e.depth > 0:
		case r.Skip != "":
			reported = append(reported, r.RuleResult)
		case r.NeedsRequester && e.unknown != nil:
			// Without the requester the rule itself is indeterminate where it reads them.
			if (len(r.Objects) > 0 || r.Ruling.Result != policy.Pass) && r.entitled {
				about.Err, about.Final = e.noRequester(), true
				e.failed(about)
				reported = append(reported, outcome.Failed(r.RuleResult, about.Err))
			}
		case r.Ruling.Result != policy.Pass:
			about.Err = why(r.Ruling)
			e.failed(about)
			reported = append(reported, outcome.Failed(r.RuleResult, about.Err))
		case e.depth >= maxDepth:
			if len(r.Objects) > 0 && r.entitled {
				about.Err, about.Final = fmt.Errorf("the trigger was itself generated, as the last of %d in a row: a rule must not generate its own triggers",
					e.depth), true
				e.failed(about)
				reported = append(reported, outcome.Failed(r.RuleResult, about.Err))
			}
		default:
			if one, ok := (downstream{e, r}).write(ctx, wanted); ok {
				reported = append(reported, one)
			}
		}
	}
	report(ctx, e, e.object, reported...)
	return wanted
}

// write creates and updates all objects that the rule requires, and adds their keys. It returns the
// rule's result for reports, and false if there is none yet.
func (d downstream) write(ctx context.Context, wanted map[queue.Key]bool) (policy.RuleResult, bool) {
	var made outcome.Generated
	r := d.rule
	for _, object := range r.Objects {
		is, err := d.ensure(ctx, object)
		wanted[is.at] = true
		switch {
		case err != nil:
			reported := d.failed(Work{Policy: r.Policy.ID(), Rule: r.Rule, Object: is.at.String(), Err: err})
			made.Fail(fmt.Errorf("%s: %w", is.at, err), reported)
		case is.there:
			made.There(object.Object, is.ours)
		default:
			made.Absent()
		}
	}
	if r.entitled {
		for _, err := range missing(r.Read) {
			made.Fail(err, d.failed(Work{Policy: r.Policy.ID(), Rule: r.Rule, Err: err}))
		}
	}
	return made.Result(r.RuleResult)
}

// why joins the reasons of a rule that could not be evaluated into one error.
func why(r policy.Ruling) error {
	if len(r.Reasons) == 0 {
		return errors.New("the rule could not be evaluated")
	}
	return fmt.Errorf("the rule could not be evaluated: %s", r.Reasons[0].Message)
}

// noRequester returns the error of a rule that reads the requester, where the requester is not
// known.
func (e *evaluation) noRequester() error {
	return fmt.Errorf("the rule reads the requester of the trigger, which is not recorded: %w; "+
		"the gateway records it when an object is created while the rule is in force", e.unknown)
}
