package merge

import (
	"errors"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	merging "github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
)

// isWhole reports whether an object would be replaced as a whole by a configuration.
func (w *writer) isWhole(at mutation.Place, members map[string]any) bool {
	var sample any = map[string]any{}
	for key, value := range members {
		if _, name := anchorOf(key); value != nil {
			if _, isText := value.(string); !isText {
				continue // of an atomic object a text is enough to see it
			}
			sample = map[string]any{name: "x"}
		}
	}
	for _, key := range slices.Backward(at.Path) {
		sample = map[string]any{key: sample}
	}
	for _, kind := range w.Kinds {
		var atomic *merging.AtomicError
		object, _ := sample.(map[string]any)
		if errors.As(w.Types.Check(kind, object), &atomic) && slices.Contains(atomic.Paths, "."+strings.Join(at.Path, ".")) {
			return true
		}
	}
	return false
}

// patch writes operations for an object, a list or a value at a place.
func (w *writer) patch(value any, at mutation.Place, where string, isDefault bool) error {
	defer func(was bool) { w.isLate = was }(w.isLate)
	w.isLate = true
	parents(&w.patches, at)
	switch v := value.(type) {
	case map[string]any:
		if isDefault {
			whole, err := w.whole(v, where)
			if err != nil {
				return err
			}
			w.patches = append(w.patches, mutation.Unless(at, whole))
			return nil
		}
		mutation.Ensure(&w.patches, at, "{}")
		for _, key := range order(v) {
			anchor, name := anchorOf(key)
			if anchor != "" && anchor != "+" {
				return &source.Unsupported{Path: source.Below(where, key), Found: "an anchor in a field that is replaced as a whole"}
			}
			member := at.At(name)
			switch one := v[key].(type) {
			case nil:
				return &source.Unsupported{Path: source.Below(where, key), Found: "null in a field that is replaced as a whole"}
			case map[string]any:
				if anchor == "" {
					if err := w.patch(one, member, source.Below(where, key), false); err != nil {
						return err
					}
					continue
				}
			}
			whole, err := w.whole(v[key], source.Below(where, key))
			if err != nil {
				return err
			}
			if anchor == "+" {
				w.patches = append(w.patches, mutation.Unless(member, whole))
				continue
			}
			w.patches = append(w.patches, mutation.Added(member, whole))
		}
		return nil
	}
	whole, err := w.whole(value, where)
	if err != nil {
		return err
	}
	if isDefault {
		w.patches = append(w.patches, mutation.Unless(at, whole))
		return nil
	}
	w.patches = append(w.patches, mutation.Added(at, whole))
	return nil
}

// whole writes a value without anchors.
func (w *writer) whole(value any, where string) (string, error) {
	switch v := value.(type) {
	case map[string]any:
		var entries []string
		var kinds []string
		for _, key := range order(v) {
			if anchor, _ := anchorOf(key); anchor != "" || strings.HasPrefix(key, "$") || strings.Contains(key, "{{") || v[key] == nil {
				return "", &source.Unsupported{Path: source.Below(where, key), Found: "an anchor, a directive or null in a list that is replaced"}
			}
			text, err := w.whole(v[key], source.Below(where, key))
			if err != nil {
				return "", err
			}
			entries, kinds = append(entries, text), append(kinds, typeOf(v[key]))
		}
		mixed := isMixed(kinds)
		for i, key := range order(v) {
			if mixed {
				entries[i] = "dyn(" + entries[i] + ")"
			}
			entries[i] = celtext.String(key) + ": " + entries[i]
		}
		return mutation.Inline("{", entries, "}"), nil
	case []any:
		var entries, kinds []string
		for i, one := range v {
			text, err := w.whole(one, source.Index(where, i))
			if err != nil {
				return "", err
			}
			entries, kinds = append(entries, text), append(kinds, typeOf(one))
		}
		if isMixed(kinds) {
			for i := range entries {
				entries[i] = "dyn(" + entries[i] + ")"
			}
		}
		return mutation.Inline("[", entries, "]"), nil
	}
	written, err := w.leaf(value, where)
	return written.Text, err
}

// isMixed reports whether values are of several types, or may be: those of variables are of any.
func isMixed(kinds []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(kinds)))) > 1 ||
		len(kinds) > 1 && slices.ContainsFunc(kinds, func(k string) bool { return strings.Contains(k, computed) })
}

// computed is the type of a text with a variable.
const computed = "computed"

// typeOf distinguishes the values that a map or a list may not have side by side.
func typeOf(value any) string {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "{{") {
			return computed
		}
		return "text"
	case bool:
		return "bool"
	case float64:
		return "number"
	case []any:
		if len(v) == 0 {
			return "list"
		}
		return "list of " + typeOf(v[0])
	case map[string]any:
		of := []string{}
		for _, one := range v {
			of = append(of, typeOf(one))
		}
		slices.Sort(of)
		return "map of " + strings.Join(slices.Compact(of), ",")
	}
	return "null"
}

// parents makes those that may be missing.
func parents(to *[]string, at mutation.Place) {
	above := mutation.Place{Direct: "object", Known: at.Known}
	for _, key := range at.Path[:len(at.Path)-1] {
		above = above.At(key)
		mutation.Ensure(to, above, "{}")
	}
}
