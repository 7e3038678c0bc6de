package setup

import (
	"fmt"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/workload"
)

// PolicyObjects reads the documents of policies in files and folders.
func PolicyObjects(names []string) ([]workload.Object, error) {
	var all []workload.Object
	for _, name := range names {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// LoadResources reads ConfigMaps, Secrets and Namespaces.
func LoadResources(names []string) (*engine.Resources, error) {
	known := engine.NewResources()
	for _, name := range names {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--resource: %w", err)
		}
		for _, object := range objects {
			if err := known.Add(object); err != nil {
				return nil, fmt.Errorf("--resource %s: %w", object.Source(), err)
			}
		}
	}
	return known, nil
}
