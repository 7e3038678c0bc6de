package source

import (
	"maps"
	"strings"
)

// Copy returns an object to be created at another place: what the API server or a controller wrote about the
// original is not in it. Its parts are shared with the original.
func Copy(object map[string]any, namespace, name string) map[string]any {
	copied := maps.Clone(object)
	delete(copied, "status")
	written, _ := object["metadata"].(map[string]any)
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	// Finalizers and owners are left out: their controllers would wait for, adopt or delete the copy.
	for _, field := range []string{"labels", "annotations"} {
		members, _ := written[field].(map[string]any)
		kept := map[string]any{}
		for key, value := range members {
			if !isOfOriginal(key) {
				kept[key] = value
			}
		}
		if len(kept) > 0 {
			metadata[field] = kept
		}
	}
	copied["metadata"] = metadata
	return copied
}

// isOfOriginal reports whether a label or an annotation states who manages the original, or that a rule
// generated it.
func isOfOriginal(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	switch prefix {
	case "quaymaster.dev", "generate.kyverno.io", "meta.helm.sh":
		return true
	}
	return key == "app.kubernetes.io/managed-by" || key == "kubectl.kubernetes.io/last-applied-configuration"
}
