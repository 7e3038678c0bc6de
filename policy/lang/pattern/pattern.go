package pattern

import (
	"cmp"
	"fmt"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/pattern/comparison"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// Pattern is a compiled pattern. It is immutable and safe for concurrent use.
type Pattern struct {
	root  node
	slots []slot
}

// Result is the outcome of matching an object. Exactly one of four is the case: Held, Skip, Err,
// or none of these, which is a failure.
type Result struct {
	Held bool
	// Partly, of Held: the condition at Path skips a part of the object, and another part holds. In
	// Kyverno the rule does not apply.
	Partly bool
	// Skip means that, by an anchor, the rule does not apply.
	Skip bool
	// Path is the first element that failed, or an anchor that does not hold,
	// as Kyverno prints it: /spec/containers/0/securityContext/privileged/. A
	// field that must be there and is not is named by the object it belongs in,
	// if the pattern is `*`.
	Path string
	// Why is the expected and the found value, as text for a user. It shows values of the object.
	Why string
	// Doubt is the reason why a failure may be none in another reading of the data; nil for
	// a certain failure.
	Doubt error
	// Err is the reason why the pattern cannot be evaluated: a variable is undefined
	// (*variable.Error), a bound is exceeded (jmespath.ErrTooLarge), or a condition is
	// indeterminate (comparison.ErrIndeterminate).
	Err error
}

// Compile reads a pattern, JSON as encoding/json decodes it. The value must not be modified
// afterwards. Errors are *variable.CompileError with the place as a JSON pointer: a bad
// expression, an anchor that only mutation supports, a reference to nothing, or an exceeded
// limit.
//
// References with an absolute path start at value.
func Compile(engine *jmespath.Engine, value any) (*Pattern, error) {
	value, err := jmespath.Normalize(value)
	if err != nil {
		return nil, compileError("", err)
	}
	if err := checkDepth(value, "", 0); err != nil {
		return nil, err
	}
	value, err = resolveReferences(value)
	if err != nil {
		return nil, err
	}
	c := compiler{engine: engine}
	root, err := c.compile(value, "", elsewhere)
	if err != nil {
		return nil, err
	}
	return &Pattern{root: root, slots: c.slots}, nil
}

// Match judges an object, or the element of a rule's foreach. The variables of the whole pattern
// are evaluated first, also those of parts that would not be reached. Neither data nor resource
// is modified.
func (p *Pattern) Match(data variable.Context, resource any) Result {
	return p.run(data, func(r *run) verdict { return p.root.match(r, resource) })
}

// MatchCondition is Match for the value of a condition, such as (x) in a patch. Where it holds in
// one reading and not in another, the result has Doubt.
func (p *Pattern) MatchCondition(data variable.Context, value any) Result {
	return p.run(data, func(r *run) verdict { return r.condition(p.root, value) })
}

func (p *Pattern) run(data variable.Context, match func(*run) verdict) Result {
	r := run{}
	if len(p.slots) > 0 {
		f := filler{data: data}
		for _, s := range p.slots {
			n, err := s.fill(&f)
			if err != nil {
				return Result{Err: err}
			}
			r.filled = append(r.filled, n)
		}
	}
	return result(match(&r))
}

func result(v verdict) Result {
	switch v.kind {
	case held:
		return Result{Held: true}
	case partly:
		return Result{Held: true, Partly: true, Path: v.why.path(), Why: v.why.String()}
	case broken:
		path := v.why.path()
		return Result{Path: path, Err: fmt.Errorf("%s: %w", path, v.why.err)}
	case failed:
		return Result{Path: v.why.path(), Why: v.why.String(), Doubt: v.why.doubt}
	}
	return Result{Skip: true, Path: v.why.path(), Why: v.why.String()}
}

// run is one match.
type run struct {
	filled []node // by slot
	budget comparison.Budget
	lax    bool // as in Kyverno: the first item of a pattern's list, and one of the keys that a wildcard matches
	strict bool // a part failed that lax leaves out
}

// condition judges the value of a condition. One that does not hold disables the rule, so that it
// is in doubt where it may hold in Kyverno.
func (r *run) condition(n node, value any) verdict {
	if r.lax { // of a condition around this one, which is in doubt or not as a whole
		return n.match(r, value)
	}
	before := r.strict
	r.strict = false
	v := n.match(r, value)
	if v.kind == failed && r.strict {
		r.lax = true
		lax := n.match(r, value)
		r.lax = false
		switch {
		case lax.kind == broken:
			v = lax
		case lax.kind.holds():
			v.why.doubt = fmt.Errorf("%w: of several items of a list, or of several keys that a wildcard matches, one holds, which may be the only one that Kyverno compares", comparison.ErrIndeterminate)
		default:
			v.why.doubt = cmp.Or(v.why.doubt, lax.doubt())
		}
	}
	r.strict = before
	return v
}
