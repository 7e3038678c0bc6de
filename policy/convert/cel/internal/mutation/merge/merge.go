package merge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	merging "github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
)

// Value is the form of a text.
type Value struct {
	// Text is the expression.
	Text string
	// Sample is a value of its type.
	Sample any
	// Sure: it never fails.
	Sure bool
}

// Options describe the objects of a patch.
type Options struct {
	// Kinds are those of the objects; at least one.
	Kinds []schema.GroupVersionKind
	// Types are the merge rules of Kubernetes.
	Types *merging.Types
	// Value writes a text of the patch with the variables in it.
	Value func(text string) (Value, error)
	// Each is for a merge for each element of a list: the patch has one element of it, with the name of that of the
	// list in place of its own.
	Each *Each
}

// Each is the list of a merge for each of its elements.
type Each struct {
	// Path has the members from the object to the list.
	Path []string
	// Name is that of an element in expressions.
	Name string
	// Condition must hold for an element; empty for all.
	Condition string
	// Fails: without the list there is no result.
	Fails bool

	plain bool // the name is no anchor
}

// writer writes one strategic merge.
type writer struct {
	Options
	out mutation.Written
	// before and after put elements of lists first: before the merge those that an anchor selects, after
	// it those that it may have added; nested are the lists in elements of lists.
	before, after, nested []string
	// patches are the operations for what cannot be merged.
	patches []string
	// unsure is where a value may fail, which a strategic merge computes whether it is written or not.
	unsure string
	// computed are the values with variables in the configuration; late is where one is in a patch, which is evaluated
	// about the result of the configuration.
	computed []string
	late     string
	isLate   bool
	// moved are the lists of which elements are put first before the merge.
	moved []string
	// chooses: some values are written for some objects alone.
	chooses bool
}

// StrategicMerge writes a patchStrategicMerge.
func StrategicMerge(value any, o Options) (*mutation.Written, error) {
	members, ok := value.(map[string]any)
	if !ok {
		return nil, &source.Unsupported{Found: "is no object"}
	}
	w := &writer{Options: o}
	if o.Each != nil {
		var err error
		members, err = o.Each.only(members, w)
		if err != nil {
			return nil, err
		}
	}
	object := mutation.Root()
	object.Known = len(w.rule("metadata", "ownerReferences").Keys) > 0
	made, err := w.object(members, object, "")
	if err != nil {
		return nil, err
	}
	if err := w.order(len(made.fields) > 0); err != nil {
		return nil, err
	}
	if len(made.fields) > 0 {
		for _, kind := range o.Kinds {
			if err := w.check(kind.Kind, made); err != nil {
				return nil, err
			}
		}
	}
	list := func(operations []string) {
		if len(operations) > 0 {
			w.out.Mutations = append(w.out.Mutations, mutation.JSONPatch(mutation.Together(operations)))
		}
	}
	list(w.before)
	if len(made.fields) > 0 {
		w.out.Mutations = append(w.out.Mutations, mutation.Apply(made.text("Object")))
	}
	list(w.patches)
	list(w.nested)
	list(w.after)
	return &w.out, nil
}

// order refuses values that would be computed where the source computes none, or about another object than in the source.
func (w *writer) order(merges bool) error {
	reads := func(text string) bool {
		return strings.Contains(text, "variables.") || slices.ContainsFunc(w.moved, func(list string) bool { return strings.Contains(text, "."+list) })
	}
	switch {
	case w.unsure != "" && (w.chooses || len(w.out.Conditions) > 0):
		return &source.Unsupported{Path: w.unsure, Found: "a value that may be missing, in a patch that is made for some objects"}
	case w.late != "" && merges:
		return &source.Unsupported{Path: w.late, Found: "a variable in a field that is replaced as a whole, beside others"}
	case len(w.moved) > 0 && slices.ContainsFunc(w.computed, reads):
		return &source.Unsupported{Found: "a variable that may read a list of which the patch moves elements"}
	}
	return nil
}

// rule is how a list is merged in the kinds.
func (w *writer) rule(path ...string) patch.ListRule {
	k := w.Kinds[0]
	rule := patch.ListOf(k.GroupVersion().String(), k.Kind, path...)
	for _, k := range w.Kinds[1:] {
		other := patch.ListOf(k.GroupVersion().String(), k.Kind, path...)
		if !slices.Equal(rule.Keys, other.Keys) || rule.Set != other.Set {
			return patch.ListRule{}
		}
	}
	return rule
}

