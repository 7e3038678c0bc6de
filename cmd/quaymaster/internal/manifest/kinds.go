package manifest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
)

// CheckKinds refuses objects that contradict the custom resource definitions among them, as no API
// server can serve both: an object with a namespace of a kind that is cluster-scoped there, and one
// whose resource is defined as another kind. Such a definition would hide the object from policies.
func CheckKinds(objects []workload.Object) error {
	var errs []error
	kinds := engine.Definitions(objects)
	for _, o := range objects {
		for _, k := range kinds {
			switch {
			case o.IsDocument() || o.Group() != k.Group:
			case o.Kind() == k.Kind && k.Cluster && o.Namespace() != "":
				errs = append(errs, fmt.Errorf("%s: %s is in a namespace, and a definition next to it has the kind in none: leave one of them out", o.Source(), o))
			case o.Kind() != k.Kind && k.Name == constraint.NameOf(o.Kind()) && !isDefined(kinds, o):
				errs = append(errs, fmt.Errorf("%s: a definition next to %s defines %s.%s as %s: leave one of them out", o.Source(), o, k.Name, k.Group, k.Kind))
			}
		}
	}
	return errors.Join(errs...)
}

func isDefined(kinds []constraint.Resource, o workload.Object) bool {
	return slices.ContainsFunc(kinds, func(k constraint.Resource) bool { return k.Group == o.Group() && k.Kind == o.Kind() })
}
