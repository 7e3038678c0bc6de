// Package condition answers: do the conditions of a Kyverno policy hold, and
// which of them decided it?
//
// The form is Kyverno's ("Preconditions", 1.19): a block has `any`, `all` or
// both, a list of blocks holds when each does, and the old flat list of
// conditions means `all`. Evaluation stops at the condition that decides.
package condition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/variable"
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
	spelled    spelling // of value
	message    *variable.Template
	name       string
	operator   operator
}

// Outcome is one condition as it was evaluated.
type Outcome struct {
	Path     string // in what was compiled, such as /all/0
	Source   string // the key as the policy writes it, if that is a string
	Key      any
	Operator string
	Value    any
	Message  string // the policy's own, or ""
	Held     bool
	// Unsure says why the operator could not judge key and value, such as a
	// null key or an unordered pair. Kyverno counts such a condition as not
	// held, and so does Held; where that admits something, look here.
	Unsure string
	either bool // it would hold in one reading and not in another
}

// String says what was expected and what was found.
func (o Outcome) String() string {
	key := o.Source
	if key == "" {
		key = "key"
	}
	s := fmt.Sprintf("expected %s %s %s, found %s", key, o.Operator, show(o.Value), show(o.Key))
	if o.Unsure != "" {
		s += " (" + o.Unsure + ")"
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
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// Result says whether conditions held.
type Result struct {
	Held bool
	// Outcomes are the conditions that were evaluated, in order.
	Outcomes []Outcome
}

// Decisive returns the conditions that made the result what it is: those that
// held if it holds, and those that did not if it does not.
func (r Result) Decisive() []Outcome {
	var decisive []Outcome
	for _, outcome := range r.Outcomes {
		if outcome.Held == r.Held {
			decisive = append(decisive, outcome)
		}
	}
	return decisive
}

// Words says which conditions decided, in one line.
func (r Result) Words() string {
	var list []string
	for _, outcome := range r.Decisive() {
		list = append(list, outcome.String())
	}
	return strings.Join(list, "; ")
}

// Unsure returns an error for the first condition that an operator could not
// judge, or nil. A caller to whom "not held" means "let it pass" asks this.
func (r Result) Unsure() error {
	for _, outcome := range r.Outcomes {
		if outcome.Unsure != "" {
			return fmt.Errorf("%s: %s", outcome.Path, outcome)
		}
	}
	return nil
}

// InDoubt reports whether the conditions did not hold because of one that would
// in another reading: a wildcard that arrived with the data as a pattern or to
// the letter, or a key without an order inside or outside of a range. A caller
// to whom "not held" means "do not look" looks then.
func (r Result) InDoubt() bool {
	return !r.Held && slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.either })
}

