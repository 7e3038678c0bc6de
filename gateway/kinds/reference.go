package kinds

import (
	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// Reference names a policy in events.
func Reference(p *policy.Policy) core.ObjectReference {
	return core.ObjectReference{APIVersion: APIVersionOf(p.Kind), Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
}
