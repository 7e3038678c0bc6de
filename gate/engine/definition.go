package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
)

// CheckDefinitions returns the objects without the custom resource definitions that an API server
// would refuse, or that contradict known kinds, and an error about these: objects would count as
// others than they are, or as in no namespace.
func CheckDefinitions(objects []workload.Object, known []constraint.Resource) ([]workload.Object, error) {
	var errs []error
	kept := slices.DeleteFunc(slices.Clone(objects), func(o workload.Object) bool {
		kind, ok := Defined(o)
		if !ok {
			return false
		}
		err := constraint.CheckDefinition(kind, known)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", o.Source(), o, err))
		}
		return err != nil
	})
	return kept, errors.Join(errs...)
}
