package difference

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// podDefaults are the fixed values that the API server and its admission plugins add to the
// specification of a pod.
func podDefaults() values {
	out := values{
		"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30.0,
		"securityContext": values{}, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority", "serviceAccountName": "default",
		"volumes.*.secret.defaultMode": 420.0, "volumes.*.configMap.defaultMode": 420.0, "volumes.*.projected.defaultMode": 420.0,
		"volumes.*.downwardAPI.defaultMode": 420.0, "volumes.*.downwardAPI.items.*.fieldRef.apiVersion": "v1",
		"volumes.*.projected.sources.*.downwardAPI.items.*.fieldRef.apiVersion": "v1",
		"volumes.*.projected.sources.*.serviceAccountToken.expirationSeconds":   3600.0,
		"volumes.*.hostPath.type": "", "volumes.*.emptyDir": values{}, "volumes.*.ephemeral.volumeClaimTemplate.spec.volumeMode": "Filesystem",
	}
	for _, list := range []string{"containers", "initContainers"} {
		maps.Copy(out, containerDefaults(list+".*."))
	}
	return out
}

func containerDefaults(prefix string) values {
	out := values{
		prefix + "terminationMessagePath": "/dev/termination-log", prefix + "terminationMessagePolicy": "File", prefix + "resources": values{},
		prefix + "ports.*.protocol": "TCP", prefix + "env.*.valueFrom.fieldRef.apiVersion": "v1",
		prefix + "env.*.valueFrom.resourceFieldRef.divisor": "0",
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		at := prefix + probe + "."
		maps.Copy(out, values{
			at + "timeoutSeconds": 1.0, at + "periodSeconds": 10.0, at + "successThreshold": 1.0, at + "failureThreshold": 3.0,
			at + "httpGet.scheme": "HTTP", at + "httpGet.path": "/", at + "grpc.service": "",
		})
	}
	for _, hook := range []string{"postStart", "preStop"} {
		out[prefix+"lifecycle."+hook+".httpGet.scheme"], out[prefix+"lifecycle."+hook+".httpGet.path"] = "HTTP", "/"
	}
	return out
}

// isPodDefault covers the defaults that follow from other fields of the pod; path is in its
// specification.
func (s *search) isPodDefault(at place, path string, found any) bool {
	parts := strings.Split(path, ".")
	isContainer := len(parts) > 2 && slices.Contains([]string{"containers", "initContainers"}, parts[0])
	switch {
	case path == "serviceAccount":
		account, ok := found.(string)
		return ok && account != "" && at.parent["serviceAccountName"] == account
	case path == "priority":
		return isWhole(found, 0) && at.parent["priorityClassName"] == nil
	case isContainer && len(parts) == 3 && parts[2] == "imagePullPolicy":
		image, ok := at.parent["image"].(string)
		return ok && found == pullPolicy(image)
	case path == "volumes.*.image.pullPolicy":
		image, ok := at.parent["reference"].(string)
		return ok && found == pullPolicy(image)
	case isContainer && strings.Join(parts[2:], ".") == "resources.requests":
		return areLimits(found, at.parent["limits"])
	}
	return false
}

// areLimits: requests that are absent are as the limits.
func areLimits(requests, limits any) bool {
	requested, ok := requests.(map[string]any)
	limited, _ := limits.(map[string]any)
	for name, value := range requested {
		ok = ok && value != nil && equal(limited[name], value)
	}
	return ok && len(requested) > 0
}

// pullPolicy is the default for an image.
func pullPolicy(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, tagged := strings.Cut(name, ":")
	switch {
	case strings.Contains(name, "@"):
		return "IfNotPresent"
	case !tagged || tag == "latest":
		return "Always"
	}
	return "IfNotPresent"
}

// appends reports whether the API server appends to the list, which may not be there.
func (s *search) appends(at place) bool {
	path, ok := s.kind.inPodSpec(at)
	return ok && slices.Contains([]string{"tolerations", "volumes", "containers.*.volumeMounts", "initContainers.*.volumeMounts"}, path)
}

