package configuration

import (
	"cmp"
	"slices"
)

// Resource is one resource in one version, as the API server serves it.
type Resource struct {
	// Group is empty for the core group; Name is the plural, as in pods.
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	// Namespaced distinguishes namespaced from cluster-scoped resources.
	Namespaced bool `json:"namespaced,omitempty"`
	// Subresources, without the resource, as in ephemeralcontainers.
	Subresources []string `json:"subresources,omitempty"`
}

// Compare orders resources by group, name and version; 0 means the same resource.
func (r Resource) Compare(other Resource) int {
	return cmp.Or(cmp.Compare(r.Group, other.Group), cmp.Compare(r.Name, other.Name), cmp.Compare(r.Version, other.Version))
}

const (
	podKind             = "Pod"
	ephemeralContainers = "ephemeralcontainers"
)

// workload is a built-in kind of Kubernetes that runs images.
type workload struct {
	group, kind string
	// inSpec reports whether all its images are in spec, so that an update which does not change
	// spec contains no new image.
	inSpec bool
}

func workloads() []workload {
	return []workload{
		{"", podKind, true}, {"", "PodTemplate", false}, {"", "ReplicationController", true},
		{"apps", "DaemonSet", true}, {"apps", "Deployment", true}, {"apps", "ReplicaSet", true}, {"apps", "StatefulSet", true},
		{"batch", "CronJob", true}, {"batch", "Job", true},
	}
}

func (r Resource) workload() (workload, bool) {
	all := workloads()
	i := slices.IndexFunc(all, func(w workload) bool { return w.group == r.Group && w.kind == r.Kind })
	if i < 0 {
		return workload{}, false
	}
	return all[i], true
}

// controllers returns the kinds that create Pods.
func controllers() []string {
	var kinds []string
	for _, w := range workloads() {
		if w.kind != podKind && w.inSpec {
			kinds = append(kinds, w.kind)
		}
	}
	return kinds
}
