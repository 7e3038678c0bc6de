package signedmanifest

import (
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

const (
	// generated and generatedLength are the characters and the number of them that the API server
	// appends to a generateName, which it cuts to longestBase bytes.
	generated       = "bcdfghjklmnpqrstvwxz2456789"
	generatedLength = 5
	longestBase     = 63 - generatedLength
)

// IsOf reports whether a manifest is of the object by its apiVersion, kind, name and namespace. A
// manifest without a namespace is of an object in any; with anyNamespace, every one is. A manifest
// with a generateName is of the objects whose names the API server may make of it.
func IsOf(manifest workload.Object, object map[string]any, anyNamespace bool) bool {
	metadata, _ := object["metadata"].(map[string]any)
	text := func(of map[string]any, name string) string { value, _ := of[name].(string); return value }
	if manifest.APIVersion() != text(object, "apiVersion") || manifest.Kind() != text(object, "kind") {
		return false
	}
	if of := manifest.Namespace(); of != "" && of != text(metadata, "namespace") && !anyNamespace {
		return false
	}
	signed, _ := manifest.Content()["metadata"].(map[string]any)
	base, name := text(signed, "generateName"), text(metadata, "name")
	if written := text(signed, "name"); written != "" || base == "" {
		return written != "" && written == name
	}
	return text(metadata, "generateName") == base && (name == "" || isGenerated(name, base))
}

func isGenerated(name, base string) bool {
	if len(base) > longestBase {
		base = base[:longestBase]
	}
	suffix, is := strings.CutPrefix(name, base)
	return is && len(suffix) == generatedLength && strings.Trim(suffix, generated) == ""
}
