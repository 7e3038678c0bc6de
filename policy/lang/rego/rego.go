package rego

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// The bounds.
const (
	// maxPolicy is far above hand-written policies.
	maxPolicy = 256 << 10
	// maxDepth bounds how deep brackets are nested; people get along with ten.
	maxDepth = 50
	// maxComprehensions bounds the nesting of comprehensions: each level doubles the time of
	// compilation, which cannot be interrupted.
	maxComprehensions = 8
	// maxData is the size of a large SBOM, in bytes of JSON.
	maxData = 16 << 20
	// maxTime is most of the time of an admission.
	maxTime = 2 * time.Second
	// maxRunning bounds evaluations of one policy at once, those included that go on
	// after their time, inside a function that cannot be interrupted.
	maxRunning = 8
	// maxWhy bounds the words of a failure.
	maxWhy = 500
)

// The names that a policy has.
const (
	module = "sigstore"
	answer = "isCompliant"
)

// Options are the options of a compilation.
type Options struct {
	// Absent are members of the documents that are not in the input. A policy that refers to
	// one, or to input as a whole, is refused: it would compare it with nothing.
	Absent []string
	// AbsentWhy is the reason, for messages.
	AbsentWhy string
	// Members are all members that the documents may have; none means any. A policy that
	// refers to another one, or to input as a whole, is refused: it may be misspelt, and "not"
	// would hold for everything.
	Members []string
	// Names are all names that there may be below a path of names, as "member" or "member.name";
	// a policy that refers to another one is refused.
	Names map[string][]string
	// Now is the clock of time.now_ns; nil means that policies have none.
	Now func() time.Time
	// Time bounds one evaluation; zero means 2 s.
	Time time.Duration
}

// Condition is a compiled policy. It is safe for concurrent use.
type Condition struct {
	query   rego.PreparedEvalQuery
	limit   time.Duration
	now     func() time.Time // nil if the policy reads no clock
	members []string         // of the input that the policy names
	running chan struct{}
}

// Compile refuses text that is no Rego, has no isCompliant, calls a forbidden function or
// refers to an absent member.
func Compile(text string, options Options) (*Condition, error) {
	if len(text) > maxPolicy {
		return nil, fmt.Errorf("the policy of %d bytes exceeds the bound of %d", len(text), maxPolicy)
	}
	if depth(text) > maxDepth {
		return nil, fmt.Errorf("its brackets are nested deeper than %d", maxDepth)
	}
	parsed, err := ast.ParseModuleWithOpts(module+".rego", text, ast.ParserOptions{
		RegoVersion: ast.RegoV0, Capabilities: capabilities(options.Now != nil),
	})
	if err != nil {
		return nil, words(err)
	}
	if err := check(parsed, options); err != nil {
		return nil, err
	}
	if err := order(parsed); err != nil {
		return nil, err
	}
	c := &Condition{limit: options.Time, running: make(chan struct{}, maxRunning)}
	if c.limit <= 0 {
		c.limit = maxTime
	}
	c.members = membersOf(parsed)
	if readsClock(parsed) {
		c.now = options.Now
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	c.query, err = rego.New(append(functions(),
		rego.Query("x = data."+module+"."+answer),
		rego.ParsedModule(parsed),
		rego.SetRegoVersion(ast.RegoV0),
		rego.Capabilities(capabilities(options.Now != nil)),
		rego.StrictBuiltinErrors(true),
	)...).PrepareForEval(ctx)
	if err != nil {
		return nil, words(err)
	}
	return c, nil
}

// Timeless reports whether the condition gives the same result for the same data at any
// time.
func (c *Condition) Timeless() bool { return c.now == nil }

// Reads reports whether the policy names a member of the input.
func (c *Condition) Reads(member string) bool { return slices.Contains(c.members, member) }

// Holds reports whether the policy holds for the data, decoded JSON, such as by Decode.
// When it does not, why is the policy's own error, if it has one.
func (c *Condition) Holds(data any) (holds bool, why string, err error) {
	text, err := json.Marshal(data)
	if err != nil {
		return false, "", err
	}
	if len(text) > maxData {
		return false, "", fmt.Errorf("the data of %d bytes exceeds the bound of %d", len(text), maxData)
	}
	exact, err := Decode(text)
	if err != nil {
		return false, "", err
	}
	input, err := ast.InterfaceToValue(exact)
	if err != nil {
		return false, "", err
	}
	results, err := c.bounded(input)
	if err != nil {
		return false, "", err
	}
	for _, result := range results {
		switch value := result.Bindings["x"].(type) {
		case bool:
			return value, ifNot(value, answer+" is false"), nil
		case []any:
			holds, why := all(value)
			return holds, why, nil
		}
		return false, answer + " is neither true nor a list of results", nil
	}
	return false, answer + " is undefined", nil
}

// all requires every result of a list to be compliant, and at least one.
func all(list []any) (bool, string) {
	for _, one := range list {
		object, _ := one.(map[string]any)
		if held, why := compliant(object); !held {
			return false, why
		}
	}
	return len(list) > 0, ifNot(len(list) > 0, answer+" has no result")
}

// compliant requires a result that is true, without a warning: policy-controller, which reads the
// members in any case, takes a warning and a member that it cannot read for failures.
func compliant(object map[string]any) (bool, string) {
	var is, isNot bool
	var warning, failure, unreadable string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		text, isText := value.(string)
		switch {
		case value == nil:
		case strings.EqualFold(name, "result"):
			is = value == true
			isNot = isNot || !is
		case strings.EqualFold(name, "warning") && isText:
			warning = cmp.Or(warning, text)
		case strings.EqualFold(name, "error") && isText:
			failure = cmp.Or(failure, text)
		case strings.EqualFold(name, "warning"), strings.EqualFold(name, "error"):
			unreadable = name
		}
	}
	switch {
	case !is || isNot:
		return false, cmp.Or(shorten(failure), answer+" has a result that is not true")
	case unreadable != "":
		return false, fmt.Sprintf("%s has a result whose %s is no text", answer, unreadable)
	case warning != "":
		return false, "warning: " + shorten(warning)
	}
	return true, ""
}

func ifNot(held bool, why string) string {
	if held {
		return ""
	}
	return why
}

// words puts OPA's errors into one line.
func words(err error) error {
	if list, ok := errors.AsType[ast.Errors](err); ok {
		var lines []string
		for _, one := range list {
			lines = append(lines, one.Error())
		}
		return errors.New(shorten(strings.Join(lines, "; ")))
	}
	return errors.New(shorten(err.Error()))
}

func shorten(s string) string {
	return limit.Text(strings.Join(strings.Fields(s), " "), maxWhy)
}
