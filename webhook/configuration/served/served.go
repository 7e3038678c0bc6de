// Package served reads the resources that an API server serves from its discovery documents
// (Kubernetes API discovery, APIResourceList of meta/v1), for webhook configurations.
package served

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// Resources returns the resources of discovery that can be created, changed or deleted, or have
// subresources, in stable order. Where discovery fails in part, as when an aggregated API is down,
// resources of the failed group versions are taken from before: their webhooks stay in place.
func Resources(lists []*metav1.APIResourceList, failed []schema.GroupVersion, before []configuration.Resource) []configuration.Resource {
	var served []configuration.Resource
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
	slices.SortFunc(served, configuration.Resource.Compare)
	return slices.CompactFunc(served, func(a, b configuration.Resource) bool { return a.Compare(b) == 0 })
}

func servedIn(version schema.GroupVersion, resources []metav1.APIResource) []configuration.Resource {
	var served []configuration.Resource
	for _, r := range resources {
		found := configuration.Resource{Group: version.Group, Version: version.Version, Name: r.Name, Kind: r.Kind, Namespaced: r.Namespaced}
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
