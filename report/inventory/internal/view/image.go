package view

import (
	"encoding/json"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// Signer is the signer of an image or of an attestation of it.
type Signer = evidence.Signer

// Image is the state of one image: a repository and a digest, or a reference with an unknown
// digest.
type Image struct {
	// ID is derived from the name and the digest alone, so that it is stable everywhere.
	ID string `json:"id"`
	// Reference is the most recent reference with this verdict.
	Reference string `json:"reference"`
	Digest    string `json:"digest,omitempty"`
	// Verdict is the last verdict: of a running image the gravest of those for its workloads, which a
	// refused request does not change. Code and Message belong to its most relevant reason.
	Verdict verdict.Verdict `json:"verdict"`
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Signers []Signer        `json:"signers,omitempty"`
	// Workloads and Pods count those that run the image, at least. Refused counts the denied
	// workloads.
	Workloads int `json:"workloads"`
	Pods      int `json:"pods"`
	Refused   int `json:"refused,omitempty"`
	// Namespaces are up to five namespaces of its workloads, in order, and NamespaceCount is
	// their total.
	Namespaces     []string  `json:"namespaces,omitempty"`
	NamespaceCount int       `json:"namespaceCount"`
	FirstSeen      time.Time `json:"firstSeen"`
	LastSeen       time.Time `json:"lastSeen"`
	// Cause is what refused the last object with the image, which may be another container; nil for
	// an image that runs.
	Cause *verdict.Cause `json:"cause,omitempty"`
}

// State returns whether workloads run the image.
func (i *Image) State() State {
	switch {
	case i.Workloads > 0:
		return Running
	case i.Refused > 0:
		return Refused
	default:
		return Other
	}
}

// Use is the use of an image by a workload: the controller of the pods, or an object without one.
type Use struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name"`
	Containers []string `json:"containers,omitempty"`
	// Pods counts the observed pods, at least; 1 for an object without a controller.
	Pods    int             `json:"pods"`
	Verdict verdict.Verdict `json:"verdict"`
	// Running: the workload was admitted, or existed before. Otherwise it was denied.
	Running bool `json:"running"`
	// Process is the process of the last decision.
	Process  report.Process `json:"process"`
	LastSeen time.Time      `json:"lastSeen"`
	// Cause is what refused the object, which may be another container; nil if it runs.
	Cause *verdict.Cause `json:"cause,omitempty"`
}

// Details are an image with all of its data.
type Details struct {
	Image
	References []string `json:"references"`
	// Uses are sorted by namespace, kind and name. UsesLeftOut counts those over the bound.
	Uses        []Use `json:"uses"`
	UsesLeftOut int   `json:"usesLeftOut,omitempty"`
	// Record is the image of docs/record.md, with truncated texts and lists; empty where it was
	// too large. ResultsLeftOut counts the decisions over the bound, of which the gravest remain.
	Record         json.RawMessage `json:"record,omitempty"`
	ResultsLeftOut int             `json:"resultsLeftOut,omitempty"`
	// DecidedAt is the time of the record, which Process made at Endpoint.
	DecidedAt       time.Time      `json:"decidedAt"`
	Process         report.Process `json:"process"`
	Endpoint        string         `json:"endpoint,omitempty"`
	PolicySetHash   string         `json:"policySetHash,omitempty"`
	TrustGeneration string         `json:"trustGeneration,omitempty"`
}
