package configuration

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Served returns the resources of discovery that can be created, changed or deleted, or have
// subresources, in stable order. Where discovery fails in part, as when an aggregated API is down,
// resources of the failed group versions are taken from before: their webhooks stay in place.
func Served(lists []*metav1.APIResourceList, failed []schema.GroupVersion, before []Resource) []Resource {
	var served []Resource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err == nil && !slices.Contains(failed, version) {
			served = append(served, servedIn(version, list.APIResources)...)
		}
	}
	for _, r := range before {
		if slices.Contains(failed, schema.GroupVersion{Group: r.Group, Version: r.Version}) {
			served = append(served, r)
		}
	}
	slices.SortFunc(served, Resource.Compare)
	return slices.CompactFunc(served, func(a, b Resource) bool { return a.Compare(b) == 0 })
}

func servedIn(version schema.GroupVersion, resources []metav1.APIResource) []Resource {
	var served []Resource
	for _, r := range resources {
		found := Resource{Group: version.Group, Version: version.Version, Name: r.Name, Kind: r.Kind, Namespaced: r.Namespaced}
		for _, sub := range resources {
			if name, ok := strings.CutPrefix(sub.Name, r.Name+"/"); ok {
				found.Subresources = append(found.Subresources, name)
			}
		}
		slices.Sort(found.Subresources)
		writes := func(verb string) bool { return slices.Contains(r.Verbs, verb) }
		if strings.Contains(r.Name, "/") || len(found.Subresources) == 0 &&
			!slices.ContainsFunc([]string{"create", "update", "patch", "delete", "deletecollection"}, writes) {
			continue
		}
		served = append(served, found)
	}
	return served
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
