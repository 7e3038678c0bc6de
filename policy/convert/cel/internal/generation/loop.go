package generation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// Loop is an entry of foreach.
type Loop struct {
	Document
	List          string `json:"list"`
	Context       []any  `json:"context"`
	Preconditions any    `json:"preconditions"`
}

// ForEach writes an object, or copies, for each element of a list. An error is as that of Of.
func ForEach(l Loop, o Options) (Entry, error) {
	if len(l.Context) > 0 {
		return Entry{}, &source.Unsupported{Path: "context", Found: "has no form yet that is known to be equal"}
	}
	list, err := jmespath.Compile(l.List, o.Scope)
	if err != nil {
		return Entry{}, below("list", err)
	}
	text := list.Text
	if list.Optional {
		softly, _, ok := list.Softly("[]")
		if !ok || list.Missing {
			return Entry{}, &source.Unsupported{Path: "list", Found: "a list that may be null"}
		}
		text = softly
	}
	if list.Type != jmespath.List {
		return Entry{}, &source.Unsupported{Path: "list", Found: "a value that may be no list"}
	}
	name := "element"
	if list.Path != nil {
		direct := list.Path.Direct
		name = mutation.Singular(direct[strings.LastIndexAny(direct, ".]")+1:])
	}
	o.Scope = o.Scope.WithElement(name, list.Shape.Element(), 0)
	if l.Preconditions != nil {
		held, err := condition.CompileExempting(l.Preconditions, o.Scope)
		if err != nil {
			return Entry{}, below("preconditions", err)
		}
		if held != "true" {
			text += ".filter(" + name + ", " + held + ")"
		}
	}
	made, err := o.element(l.Document)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Expression: text + ".all(" + name + ",\n" + mutation.Indented(made.Expression) + "\n)"}, nil
}

// element writes the object of an element as an expression: a template has no loops.
func (o Options) element(from Document) (Entry, error) {
	if from.Clone != nil || from.CloneList != nil {
		return Of(from, o)
	}
	data, _ := from.Data.(map[string]any)
	metadata, _ := data["metadata"].(map[string]any)
	if err := written(metadata); err != nil {
		return Entry{}, err
	}
	object := map[string]any{}
	maps.Copy(object, data)
	own := map[string]any{"name": from.Name}
	for key, value := range metadata {
		if key != "name" && key != "namespace" {
			own[key] = value
		}
	}
	object["apiVersion"], object["kind"], object["metadata"] = from.APIVersion, from.Kind, own
	namespace, err := o.text(from.Namespace, "namespace")
	if err != nil {
		return Entry{}, err
	}
	w := &writer{Options: o, document: from}
	text, err := w.literal(object, "data", false)
	return o.applied(namespace, text), err
}

// literal writes a value as an expression; see value.
func (w *writer) literal(value any, where string, isTexts bool) (string, error) {
	switch v := value.(type) {
	case map[string]any:
		var entries []string
		for _, key := range slices.SortedFunc(maps.Keys(v), byRank) {
			if v[key] == nil {
				continue // the API server keeps none
			}
			here := source.Below(where, key)
			if strings.Contains(key, "{{") {
				return "", &source.Unsupported{Path: here, Found: "a variable in a key"}
			}
			one, err := w.literal(v[key], here, w.isTexts(where, key, v[key], isTexts))
			if err != nil {
				return "", err
			}
			entries = append(entries, celtext.String(key)+": "+one)
		}
		return mutation.Inline("{", entries, "}"), nil
	case []any:
		var entries []string
		for i, one := range v {
			text, err := w.literal(one, source.Index(where, i), false)
			if err != nil {
				return "", err
			}
			entries = append(entries, text)
		}
		return mutation.Inline("[", entries, "]"), nil
	case string:
		if !strings.Contains(v, "{{") {
			return celtext.String(v), nil
		}
		return w.expression(v, where, isTexts)
	case bool:
		return quotedIf(isTexts, strconv.FormatBool(v)), nil
	case float64:
		return quotedIf(isTexts, strconv.FormatFloat(v, 'f', -1, 64)), nil
	}
	return "null", nil
}

func quotedIf(isText bool, written string) string {
	if isText {
		return celtext.String(written)
	}
	return written
}

// byRank puts the names of an object first.
func byRank(a, b string) int {
	rank := func(key string) string {
		return fmt.Sprintf("%d%s", (slices.Index([]string{"apiVersion", "kind", "metadata", "name"}, key)+5)%5, key)
	}
	return strings.Compare(rank(a), rank(b))
}
