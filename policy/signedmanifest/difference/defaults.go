package difference

import (
	"math"
	"reflect"
	"slices"
	"strings"
)

// isDefault reports whether a field that was not signed has the value of a default.
func (s *search) isDefault(at place, found any) bool {
	if isEmptyMetadata(at, found) {
		return true
	}
	for _, d := range s.defaults {
		if rest, is := strings.CutPrefix(at.general, d.prefix); is && d.matches(rest, found) {
			return true
		}
	}
	if path, ok := s.kind.inPodSpec(at); ok && s.isPodDefault(at, path, found) {
		return true
	}
	return s.isComputed(at, found)
}

// isEmptyMetadata: kubectl writes empty annotations, and the API server the empty metadata of templates.
func isEmptyMetadata(at place, found any) bool {
	members, ok := found.(map[string]any)
	if !ok || len(members) > 1 || len(members) == 1 && !isNull(members, "creationTimestamp") {
		return false
	}
	switch strings.ReplaceAll(at.general, string(separator), ".") {
	case "metadata.annotations", "metadata.labels":
		return len(members) == 0
	case "template.metadata", "spec.template.metadata", "spec.jobTemplate.metadata", "spec.jobTemplate.spec.template.metadata":
		return true
	}
	return false
}

func isNull(members map[string]any, name string) bool {
	value, there := members[name]
	return there && value == nil
}

// table has the defaults below one place, by path.
type table struct {
	prefix string
	values map[string]any
}

// matches compares with the default at a path, which is below the prefix.
func (t table) matches(path string, found any) bool {
	want, ok := t.values[strings.ReplaceAll(path, string(separator), ".")]
	return ok && reflect.DeepEqual(want, found)
}

type values = map[string]any

// defaults are the fixed values that the API server adds to objects of the kind.
func (k kind) defaults() []table {
	var out []table
	if prefix := k.podSpec(); prefix != nil {
		out = append(out, table{prefix: strings.Join(prefix, string(separator)) + string(separator), values: podDefaults()})
	}
	for _, d := range kindDefaults() {
		if k.is(d.group, d.kinds...) {
			out = append(out, table{values: d.values})
		}
	}
	return out
}

type ofKind struct {
	group  string
	kinds  []string
	values values
}

