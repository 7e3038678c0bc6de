package subresource

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Part returns the part of an object that requests for a subresource write.
func Part(object map[string]any, name string) any {
	switch name {
	case approval:
		return conditions(object, isApproval)
	case binding:
		return at(object, "spec", "nodeName")
	case ephemeral:
		return at(object, "spec", "ephemeralContainers")
	case resize:
		return resources(object)
	case scale:
		return at(object, "spec", "replicas")
	}
	whole, _ := object["status"].(map[string]any)
	if _, kind := groupKind(object); kind != "CertificateSigningRequest" {
		return object["status"]
	}
	part := map[string]any{} // also without a status, which an approval may be the first to write
	maps.Copy(part, whole)
	delete(part, "conditions")
	return []any{part, conditions(object, func(condition any) bool { return !isApproval(condition) })}
}

// WrittenAt returns when a request last wrote the part of a subresource; zero if the object shows no request. The
// time of one may be unknown: API servers record none of a scale.
func WrittenAt(object map[string]any, name string) (last time.Time, known bool) {
	known = true
	if name == binding { // it leaves no entry in managedFields
		for _, condition := range conditions(object, func(c any) bool { return at(c, "type") == "PodScheduled" && at(c, "status") == "True" }) {
			last = timeOf(at(condition, "lastTransitionTime"))
		}
		return last, true
	}
	for _, entry := range slices.DeleteFunc(managed(object), func(e map[string]any) bool { return !isBy(name)(e) }) {
		written := timeOf(entry["time"])
		known = known && !written.IsZero()
		if written.After(last) {
			last = written
		}
	}
	return last, known
}

// body returns the body of a request, which is not the object itself.
func body(object map[string]any, name string) map[string]any {
	metadata := map[string]any{}
	for _, field := range []string{"name", "namespace", "uid"} {
		if value, ok := at(object, "metadata", field).(string); ok {
			metadata[field] = value
		}
	}
	if name == binding {
		return map[string]any{
			"apiVersion": "v1", "kind": "Binding", "metadata": metadata,
			"target": map[string]any{"kind": "Node", "name": at(object, "spec", "nodeName")},
		}
	}
	for _, field := range []string{"resourceVersion", "creationTimestamp"} {
		if value, ok := at(object, "metadata", field).(string); ok {
			metadata[field] = value
		}
	}
	spec, state := map[string]any{}, map[string]any{"replicas": float64(0)} // autoscaling/v1 omits 0 in spec alone
	if wanted, ok := at(object, "spec", "replicas").(float64); ok && wanted != 0 {
		spec["replicas"] = wanted
	}
	if now, ok := at(object, "status", "replicas").(float64); ok {
		state["replicas"] = now
	}
	if selector := selectorOf(object); selector != "" {
		state["selector"] = selector
	}
	return map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec, "status": state}
}

// selectorOf returns the selector of a workload as a Scale has it; empty for none.
func selectorOf(object map[string]any) string {
	selector := at(object, "spec", "selector")
	if object["kind"] == "ReplicationController" {
		selector = map[string]any{"matchLabels": selector}
	}
	var decoded meta.LabelSelector
	text, err := json.Marshal(selector)
	if err != nil || json.Unmarshal(text, &decoded) != nil {
		return ""
	}
	compiled, err := meta.LabelSelectorAsSelector(&decoded)
	if err != nil {
		return ""
	}
	return compiled.String()
}

// resources returns the resources of a pod and of its containers by their names.
func resources(pod map[string]any) any {
	list := []any{at(pod, "spec", "resources")}
	for _, field := range []string{"containers", "initContainers"} {
		containers, _ := at(pod, "spec", field).([]any)
		for _, container := range containers {
			list = append(list, at(container, "name"), at(container, "resources"))
		}
	}
	return list
}

func conditions(object map[string]any, is func(condition any) bool) []any {
	list, _ := at(object, "status", "conditions").([]any)
	return slices.DeleteFunc(append([]any{}, list...), func(condition any) bool { return !is(condition) })
}

func isApproval(condition any) bool {
	what := at(condition, "type")
	return what == "Approved" || what == "Denied"
}

// managed returns the entries of managedFields.
func managed(object map[string]any) []map[string]any {
	fields, _ := at(object, "metadata", "managedFields").([]any)
	var list []map[string]any
	for _, field := range fields {
		if entry, ok := field.(map[string]any); ok {
			list = append(list, entry)
		}
	}
	return list
}

func isBy(name string) func(entry map[string]any) bool {
	return func(entry map[string]any) bool { return entry["subresource"] == name }
}

// owns reports whether the manager of an entry set a field.
func owns(entry map[string]any, path ...string) bool {
	return at(entry, append([]string{"fieldsV1"}, path...)...) != nil
}

func groupKind(object map[string]any) (group, kind string) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ = object["kind"].(string)
	if before, _, found := strings.Cut(apiVersion, "/"); found {
		group = before
	}
	return group, kind
}

func at(value any, path ...string) any {
	for _, name := range path {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

func timeOf(value any) time.Time {
	text, _ := value.(string)
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return parsed
}
