package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// maxNesting bounds foreach in foreach, and maxLoops those beside one another.
const maxNesting, maxLoops = 5, 50

// Document is a rule as it is written.
type Document struct {
	rule.Document
	Mutate *mutation `json:"mutate"`
}

type mutation struct {
	Targets                      []any     `json:"targets"`
	PatchStrategicMerge          any       `json:"patchStrategicMerge"`
	PatchesJSON6902              any       `json:"patchesJson6902"`
	ForEach                      []forEach `json:"foreach"`
	MutateExistingOnPolicyUpdate *bool     `json:"mutateExistingOnPolicyUpdate"`
}

type forEach struct {
	List                string                 `json:"list"`
	Order               string                 `json:"order"`
	Context             []rulecontext.Document `json:"context"`
	Preconditions       any                    `json:"preconditions"`
	PatchStrategicMerge any                    `json:"patchStrategicMerge"`
	PatchesJSON6902     any                    `json:"patchesJson6902"`
	ForEach             []forEach              `json:"foreach"`
}

// Rule is a policy.Mutation.
type Rule struct {
	head    *rule.Head
	changes Changes
}

var _ policy.Mutation = (*Rule)(nil)

// Compile reads a rule, JSON that is an object. Path is its location, for errors, which refer to
// fields.
func Compile(options rule.Options, raw json.RawMessage, path string) (*Rule, error) {
	var doc Document
	if err := document.Decode(raw, &doc, path); err != nil {
		return nil, err
	}
	switch {
	case doc.Mutate == nil:
		return nil, field.Fail(path+".mutate", "is empty")
	case len(doc.Mutate.Targets) > 0:
		return nil, field.Fail(path+".mutate.targets", "belong to a rule that changes objects which are there already")
	}
	options.Context = options.Context.Reading(doc.Context)
	options.Plain = doc.Mutate.ForEach == nil && rule.Plain(raw)
	head, err := rule.Compile(options, doc.Document, path)
	if err = errors.Join(err, doc.Match.CheckOperations([]string{"CREATE", "UPDATE"}, path+".match")); err != nil {
		return nil, err
	}
	changes, err := compileChanges(options.Context, doc.Mutate, path+".mutate", head.Entries())
	return &Rule{head: head, changes: changes}, err
}

// Name returns the rule's name.
func (r *Rule) Name() string { return r.head.Name() }

// Targets returns the kinds that the rule matches.
func (r *Rule) Targets() []policy.Target { return r.head.Targets() }

// Mutate returns the mutated object of a case.
func (r *Rule) Mutate(ctx context.Context, about policy.Case) policy.Mutated {
	if about.Subject.Object.IsZero() {
		return policy.Mutated{} // nothing to change at a deletion
	}
	data, answer, doubt := r.head.Ask(ctx, about)
	if answer != nil {
		return policy.Mutated{Result: answer.Result, Reasons: answer.Reasons}
	}
	object := about.Subject.Object.Map()
	changed, err := r.changes.Apply(ctx, data, object)
	skipped, isSkipped := errors.AsType[*patch.SkippedError](err)
	switch {
	case isSkipped:
		answer = rule.Skip(skipped.Error())
	case err != nil:
		answer = rule.Undecided(err)
	case same(object, changed):
		answer = &rule.Answer{Result: policy.Skipped, Reasons: []policy.Reason{{Code: policy.Unchanged, Message: "no patches applied"}}}
	case doubt != nil:
		answer = rule.Undecided(doubt) // changed in one reading and not in another
	default:
		return policy.Mutated{Result: policy.Pass, Object: changed, Properties: r.head.Properties().In(data)}
	}
	return policy.Mutated{Result: answer.Result, Reasons: answer.Reasons, Properties: r.head.Properties().In(data)}
}

// same reports whether nothing was changed; shared parts are not compared again.
func same(before, after map[string]any) bool {
	return reflect.ValueOf(before).Pointer() == reflect.ValueOf(after).Pointer() || reflect.DeepEqual(before, after)
}

// Changes are the contents of a rule's `mutate`: one patch, or foreach. They are immutable and
// safe for concurrent use.
type Changes struct {
	path  string
	patch patcher
	loops []loop
}

// patcher is a compiled patch.
type patcher interface {
	ApplyWithin(data variable.Context, object map[string]any, budget *patch.Budget) (map[string]any, error)
}

