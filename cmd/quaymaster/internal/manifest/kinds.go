package manifest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
)

// CheckKinds refuses objects of which the custom resource definitions among them contradict how policies
// would see them: in no namespace, although the object names one, or as a resource of another kind. The author of an object would take it out of policies. Definitions of
// trusted kinds, next to policies or in --resource, decide.
func CheckKinds(objects []workload.Object, trusted []constraint.Resource) error {
	var errs []error
	defined := constraint.Definitions(objects)
	for _, o := range objects {
		if o.IsDocument() || isDefined(trusted, o) {
			continue
		}
		for _, k := range defined {
			switch {
			case o.Group() != k.Group:
			case o.Kind() == k.Kind && k.Cluster && o.Namespace() != "":
				errs = append(errs, fmt.Errorf("%s: %s is in a namespace, and a definition next to it has its kind in none: if that is right, put the definition next to the policies or into --resource",
					o.Source(), o))
			case o.Kind() != k.Kind && k.Name == constraint.NameOf(o.Kind()):
				errs = append(errs, fmt.Errorf("%s: a definition next to %s defines %s.%s as %s: leave one of them out", o.Source(), o, k.Name, k.Group, k.Kind))
			}
		}
	}
	return errors.Join(errs...)
}

func isDefined(kinds []constraint.Resource, o workload.Object) bool {
	return slices.ContainsFunc(kinds, func(k constraint.Resource) bool { return k.Group == o.Group() && k.Kind == o.Kind() })
}
