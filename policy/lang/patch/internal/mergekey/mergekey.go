// Package mergekey returns the merge keys of lists for strategic merge patches.
//
// The keys are those of Kubernetes 1.37 for its own types: the tags patchStrategy and
// patchMergeKey, and the list-map keys of its API.
package mergekey

import "strings"

// Shape holds the merge rules for the members of an object. It has only members that are
// lists which merge, or that lead to such. A nil Shape has none.
type Shape map[string]Field

// Field is a member of an object.
type Field struct {
	// Keys are the members that identify the elements of a list; every element has the first
	// of them. Without keys a list is replaced.
	Keys []string
	// Set: the list is a set of strings.
	Set bool
	// Shape is of the object, or of the elements of the list.
	Shape Shape
}

// keyed is a list with elements that have an identifying member.
func keyed(elements Shape, keys ...string) Field { return Field{Keys: keys, Shape: elements} }

func of(members Shape) Field { return Field{Shape: members} }

// schema is Kubernetes' own types, by group and kind; all versions of a kind merge
// alike.
type schema map[string]Shape

// Of returns the merge rules of an object, by its apiVersion and kind; nil for types that
// are not Kubernetes' own.
func Of(object map[string]any) Shape { return kubernetes.shapeOf(object) }

func (s schema) shapeOf(object map[string]any) Shape {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, _, found := strings.Cut(version, "/")
	if !found {
		group = ""
	}
	return s[group+"/"+kind]
}

// kubernetes is the schema of Kubernetes 1.37. It is not modified.
var kubernetes = types()

func types() schema {
	meta := of(Shape{"ownerReferences": keyed(nil, "uid"), "finalizers": {Set: true}})
	template := of(Shape{"metadata": meta, "spec": podSpec(meta)})
	pods := of(Shape{"template": template}) // of a controller
	job := of(Shape{"template": template, "scheduling": of(Shape{"resourceClaims": keyed(nil, "name")})})
	conditions := of(Shape{"conditions": keyed(nil, "type")})
	s := schema{
		"/ComponentStatus": {"conditions": keyed(nil, "type")},
		"/Namespace":       {"status": conditions},
		"/Node": {"spec": of(Shape{"podCIDRs": {Set: true}}),
			"status": of(Shape{"addresses": keyed(nil, "type"), "conditions": keyed(nil, "type")})},
		"/PersistentVolumeClaim": {"status": of(Shape{
			"conditions": keyed(nil, "type"), "healthStatus": of(Shape{"healthConditions": keyed(nil, "status", "reason")}),
		})},
		"/Pod":                   {"spec": podSpec(meta), "status": podStatus()},
		"/PodTemplate":           {"template": template},
		"/ReplicationController": {"spec": pods, "status": conditions},
		"/Service":               {"spec": of(Shape{"ports": keyed(nil, "port", "protocol")}), "status": conditions},
		"/ServiceAccount":        {"secrets": keyed(nil, "name")},
		"batch/CronJob":          {"spec": of(Shape{"jobTemplate": of(Shape{"metadata": meta, "spec": job})})},
		"batch/Job":              {"spec": job, "status": conditions},

		"autoscaling/HorizontalPodAutoscaler":       {"status": conditions},
		"certificates.k8s.io/PodCertificateRequest": {"status": conditions},
		"networking.k8s.io/ServiceCIDR":             {"status": conditions},
		"policy/PodDisruptionBudget":                {"status": conditions},
		"storage.k8s.io/CSINode":                    {"spec": of(Shape{"drivers": keyed(nil, "name")}), "status": of(Shape{"storageHealth": keyed(nil, "name")})},
		"resource.k8s.io/ResourceClaim":             {"status": of(Shape{"reservedFor": keyed(nil, "uid")})},
		"resource.k8s.io/ResourceClaimTemplate":     {"spec": of(Shape{"metadata": meta})},
		"resource.k8s.io/DeviceTaintRule":           {"status": conditions},
		"resource.k8s.io/ResourcePoolStatusRequest": {"status": conditions},

		"flowcontrol.apiserver.k8s.io/FlowSchema":                 {"status": conditions},
		"flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration": {"status": conditions},
		"storagemigration.k8s.io/StorageVersionMigration":         {"status": conditions},
	}
	for _, kind := range []string{"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"} {
		s["apps/"+kind] = Shape{"spec": pods, "status": conditions}
	}
	for _, kind := range []string{"DaemonSet", "Deployment", "ReplicaSet"} {
		s["extensions/"+kind] = s["apps/"+kind]
	}
	admission(s)
	scheduling(s)
	s["lifecycle.k8s.io/EvictionRequest"] = Shape{"status": conditions}
	s["lifecycle.k8s.io/Eviction"] = Shape{"status": of(Shape{
		"conditions": keyed(nil, "type"), "requesters": keyed(nil, "name"), "responders": keyed(nil, "name"), "targetResponders": keyed(nil, "name"),
	})}
	for _, kind := range plainKinds() {
		s[kind] = Shape{}
	}
	for _, shape := range s {
		shape["metadata"] = meta
	}
	return s
}

