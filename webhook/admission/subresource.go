package admission

import (
	"github.com/quaymaster/quaymaster/policy"
)

// parent is the kind that a subresource belongs to.
type parent struct{ group, version, kind string }

// parentOf returns the kind of the resource that a subresource belongs to. Policies name the
// subresource by that kind (Pod/exec, Deployment/scale), but the request's own kind is that of its
// options. Other subresources have the kind of the resource, which is in the request.
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

// Kinds resolves resources that are not built into Kubernetes.
type Kinds interface {
	// KindOf returns the kind of a resource in a version of its group; false means that it is
	// unknown.
	KindOf(group, version, resource string) (kind string, known bool)
}

// setKind sets the kind of the subject.
func (q *pending) setKind(kinds Kinds) {
	r := &q.request
	q.subject.Group, q.subject.Version, q.subject.Kind = r.group, r.version, r.kind
	if r.subresource == "" {
		return
	}
	q.subject.Request = policy.RequestFrom(r.copied()) // it names the resource
	of, ok := parentOf(r.resourceGroup, r.resource)
	if !ok && kinds != nil {
		of = parent{group: r.resourceGroup, version: r.resourceVersion}
		of.kind, ok = kinds.KindOf(of.group, of.version, r.resource)
	}
	if ok && (of.kind != r.kind || of.group != r.group) {
		q.subject.Group, q.subject.Version, q.subject.Kind = of.group, of.version, of.kind
	}
}
