package validate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// loops are the entries of foreach.
type loops struct{ list []loop }

// loop is one of them.
type loop struct {
	path          string
	list          *variable.Expression
	ofObject      bool // the list reads request.object alone, which is null at a deletion
	scope         *bool
	entries       rulecontext.Entries
	preconditions *condition.Conditions // nil for none
	check         checker
	nesting       int
}

func (c compiler) loops(docs []forEach, path string, nesting int) (checker, error) {
	if len(docs) == 0 || len(docs) > maxLoops {
		return nil, field.Fail(path, "want 1 to %d entries, found %d", maxLoops, len(docs))
	}
	if nesting >= maxNesting {
		return nil, field.Fail(path, "the nesting of foreach %w of %d", jmespath.ErrTooLarge, maxNesting)
	}
	all := &loops{}
	var errs []error
	for i, doc := range docs {
		l, err := c.loop(doc, path+"["+strconv.Itoa(i)+"]", nesting)
		errs = append(errs, err)
		all.list = append(all.list, l)
	}
	return all, errors.Join(errs...)
}

func (c compiler) loop(doc forEach, path string, nesting int) (loop, error) {
	l := loop{path: path, scope: doc.ElementScope, nesting: nesting}
	if doc.List == "" {
		return l, field.Fail(path+".list", "is empty: set a list, such as request.object.spec.containers")
	}
	var errs [4]error
	l.list, errs[0] = variable.CompileExpression(c.context().Engine, doc.List, "")
	errs[0] = errors.Join(field.Below(path+".list", errs[0]), rulecontext.UndefinedExpression(doc.List, path+".list", c.known))
	l.ofObject = errs[0] == nil && l.list.ReadsOnly("request", "object")
	number := strconv.Itoa(nesting)
	c.Rule.Context = c.context().ReadingElements(l.list, "element", "element"+number).Reading(doc.Context)
	c.known = append(slices.Clone(c.known), "element", "elementIndex", "element"+number, "elementIndex"+number)
	l.entries, errs[1] = rulecontext.Compile(c.context(), doc.Context, path+".context", c.known...)
	c.known = append(c.known, l.entries.Names()...)
	l.preconditions, errs[2] = rule.Preconditions(condition.CompileDemanding, c.context(), doc.Preconditions, path+".preconditions", c.known...)
	ways := 0
	for _, is := range []bool{doc.Pattern != nil, doc.AnyPattern != nil, doc.Deny != nil, doc.ForEach != nil} {
		if is {
			ways++
		}
	}
	if ways != 1 {
		errs[3] = field.Fail(path, "want one of pattern, anyPattern, deny and foreach, found %d", ways)
	} else {
		l.check, errs[3] = c.body(body{Pattern: doc.Pattern, AnyPattern: doc.AnyPattern, Deny: doc.Deny, ForEach: doc.ForEach}, path, nesting+1)
	}
	return l, errors.Join(errs[:]...)
}

// check evaluates every element of every list; the first failure decides, or without one the
// first error.
func (l *loops) check(q *question, data variable.Context) outcome {
	var unsure *outcome
	applied, certain := 0, false
	for i := range l.list {
		found, count := l.list[i].elements(q, data)
		switch found.result {
		case policy.Pass:
			applied, certain = applied+count, certain || count > 0 && !found.doubtful
		case policy.Indeterminate:
			if unsure == nil {
				unsure = &found
			}
		default:
			return found
		}
	}
	switch {
	case unsure != nil:
		return *unsure
	case applied == 0:
		return answered(rule.Skip("no element of a foreach is concerned"))
	}
	return outcome{result: policy.Pass, doubtful: !certain}
}

// elements evaluates the elements of one list, and returns how many of them passed. The pass is
// doubtful unless one of them is certain.
func (l *loop) elements(q *question, data variable.Context) (outcome, int) {
	listed := data
	if q.deletes() { // a list reads request.object as it came, unlike {{ }}, as in Kyverno
		listed = data.With("request", rulecontext.WithObject(data["request"], nil))
	}
	list, err := rulecontext.List(l.list, listed)
	_, undefined := errors.AsType[*jmespath.UndefinedError](err)
	if undefined || q.deletes() && l.ofObject && errors.Is(err, jmespath.ErrNull) {
		return passed(), 0 // no elements
	}
	if err != nil {
		return undecided(l.path+".list", err), 0
	}
	var unsure *outcome
	applied, certain := 0, false
	inner := variable.Context{}
	for i, element := range list {
		if element == nil {
			continue
		}
		found, err := l.element(q, inner, data, element, i)
		if err != nil {
			found = undecided(l.path, err)
		}
		switch found.result {
		case policy.Pass:
			applied, certain = applied+1, certain || !found.doubtful
		case policy.Indeterminate:
			if unsure == nil {
				unsure = &found
			}
		case policy.Fail:
			found.reasons = slices.Clone(found.reasons)
			for i := range found.reasons {
				found.reasons[i].Message = "validation failure: " + found.reasons[i].Message
			}
			return found, applied
		}
	}
	if unsure != nil {
		return *unsure, applied
	}
	return outcome{result: policy.Pass, doubtful: !certain}, applied
}

// element evaluates one element. Inner is used again for each.
func (l *loop) element(q *question, inner, outer variable.Context, element any, i int) (outcome, error) {
	if err := q.ctx.Err(); err != nil {
		return outcome{}, err
	}
	clear(inner)
	rulecontext.Element(inner, outer, element, i, l.nesting)
	l.entries.Add(q.ctx, inner)
	answer, doubt := rule.Met(l.preconditions, inner, l.path+".preconditions")
	if answer != nil {
		return answered(answer), nil
	}
	_, isObject := element.(map[string]any)
	asked := *q
	switch {
	case l.scope != nil && *l.scope && !isObject:
		return outcome{}, fmt.Errorf("elementScope is true, and the element is no object: %s", field.Shorten(jmespath.Text(element)))
	case l.scope != nil && !*l.scope: // keep the enclosing scope
	case isObject:
		asked.element, asked.scoped = element, true
	}
	return l.check.check(&asked, inner).where(doubt), nil
}