// isAppended reports whether an element is one that an admission plugin of the API server appends
// (DefaultTolerationSeconds, ServiceAccount).
func (s *search) isAppended(at place, found any) bool {
	path, ok := s.kind.inPodSpec(at)
	element, isObject := found.(map[string]any)
	if !ok || !isObject || !s.kind.is("", "Pod") {
		return false
	}
	switch path {
	case "tolerations.*":
		return isToleration(element)
	case "volumes.*":
		return s.takesToken() && isTokenVolume(element)
	case "containers.*.volumeMounts.*", "initContainers.*.volumeMounts.*":
		name, _ := element["name"].(string)
		return s.takesToken() && isTokenMount(element) && s.isToken(name)
	}
	return false
}

func isToleration(element values) bool {
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		if reflect.DeepEqual(element, values{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300.0}) {
			return true
		}
	}
	return false
}

// takesToken reports whether the signed pod leaves it to its ServiceAccount whether it has a token.
func (s *search) takesToken() bool {
	return member(s.written, "spec")["automountServiceAccountToken"] != false
}

const (
	tokenVolume = "kube-api-access-"
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
)

func isTokenName(name string) bool {
	suffix, is := strings.CutPrefix(name, tokenVolume)
	return is && len(suffix) == 5 && strings.Trim(suffix, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// isTokenVolume compares with the volume that the API server adds.
func isTokenVolume(element values) bool {
	name, _ := element["name"].(string)
	return isTokenName(name) && reflect.DeepEqual(element, values{"name": name, "projected": values{"defaultMode": 420.0, "sources": []any{
		values{"serviceAccountToken": values{"expirationSeconds": 3607.0, "path": "token"}},
		values{"configMap": values{"name": "kube-root-ca.crt", "items": []any{values{"key": "ca.crt", "path": "ca.crt"}}}},
		values{"downwardAPI": values{"items": []any{values{"path": "namespace", "fieldRef": values{"apiVersion": "v1", "fieldPath": "metadata.namespace"}}}}},
	}}})
}

func isTokenMount(element values) bool {
	name, _ := element["name"].(string)
	return isTokenName(name) && reflect.DeepEqual(element, values{"name": name, "readOnly": true, "mountPath": tokenPath})
}

// isToken reports whether the volume of a name is the one of the token: a signed volume may have a
// name of the same form.
func (s *search) isToken(name string) bool {
	volumes, _ := member(s.root, "spec")["volumes"].([]any)
	return slices.ContainsFunc(volumes, func(v any) bool {
		volume, ok := v.(map[string]any)
		return ok && volume["name"] == name && isTokenVolume(volume)
	})
}

// withoutToken returns a pod that an API server has made in a dry run without the volume of the token,
// the name of which is random.
func withoutToken(pod map[string]any) map[string]any {
	spec, ok := pod["spec"].(map[string]any)
	if pod["kind"] != "Pod" || pod["apiVersion"] != "v1" || !ok {
		return pod
	}
	without := func(of values, list string, is func(values) bool) {
		items, ok := of[list].([]any)
		if !ok {
			return
		}
		left := slices.DeleteFunc(slices.Clone(items), func(item any) bool { element, ok := item.(map[string]any); return ok && is(element) })
		of[list] = left
		if len(left) == 0 {
			delete(of, list)
		}
	}
	spec = maps.Clone(spec)
	without(spec, "volumes", isTokenVolume)
	for _, list := range []string{"containers", "initContainers"} {
		items, _ := spec[list].([]any)
		items = slices.Clone(items)
		for i, item := range items {
			if container, ok := item.(map[string]any); ok {
				container = maps.Clone(container)
				without(container, "volumeMounts", isTokenMount)
				items[i] = container
			}
		}
		if len(items) > 0 {
			spec[list] = items
		}
	}
	pod = maps.Clone(pod)
	pod["spec"] = spec
	return pod
}
