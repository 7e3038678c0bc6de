package rego

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// The bounds.
const (
	// maxPolicy is far above what a person writes.
	maxPolicy = 256 << 10
	// maxData is the size of a large SBOM, in bytes of JSON.
	maxData = 16 << 20
	// maxTime is most of what an admission may take.
	maxTime = 2 * time.Second
	// maxWhy bounds the words of a failure.
	maxWhy = 500
)

// The names that a policy has.
const (
	module = "sigstore"
	answer = "isCompliant"
)

// Options are what a policy is compiled for.
type Options struct {
	// Absent are members that the documents have and that are not handed on. A
	// policy that speaks of one, or of input as a whole, is refused: it would
	// compare it with nothing.
	Absent []string
	// Now is the clock of time.now_ns; nil means that policies have none.
	Now func() time.Time
	// Time bounds one evaluation; zero means 2 s.
	Time time.Duration
}

// Condition is a compiled policy. It is safe for concurrent use.
type Condition struct {
	query rego.PreparedEvalQuery
	limit time.Duration
	now   func() time.Time // nil if the policy reads no clock
}

// Compile refuses what is no Rego, has no isCompliant, calls what is not allowed
// or speaks of what is absent.
func Compile(text string, options Options) (*Condition, error) {
	if len(text) > maxPolicy {
		return nil, fmt.Errorf("the policy of %d bytes exceeds the bound of %d", len(text), maxPolicy)
	}
	parsed, err := ast.ParseModuleWithOpts(module+".rego", text, ast.ParserOptions{
		RegoVersion: ast.RegoV0, Capabilities: capabilities(options.Now != nil),
	})
	if err != nil {
		return nil, words(err)
	}
	if err := check(parsed, options.Absent); err != nil {
		return nil, err
	}
	c := &Condition{limit: options.Time}
	if c.limit <= 0 {
		c.limit = maxTime
	}
	if readsClock(parsed) {
		c.now = options.Now
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	c.query, err = rego.New(
		rego.Query("x = data."+module+"."+answer),
		rego.ParsedModule(parsed),
		rego.SetRegoVersion(ast.RegoV0),
		rego.Capabilities(capabilities(options.Now != nil)),
		rego.StrictBuiltinErrors(true),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, words(err)
	}
	return c, nil
}

// Timeless reports whether the condition says the same of the same data at any
// time.
func (c *Condition) Timeless() bool { return c.now == nil }

// Holds reports whether the policy holds for the data, decoded JSON. When it does
// not, why is the policy's own error, if it has one.
func (c *Condition) Holds(data any) (holds bool, why string, err error) {
	text, err := json.Marshal(data)
	if err != nil {
		return false, "", err
	}
	if len(text) > maxData {
		return false, "", fmt.Errorf("the data of %d bytes exceeds the bound of %d", len(text), maxData)
	}
	input, err := ast.ValueFromReader(strings.NewReader(string(text)))
	if err != nil {
		return false, "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	options := []rego.EvalOption{rego.EvalParsedInput(input)}
	if c.now != nil {
		options = append(options, rego.EvalTime(c.now()))
	}
	results, err := c.query.Eval(ctx, options...)
	if err != nil {
		if ctx.Err() != nil {
			return false, "", fmt.Errorf("the policy in Rego took longer than %s: %w", c.limit, ctx.Err())
		}
		return false, "", words(err)
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

// all wants every result of a list to be true, and at least one.
func all(list []any) (bool, string) {
	for _, one := range list {
		object, _ := one.(map[string]any)
		if held, ok := object["result"].(bool); ok && held {
			continue
		}
		if said, ok := object["error"].(string); ok && said != "" {
			return false, shorten(said)
		}
		return false, answer + " has a result that is not true"
	}
	return len(list) > 0, ifNot(len(list) > 0, answer+" has no result")
}

func ifNot(held bool, why string) string {
	if held {
		return ""
	}
	return why
}

// capabilities are the functions that compute and nothing else.
func capabilities(clock bool) *ast.Capabilities {
	all := ast.CapabilitiesForThisVersion()
	all.AllowNet = []string{} // none, where nil would be all
	all.Builtins = slices.DeleteFunc(all.Builtins, func(b *ast.Builtin) bool { return forbidden(b, clock) })
	return all
}

func forbidden(b *ast.Builtin, clock bool) bool {
	for _, prefix := range []string{"http.", "net.", "opa.", "rego.", "providers.", "rand.", "uuid.", "io.", "graphql.", "crypto.x509."} {
		if strings.HasPrefix(b.Name, prefix) {
			return true
		}
	}
	switch b.Name {
	case clockName:
		return !clock
	case "trace", "print", "internal.print", "numbers.range_step", "strings.render_template", "json.match_schema", "json.verify_schema":
		return true
	}
	return b.Nondeterministic
}

const clockName = "time.now_ns"

func readsClock(m *ast.Module) (reads bool) {
	ast.WalkRefs(m, func(r ast.Ref) bool {
		reads = reads || r.String() == clockName
		return false
	})
	return reads
}

// check looks at a policy before it is evaluated at all.
func check(m *ast.Module, absent []string) error {
	if m.Package.Path.String() != "data."+module {
		return fmt.Errorf("want package %s, found %s", module, strings.TrimPrefix(m.Package.Path.String(), "data."))
	}
	if !slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return r.Head.Ref().String() == answer }) {
		return fmt.Errorf("it has no rule %s", answer)
	}
	if len(absent) == 0 {
		return nil
	}
	return speaks(m, absent)
}

// speaks refuses what could be about an absent member: input as a whole, one of
// its members whose name is not written out, and the absent ones.
func speaks(m *ast.Module, absent []string) (err error) {
	var seen, followed int
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if v, ok := t.Value.(ast.Var); ok && v.Equal(ast.InputRootDocument.Value) {
			seen++
		}
		ref, ok := t.Value.(ast.Ref)
		if !ok || len(ref) < 2 || !ref.HasPrefix(ast.InputRootRef) {
			return false
		}
		followed++
		name, ok := ref[1].Value.(ast.String)
		switch {
		case !ok:
			err = fmt.Errorf("%s: %s may be about %s, which is not handed on: write out the name", t.Location, ref, strings.Join(absent, " or "))
		case slices.Contains(absent, string(name)):
			err = fmt.Errorf("%s: %s is not handed on: it was compared when the statement was proved", t.Location, ref)
		}
		return false
	})
	if err == nil && seen > followed {
		err = errors.New("input as a whole is more than what is handed on: name its members")
	}
	return err
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
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxWhy {
		return strings.ToValidUTF8(s[:maxWhy], "") + "..."
	}
	return s
}
