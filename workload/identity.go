package workload

// Identity is what an object names for its own pulls.
type Identity struct {
	Namespace string
	// ServiceAccount is the account that its pods run as; "default" where the
	// object names none, empty where it has no pod specification.
	ServiceAccount string
	// PullSecrets are the names of Secrets in Namespace, in the object's order.
	PullSecrets []string
}

// maxPullSecrets bounds how many Secrets one object makes the gateway read.
const maxPullSecrets = 20

// IdentityOf returns what the object's pod specification names. An object
// without one names nothing. The namespace is the object's own.
func IdentityOf(o Object) Identity {
	id := Identity{Namespace: o.Namespace()}
	path, ok := podSpecs[o.Group()+"/"+o.Kind()]
	if !ok {
		return id
	}
	spec, _, err := descend(o.Root(), path)
	if err != nil || !spec.IsObject() {
		return id
	}
	if id.ServiceAccount = spec.Member("serviceAccountName").Text(); id.ServiceAccount == "" {
		id.ServiceAccount = "default"
	}
	for _, entry := range spec.Member("imagePullSecrets").Elements() {
		if len(id.PullSecrets) == maxPullSecrets {
			break
		}
		if name := entry.Member("name").Text(); name != "" {
			id.PullSecrets = append(id.PullSecrets, name)
		}
	}
	return id
}
