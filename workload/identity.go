package workload

// Identity is the identity that an object uses for its own pulls.
type Identity struct {
	Namespace string
	// ServiceAccount is the account of its pods; "default" where the object names none, empty
	// where it has no pod specification.
	ServiceAccount string
	// PullSecrets are the names of Secrets in Namespace, in the object's order.
	PullSecrets []string
}

// maxPullSecrets bounds the Secrets that the gateway reads for one object.
const maxPullSecrets = 20

// IdentityOf returns the identity in the object's pod specification. It is empty for an object
// without one. The namespace is the object's own.
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
	id.ServiceAccount = spec.Member("serviceAccountName").Text()
	if id.ServiceAccount == "" {
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
