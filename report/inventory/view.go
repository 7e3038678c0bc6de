package inventory

import (
	"encoding/json"
	"time"

	"github.com/quaymaster/quaymaster/report"
)

// Signer is the signer of an image or of an attestation of it.
type Signer struct {
	// Name is a short name for tables.
	Name           string `json:"name"`
	Subject        string `json:"subject,omitempty"`
	Issuer         string `json:"issuer,omitempty"`
	KeyFingerprint string `json:"keyFingerprint,omitempty"`
}

// Image is the state of one image: a repository and a digest, or a reference with an unknown
// digest.
type Image struct {
	// ID is derived from the name and the digest alone, so that it is stable everywhere.
	ID string `json:"id"`
	// Reference is the most recent reference.
	Reference string `json:"reference"`
	Digest    string `json:"digest,omitempty"`
	// Verdict is the last verdict. Code and Message belong to its most relevant reason.
	Verdict Verdict  `json:"verdict"`
	Code    string   `json:"code,omitempty"`
	Message string   `json:"message,omitempty"`
	Signers []Signer `json:"signers,omitempty"`
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
}

// Use is the use of an image by a workload: the controller of the pods, or an object without one.
type Use struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name"`
	Containers []string `json:"containers,omitempty"`
	// Pods counts the observed pods, at least; 1 for an object without a controller.
	Pods    int     `json:"pods"`
	Verdict Verdict `json:"verdict"`
	// Running: the workload was admitted, or existed before. Otherwise it was denied.
	Running bool `json:"running"`
	// Process is the process of the last decision.
	Process  report.Process `json:"process"`
	LastSeen time.Time      `json:"lastSeen"`
}

// Details are an image with all of its data.
type Details struct {
	Image
	References []string `json:"references"`
	// Uses are sorted by namespace, kind and name. UsesLeftOut counts those over the bound.
	Uses        []Use `json:"uses"`
	UsesLeftOut int   `json:"usesLeftOut,omitempty"`
	// Record is the image of docs/record.md, with truncated texts and lists; empty where it was
	// too large.
	Record json.RawMessage `json:"record,omitempty"`
	// DecidedAt is the time of the record, which Process made at Endpoint.
	DecidedAt       time.Time      `json:"decidedAt"`
	Process         report.Process `json:"process"`
	Endpoint        string         `json:"endpoint,omitempty"`
	PolicySetHash   string         `json:"policySetHash,omitempty"`
	TrustGeneration string         `json:"trustGeneration,omitempty"`
}

// Decision is one response to a request.
type Decision struct {
	Time      time.Time       `json:"time"`
	Endpoint  string          `json:"endpoint,omitempty"`
	Operation string          `json:"operation,omitempty"`
	UID       string          `json:"uid,omitempty"`
	User      string          `json:"user,omitempty"`
	Resource  report.Resource `json:"resource"`
	Verdict   Verdict         `json:"verdict"`
	// Allowed is the response, which may be more permissive than the verdict.
	Allowed bool `json:"allowed"`
	// Shadow: the verdict is recorded but not enforced.
	Shadow bool `json:"shadow,omitempty"`
	// Undecided is the reason why there is no decision; empty otherwise.
	Undecided string `json:"undecided,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
	// Images are the first sixteen, and ImagesLeftOut counts the others.
	Images        []DecidedImage `json:"images,omitempty"`
	ImagesLeftOut int            `json:"imagesLeftOut,omitempty"`
	// DurationMilliseconds is the duration of the evaluation.
	DurationMilliseconds float64 `json:"durationMilliseconds"`
}

// DecidedImage is an image of a Decision.
type DecidedImage struct {
	ID      string  `json:"id"`
	Written string  `json:"written"`
	Verdict Verdict `json:"verdict"`
}

// Policy holds the results of one policy.
type Policy struct {
	// ID is kind/name or kind/namespace/name.
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Hash is the SHA-256 of the last evaluated document, in hexadecimal.
	Hash string `json:"hash,omitempty"`
	// Images count its current results for the images of the inventory.
	Images Results `json:"images"`
	// Admission and Scan count its results since the process started.
	Admission Results    `json:"admission"`
	Scan      Results    `json:"scan"`
	Rules     []RuleTold `json:"rules"`
	LastFail  time.Time  `json:"lastFail,omitzero"`
	LastSeen  time.Time  `json:"lastSeen"`
}

// RuleTold holds the results of one rule, at admission and in scans.
type RuleTold struct {
	Name    string  `json:"name"`
	Results Results `json:"results"`
}

// Moment counts the decisions of one minute or hour.
type Moment struct {
	Start time.Time `json:"start"`
	Tally
}

// About describes the inventory's origin.
type About struct {
	Replica string `json:"replica"`
	// Since is the start of the inventory, or the time of the oldest decision restored from a
	// log. Earlier decisions are missing.
	Since time.Time `json:"since"`
	// Dropped counts the decisions that exceeded the queue.
	Dropped int64 `json:"dropped"`
	// Scanned is the time of the last scan result; zero where there is none.
	Scanned time.Time `json:"scanned,omitzero"`
	// Alone is the reason why this is not the inventory of the leader, which scans; empty where
	// it is, or where replicas do not query each other.
	Alone string `json:"alone,omitempty"`
}
