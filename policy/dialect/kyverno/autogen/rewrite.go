package autogen

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// written is the part of a rule that autogen reads, for any type of rule.
type written struct {
	Match    match.Document  `json:"match"`
	Exclude  *match.Document `json:"exclude"`
	Generate any             `json:"generate"`
	Mutate   struct {
		PatchesJSON6902 any `json:"patchesJson6902"`
		ForEach         []struct {
			PatchesJSON6902 any `json:"patchesJson6902"`
		} `json:"foreach"`
	} `json:"mutate"`
}

// OfObjects reports whether rules are generated from the policy's object rules. As in Kyverno the
// whole policy decides: none are generated if one of its rules generates, patches by pointers,
// selects objects by name, label or annotation, or selects pods together with other kinds.
func OfObjects(rules []json.RawMessage) bool {
	for _, raw := range rules {
		var w written
		if json.Unmarshal(raw, &w) != nil || w.Generate != nil || w.Mutate.PatchesJSON6902 != nil {
			return false
		}
		for _, f := range w.Mutate.ForEach {
			if f.PatchesJSON6902 != nil {
				return false
			}
		}
		for _, block := range w.blocks() {
			if _, plain := block.AboutPods(); !plain {
				return false
			}
		}
	}
	return true
}

// blocks returns the compiled match and exclude of a rule that was found good.
func (w written) blocks() []match.Block {
	matched, _ := match.Compile(w.Match, "")
	var excluded match.Block
	if w.Exclude != nil {
		excluded, _ = match.Compile(*w.Exclude, "")
	}
	return []match.Block{matched, excluded}
}

// AboutPods reports whether a rule is about pods, and excludes nothing but pods.
func AboutPods(raw json.RawMessage) (bool, error) {
	var w written
	if err := json.Unmarshal(raw, &w); err != nil {
		return false, err
	}
	blocks := w.blocks()
	matched, _ := blocks[0].AboutPods()
	excluded, _ := blocks[1].AboutPods()
	return matched && (excluded || !blocks[1].NamesKinds()), nil
}

// Rewrite returns a rule about pods, decoded JSON, as one about objects with a template of pods:
// patterns and patches are put below the template, and expressions read there.
func Rewrite(rule map[string]any, f Follower) map[string]any {
	changed := maps.Clone(rule)
	for _, kind := range []string{"validate", "mutate"} {
		if body, ok := changed[kind].(map[string]any); ok {
			changed[kind] = nest(body, f.Template)
		}
	}
	changed["name"] = f.Name
	if validation, ok := rule["validate"].(map[string]any); ok && validation["cel"] != nil {
		return changed // CEL is shown the template in place of the object
	}
	text := rewriter(f.Template)
	for _, name := range []string{"context", "preconditions", "validate", "mutate"} {
		if value, ok := changed[name]; ok {
			changed[name] = rewrite(value, text)
		}
	}
	return changed
}

// nest puts patterns and patches below a path.
func nest(body map[string]any, path []string) map[string]any {
	changed := maps.Clone(body)
	for _, name := range []string{"pattern", "patchStrategicMerge"} {
		if value := changed[name]; value != nil && (changed["list"] == nil || name == "patchStrategicMerge") {
			changed[name] = below(value, path)
		}
	}
	if patterns, ok := changed["anyPattern"].([]any); ok && changed["list"] == nil {
		nested := make([]any, len(patterns))
		for i, pattern := range patterns {
			nested[i] = below(pattern, path)
		}
		changed["anyPattern"] = nested
	}
	if loops, ok := changed["foreach"].([]any); ok {
		nested := make([]any, len(loops))
		for i, loop := range loops {
			nested[i] = loop
			if members, ok := loop.(map[string]any); ok {
				nested[i] = nest(members, path)
			}
		}
		changed["foreach"] = nested
	}
	return changed
}

func below(value any, path []string) any {
	for i := len(path) - 1; i >= 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return value
}

// rewriter rewrites expressions over a pod's specification and metadata for the template's. The
// namespace is the object's, never the template's: pods run in the namespace of their controller,
// and the author of a template may write any namespace into it.
func rewriter(path []string) func(string) string {
	at := strings.Join(path, ".")
	var pairs []string
	for _, object := range []string{"request.object.", "request.oldObject."} {
		pairs = append(pairs,
			object+"metadata.namespace", object+"metadata.namespace",
			object+"spec", object+at+".spec",
			object+"metadata", object+at+".metadata")
	}
	return strings.NewReplacer(pairs...).Replace
}

// rewrite changes every text in JSON, names of members too.
func rewrite(value any, text func(string) string) any {
	switch v := value.(type) {
	case string:
		return text(v)
	case []any:
		changed := make([]any, len(v))
		for i, item := range v {
			changed[i] = rewrite(item, text)
		}
		return changed
	case map[string]any:
		changed := make(map[string]any, len(v))
		for key, item := range v {
			changed[text(key)] = rewrite(item, text)
		}
		return changed
	}
	return value
}