// Compile reads conditions from JSON: a block, a list of blocks, or a list of
// conditions. Nil means none, and none hold. Errors are *variable.CompileError
// and name the place: an unknown field or operator, or a bad expression.
func Compile(engine *jmespath.Engine, value any) (*Conditions, error) {
	c := compiler{engine: engine}
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

// Evaluate evaluates the conditions on a context. An error, of type
// *variable.Error, says that a variable could not be filled in; the conditions
// then neither hold nor not.
func (c *Conditions) Evaluate(ctx variable.Context) (Result, error) {
	var result Result
	for _, b := range c.blocks {
		held, err := b.evaluate(ctx, &result)
		if err != nil || !held {
			return result, err
		}
	}
	result.Held = true
	return result, nil
}

func (b block) evaluate(ctx variable.Context, result *Result) (bool, error) {
	if b.hasAny {
		held := false
		for _, c := range b.any {
			outcome, err := c.evaluate(ctx)
			if err != nil {
				return false, err
			}
			result.Outcomes = append(result.Outcomes, outcome)
			if held = outcome.Held; held {
				break
			}
		}
		if !held {
			return false, nil
		}
	}
	for _, c := range b.all {
		outcome, err := c.evaluate(ctx)
		if err != nil {
			return false, err
		}
		result.Outcomes = append(result.Outcomes, outcome)
		if !outcome.Held {
			return false, nil
		}
	}
	return true, nil
}

func (c condition) evaluate(ctx variable.Context) (Outcome, error) {
	outcome := Outcome{Path: c.path, Source: c.source, Operator: c.name}
	var err error
	if outcome.Key, err = c.key.Execute(ctx); err != nil {
		return outcome, err
	}
	if outcome.Value, err = c.value.Execute(ctx); err != nil {
		return outcome, err
	}
	left := work(maxWork)
	judged := c.operator(pair{work: &left, key: outcome.Key, value: outcome.Value, keyIsPattern: c.key.Plain(), spelled: c.spelled})
	outcome.Held, outcome.Unsure, outcome.either = judged.held, judged.unsure, judged.either
	if message, err := c.message.Execute(ctx); err == nil && message != nil {
		outcome.Message = jmespath.Text(message)
	}
	return outcome, nil
}

type compiler struct {
	engine *jmespath.Engine
	blocks []block
	count  int
}

func fail(path string, format string, args ...any) error {
	return &variable.CompileError{Path: path, Err: fmt.Errorf(format, args...)}
}

// read reads the whole value.
func (c *compiler) read(value any) error {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		return c.readBlock(v, "")
	case []any:
		var flat block
		for i, item := range v {
			path := "/" + strconv.Itoa(i)
			object, ok := item.(map[string]any)
			if !ok {
				return fail(path, "want a condition or a block of any and all")
			}
			if isBlock(object) {
				if err := c.readBlock(object, path); err != nil {
					return err
				}
				continue
			}
			one, err := c.readCondition(object, path)
			if err != nil {
				return err
			}
			flat.all = append(flat.all, one)
		}
		if len(flat.all) > 0 {
			c.blocks = append(c.blocks, flat)
		}
		return nil
	}
	return fail("", "want a block of any and all, or a list")
}

func isBlock(object map[string]any) bool {
	_, hasAny := object["any"]
	_, hasAll := object["all"]
	return hasAny || hasAll
}

func (c *compiler) readBlock(object map[string]any, path string) error {
	var b block
	for _, key := range slices.Sorted(maps.Keys(object)) {
		place := path + "/" + key
		if key != "any" && key != "all" {
			return fail(place, "unknown field: want any or all")
		}
		if object[key] == nil {
			continue
		}
		items, ok := object[key].([]any)
		if !ok {
			return fail(place, "want a list of conditions")
		}
		read, err := c.readList(items, place)
		if err != nil {
			return err
		}
		if key == "any" {
			b.any, b.hasAny = read, true
		} else {
			b.all, b.hasAll = read, true
		}
	}
	c.blocks = append(c.blocks, b)
	return nil
}

func (c *compiler) readList(items []any, path string) ([]condition, error) {
	var conditions []condition
	for i, item := range items {
		place := path + "/" + strconv.Itoa(i)
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fail(place, "want a condition with key, operator and value")
		}
		one, err := c.readCondition(object, place)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, one)
	}
	return conditions, nil
}

func (c *compiler) readCondition(object map[string]any, path string) (condition, error) {
	if c.count++; c.count > maxConditions {
		return condition{}, fail(path, "the number of conditions %w of %d", jmespath.ErrTooLarge, maxConditions)
	}
	one := condition{path: path}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch key {
		case "key", "operator", "value", "message":
		default:
			return one, fail(path+"/"+key, "unknown field: want key, operator, value and message")
		}
	}
	if _, ok := object["key"]; !ok {
		return one, fail(path, "key is missing")
	}
	name, ok := object["operator"].(string)
	if !ok {
		return one, fail(path+"/operator", "want the name of an operator, such as Equals")
	}
	one.name = name
	if one.operator = operatorOf(name); one.operator == nil {
		return one, fail(path+"/operator", "unknown operator %q: want one of %s", name, strings.Join(Operators(), ", "))
	}
	if _, ok := object["message"].(string); !ok && object["message"] != nil {
		return one, fail(path+"/message", "want a string")
	}
	one.source, _ = object["key"].(string)
	var errs [3]error
	one.key, errs[0] = variable.CompileAt(c.engine, object["key"], path+"/key")
	one.value, errs[1] = variable.CompileAt(c.engine, object["value"], path+"/value")
	one.spelled = spellingOf(c.engine, object["value"])
	one.message, errs[2] = variable.CompileAt(c.engine, object["message"], path+"/message")
	return one, errors.Join(errs[:]...)
}
