package generating

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

// template is a compiled template: documents of decoded YAML, in which a text with expressions is a phrase. A
// nil template has no documents.
type template struct {
	path      string
	documents []any
	phrases   []*phrase
}

// phrase is a text with expressions. If it is one expression and nothing else, its value is of any type.
type phrase struct{ parts []part }

// part is a text, or an expression.
type part struct {
	text    string
	program *cel.Program
}

// maxTemplateDepth bounds the nesting of a template, which is walked recursively.
const maxTemplateDepth = 100

// compileTemplate reads a template.
func compileTemplate(scope *cel.Scope, doc *v1alpha1.GenerationTemplate, path string) (*template, error) {
	t := &template{path: path + ".value"}
	var interpolate bool
	switch doc.Interpolate {
	case "", v1alpha1.InterpolationModeNone:
	case v1alpha1.InterpolationModeCEL:
		interpolate = true
	default:
		return nil, field.Fail(path+".interpolate", "unknown value %q: want none or cel", doc.Interpolate)
	}
	reader := yamlreader.NewYAMLReader(bufio.NewReader(strings.NewReader(doc.Value)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var value any
		if err == nil {
			err = yaml.UnmarshalStrict(text, &value)
		}
		if err != nil {
			return nil, field.Fail(t.path, "document %d: %w", len(t.documents)+1, err)
		}
		if value == nil {
			continue
		}
		place := "document " + strconv.Itoa(len(t.documents)+1)
		if interpolate {
			value, err = t.compile(scope, value, place, 0)
			if err != nil {
				return nil, err
			}
		}
		switch root := value.(type) {
		case map[string]any:
		case *phrase:
			if len(root.parts) != 1 {
				return nil, field.Fail(t.path, "%s: want an object", place)
			}
		default:
			return nil, field.Fail(t.path, "%s: want an object", place)
		}
		t.documents = append(t.documents, value)
	}
	if len(t.documents) == 0 {
		return nil, field.Fail(t.path, "has no document")
	}
	return t, nil
}

// compile returns a value with phrases in place of the texts that have expressions.
func (t *template) compile(scope *cel.Scope, value any, place string, depth int) (any, error) {
	if depth > maxTemplateDepth {
		return nil, field.Fail(t.path, "%s is nested deeper than %d", place, maxTemplateDepth)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if strings.Contains(key, "((") {
				return nil, field.Fail(t.path, "%s: the key %q has an expression: write one as the value of the whole field above it", place, key)
			}
			compiled, err := t.compile(scope, member, place+", "+key, depth+1)
			if err != nil {
				return nil, err
			}
			v[key] = compiled
		}
	case []any:
		for i, item := range v {
			compiled, err := t.compile(scope, item, place+"["+strconv.Itoa(i)+"]", depth+1)
			if err != nil {
				return nil, err
			}
			v[i] = compiled
		}
	case string:
		parts, err := split(v)
		if err != nil {
			return nil, field.Fail(t.path, "%s: %w", place, err)
		}
		return t.phrase(scope, parts)
	}
	return value, nil
}

// phrase compiles the expressions of a text; without any it is the text.
func (t *template) phrase(scope *cel.Scope, parts []fragment) (any, error) {
	p := &phrase{}
	literal := ""
	isText := true
	for _, one := range parts {
		if !one.isExpression {
			literal += one.text
			p.parts = append(p.parts, part{text: one.text})
			continue
		}
		isText = false
		program, err := scope.Compile(t.path, one.text)
		if err != nil {
			return nil, err
		}
		p.parts = append(p.parts, part{program: program})
	}
	if isText {
		return literal, nil
	}
	t.phrases = append(t.phrases, p)
	return p, nil
}

// programs are the expressions.
func (t *template) programs() []*cel.Program {
	if t == nil {
		return nil
	}
	var list []*cel.Program
	for _, p := range t.phrases {
		for _, one := range p.parts {
			if one.program != nil {
				list = append(list, one.program)
			}
		}
	}
	return list
}