// kindDefaults are those of SetDefaults functions of Kubernetes, by the group and the kind.
func kindDefaults() []ofKind {
	return []ofKind{
		{"apps", []string{"Deployment"}, values{
			"spec.replicas": 1.0, "spec.progressDeadlineSeconds": 600.0, "spec.revisionHistoryLimit": 10.0, "spec.strategy.type": "RollingUpdate",
			"spec.strategy.rollingUpdate.maxSurge": "25%", "spec.strategy.rollingUpdate.maxUnavailable": "25%",
		}},
		{"apps", []string{"StatefulSet"}, values{
			"spec.replicas": 1.0, "spec.revisionHistoryLimit": 10.0, "spec.podManagementPolicy": "OrderedReady", "spec.serviceName": "",
			"spec.updateStrategy.type": "RollingUpdate", "spec.updateStrategy.rollingUpdate.partition": 0.0, "spec.updateStrategy.rollingUpdate.maxUnavailable": 1.0,
			"spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain", "spec.persistentVolumeClaimRetentionPolicy.whenScaled": "Retain",
			"spec.volumeClaimTemplates.*.apiVersion": "v1", "spec.volumeClaimTemplates.*.kind": "PersistentVolumeClaim",
			"spec.volumeClaimTemplates.*.spec.volumeMode": "Filesystem", "spec.volumeClaimTemplates.*.status.phase": "Pending",
		}},
		{"apps", []string{"DaemonSet"}, values{
			"spec.revisionHistoryLimit": 10.0, "spec.updateStrategy.type": "RollingUpdate",
			"spec.updateStrategy.rollingUpdate.maxSurge": 0.0, "spec.updateStrategy.rollingUpdate.maxUnavailable": 1.0,
		}},
		{"apps", []string{"ReplicaSet"}, values{"spec.replicas": 1.0}},
		{"", []string{"ReplicationController"}, values{"spec.replicas": 1.0}},
		{"batch", []string{"Job"}, values{
			"spec.parallelism": 1.0, "spec.completionMode": "NonIndexed", "spec.suspend": false, "spec.manualSelector": false,
		}},
		{"batch", []string{"CronJob"}, values{
			"spec.concurrencyPolicy": "Allow", "spec.failedJobsHistoryLimit": 1.0, "spec.successfulJobsHistoryLimit": 3.0, "spec.suspend": false,
		}},
		{"", []string{"Service"}, values{
			"spec.type": "ClusterIP", "spec.sessionAffinity": "None", "spec.ipFamilyPolicy": "SingleStack", "spec.ipFamilies": []any{"IPv4"},
			"spec.internalTrafficPolicy": "Cluster", "spec.externalTrafficPolicy": "Cluster", "spec.allocateLoadBalancerNodePorts": true, "spec.ports.*.protocol": "TCP",
			"spec.sessionAffinityConfig.clientIP.timeoutSeconds": 10800.0,
		}},
		{"", []string{"Secret"}, values{"type": "Opaque"}},
		{"", []string{"Namespace"}, values{"spec.finalizers": []any{"kubernetes"}}},
		{"", []string{"PersistentVolumeClaim"}, values{"spec.volumeMode": "Filesystem"}},
		{"", []string{"PersistentVolume"}, values{"spec.volumeMode": "Filesystem", "spec.persistentVolumeReclaimPolicy": "Retain"}},
		{"networking.k8s.io", []string{"NetworkPolicy"}, values{"spec.ingress.*.ports.*.protocol": "TCP", "spec.egress.*.ports.*.protocol": "TCP"}},
		{"autoscaling", []string{"HorizontalPodAutoscaler"}, values{"spec.minReplicas": 1.0}},
		{"rbac.authorization.k8s.io", []string{"RoleBinding", "ClusterRoleBinding"}, values{"roleRef.apiGroup": "rbac.authorization.k8s.io"}},
		{"storage.k8s.io", []string{"StorageClass"}, values{"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}},
		{"admissionregistration.k8s.io", []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}, values{
			"webhooks.*.failurePolicy": "Fail", "webhooks.*.matchPolicy": "Equivalent", "webhooks.*.namespaceSelector": values{}, "webhooks.*.objectSelector": values{},
			"webhooks.*.timeoutSeconds": 10.0, "webhooks.*.rules.*.scope": "*", "webhooks.*.clientConfig.service.port": 443.0,
		}},
		{"admissionregistration.k8s.io", []string{"MutatingWebhookConfiguration"}, values{"webhooks.*.reinvocationPolicy": "Never"}},
		{"apiextensions.k8s.io", []string{"CustomResourceDefinition"}, values{"spec.conversion.strategy": "None"}},
	}
}

// isComputed covers the defaults that follow from other fields of the object.
func (s *search) isComputed(at place, found any) bool {
	path := strings.ReplaceAll(at.general, string(separator), ".")
	switch {
	case s.kind.is("", "Service") && path == "spec.ports.*.targetPort":
		return equal(at.parent["port"], found) && found != nil
	case s.kind.is("", "Service") && path == "spec.clusterIPs":
		return reflect.DeepEqual([]any{at.parent["clusterIP"]}, found)
	case s.kind.is("", "Namespace") && len(at.path) == 3 && at.path[1] == "labels" && at.path[2] == "kubernetes.io/metadata.name":
		return found == s.metadata("name") && found != nil
	case s.kind.is("networking.k8s.io", "NetworkPolicy") && path == "spec.policyTypes":
		types := []any{"Ingress"}
		if rules, _ := at.parent["egress"].([]any); len(rules) > 0 {
			types = append(types, "Egress")
		}
		return reflect.DeepEqual(types, found)
	case s.kind.is("rbac.authorization.k8s.io", "RoleBinding", "ClusterRoleBinding") && path == "subjects.*.apiGroup":
		return found == "rbac.authorization.k8s.io" && (at.parent["kind"] == "User" || at.parent["kind"] == "Group")
	case s.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") && strings.HasPrefix(path, "spec.names."):
		name, _ := at.parent["kind"].(string)
		return name != "" && (path == "spec.names.listKind" && found == name+"List" || path == "spec.names.singular" && found == strings.ToLower(name))
	case s.kind.is("batch", "Job"):
		return s.isOfJob(at, found)
	}
	return false
}

// isOfJob: a Job without a selector selects its pods by its own identifier, and they have its name. A
// Job without labels has those of its pods.
func (s *search) isOfJob(at place, found any) bool {
	if len(at.path) == 2 && at.path[0] == "spec" {
		return isJobDefault(member(s.written, "spec"), at.path[1], found)
	}
	labels := values{
		"controller-uid": s.metadata("uid"), "batch.kubernetes.io/controller-uid": s.metadata("uid"),
		"job-name": s.metadata("name"), "batch.kubernetes.io/job-name": s.metadata("name"),
	}
	name := at.path[len(at.path)-1]
	if len(at.path) == 3 && at.path[0] == "metadata" && at.path[1] == "labels" {
		return len(member(s.written, "metadata", "labels")) == 0 && found != nil && found == member(s.root, "spec", "template", "metadata", "labels")[name]
	}
	want, known := labels[name]
	in := strings.Join(at.path[:len(at.path)-1], ".")
	return known && want != nil && want == found &&
		(in == "spec.template.metadata.labels" || in == "spec.selector.matchLabels" && strings.HasSuffix(name, "controller-uid"))
}

// isJobDefault covers the defaults of a Job's specification that depend on what its author wrote.
func isJobDefault(spec map[string]any, name string, found any) bool {
	wrote := func(name string) bool { return spec[name] != nil }
	switch name {
	case "completions": // with parallelism alone, any number of pods may complete the Job
		return found == 1.0 && !wrote("parallelism")
	case "backoffLimit":
		return found == 6.0 && !wrote("backoffLimitPerIndex") || found == float64(math.MaxInt32) && wrote("backoffLimitPerIndex")
	case "podReplacementPolicy":
		return found == "TerminatingOrFailed" && !wrote("podFailurePolicy") || found == "Failed" && wrote("podFailurePolicy")
	}
	return false
}

// member returns an object in an object; nil for none.
func member(of map[string]any, path ...string) map[string]any {
	for _, name := range path {
		of, _ = of[name].(map[string]any)
	}
	return of
}

func (s *search) metadata(name string) any {
	text, ok := member(s.root, "metadata")[name].(string)
	if !ok || text == "" {
		return nil
	}
	return text
}

// podSpec is the place of a pod's specification in objects of the kind; nil for none.
func (k kind) podSpec() []string {
	switch {
	case k.is("", "Pod"):
		return []string{"spec"}
	case k.is("", "PodTemplate"):
		return []string{"template", "spec"}
	case k.is("apps", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"), k.is("", "ReplicationController"), k.is("batch", "Job"):
		return []string{"spec", "template", "spec"}
	case k.is("batch", "CronJob"):
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return nil
}

// inPodSpec returns the path of a field in a pod's specification, with * for indexes.
func (k kind) inPodSpec(at place) (string, bool) {
	prefix := k.podSpec()
	if prefix == nil || len(at.path) <= len(prefix) || !slices.Equal(at.path[:len(prefix)], prefix) {
		return "", false
	}
	rest, _ := strings.CutPrefix(at.general, strings.Join(prefix, string(separator))+string(separator))
	return strings.ReplaceAll(rest, string(separator), "."), true
}

// isWhole reports whether a number is a whole one up to most.
func isWhole(value any, most float64) bool {
	number, ok := value.(float64)
	return ok && number >= 0 && number <= most && number == math.Trunc(number)
}
