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

// Grouping says which results stand in one report.
type Grouping string

// The groupings.
const (
	// ByWorkload, the default: one report for the owner of pods, and one for each
	// object that runs for nobody.
	ByWorkload Grouping = "workload"
	// ByResource: one for each object.
	ByResource Grouping = "resource"
	// ByPolicy: one for each policy and namespace.
	ByPolicy Grouping = "policy"
	// ByNamespace: one for each namespace, and one for what is in none.
	ByNamespace Grouping = "namespace"
)

// Groupings are all of them, the default first.
func Groupings() []Grouping { return []Grouping{ByWorkload, ByResource, ByPolicy, ByNamespace} }

// ofAll is the name of a report by namespace, and what those of all others begin with:
// other writers name theirs by the bare UID of the owner, too, and an API server keeps one
// object of a name.
const ofAll = "quaymaster"

// Place is a report in its cluster. It is comparable: equal places are one report.
type Place struct {
	// Namespace is empty for a report of the cluster.
	Namespace string
	// Name is that of the first part; see PartName.
	Name string
	// Scope is what the report speaks of, and its owner, so that the cluster's own
	// garbage collection deletes the report with it; zero where it speaks of several
	// objects. It has no owner itself.
	Scope report.Resource
}

// Place returns where a result stands. The workload is the owner that an object runs
// for, behind what stands between them (the Deployment, not the ReplicaSet); zero for
// an object that runs for none. A node is no workload: what runs for it is a static pod,
// and those of one node have nothing in common. False means that there is no report for
// it: the object has no name yet.
func (g Grouping) Place(r result.Result, workload report.Resource) (Place, bool) {
	of := r.Resource
	if of.Kind == "Namespace" && of.APIVersion == "v1" {
		of.Namespace = "" // requests about a namespace say that they are in it
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

// ownName makes a name that no other writer uses of a text that may not be one.
func ownName(text string) string {
	name := ofAll + "-" + text
	if !isPart(name) && len(name) <= maxName && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	return ofAll + "-" + hex.EncodeToString(sum[:12])
}

// isPart reports whether a name is one that PartName makes for a later part of another
// report.
func isPart(name string) bool {
	number, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	return err == nil && number <= MaxParts
}

// controllers are the kinds whose pods speak for them.
func controllers() []string {
	return []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"}
}

// hasPods reports whether an object of that kind makes pods, as far as its kind tells.
func hasPods(scope report.Resource) bool { return slices.Contains(controllers(), scope.Kind) }
