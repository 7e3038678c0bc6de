package policyreport

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// Grouping assigns results to reports.
type Grouping string

// The groupings.
const (
	// ByWorkload, the default: one report for the owner of pods, and one for each object without
	// an owner.
	ByWorkload Grouping = "workload"
	// ByResource: one for each object.
	ByResource Grouping = "resource"
	// ByPolicy: one for each policy and namespace.
	ByPolicy Grouping = "policy"
	// ByNamespace: one for each namespace, and one for all cluster-scoped objects.
	ByNamespace Grouping = "namespace"
)

// Groupings returns all groupings, the default first.
func Groupings() []Grouping { return []Grouping{ByWorkload, ByResource, ByPolicy, ByNamespace} }

// ofAll is the name of a report by namespace, and the prefix of the names of all other such
// reports. Other writers use the bare UID of the owner as a name, and an API server stores only
// one object with a name.
const ofAll = "quaymaster"

// Place identifies a report in its cluster. It is comparable: equal places are one report.
type Place struct {
	// Namespace is empty for a cluster report.
	Namespace string
	// Name is the name of the first part; see PartName.
	Name string
	// Scope is the object that the report applies to. It is also the report's owner, so that
	// Kubernetes' garbage collection deletes the report with it. It is zero for a report on
	// several objects. Scope has no owner itself.
	Scope report.Resource
}

// Place returns the report of a result. The workload is the root owner of the object (the
// Deployment, not the ReplicaSet); zero for an object without one. A node is not a workload: its
// pods are static pods, which are unrelated. False means that there is no report, because the
// object has no name yet.
func (g Grouping) Place(r result.Result, workload report.Resource) (Place, bool) {
	of := r.Resource
	if of.Kind == "Namespace" && of.APIVersion == "v1" {
		of.Namespace = "" // requests for a namespace have it in their namespace, too
	}
	if of.Name == "" || of.Kind == "" || strings.HasSuffix(of.Name, "*") {
		return Place{}, false
	}
	switch g {
	case ByPolicy:
		return Place{Namespace: of.Namespace, Name: ownName(strings.ToLower(r.Policy.Kind) + "-" + r.Policy.Name)}, true
	case ByNamespace:
		return Place{Namespace: of.Namespace, Name: ofAll}, true
	case ByWorkload:
		if workload.Name != "" && workload.Kind != "Node" {
			workload.Namespace = of.Namespace
			of = workload
		}
	case ByResource:
	}
	of.Owner = nil
	name := of.UID
	if name == "" {
		name = strings.ToLower(of.Kind) + "-" + of.Name
	}
	return Place{Namespace: of.Namespace, Name: ownName(name), Scope: of}, true
}

// ownName derives a name, which no other writer uses, from a text that need not be a valid name.
func ownName(text string) string {
	name := ofAll + "-" + text
	if !isPart(name) && len(name) <= maxName && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	return ofAll + "-" + hex.EncodeToString(sum[:12])
}

// isPart reports whether PartName could return the name for a later part of another report.
func isPart(name string) bool {
	number, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	return err == nil && number <= MaxParts
}

// controllers are the kinds with pods that share results.
func controllers() []string {
	return []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"}
}

// hasPods reports whether the kind of an object creates pods.
func hasPods(scope report.Resource) bool { return slices.Contains(controllers(), scope.Kind) }
