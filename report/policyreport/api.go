package policyreport

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// API is one of the APIs of reports, as group/version.
type API string

// The APIs.
const (
	PolicyReports API = "wgpolicyk8s.io/v1alpha2"
	OpenReports   API = "openreports.io/v1alpha1"
)

// APIs returns all APIs.
func APIs() []API { return []API{PolicyReports, OpenReports} }

// Kind returns the kind of reports in a namespace, or of cluster reports for an empty one.
func (a API) Kind(namespace string) string {
	kind := "Report"
	if a == PolicyReports {
		kind = "PolicyReport"
	}
	if namespace == "" {
		return "Cluster" + kind
	}
	return kind
}

// Resource returns the resource of reports in a namespace, or of cluster reports for an empty
// one.
func (a API) Resource(namespace string) schema.GroupVersionResource {
	gv, _ := schema.ParseGroupVersion(string(a))
	name := "reports"
	if a == PolicyReports {
		name = "policyreports"
	}
	if namespace == "" {
		name = "cluster" + name
	}
	return gv.WithResource(name)
}

// apiOf returns the API of a group/version and kind, and false for another.
func apiOf(apiVersion, kind string) (API, bool) {
	for _, a := range APIs() {
		if string(a) == apiVersion && (kind == a.Kind("") || kind == a.Kind("any")) {
			return a, true
		}
	}
	return "", false
}
