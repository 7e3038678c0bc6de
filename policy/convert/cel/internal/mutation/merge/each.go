package merge

import (
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// only returns a patch with one element, for all elements of the list. Another part would be merged if there is an
// element, and not without.
func (e *Each) only(patch map[string]any, w *writer) (map[string]any, error) {
	var at any = patch
	for _, key := range e.Path {
		members, _ := at.(map[string]any)
		if len(members) != 1 || members[key] == nil {
			return nil, &source.Unsupported{Path: strings.Join(e.Path, "."), Found: "a merge for each element that changes something besides the elements"}
		}
		at = members[key]
	}
	list, _ := at.([]any)
	keys := w.rule(e.Path...).Keys
	if len(list) != 1 || len(keys) != 1 {
		return nil, &source.Unsupported{Path: strings.Join(e.Path, "."), Found: "a merge for each element with several elements"}
	}
	element, _ := list[0].(map[string]any)
	element = maps.Clone(element)
	name := func(key string) bool {
		text, _ := element[key].(string)
		inner, opened := strings.CutPrefix(strings.TrimSpace(text), "{{")
		inner, closed := strings.CutSuffix(inner, "}}")
		inner = strings.TrimSpace(inner)
		return opened && closed && (inner == "element."+keys[0] || inner == "element0."+keys[0])
	}
	anchored := "(" + keys[0] + ")"
	switch {
	case name(keys[0]) && element[anchored] == nil:
		e.plain = true
		delete(element, keys[0])
	case name(anchored) && element[keys[0]] == nil:
	default:
		return nil, &source.Unsupported{Path: strings.Join(e.Path, ".") + "[0]", Found: "an element that is not that of the loop"}
	}
	element[anchored] = "*"
	var made any = []any{element}
	for _, key := range slices.Backward(e.Path) {
		made = map[string]any{key: made}
	}
	whole, _ := made.(map[string]any)
	return whole, nil
}