// CompileChanges reads the JSON value of `mutate` without its targets. Path is its location, and
// known are the names of the rule's context. Errors refer to fields.
func CompileChanges(options rulecontext.Options, raw json.RawMessage, path string, known []string) (Changes, error) {
	var doc mutation
	if err := document.Decode(raw, &doc, path); err != nil {
		return Changes{}, err
	}
	return compileChanges(options, &doc, path, known)
}

func compileChanges(options rulecontext.Options, doc *mutation, path string, known []string) (Changes, error) {
	c := compiler{options: options, known: known}
	out := Changes{path: path}
	ways := 0
	for _, is := range []bool{doc.PatchStrategicMerge != nil, doc.PatchesJSON6902 != nil, doc.ForEach != nil} {
		if is {
			ways++
		}
	}
	if ways != 1 {
		return out, field.Fail(path, "want one of patchStrategicMerge, patchesJson6902 and foreach, found %d", ways)
	}
	var err error
	if doc.ForEach != nil {
		out.loops, err = c.loops(doc.ForEach, path+".foreach", 0)
		return out, err
	}
	out.patch, err = c.patch(doc.PatchStrategicMerge, doc.PatchesJSON6902, path)
	return out, err
}

type compiler struct {
	options rulecontext.Options
	known   []string
}

// placed is a patch that adds its path to its errors.
type placed struct {
	path  string
	patch patcher
}

func (p placed) ApplyWithin(data variable.Context, object map[string]any, budget *patch.Budget) (map[string]any, error) {
	changed, err := p.patch.ApplyWithin(data, object, budget)
	return changed, field.Below(p.path, err)
}

func (c compiler) patch(merge, list any, path string) (patcher, error) {
	if merge != nil {
		path += ".patchStrategicMerge"
		compiled, err := patch.CompileMerge(c.options.Engine, merge)
		return placed{path, compiled}, errors.Join(field.Below(path, err), rulecontext.Undefined(merge, path, c.known))
	}
	path += ".patchesJson6902"
	compiled, err := patch.CompileJSON(c.options.Engine, list)
	return placed{path, compiled}, errors.Join(field.Below(path, err), rulecontext.Undefined(list, path, c.known))
}

// loop is an entry of foreach.
type loop struct {
	path          string
	list          *variable.Expression
	reverse       bool
	entries       rulecontext.Entries
	preconditions *condition.Conditions // nil for none
	patch         patcher               // nil where there are loops
	loops         []loop
	nesting       int
}

func (c compiler) loops(docs []forEach, path string, nesting int) ([]loop, error) {
	if len(docs) == 0 || len(docs) > maxLoops {
		return nil, field.Fail(path, "want 1 to %d entries, found %d", maxLoops, len(docs))
	}
	if nesting >= maxNesting {
		return nil, field.Fail(path, "the nesting of foreach %w of %d", jmespath.ErrTooLarge, maxNesting)
	}
	var list []loop
	var errs []error
	for i, doc := range docs {
		l, err := c.loop(doc, path+"["+strconv.Itoa(i)+"]", nesting)
		errs = append(errs, err)
		list = append(list, l)
	}
	return list, errors.Join(errs...)
}

func (c compiler) loop(doc forEach, path string, nesting int) (loop, error) {
	// The elements of a strategic merge come first in the lists that they are merged
	// into, so that the last has to be merged first.
	l := loop{path: path, nesting: nesting, reverse: doc.PatchStrategicMerge != nil}
	var errs [5]error
	switch doc.Order {
	case "":
	case "Ascending", "Descending":
		l.reverse = doc.Order == "Descending"
	default:
		errs[0] = field.Fail(path+".order", "unknown order %q: want Ascending or Descending", doc.Order)
	}
	if doc.List == "" {
		return l, field.Fail(path+".list", "is empty: set a list, such as request.object.spec.containers")
	}
	l.list, errs[1] = variable.CompileExpression(c.options.Engine, doc.List, "")
	errs[1] = field.Below(path+".list", errs[1])
	errs[1] = errors.Join(errs[1], rulecontext.UndefinedExpression(doc.List, path+".list", c.known))
	number := strconv.Itoa(nesting)
	c.options = c.options.ReadingElements(l.list, "element", "element"+number).Reading(doc.Context)
	c.known = append(slices.Clone(c.known), "element", "elementIndex", "element"+number, "elementIndex"+number)
	l.entries, errs[2] = rulecontext.Compile(c.options, doc.Context, path+".context", c.known...)
	c.known = append(c.known, l.entries.Names()...)
	l.preconditions, errs[3] = rule.Preconditions(condition.Compile, c.options, doc.Preconditions, path+".preconditions", c.known...)
	ways := 0
	for _, is := range []bool{doc.PatchStrategicMerge != nil, doc.PatchesJSON6902 != nil, doc.ForEach != nil} {
		if is {
			ways++
		}
	}
	switch {
	case ways != 1:
		errs[4] = field.Fail(path, "want one of patchStrategicMerge, patchesJson6902 and foreach, found %d", ways)
	case doc.ForEach != nil:
		l.loops, errs[4] = c.loops(doc.ForEach, path+".foreach", nesting+1)
	default:
		l.patch, errs[4] = c.patch(doc.PatchStrategicMerge, doc.PatchesJSON6902, path)
	}
	return l, errors.Join(errs[:]...)
}