// anchorOf takes an anchor apart: +(x) is "+" and x.
func anchorOf(key string) (anchor, name string) {
	trimmed := strings.TrimSpace(key)
	open := strings.Index(trimmed, "(")
	if open < 0 || open > 1 || !strings.HasSuffix(trimmed, ")") {
		return "", key
	}
	return cmp.Or(trimmed[:open], "("), trimmed[open+1 : len(trimmed)-1]
}

// order sorts members as a person writes them: the name first.
func order(members map[string]any) []string {
	return slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		_, x := anchorOf(a)
		_, y := anchorOf(b)
		rank := func(name string) int {
			return slices.Index([]string{"name", "metadata"}, name)
		}
		switch i, j := rank(x), rank(y); {
		case i >= 0 && j < 0:
			return -1
		case j >= 0 && i < 0:
			return 1
		}
		return strings.Compare(x, y)
	})
}

// object writes the members of an object.
func (w *writer) object(members map[string]any, at mutation.Place, where string) (made, error) {
	out := made{sample: map[string]any{}}
	for _, key := range order(members) {
		here := source.Below(where, key)
		anchor, name := anchorOf(key)
		switch {
		case strings.HasPrefix(key, "$"):
			return out, &source.Unsupported{Path: here, Found: "a directive"}
		case strings.Contains(key, "{{"):
			return out, &source.Unsupported{Path: here, Found: "a variable in a key"}
		case anchor == "(" || anchor == "<":
			if at.InElement { // written by the list
				continue
			}
			if err := w.condition(name, members[key], at, here); err != nil {
				return out, err
			}
			continue
		case anchor != "" && anchor != "+":
			return out, &source.Unsupported{Path: here, Found: "the anchor " + anchor + "()"}
		}
		if err := w.member(&out, entry{name, members[key], here, anchor == "+"}, at.At(name)); err != nil {
			return out, err
		}
	}
	return out, nil
}

// entry is a member of a patch; isDefault says that it is for objects that have none.
type entry struct {
	name      string
	value     any
	where     string
	isDefault bool
}

// member writes a member.
func (w *writer) member(out *made, e entry, at mutation.Place) error {
	if e.isDefault && at.Optional == "" {
		return nil // every object has one
	}
	f, where, isDefault := field{name: e.name}, e.where, e.isDefault
	w.chooses = w.chooses || isDefault
	var sample any
	switch v := e.value.(type) {
	case nil:
		if isDefault || at.InElement {
			return &source.Unsupported{Path: where, Found: "null, which removes a field,"}
		}
		w.patches = append(w.patches, "("+at.Present()+" ? [JSONPatch{op: 'remove', path: "+at.Pointer.String()+"}] : [])")
		return nil
	case map[string]any:
		if !at.InElement && w.isWhole(at, v) {
			return w.patch(v, at, where, isDefault)
		}
		inner, err := w.object(v, at, where)
		if err != nil {
			return err
		}
		if len(inner.fields) == 0 && len(v) > 0 {
			return nil // conditions, or patches beside it
		}
		f.text, sample = inner.text(at.Object), inner.sample
	case []any:
		if isDefault && !at.InElement {
			return w.patch(v, at, where, true)
		}
		write := w.list
		if isDefault {
			write = w.replaced
		}
		text, elements, err := write(v, at, where)
		if err != nil || text == "" {
			return err
		}
		f.text, sample = text, elements
		if strings.HasPrefix(text, optionally) {
			f.text, f.isOptional = strings.TrimPrefix(text, optionally), true
		}
	default:
		written, err := w.leaf(v, where)
		if err != nil {
			return err
		}
		f.text, sample = written.Text, written.Sample
		if isDefault {
			f.text = at.Or(f.text)
			isDefault = false
		}
	}
	if isDefault {
		f.text, f.isOptional = at.Present()+" ? optional.none() : optional.of("+f.text+")", true
	}
	out.fields, out.sample[e.name] = append(out.fields, f), sample
	return nil
}

// leaf writes a value that is neither object nor list.
func (w *writer) leaf(value any, where string) (Value, error) {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "$(") {
			return Value{}, &source.Unsupported{Path: where, Found: "a reference"}
		}
		if !strings.Contains(v, "{{") {
			return Value{celtext.String(v), v, true}, nil
		}
		written, err := w.Value(v)
		switch {
		case err != nil:
		case w.isLate:
			w.late = where
		default:
			w.computed = append(w.computed, written.Text)
		}
		if err == nil && !written.Sure && w.unsure == "" {
			w.unsure = where
		}
		return written, mutation.Within(where, err)
	case bool:
		return Value{strconv.FormatBool(v), v, true}, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return Value{strconv.FormatInt(int64(v), 10), v, true}, nil
		}
	}
	return Value{}, &source.Unsupported{Path: where, Found: fmt.Sprintf("the value %v", value)}
}
