package evaluation

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy/dialect/native"
	"github.com/quaymaster/quaymaster/workload"
)

// joined puts the bindings of the API server's own policies into these.
func joined(policies []Policy) ([]Policy, []string, error) {
	objects := make([]workload.Object, len(policies))
	for i, p := range policies {
		objects[i] = p.Object
	}
	objects, warnings, err := native.Join(objects)
	list := make([]Policy, len(objects))
	for i, o := range objects {
		list[i] = Policy{Object: o}
	}
	return list, warnings, err
}

// Warnings are about documents among the policies that have no effect, and those of policies of the API
// server.
func (e *Evaluator) Warnings() []string {
	list := slices.Clone(e.warnings)
	for place := range e.config.Policies {
		if p := e.Policy(place); p != nil && p.OfServer {
			for _, warning := range p.Warnings {
				list = append(list, p.ID()+": "+warning)
			}
		}
	}
	return list
}
