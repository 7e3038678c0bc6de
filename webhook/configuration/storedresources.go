package configuration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// StoredResources is the annotation of the validating configuration with the resources behind it, in
// JSON: rules do not contain kinds. A replica that becomes the leader during a partial failure of
// discovery restores them from it.
const StoredResources = "quaymaster.dev/resources"

// maxStored bounds the resources in it. An object has 256 KiB of annotations at most, and one
// resource takes about 150 bytes.
const maxStored = 500

// encodeResources encodes the resources of both endpoints.
func (q *requirements) encodeResources(other *requirements) (string, error) {
	both := maps.Clone(q.known)
	maps.Copy(both, other.known)
	known := slices.SortedFunc(maps.Values(both), Resource.Compare)
	if len(known) > maxStored {
		q.warnings = append(q.warnings,
			Warning{Message: fmt.Sprintf("policies match %d resources, of which %d are stored for a failure of discovery", len(known), maxStored)})
		known = known[:maxStored]
	}
	text, err := json.Marshal(append([]Resource{}, known...))
	if err != nil {
		return "", fmt.Errorf("webhook configurations: the annotation %s: %w", StoredResources, err)
	}
	return string(text), nil
}
