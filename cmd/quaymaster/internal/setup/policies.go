package setup

import (
	"fmt"
	"os"
	"slices"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
)

// PolicyObjects reads the documents of policies in files and folders.
func PolicyObjects(names []string) ([]workload.Object, error) {
	var all []workload.Object
	for _, name := range names {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--policy %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Definitions returns the kinds that the custom resource definitions of --resource and those next to
// policies define.
func (f *Flags) Definitions() ([]constraint.Resource, error) {
	var all []workload.Object
	for _, name := range f.Resources {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--resource %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	for _, name := range f.Policies {
		if limit.CheckRegular(name) != nil {
			continue // a pipe can be read once, for the policies
		}
		objects, _ := manifest.ReadPolicies(name, nil) // an error is that of the policies, which are read after
		all = append(all, objects...)
	}
	if _, err := constraint.CheckDefinitions(all, constraint.Known()); err != nil {
		return nil, fmt.Errorf("--resource and --policy: %w", err)
	}
	return constraint.Definitions(all), nil
}

// isUsed reports whether a file of --resource has a use for an object.
func isUsed(o workload.Object) bool {
	_, defines := constraint.Defined(o)
	return defines || engine.IsResource(o)
}

// LoadResources reads ConfigMaps, Secrets and Namespaces, and warns about files with other
// objects. A folder of manifests may have some, unless it has nothing else.
func LoadResources(t command.Terminal, names []string) (*engine.Resources, error) {
	known := engine.NewResources()
	for _, name := range names {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--resource %s: %w", name, err)
		}
		other := slices.IndexFunc(objects, func(o workload.Object) bool { return !isUsed(o) })
		if info, err := os.Stat(name); err == nil && other >= 0 && (!info.IsDir() || !slices.ContainsFunc(objects, isUsed)) {
			t.Warn(fmt.Sprintf("--resource %s: kind %s is not used for look-ups; want ConfigMap, Secret, Namespace or CustomResourceDefinition", objects[other].Source(), objects[other].Kind()))
		}
		for _, object := range objects {
			if err := known.Add(object); err != nil {
				return nil, fmt.Errorf("--resource %s: %w", object.Source(), err)
			}
		}
	}
	return known, nil
}
