package evaluation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
)

// CheckKinds refuses objects of which the custom resource definitions among them contradict how policies
// would see them: in no namespace, although the object names one, or as a resource of another kind. The author
// of an object would take it out of policies. Definitions of trusted kinds, next to policies or in --resource, decide.
func CheckKinds(objects []workload.Object, trusted []constraint.Resource) error {
	var errs []error
	clustered, names := map[groupKind]bool{}, map[groupKind]constraint.Resource{} // by the kind, and by the resource
	for _, k := range constraint.Definitions(objects) {
		clustered[groupKind{k.Group, k.Kind}], names[groupKind{k.Group, k.Name}] = k.Cluster, k
	}
	for _, o := range objects {
		if o.IsDocument() || IndexOfKind(trusted, o) >= 0 {
			continue
		}
		if o.Namespace() != "" && clustered[groupKind{o.Group(), o.Kind()}] {
			errs = append(errs, fmt.Errorf("%s: %s is in a namespace, and a definition next to it has its kind in none: "+
				"if that is right, put the definition next to the policies or into --resource", o.Source(), o))
		}
		if k, is := names[groupKind{o.Group(), constraint.NameOf(o.Kind())}]; is && k.Kind != o.Kind() {
			errs = append(errs, fmt.Errorf("%s: a definition next to %s defines %s.%s as %s: leave one of them out", o.Source(), o, k.Name, k.Group, k.Kind))
		}
	}
	return errors.Join(errs...)
}

// IndexOfKind returns the index of the object's kind; below 0 for none.
func IndexOfKind(kinds []constraint.Resource, o workload.Object) int {
	return slices.IndexFunc(kinds, func(k constraint.Resource) bool { return k.Group == o.Group() && k.Kind == o.Kind() })
}
