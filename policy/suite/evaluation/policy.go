package evaluation

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy/source"
	"github.com/quaymaster/quaymaster/workload"
)

// Policy is a policy's document.
type Policy struct{ Object workload.Object }

// Is reports whether a name matches the policy: name, or namespace/name.
func (p Policy) Is(name string) bool {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		return p.Object.Name() == name
	}
	return p.Object.Name() == short && p.Object.Namespace() == namespace
}

// Existing are the objects that exist besides those that are evaluated.
type Existing struct {
	// Targets are those that rules may mutate.
	Targets []workload.Object
	// Sources has those that rules copy; nil if they are not known.
	Sources source.Objects
}