func podSpec(meta Field) Field {
	container := Shape{
		"env":           keyed(nil, "name"),
		"ports":         keyed(nil, "containerPort", "protocol"),
		"volumeDevices": keyed(nil, "devicePath"),
		"volumeMounts":  keyed(nil, "mountPath"),
	}
	claim := of(Shape{"volumeClaimTemplate": of(Shape{"metadata": meta})})
	return of(Shape{
		"containers":                keyed(container, "name"),
		"ephemeralContainers":       keyed(container, "name"),
		"evictionResponders":        keyed(nil, "name"),
		"hostAliases":               keyed(nil, "ip"),
		"imagePullSecrets":          keyed(nil, "name"),
		"initContainers":            keyed(container, "name"),
		"resourceClaims":            keyed(nil, "name"),
		"schedulingGates":           keyed(nil, "name"),
		"topologySpreadConstraints": keyed(nil, "topologyKey", "whenUnsatisfiable"),
		"volumes":                   keyed(Shape{"ephemeral": claim}, "name"),
	})
}

func podStatus() Field {
	return of(Shape{
		"conditions": keyed(nil, "type"),
		"hostIPs":    keyed(nil, "ip"),
		"nodeAllocatableResourceClaimStatuses": keyed(Shape{
			"mapping": keyed(nil, "name"), "overhead": keyed(nil, "name"),
		}, "resourceClaimName"),
		"podIPs":                keyed(nil, "ip"),
		"resourceClaimStatuses": keyed(nil, "name"),
	})
}

func admission(s schema) {
	matches := Shape{"matchConditions": keyed(nil, "name")}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		s["admissionregistration.k8s.io/"+kind] = Shape{"webhooks": keyed(matches, "name")}
	}
	s["admissionregistration.k8s.io/MutatingAdmissionPolicy"] = Shape{"spec": of(matches)}
	s["admissionregistration.k8s.io/ValidatingAdmissionPolicy"] = Shape{"spec": of(Shape{
		"matchConditions": keyed(nil, "name"), "variables": keyed(nil, "name"),
	})}
}

func scheduling(s schema) {
	claims := Shape{"resourceClaims": keyed(nil, "name")}
	s["scheduling.k8s.io/PodGroup"] = Shape{"spec": of(claims), "status": of(Shape{
		"conditions": keyed(nil, "type"), "resourceClaimStatuses": keyed(nil, "name"),
	})}
	s["scheduling.k8s.io/Workload"] = Shape{}
	s["scheduling.k8s.io/CompositePodGroup"] = Shape{"status": of(Shape{"conditions": keyed(nil, "type")})}
}

// plainKinds are the kinds of which only the metadata has lists that merge.
func plainKinds() []string {
	return []string{
		"/ConfigMap", "/Endpoints", "/Event", "/LimitRange", "/PersistentVolume", "/ResourceQuota", "/Secret",
		"admissionregistration.k8s.io/MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding",
		"apiextensions.k8s.io/CustomResourceDefinition", "apiregistration.k8s.io/APIService",
		"apps/ControllerRevision", "certificates.k8s.io/CertificateSigningRequest", "certificates.k8s.io/ClusterTrustBundle",
		"coordination.k8s.io/Lease", "coordination.k8s.io/LeaseCandidate", "discovery.k8s.io/EndpointSlice", "events.k8s.io/Event",
		"extensions/Ingress", "extensions/NetworkPolicy", "internal.apiserver.k8s.io/StorageVersion",
		"networking.k8s.io/IPAddress", "networking.k8s.io/Ingress", "networking.k8s.io/IngressClass", "networking.k8s.io/NetworkPolicy",
		"node.k8s.io/RuntimeClass",
		"rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRoleBinding",
		"rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/RoleBinding",
		"resource.k8s.io/DeviceClass", "resource.k8s.io/ResourceSlice", "scheduling.k8s.io/PriorityClass",
		"storage.k8s.io/CSIDriver", "storage.k8s.io/CSIStorageCapacity", "storage.k8s.io/StorageClass",
		"storage.k8s.io/VolumeAttachment", "storage.k8s.io/VolumeAttributesClass",
	}
}
