package jsonpatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// step is an operation of patchesJson6902 as it is written.
type step struct {
	op, path, from string
	value          *yaml.Node
	at             string
}

// variables are those of a text of YAML, in the order of their marks, which replace them while the text is parsed.
type variables []string

// mark is a word that no policy has, before the number of a variable.
const mark = "QUAYMASTERVARIABLE"

// hide replaces variables by marks.
func (v *variables) hide(text string) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		if strings.HasSuffix(before, `\`) {
			return "", &source.Unsupported{Found: "an escaped variable"}
		}
		depth, end := 1, 0
		for i := 0; i+1 < len(after) && depth > 0; i++ {
			switch after[i : i+2] {
			case "{{":
				depth, i = depth+1, i+1
			case "}}":
				depth, i = depth-1, i+1
				end = i + 1
			}
		}
		if depth > 0 {
			return "", &source.Unsupported{Found: "a variable that is not closed"}
		}
		out.WriteString(mark + strconv.Itoa(len(*v)) + "Z")
		*v = append(*v, "{{"+after[:end-2]+"}}")
		text = after[end:]
	}
}

// show puts the variables back.
func (v variables) show(text string) string {
	for i, one := range v {
		text = strings.ReplaceAll(text, mark+strconv.Itoa(i)+"Z", one)
	}
	return text
}

// steps reads the operations of a text.
func steps(text string) (list []step, v variables, err error) {
	hidden, err := v.hide(text)
	if err != nil {
		return nil, nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(hidden), &root); err != nil || len(root.Content) != 1 {
		return nil, nil, &source.Unsupported{Found: "a text that is no list of operations"}
	}
	for i, item := range root.Content[0].Content {
		s := step{at: source.Index("", i)}
		for n := 0; n+1 < len(item.Content); n += 2 {
			value := item.Content[n+1]
			switch item.Content[n].Value {
			case "op":
				s.op = value.Value
			case "path":
				s.path = value.Value
			case "from":
				s.from = value.Value
			case "value":
				s.value = value
			}
		}
		list = append(list, s)
	}
	return list, v, nil
}

// value writes the value of an operation.
func (o *operations) value(n *yaml.Node, where string) (string, error) {
	if n == nil {
		return "", &source.Unsupported{Path: where, Found: "is missing"}
	}
	switch n.Kind {
	case yaml.SequenceNode:
		var entries, kinds []string
		for i, one := range n.Content {
			text, err := o.value(one, source.Index(where, i))
			if err != nil {
				return "", err
			}
			entries, kinds = append(entries, text), append(kinds, kindOf(one))
		}
		return mutation.Inline("[", uniform(entries, kinds), "]"), nil
	case yaml.MappingNode:
		var names, entries, kinds []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if strings.Contains(key, mark) || n.Content[i+1].Tag == "!!null" {
				return "", &source.Unsupported{Path: source.Below(where, o.variables.show(key)), Found: "a variable in a key, or null"}
			}
			text, err := o.value(n.Content[i+1], source.Below(where, key))
			if err != nil {
				return "", err
			}
			names, entries, kinds = append(names, celtext.String(key)), append(entries, text), append(kinds, kindOf(n.Content[i+1]))
		}
		entries = uniform(entries, kinds)
		for i := range entries {
			entries[i] = names[i] + ": " + entries[i]
		}
		return mutation.Inline("{", entries, "}"), nil
	case yaml.ScalarNode:
		return o.scalar(n, where)
	}
	return "", &source.Unsupported{Path: where, Found: "a reference of YAML"}
}

// uniform writes entries of several types as values of any type.
func uniform(entries, kinds []string) []string {
	computed := func(kind string) bool { return strings.Contains(kind, mark) }
	if len(slices.Compact(slices.Sorted(slices.Values(kinds)))) < 2 && (len(kinds) < 2 || !slices.ContainsFunc(kinds, computed)) {
		return entries
	}
	for i := range entries {
		entries[i] = "dyn(" + entries[i] + ")"
	}
	return entries
}

// kindOf is the type of a value; with the mark if it has a variable.
func kindOf(n *yaml.Node) string {
	if strings.Contains(n.Value, mark) {
		return mark
	}
	if len(n.Content) > 0 {
		return n.Tag + kindOf(n.Content[len(n.Content)-1])
	}
	return n.Tag
}

// scalar writes a scalar. A variable in quotes is a text; without quotes it has the type of its value, and a text
// would be read as YAML.
func (o *operations) scalar(n *yaml.Node, where string) (string, error) {
	if !strings.Contains(n.Value, mark) {
		var value any
		if err := n.Decode(&value); err != nil {
			return "", &source.Unsupported{Path: where, Found: err.Error()}
		}
		switch v := value.(type) {
		case string:
			if strings.Contains(v, "$(") {
				return "", &source.Unsupported{Path: where, Found: "a reference"}
			}
			return celtext.String(v), nil
		case bool:
			return strconv.FormatBool(v), nil
		case int:
			return strconv.Itoa(v), nil
		}
		return "", &source.Unsupported{Path: where, Found: fmt.Sprintf("the value %s", n.Value)}
	}
	o.reads = true
	written := o.variables.show(n.Value)
	isPlain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	compile := func(text string) (jmespath.Expression, error) { return jmespath.Template(text, o.scope) }
	if isPlain {
		compile = func(text string) (jmespath.Expression, error) { return jmespath.Value(text, o.scope) }
	}
	e, err := compile(written)
	if err != nil {
		return "", mutation.Within(where, err)
	}
	isSurelyText := strings.ContainsAny(strings.ReplaceAll(stripped(n.Value), mark, ""), "ghjkmpqvwz/@")
	switch {
	case e.Optional, e.Type == jmespath.Unknown, e.Type == jmespath.List, e.Type == jmespath.Map:
		return "", &source.Unsupported{Path: where, Found: fmt.Sprintf("the value %s, which may be null, a list or an object", written)}
	case isPlain && e.Type == jmespath.String && !isSurelyText:
		return "", &source.Unsupported{Path: where, Found: fmt.Sprintf("%s without quotes, whose text may read as a number, as true or as null", written)}
	}
	return e.Text, nil
}

// stripped removes the marks from a text.
func stripped(text string) string {
	for {
		before, after, found := strings.Cut(text, mark)
		if !found {
			return text
		}
		text = before + after[strings.Index(after, "Z")+1:]
	}
}
