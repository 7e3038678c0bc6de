package document

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// The annotations of the project that documents of every kind may have.
const (
	ownAnnotations = "quaymaster.dev/"
	// GuardAnnotation accepts a version of a policy untried.
	GuardAnnotation = "quaymaster.dev/guard"
	// RequesterAnnotation and OriginAnnotation are records in generated objects, which may be policies.
	RequesterAnnotation = "quaymaster.dev/requester"
	OriginAnnotation    = "quaymaster.dev/generated-by"
)

// UnknownAnnotations refuses annotations of the project that have no effect on a document: a
// misspelt one leaves the policy weaker, or the exception wider, than its author intended.
// Known are those with an effect on this kind of document.
func UnknownAnnotations(annotations map[string]string, known ...string) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		switch {
		case !strings.HasPrefix(key, ownAnnotations), slices.Contains(known, key):
		case key == GuardAnnotation, key == RequesterAnnotation, key == OriginAnnotation:
		default:
			near := spelling.Nearest(key, append(known, GuardAnnotation))
			errs = append(errs, field.Fail("metadata.annotations["+key+"]", "unknown annotation%s", spelling.DidYouMean(near)))
		}
	}
	return errors.Join(errs...)
}

// IsUnreported reports whether the labels of a policy disable its reports: Kyverno's label, with any value.
func IsUnreported(labels map[string]any) bool {
	_, is := labels["reports.kyverno.io/disabled"]
	return is
}
