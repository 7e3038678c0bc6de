package suite

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

// expectedIn returns the object of a file that corresponds to the found object: by apiVersion,
// kind, namespace and name.
func (s *loaded) expectedIn(file string, found workload.Object) (workload.Object, bool, error) {
	objects, err := readObjects(s.file(file))
	if err != nil {
		return workload.Object{}, false, err
	}
	for _, o := range s.inNamespace(objects) {
		if o.APIVersion() == found.APIVersion() && o.Kind() == found.Kind() && o.Namespace() == found.Namespace() && o.Name() == found.Name() {
			return o, true, nil
		}
	}
	return workload.Object{}, false, nil
}

// tidy removes null and empty values, as Kyverno does before it compares.
func tidy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			item = tidy(item)
			if item != nil {
				out[key] = item
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, item := range value {
			item = tidy(item)
			if item != nil {
				out = append(out, item)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return value
}

// withoutMarks removes the labels that controllers use to track their objects.
func withoutMarks(content map[string]any) map[string]any {
	meta, _ := content["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	if labels == nil {
		return content
	}
	content, meta, labels = maps.Clone(content), maps.Clone(meta), maps.Clone(labels)
	maps.DeleteFunc(labels, func(key string, value any) bool {
		return strings.HasPrefix(key, "generate.kyverno.io/") || key == "app.kubernetes.io/managed-by" && (value == "kyverno" || value == "quaymaster")
	})
	meta["labels"], content["metadata"] = labels, meta
	return content
}

// maxDifferences bounds the reported differences.
const maxDifferences = 8

// differences returns the differences of two objects; empty if they are equal.
func differences(want, got map[string]any) []string {
	var list []string
	differ(tidy(withoutMarks(want)), tidy(withoutMarks(got)), "", &list)
	if len(list) > maxDifferences {
		list = append(list[:maxDifferences], fmt.Sprintf("and %d more", len(list)-maxDifferences))
	}
	return list
}

func differ(want, got any, path string, into *[]string) {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(want)
		maps.Copy(keys, got)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			differ(want[key], got[key], path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), into)
		}
		return
	case []any:
		got, ok := got.([]any)
		if !ok {
			break
		}
		for i := range max(len(want), len(got)) {
			var w, g any
			if i < len(want) {
				w = want[i]
			}
			if i < len(got) {
				g = got[i]
			}
			differ(w, g, fmt.Sprintf("%s/%d", path, i), into)
		}
		return
	}
	if !reflect.DeepEqual(want, got) {
		*into = append(*into, fmt.Sprintf("%s: want %s, found %s", path, shown(want), shown(got)))
	}
}
