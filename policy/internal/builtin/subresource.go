package builtin

import (
	"slices"
	"strings"
)

// Subresources of Kubernetes' resources with requests of one operation, UPDATE.
const (
	// Ephemeral adds containers to a running pod.
	Ephemeral = "ephemeralcontainers"

	scale, status = "scale", "status"
)

// Subresources returns those that a resource of Kubernetes has.
func (r Resource) Subresources() []string {
	const scaled = scale + " " + status
	of := map[string]string{
		"pods":       "attach binding ephemeralcontainers eviction exec log portforward proxy resize status",
		"namespaces": "finalize status", "nodes": "proxy status", "services": "proxy status", "serviceaccounts": "token",
		"replicationcontrollers": scaled, "deployments": scaled, "replicasets": scaled, "statefulsets": scaled, "daemonsets": status,
		"jobs": status, "cronjobs": status, "horizontalpodautoscalers": status, "poddisruptionbudgets": status,
		"persistentvolumes": status, "persistentvolumeclaims": status, "resourcequotas": status, "volumeattachments": status,
		"ingresses": status, "servicecidrs": status, "resourceclaims": status, "certificatesigningrequests": "approval status",
		"customresourcedefinitions": status, "apiservices": status, "flowschemas": status, "prioritylevelconfigurations": status,
		"validatingadmissionpolicies": status,
	}
	return strings.Fields(of[r.Name])
}

// IsSubresource reports whether a resource of Kubernetes has a subresource of that name.
func IsSubresource(name string) bool {
	return slices.ContainsFunc(Resources(), func(r Resource) bool { return slices.Contains(r.Subresources(), name) })
}

// MayHave reports whether admission requests for a subresource may have an operation; the empty
// subresource is the object itself. Resources outside of Kubernetes may have any, except that their
// status and scale are only updated.
func MayHave(subresource, operation string, isBuiltin bool) bool {
	const create, update, connect = "CREATE", "UPDATE", "CONNECT"
	switch subresource {
	case scale, status:
		return operation == update
	}
	if !isBuiltin {
		return true
	}
	switch subresource {
	case "":
		return operation != connect
	case "log": // a read, which is not admitted
		return false
	case "exec", "attach", "portforward", "proxy":
		return operation == connect
	case "eviction", "binding", "token":
		return operation == create
	case Ephemeral, "resize", "finalize", "approval":
		return operation == update
	}
	return true
}
