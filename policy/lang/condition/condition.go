// Package condition evaluates the conditions of a Kyverno policy in three-valued logic,
// and reports which of them decided.
//
// The form is Kyverno's ("Preconditions", 1.19): a block has `any`, `all` or
// both, a list of blocks holds when each does, and the old flat list of
// conditions means `all`. Evaluation stops at the condition that decides.
//
// A condition is indeterminate if it holds in one reading of the data and not in another:
// a wildcard or a range that the policy does not spell out, a value of another kind, an
// order of values that have none. A null key is not held by any operator, as in Kyverno;
// under a negated operator, and in data that a statement or an image brings, it is
// indeterminate.
package condition

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// maxConditions bounds the conditions in one value, for each may be evaluated
// in every request.
const maxConditions = 1000

// Conditions are compiled conditions. They are immutable and safe for
// concurrent use.
type Conditions struct{ blocks []block }

type block struct {
	any, all       []condition
	hasAny, hasAll bool
}

type condition struct {
	path       string
	source     string // of the key, for messages
	key, value *variable.Template
	// spelledKey and spelled distinguish wildcards of the policy from those of the data.
	spelledKey, spelled spelling
	message             *variable.Template
	name                string
	operator            operator
	// foreign: key or value is what a statement or an image brings.
	foreign bool
	use     use
}

// use is what conditions decide.
type use byte

const (
	decides use = iota
	denies      // the object is denied where they hold
	exempts     // less is demanded where they hold
	demands     // less is demanded where they do not hold
)

// Outcome is one condition as it was evaluated.
type Outcome struct {
	Path     string // in the compiled document, such as /all/0
	Source   string // the key as the policy writes it, if that is a string
	Key      any
	Operator string
	Value    any
	Message  string // the policy's own, or ""
	Held     bool
	// Indeterminate: it holds in one reading and not in another, and so Held is false.
	Indeterminate bool
	// Why is the reason where it is indeterminate, or where the operator is not for key
	// and value, such as a null key, so that it does not hold.
	Why string
}

// String returns the expected and the found value.
func (o Outcome) String() string {
	key := o.Source
	if key == "" {
		key = "key"
	}
	s := fmt.Sprintf("expected %s %s %s, found %s", key, o.Operator, show(o.Value), show(o.Key))
	if o.Why != "" {
		s += " (" + o.Why + ")"
	}
	if o.Message != "" {
		s += ": " + o.Message
	}
	return s
}

// show keeps a value readable in a message.
func show(value any) string {
	const most = 200
	text := jmespath.Text(value)
	if s, ok := value.(string); ok {
		text = strconv.Quote(s)
	}
	return limit.Text(text, most)
}

// Result is true, false or indeterminate.
type Result struct {
	Held bool
	// Indeterminate: the conditions hold in one reading of the data and not in another.
	Indeterminate bool
	// Outcomes are the conditions that were evaluated, in order.
	Outcomes []Outcome
}

// Decisive returns the conditions that determined the result: those that held if it holds, those
// that did not if it does not, and otherwise the indeterminate ones.
func (r Result) Decisive() []Outcome {
	var decisive []Outcome
	for _, outcome := range r.Outcomes {
		if outcome.Held == r.Held && outcome.Indeterminate == r.Indeterminate {
			decisive = append(decisive, outcome)
		}
	}
	return decisive
}

// Words lists the decisive conditions, in one line.
func (r Result) Words() string {
	var list []string
	for _, outcome := range r.Decisive() {
		list = append(list, outcome.String())
	}
	return strings.Join(list, "; ")
}

// Cause returns an error for the first indeterminate condition if the result is
// indeterminate, else nil.
func (r Result) Cause() error {
	for _, outcome := range r.Outcomes {
		if r.Indeterminate && outcome.Indeterminate {
			return fmt.Errorf("%s: the condition is indeterminate: %s", outcome.Path, outcome)
		}
	}
	return nil
}

// Compiler is one of the functions that compile conditions; they differ in what the conditions decide.
type Compiler func(engine *jmespath.Engine, value any) (*Conditions, error)

// Compile reads conditions from JSON: a block, a list of blocks, or a list of
// conditions. Nil means none, and none hold. Errors are *variable.CompileError
// and name the place: an unknown field or operator, or a bad expression.
func Compile(engine *jmespath.Engine, value any) (*Conditions, error) {
	return compile(compiler{engine: engine}, value)
}

// CompileDeny is Compile for conditions that deny where they hold. There, a wildcard in the
// data covers the values that it matches, as in Kyverno: the verb `*` is every verb.
func CompileDeny(engine *jmespath.Engine, value any) (*Conditions, error) {
	return compile(compiler{engine: engine, use: denies}, value)
}

