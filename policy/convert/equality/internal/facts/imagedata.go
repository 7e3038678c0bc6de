package facts

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// ImageData is the look-up of a registry's data of an image. An object of the kind has it, in the member data.
func ImageData(key string) Lookup {
	return Lookup{Group: "registry.example", Version: "v1", Kind: "ImageData", Resource: "imagedata", Key: key}
}

// IsImageData reports whether the look-up is one of ImageData.
func (of *Lookup) IsImageData() bool {
	return of.Kind == ImageData("").Kind && of.Group == ImageData("").Group
}

// ImageDataWith is what a registry answers about a usual image, with the manifest and the configuration of another one if
// they are objects.
func ImageDataWith(other map[string]any, now time.Time) map[string]any {
	digest := "sha256:" + strings.Repeat("0", 64)
	data := map[string]any{
		"image": "registry.example/team/web:v1", "resolvedImage": "registry.example/team/web:v1@" + digest,
		"registry": "registry.example", "repository": "team/web", "identifier": "v1",
		"manifest":   map[string]any{"schemaVersion": 2, "config": map[string]any{"size": 2}, "layers": []any{map[string]any{"size": 1, "digest": digest}}},
		"configData": map[string]any{"architecture": "amd64", "os": "linux", "created": now.Add(-time.Hour).Format(time.RFC3339), "config": map[string]any{}},
	}
	for _, name := range []string{"manifest", "configData"} {
		if is, ok := other[name].(map[string]any); ok {
			data[name] = is
		}
	}
	return data
}

// TakesInImage reports whether a member of a manifest or configuration may have a value by the image specification, which has
// texts, and numbers for sizes.
func (p Path) TakesInImage(value any) bool {
	isSize := slices.Contains([]string{"size", "schemaVersion"}, p[len(p)-1])
	switch value.(type) {
	case string:
		return !isSize
	case Absent, []any, map[string]any:
		return true
	case float64, int, int64, json.Number:
		return isSize
	}
	return false
}
