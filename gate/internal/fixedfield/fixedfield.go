// Package fixedfield lists the fields with images that an update cannot change, as the API server of Kubernetes
// 1.37 validates them: a patch of such a field would make it refuse the whole update.
package fixedfield

import (
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// Is reports whether the field at a pointer (RFC 6901) cannot change in the subject's update: the template of a
// Job, and the volumes and the present ephemeral containers of a Pod. A nil subject is no update.
func Is(s *policy.Subject, pointer string) bool {
	if s == nil || s.Operation != "UPDATE" || s.OldObject.IsZero() {
		return false
	}
	switch {
	case s.Group == "batch" && s.Kind == "Job":
		return strings.HasPrefix(pointer, "/spec/template/")
	case s.Group != "" || s.Kind != "Pod":
		return false
	}
	rest, is := strings.CutPrefix(pointer, "/spec/ephemeralContainers/")
	if !is {
		return strings.HasPrefix(pointer, "/spec/volumes/")
	}
	index, _, _ := strings.Cut(rest, "/")
	at, err := strconv.Atoi(index)
	spec, _ := s.OldObject.Map()["spec"].(map[string]any)
	before, _ := spec["ephemeralContainers"].([]any)
	return err == nil && at < len(before)
}