// CompileExempting is Compile for conditions that demand less where they hold, such as those of an exception, or do more,
// such as those of a rule that creates objects. One that holds here, and not in Kyverno 1.19, is indeterminate.
func CompileExempting(engine *jmespath.Engine, value any) (*Conditions, error) {
	return compile(compiler{engine: engine, use: exempts}, value)
}

// CompileDemanding is Compile for conditions that demand less where they do not hold, such as the preconditions of a rule
// that denies. One that does not hold here, and does in Kyverno 1.19, is indeterminate.
func CompileDemanding(engine *jmespath.Engine, value any) (*Conditions, error) {
	return compile(compiler{engine: engine, use: demands}, value)
}

func compile(c compiler, value any) (*Conditions, error) {
	if err := c.read(value); err != nil {
		return nil, err
	}
	return &Conditions{blocks: c.blocks}, nil
}

// Empty reports whether there is no condition, so that Evaluate holds.
func (c *Conditions) Empty() bool {
	for _, b := range c.blocks {
		if b.hasAny || len(b.all) > 0 {
			return false
		}
	}
	return true
}

// Evaluate evaluates the conditions on a context. An error, of type *variable.Error, means that a
// variable could not be resolved; the conditions then neither hold nor fail.
func (c *Conditions) Evaluate(ctx variable.Context) (Result, error) {
	result := Result{Held: true}
	for _, b := range c.blocks {
		err := b.evaluate(ctx, &result)
		if err != nil || !result.Held && !result.Indeterminate {
			return result, err
		}
	}
	return result, nil
}

// evaluate combines the block with the result so far as a conjunction. One false condition in
// all, or only false ones in any, make it false, even if others are indeterminate.
func (b block) evaluate(ctx variable.Context, result *Result) error {
	if b.hasAny {
		held, indeterminate := false, false
		for _, c := range b.any {
			outcome, err := c.evaluate(ctx)
			if err != nil {
				return result.fail(err)
			}
			result.Outcomes = append(result.Outcomes, outcome)
			indeterminate = indeterminate || outcome.Indeterminate
			held = outcome.Held
			if held {
				break
			}
		}
		result.and(held, indeterminate && !held)
		if !held && !indeterminate {
			return nil
		}
	}
	for _, c := range b.all {
		outcome, err := c.evaluate(ctx)
		if err != nil {
			return result.fail(err)
		}
		result.Outcomes = append(result.Outcomes, outcome)
		result.and(outcome.Held, outcome.Indeterminate)
		if !outcome.Held && !outcome.Indeterminate {
			return nil
		}
	}
	return nil
}

// and adds a part that is to hold, too.
func (r *Result) and(held, indeterminate bool) {
	switch {
	case !held && !indeterminate:
		r.Held, r.Indeterminate = false, false
	case indeterminate:
		r.Held, r.Indeterminate = false, true
	}
}

func (r *Result) fail(err error) error {
	r.Held, r.Indeterminate = false, false
	return err
}

func (c condition) evaluate(ctx variable.Context) (Outcome, error) {
	outcome := Outcome{Path: c.path, Source: c.source, Operator: c.name}
	var err error
	outcome.Key, err = c.key.Execute(ctx)
	if err != nil {
		return outcome, err
	}
	outcome.Value, err = c.value.Execute(ctx)
	if err != nil {
		return outcome, err
	}
	left := work(maxWork)
	judged := c.operator(pair{
		work: &left, key: outcome.Key, value: outcome.Value, spelledKey: c.spelledKey, spelled: c.spelled,
		foreign: c.foreign, covers: c.use == denies && !negated(c.name),
	})
	judged = c.narrowed(judged, outcome.Key, outcome.Value)
	outcome.Held, outcome.Indeterminate, outcome.Why = judged.held, judged.indeterminate, judged.why
	if message, err := c.message.Execute(ctx); err == nil && message != nil {
		outcome.Message = jmespath.Text(message)
	}
	return outcome, nil
}

// otherwise is the reason where a result would demand less than Kyverno does.
const otherwise = "Kyverno 1.19 evaluates it otherwise"

// narrowed makes a result indeterminate that demands less than Kyverno's, or may.
func (c condition) narrowed(judged judgement, key, value any) judgement {
	if judged.indeterminate || c.use != exempts && c.use != demands || judged.held != (c.use == exempts) {
		return judged
	}
	if !agrees(c.name, key, value, judged.held) {
		return indeterminate(otherwise)
	}
	return judged
}
