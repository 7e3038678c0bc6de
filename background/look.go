package background

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/set"
)

// look is one evaluation of a trigger.
type look struct {
	*Controller
	at   key
	work work

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
func (l *look) reconcile(ctx context.Context) {
	set := l.current()
	if set == nil {
		l.again = true
		return
	}
	if l.excluded(l.at) {
		return
	}
	there, err := l.read(ctx)
	if err != nil {
		l.failed(Work{Trigger: l.work.trigger, Err: err})
		return
	}
	var results map[ruleID]*generated
	var wanted map[key]bool
	stays := there && !leaving(l.object)
	if stays {
		l.identify()
		results = l.generate(ctx, set)
		wanted = l.bringAbout(ctx, results)
	}
	for _, k := range l.there.of(l.at) {
		switch {
		case wanted[k.at]:
		case !there || k.origin.Trigger.UID != l.self.UID: // another object with that name
			l.inherit(ctx, set, k)
		case stays:
			l.retire(ctx, set, results, k)
		}
	}
	if stays {
		l.alter(ctx, set)
	}
}

// read reads the trigger, unless the work contains it. It reports whether it exists.
func (l *look) read(ctx context.Context) (bool, error) {
	l.object = l.work.object
	if l.object == nil {
		kind, err := l.options.Cluster.Kind(ctx, policy.ObjectKind{APIVersion: l.work.trigger.APIVersion, Kind: l.work.trigger.Kind})
		if err != nil {
			return false, fmt.Errorf("read the trigger: %w", err)
		}
		l.object, err = l.options.Cluster.Get(ctx, kind, l.at.namespace, l.at.name)
		switch {
		case errors.Is(err, ErrNotFound):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read the trigger: %w", err)
		}
	}
	l.self = identity(l.object)
	return true, nil
}

// identify reads the records in the trigger.
func (l *look) identify() {
	l.user, l.unknown = l.options.Records.ReadRequester(l.object)
	if own, err := l.options.Records.ReadOrigin(l.object); err == nil {
		l.depth = own.Depth
	}
}

// failed reports failed work, and schedules a retry unless the error is final.
func (l *look) failed(w Work) {
	if w.Trigger.Name == "" {
		w.Trigger = l.self
	}
	if busy, is := errors.AsType[*busyError](w.Err); is {
		l.pause = max(l.pause, busy.pause)
	}
	l.again = l.again || !w.Final
	if l.work.tries < quietTries && (errors.Is(w.Err, ErrConflict) || errors.Is(w.Err, ErrExists)) {
		return // a concurrent change, which the next attempt will read
	}
	l.options.Observer.Worked(w)
}

// quietTries is the number of conflicts that are not reported.
const quietTries = 3

// did reports completed work.
func (l *look) did(id ruleID, action Action, at key) {
	l.options.Observer.Worked(Work{Trigger: l.self, Policy: id.policy, Rule: id.rule, Action: action, Object: at.String()})
}

// generated is the result of a generate rule, and whether it may create a missing object.
type generated struct {
	set.GenerateResult
	entitled bool
}

func (g *generated) id() ruleID { return ruleID{g.Policy.ID(), g.Rule} }

// operations returns the operations under which rules may match the trigger: the actual one
// first. The second counts only for existing objects.
func (l *look) operations() [2]string {
	if l.work.cause&changed != 0 && l.work.cause&came == 0 {
		return [2]string{opUpdate, opCreate}
	}
	return [2]string{opCreate, opUpdate}
}

// generate evaluates the generate rules for the trigger.
func (l *look) generate(ctx context.Context, set *set.Set) map[ruleID]*generated {
	found := map[ruleID]*generated{}
	operations := l.operations()
	for i, operation := range operations {
		if i > 0 && l.work.cause&(listed|restore) == 0 && !l.there.has(l.at) {
			break // no objects that could be retained
		}
		s := l.subject(ctx, operation)
		for _, r := range set.Generate(ctx, &s, l.finder()) {
			one := &generated{GenerateResult: r}
			one.entitled = l.entitled(one, operation, i == 0)
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
func (l *look) entitled(g *generated, operation string, first bool) bool {
	terms, cause := g.Terms, l.work.cause
	if first && cause&(came|changed) != 0 {
		return true
	}
	if cause&restore != 0 && terms.Synchronize && l.work.rules[g.id()] {
		return true
	}
	switch {
	case cause&listed == 0:
		return false
	case terms.Existing && (terms.Synchronize || l.arrived(g)):
		return true
	case terms.Synchronize && !g.Policy.Created.IsZero() && !madeAt(l.object).Before(g.Policy.Created.Truncate(time.Second)):
		return true // the object must exist, whatever the event
	case operation == opCreate:
		return !madeAt(l.object).Before(l.due(g.Policy, g.Rule))
	}
	return l.happened(g.Policy, g.Rule)
}

// arrived reports whether the rule was added or changed, so that existing triggers are evaluated
// for the first time. A rule that existed before this replica led was the previous leader's task,
// unless the leader did not get to it.
func (l *look) arrived(g *generated) bool {
	if !l.work.rules[g.id()] {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	created := g.Policy.Created
	return created.IsZero() || !l.rules[g.id()].since.IsZero() || !created.Before(l.progress.Until)
}

// happened reports whether the trigger was created or changed since the rule's due time.
func (l *look) happened(p *policy.Policy, name string) bool {
	return !changedAt(l.object).Before(l.due(p, name))
}

// subject is the trigger in the form that rules evaluate.
func (l *look) subject(ctx context.Context, operation string) policy.Subject {
	s := subjectOf(l.object, operation)
	s.User, s.Time = l.user, l.options.Now()
	if s.Namespace != "" && s.Kind != "Namespace" {
		if labels, err := l.options.Namespaces.Labels(ctx, s.Namespace); err == nil {
			s.NamespaceLabels, s.NamespaceKnown = labels, true
		}
	}
	return s
}

// finder finds the trigger's images.
func (l *look) finder() policy.Finder {
	if l.options.Images == nil {
		return nil
	}
	return l.options.Images.Finder(l.object)
}

// bringAbout creates and updates the objects that the rules require. It returns their keys,
// whether the write succeeded or not.
func (l *look) bringAbout(ctx context.Context, results map[ruleID]*generated) map[key]bool {
	wanted := map[key]bool{}
	for id, r := range results {
		about := Work{Policy: id.policy, Rule: id.rule}
		switch {
		case r.Skip != "", r.Terms.SkipGenerated && l.depth > 0:
			continue
		case r.NeedsRequester && l.unknown != nil:
			// Without the requester the rule itself is indeterminate where it reads them.
			if (len(r.Objects) > 0 || r.Ruling.Result != policy.Pass) && r.entitled {
				about.Err, about.Final = l.noRequester(), true
				l.failed(about)
			}
			continue
		case r.Ruling.Result != policy.Pass:
			about.Err = why(r.Ruling)
			l.failed(about)
			continue
		case l.depth >= maxDepth:
			if len(r.Objects) > 0 && r.entitled {
				about.Err, about.Final = fmt.Errorf("the trigger was itself generated, as the last of %d in a row: a rule must not generate its own triggers",
					l.depth), true
				l.failed(about)
			}
			continue
		}
		for _, object := range r.Objects {
			at, err := downstream{l, r}.ensure(ctx, object)
			wanted[at] = true
			if err != nil {
				about.Object, about.Err = at.String(), err
				l.failed(about)
			}
		}
	}
	return wanted
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
func (l *look) noRequester() error {
	return fmt.Errorf("the rule reads the requester of the trigger, which is not recorded: %w; "+
		"the gateway records it when an object is created while the rule is in force", l.unknown)
}