// Apply returns the changed object, which shares its unchanged parts with the original. Data is
// the context of expressions. A *patch.SkippedError means that the patch does not apply to the
// object.
func (c Changes) Apply(ctx context.Context, data variable.Context, object map[string]any) (map[string]any, error) {
	budget := patch.NewBudget() // for all elements: the object's author may choose their number
	if c.patch != nil {
		return c.patch.ApplyWithin(data, object, budget)
	}
	return applyLoops(ctx, c.loops, data, object, budget)
}

// applyLoops applies the foreach loops in order. Each one reads the result of the previous ones.
func applyLoops(ctx context.Context, list []loop, data variable.Context, object map[string]any, budget *patch.Budget) (map[string]any, error) {
	for i := range list {
		changed, err := list[i].apply(ctx, data, object, budget)
		if err != nil {
			return nil, err
		}
		if i+1 < len(list) && !same(object, changed) {
			data = withObject(data, changed)
		}
		object = changed
	}
	return object, nil
}

// withObject returns a context in which the object of the request, or the target of a
// rule that changes others, is another one.
func withObject(data variable.Context, object map[string]any) variable.Context {
	if _, ok := data["target"]; ok {
		return data.With("target", object)
	}
	return data.With("request", rulecontext.WithObject(data["request"], object))
}

// apply applies the patch for each element. All of them read the original object, and change the
// result of the previous ones.
func (l *loop) apply(ctx context.Context, data variable.Context, object map[string]any, budget *patch.Budget) (map[string]any, error) {
	elements, err := rulecontext.List(l.list, data)
	if err != nil {
		return nil, field.Below(l.path+".list", err)
	}
	inner := variable.Context{}
	for n := range elements {
		i := n
		if l.reverse {
			i = len(elements) - 1 - n
		}
		if elements[i] == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, field.Below(l.path, err)
		}
		clear(inner)
		rulecontext.Element(inner, data, elements[i], i, l.nesting)
		l.entries.Add(ctx, inner)
		object, err = l.element(ctx, inner, object, budget)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return object, nil
}

// element applies the patch for one element, unless its preconditions or the anchors of
// the patch leave the element alone. Where the preconditions are indeterminate, a patch that
// changes something is an error.
func (l *loop) element(ctx context.Context, data variable.Context, object map[string]any, budget *patch.Budget) (map[string]any, error) {
	var doubt error
	if l.preconditions != nil {
		result, err := l.preconditions.Evaluate(data)
		if err != nil {
			return nil, field.Below(l.path+".preconditions", err)
		}
		if !result.Held && !result.Indeterminate {
			return object, nil
		}
		doubt = field.Below(l.path+".preconditions", result.Cause())
	}
	changed, err := l.change(ctx, data, object, budget)
	if doubt != nil && (err != nil || !same(object, changed)) {
		return nil, doubt
	}
	return changed, err
}

func (l *loop) change(ctx context.Context, data variable.Context, object map[string]any, budget *patch.Budget) (map[string]any, error) {
	if l.patch == nil {
		return applyLoops(ctx, l.loops, data, object, budget)
	}
	changed, err := l.patch.ApplyWithin(data, object, budget)
	if _, skipped := errors.AsType[*patch.SkippedError](err); skipped {
		return object, nil
	}
	return changed, err
}