// make makes the objects of the documents, each in its own namespace.
func (t *template) make(ctx context.Context, activation *cel.Activation, p *production) error {
	for i, document := range t.documents {
		filled, err := fill(ctx, activation, document)
		if err != nil {
			return err
		}
		object, is := filled.(map[string]any)
		if !is {
			return field.Fail(t.path, "document %d: want an object", i+1)
		}
		metadata, _ := object["metadata"].(map[string]any)
		namespace := text(metadata, "namespace")
		if own := p.rule.namespace; own != "" {
			if namespace != "" && namespace != own {
				return field.Fail(t.path, "document %d: a policy of namespace %s cannot generate into namespace %s", i+1, own, namespace)
			}
			namespace = own
		}
		if err := p.add(object, namespace); err != nil {
			return field.Fail(t.path, "document %d: %w", i+1, err)
		}
	}
	return nil
}

// fill returns a value with the values of its expressions.
func fill(ctx context.Context, activation *cel.Activation, value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		filled := make(map[string]any, len(v))
		for key, member := range v {
			var err error
			filled[key], err = fill(ctx, activation, member)
			if err != nil {
				return nil, err
			}
		}
		return filled, nil
	case []any:
		filled := make([]any, len(v))
		for i, item := range v {
			var err error
			filled[i], err = fill(ctx, activation, item)
			if err != nil {
				return nil, err
			}
		}
		return filled, nil
	case *phrase:
		return v.fill(ctx, activation)
	}
	return value, nil
}

// fill evaluates the expressions of a text.
func (p *phrase) fill(ctx context.Context, activation *cel.Activation) (any, error) {
	var whole strings.Builder
	for _, one := range p.parts {
		if one.program == nil {
			whole.WriteString(one.text)
			continue
		}
		value, err := one.program.Eval(ctx, activation)
		if err != nil {
			return nil, err
		}
		native, err := library.Native(value)
		if err != nil {
			return nil, field.Fail(one.program.Path(), "%w", err)
		}
		if len(p.parts) == 1 {
			return native, nil
		}
		switch native.(type) {
		case string, bool, int64, uint64, float64:
			fmt.Fprint(&whole, native)
		default:
			return nil, field.Fail(one.program.Path(), "an expression within a text must be a text, a number or a boolean: %s", whole.String())
		}
	}
	return whole.String(), nil
}

// fragment is a part of a text as it is written.
type fragment struct {
	text         string
	isExpression bool
}

// split finds the expressions of a text, each in (( and )). A (( after a backslash is a text.
func split(s string) ([]fragment, error) {
	var list []fragment
	literal := ""
	for s != "" {
		open := strings.Index(s, "((")
		if open < 0 {
			literal += s
			break
		}
		if open > 0 && s[open-1] == '\\' {
			literal, s = literal+s[:open-1]+"((", s[open+2:]
			continue
		}
		literal, s = literal+s[:open], s[open+2:]
		length, err := lengthOf(s)
		if err != nil {
			return nil, err
		}
		if literal != "" {
			list = append(list, fragment{text: literal})
			literal = ""
		}
		list = append(list, fragment{text: strings.TrimSpace(s[:length]), isExpression: true})
		s = s[length+2:]
	}
	if literal != "" || len(list) == 0 {
		list = append(list, fragment{text: literal})
	}
	return list, nil
}

// lengthOf returns the length of an expression before its )), which are not within parentheses or a text.
func lengthOf(s string) (int, error) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ')' && strings.HasPrefix(s[i:], "))"):
			if strings.TrimSpace(s[:i]) == "" {
				return 0, errors.New("(( )) has no expression")
			}
			return i, nil
		case c == ')':
			return 0, errors.New("a parenthesis in (( )) is not opened")
		}
	}
	return 0, errors.New("(( is not closed by ))")
}
