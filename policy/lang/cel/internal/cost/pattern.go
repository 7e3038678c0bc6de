package cost

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// The functions that apply regular expressions: two of Kubernetes, and three of cel-go.
const (
	findName       = "find"
	findAllName    = "findAll"
	extractName    = "regex.extract"
	extractAllName = "regex.extractAll"
	replaceName    = "regex.replace"
)

// isLenient reports whether an invalid constant is an error of the evaluation, as the library has it, and not of the program.
func isLenient(function string) bool { return strings.HasPrefix(function, "regex.") }

// runOf implements a call that compiles its regular expression once, or keeps the last one; nil for others.
func runOf(function string, arguments []interpreter.InterpretableV2) (functions.FunctionOp, error) {
	compiled, err := constantPattern(arguments)
	switch {
	case err != nil && !isLenient(function):
		return nil, fmt.Errorf("%s: %w", function, err)
	case compiled != nil:
		return compiled.run(function), nil
	case function == overloads.Matches:
		return new(lastPattern).matches, nil
	}
	return nil, nil
}

// compiledPattern is a constant regular expression, which is compiled once.
type compiledPattern struct{ *regexp.Regexp }

// constantPattern compiles the regular expression of a call, and returns nil for one that is not constant.
func constantPattern(arguments []interpreter.InterpretableV2) (*compiledPattern, error) {
	if len(arguments) < 2 {
		return nil, nil
	}
	constant, ok := arguments[1].(interpreter.InterpretableConst)
	if !ok {
		return nil, nil
	}
	text, ok := constant.Value().(types.String)
	if !ok {
		return nil, nil // refused when it is called
	}
	if checkPattern(string(text)) != nil {
		return nil, nil //nolint:nilerr // its price is an error
	}
	compiled, err := regexp.Compile(string(text))
	if err != nil {
		return nil, err
	}
	return &compiledPattern{compiled}, nil
}

// run implements a function.
func (p *compiledPattern) run(function string) functions.FunctionOp {
	of := map[string]func(text string, more []ref.Val) ref.Val{
		overloads.Matches: func(text string, _ []ref.Val) ref.Val { return types.Bool(p.MatchString(text)) },
		findName:          func(text string, _ []ref.Val) ref.Val { return types.String(p.FindString(text)) },
		findAllName:       p.findAll, extractName: p.extract, extractAllName: p.extractAll, replaceName: p.replace,
	}[function]
	return func(v ...ref.Val) ref.Val {
		text, ok := v[0].(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(v[0])
		}
		return of(string(text), v[2:])
	}
}

// maxKept bounds the regular expressions that are kept although they are not constant, in bytes.
const maxKept = 256

// lastPattern keeps the last regular expression that a call of matches computed: a value of the data that is a pattern is the
// same for each element of a loop, and often for the next object.
type lastPattern struct {
	last atomic.Pointer[compiledPattern]
}

func (l *lastPattern) matches(v ...ref.Val) ref.Val {
	text, ok := v[0].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v[0])
	}
	expression, ok := v[1].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v[1])
	}
	p := l.last.Load()
	if p == nil || p.String() != string(expression) {
		compiled, err := regexp.Compile(string(expression))
		if err != nil {
			return types.WrapErr(err)
		}
		p = &compiledPattern{compiled}
		if len(expression) <= maxKept && !isLarge(string(expression)) {
			l.last.Store(p)
		}
	}
	return types.Bool(p.MatchString(string(text)))
}

func (p *compiledPattern) findAll(text string, more []ref.Val) ref.Val {
	most := types.Int(-1)
	if len(more) > 0 {
		var ok bool
		most, ok = more[0].(types.Int)
		if !ok {
			return types.MaybeNoSuchOverloadErr(more[0])
		}
	}
	return types.NewStringList(types.DefaultTypeAdapter, p.FindAllString(text, int(most)))
}

// group is the group whose text is extracted: the only one, or the whole match.
func (p *compiledPattern) group() (int, error) {
	if p.NumSubexp() > 1 {
		return 0, fmt.Errorf("regular expression has more than one capturing group: %q", p)
	}
	return p.NumSubexp(), nil
}

func (p *compiledPattern) extract(text string, _ []ref.Val) ref.Val {
	group, err := p.group()
	if err != nil {
		return types.WrapErr(err)
	}
	found := p.FindStringSubmatch(text)
	if found == nil || group > 0 && found[group] == "" {
		return types.OptionalNone
	}
	return types.OptionalOf(types.String(found[group]))
}

func (p *compiledPattern) extractAll(text string, _ []ref.Val) ref.Val {
	group, err := p.group()
	if err != nil {
		return types.WrapErr(err)
	}
	all := []string{}
	for _, found := range p.FindAllStringSubmatch(text, -1) {
		if group == 0 || found[group] != "" {
			all = append(all, found[group])
		}
	}
	return types.NewStringList(types.DefaultTypeAdapter, all)
}

func (p *compiledPattern) replace(text string, more []ref.Val) ref.Val {
	with, ok := more[0].(types.String)
	most := types.Int(-1)
	if ok && len(more) > 1 {
		most, ok = more[1].(types.Int)
	}
	if !ok {
		return types.NewErr("no such overload: %s", replaceName)
	}
	if most == 0 {
		return types.String(text)
	}
	var out strings.Builder
	last := 0
	for i, found := range p.FindAllStringSubmatchIndex(text, -1) {
		if most > 0 && i == int(most) {
			break
		}
		out.WriteString(text[last:found[0]])
		if err := p.expand(&out, string(with), text, found); err != nil {
			return types.WrapErr(err)
		}
		last = found[1]
	}
	out.WriteString(text[last:])
	return types.String(out.String())
}

// expand writes a replacement, in which a backslash and a digit are the text of a group, and two backslashes one.
func (p *compiledPattern) expand(out *strings.Builder, with, text string, found []int) error {
	for left := with; ; {
		plain, rest, isEscaped := strings.Cut(left, `\`)
		out.WriteString(plain)
		switch {
		case !isEscaped:
			return nil
		case rest == "":
			return fmt.Errorf(`invalid replacement string: '%s' \ not allowed at end`, with)
		case rest[0] == '\\':
			out.WriteByte('\\')
		case rest[0] < '0' || rest[0] > '9':
			return fmt.Errorf(`invalid replacement string: '%s' \ must be followed by a digit or \`, with)
		default:
			group := int(rest[0] - '0')
			if group > p.NumSubexp() {
				return fmt.Errorf("replacement string references group %d but regex has only %d group(s)", group, p.NumSubexp())
			}
			if from, to := found[2*group], found[2*group+1]; from >= 0 {
				out.WriteString(text[from:to])
			}
		}
		left = rest[1:]
	}
}
