package constraint

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

// Defined returns the kind that a custom resource definition defines.
func Defined(definition workload.Object) (Resource, bool) {
	if definition.Kind() != "CustomResourceDefinition" || definition.Group() != "apiextensions.k8s.io" {
		return Resource{}, false
	}
	spec, _ := definition.Content()["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	plural, _ := names["plural"].(string)
	group, _ := spec["group"].(string)
	return Resource{Name: plural, Group: group, Kind: kind, Cluster: spec["scope"] == "Cluster"}, kind != "" && plural != ""
}

// Definitions returns the kinds that the custom resource definitions among objects define.
func Definitions(objects []workload.Object) (kinds []Resource) {
	for _, o := range objects {
		if kind, ok := Defined(o); ok {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// CheckDefinitions returns the objects without the custom resource definitions that an API server
// would refuse, or that contradict known kinds or an earlier object, and an error about these: objects
// would count as others than they are, or as in no namespace.
func CheckDefinitions(objects []workload.Object, known []Resource) ([]workload.Object, error) {
	type place struct {
		Resource
		source string
	}
	var errs []error
	earlier := map[[2]string]place{} // by the group, and the kind or the resource
	kept := make([]workload.Object, 0, len(objects))
	for _, o := range objects {
		kind, defines := Defined(o)
		if !defines {
			kept = append(kept, o)
			continue
		}
		names := [][2]string{{kind.Group, "kind " + kind.Kind}, {kind.Group, kind.Name}}
		err := checkDefinition(kind, known)
		for _, name := range names {
			if before, is := earlier[name]; err == nil && is && before.Resource != kind {
				err = fmt.Errorf("%w (%s)", again(before.Resource, kind), before.source)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", o.Source(), o, err))
			continue
		}
		for _, name := range names {
			earlier[name] = place{kind, o.Source()}
		}
		kept = append(kept, o)
	}
	return kept, errors.Join(errs...)
}

// checkDefinition refuses a kind that a custom resource definition cannot define: in a group of
// Kubernetes' own, which have no dot in their names, or in place of one of the known kinds.
func checkDefinition(defined Resource, known []Resource) error {
	if !strings.Contains(defined.Group, ".") {
		return fmt.Errorf("it defines %s in the group %q, which is not for custom resources: groups are domains, such as example.com", defined.Kind, defined.Group)
	}
	for _, k := range known {
		if k != defined && k.Group == defined.Group && (k.Kind == defined.Kind || k.Name == defined.Name) {
			return again(k, defined)
		}
	}
	return nil
}

func again(known, defined Resource) error {
	return fmt.Errorf("it defines %s again: it is %s, and %s here; leave one of them out", kindIn(known), formOf(known), formOf(defined))
}

func kindIn(r Resource) string { return strings.Trim(r.Group+"/"+r.Kind, "/") }

func formOf(r Resource) string {
	scope := "namespaced"
	if r.Cluster {
		scope = "cluster-scoped"
	}
	return r.Kind + " (" + r.Name + ", " + scope + ")"
}
