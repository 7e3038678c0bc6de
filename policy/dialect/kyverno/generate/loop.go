package generate

import (
	"context"
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// loop is one compiled foreach without its objects.
type loop struct {
	path          string
	list          *variable.Expression
	values        rulecontext.Entries
	preconditions *condition.Conditions
}

func compileLoop(o rulecontext.Options, doc loopDocument, path string, known []string) (loop, error) {
	l := loop{path: path}
	var errs []error
	var err error
	if doc.List == "" {
		errs = append(errs, field.Fail(path+".list", "is empty"))
	} else {
		l.list, err = variable.CompileExpression(o.Engine, doc.List, "")
		errs = append(errs, field.Below(path+".list", err))
	}
	o = o.ReadingElements(l.list, "element", "element0").Reading(doc.Context)
	known = loopNames(known, rulecontext.Entries{})
	l.values, err = rulecontext.Compile(o, doc.Context, path+".context", known...)
	errs = append(errs, err)
	l.preconditions, err = condition.CompileExempting(o.Engine, doc.Preconditions)
	errs = append(errs, field.Below(path+".preconditions", err), document.NeverHolds(doc.Preconditions, path+".preconditions"),
		rulecontext.UndefinedExpression(doc.List, path+".list", known), rulecontext.CheckConditions(doc.Preconditions,
			path+".preconditions", append(known, l.values.Names()...)))
	return l, errors.Join(errs...)
}

// loopNames returns the names that expressions in a pass may read.
func loopNames(known []string, values rulecontext.Entries) []string {
	return slices.Concat(known, values.Names(), []string{"element", "elementIndex", "element0", "elementIndex0"})
}

// budget is how many passes the loops of a rule have left.
type budget struct{ left int }

// each calls do with the data for expressions in each pass: for the elements of the list that are
// not null and satisfy the preconditions.
func (l *loop) each(ctx context.Context, data variable.Context, left *budget, do func(variable.Context) error) error {
	elements, err := rulecontext.List(l.list, data)
	if err != nil {
		return field.Below(l.path+".list", err)
	}
	for i, element := range elements {
		if element == nil {
			continue
		}
		left.left--
		if left.left < 0 {
			return field.Fail(l.path+".list", "the number of elements %w of %d", jmespath.ErrTooLarge, maxElements)
		}
		if err := ctx.Err(); err != nil {
			return field.Below(l.path, err)
		}
		within := variable.Context{}
		rulecontext.Element(within, data, element, i, 0)
		l.values.Add(ctx, within)
		held, err := l.preconditions.Evaluate(within)
		switch {
		case err != nil:
			return field.Below(l.path+".preconditions", err)
		case held.Indeterminate:
			return field.Below(l.path+".preconditions", held.Cause())
		case !held.Held:
			continue
		}
		if err := do(within); err != nil {
			return err
		}
	}
	return nil
}
