package admission

// parent is the kind that a subresource belongs to.
type parent struct{ group, version, kind string }

// parentOf returns the kind of the resource whose subresource is asked about, for
// policies name it by that (Pod/exec, Deployment/scale), and the request's own kind
// is that of its options. Others, whose subresources are of their own kind, are known
// by the request.
func parentOf(group, resource string) (parent, bool) {
	switch group {
	case "":
		switch resource {
		case "pods":
			return parent{"", "v1", "Pod"}, true
		case "services":
			return parent{"", "v1", "Service"}, true
		case "nodes":
			return parent{"", "v1", "Node"}, true
		case "serviceaccounts":
			return parent{"", "v1", "ServiceAccount"}, true
		case "replicationcontrollers":
			return parent{"", "v1", "ReplicationController"}, true
		}
	case "apps":
		switch resource {
		case "deployments":
			return parent{"apps", "v1", "Deployment"}, true
		case "statefulsets":
			return parent{"apps", "v1", "StatefulSet"}, true
		case "replicasets":
			return parent{"apps", "v1", "ReplicaSet"}, true
		}
	}
	return parent{}, false
}

// about fills in of which kind the subject is.
func (q *question) about() {
	r := &q.request
	q.subject.Group, q.subject.Version, q.subject.Kind = r.group, r.version, r.kind
	if r.subresource == "" {
		return
	}
	if of, ok := parentOf(r.resourceGroup, r.resource); ok && (of.kind != r.kind || of.group != r.group) {
		q.subject.Group, q.subject.Version, q.subject.Kind = of.group, of.version, of.kind
	}
}
