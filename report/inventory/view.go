package inventory

import (
	"encoding/json"
	"time"

	"github.com/quaymaster/quaymaster/report"
)

// Signer is who signed an image, or stated something about it.
type Signer struct {
	// Name is short, for tables.
	Name           string `json:"name"`
	Subject        string `json:"subject,omitempty"`
	Issuer         string `json:"issuer,omitempty"`
	KeyFingerprint string `json:"keyFingerprint,omitempty"`
}

// Image is what is known of one image: a repository and a digest, or a reference of
// which no digest is known.
type Image struct {
	// ID is made from the name and the digest: the same everywhere and always.
	ID string `json:"id"`
	// Reference is how it was named last.
	Reference string `json:"reference"`
	Digest    string `json:"digest,omitempty"`
	// Verdict is the last one; Code and Message are its most telling reason's.
	Verdict Verdict  `json:"verdict"`
	Code    string   `json:"code,omitempty"`
	Message string   `json:"message,omitempty"`
	Signers []Signer `json:"signers,omitempty"`
	// Workloads are those that run it and Pods the pods of them, at least; Refused are
	// the workloads that were not let in with it.
	Workloads int `json:"workloads"`
	Pods      int `json:"pods"`
	Refused   int `json:"refused,omitempty"`
	// Namespaces are up to five of those of its workloads, in order, and NamespaceCount
	// how many there are.
	Namespaces     []string  `json:"namespaces,omitempty"`
	NamespaceCount int       `json:"namespaceCount"`
	FirstSeen      time.Time `json:"firstSeen"`
	LastSeen       time.Time `json:"lastSeen"`
}

// Use is a workload and an image of it: the controller that made the pods, or an object
// without one.
type Use struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name"`
	Containers []string `json:"containers,omitempty"`
	// Pods were seen, at least; 1 for an object without a controller.
	Pods    int     `json:"pods"`
	Verdict Verdict `json:"verdict"`
	// Running: it was let in, or was there already. Otherwise it was refused.
	Running bool `json:"running"`
	// Process says what looked last.
	Process  report.Process `json:"process"`
	LastSeen time.Time      `json:"lastSeen"`
}

// Details are an image with everything that is kept of it.
type Details struct {
	Image
	References []string `json:"references"`
	// Uses are sorted by namespace, kind and name; UsesLeftOut were over the bound.
	Uses        []Use `json:"uses"`
	UsesLeftOut int   `json:"usesLeftOut,omitempty"`
	// Record is the verdict as docs/record.md describes an image, with long texts and
	// lists cut; empty where it was too large to be kept.
	Record json.RawMessage `json:"record,omitempty"`
	// DecidedAt is when the record was made, by Process at Door.
	DecidedAt       time.Time      `json:"decidedAt"`
	Process         report.Process `json:"process"`
	Door            string         `json:"door,omitempty"`
	PolicySetHash   string         `json:"policySetHash,omitempty"`
	TrustGeneration string         `json:"trustGeneration,omitempty"`
}

// Decision is one answer to a request.
type Decision struct {
	Time      time.Time       `json:"time"`
	Door      string          `json:"door,omitempty"`
	Operation string          `json:"operation,omitempty"`
	UID       string          `json:"uid,omitempty"`
	User      string          `json:"user,omitempty"`
	Resource  report.Resource `json:"resource"`
	Verdict   Verdict         `json:"verdict"`
	// Allowed is what who asked was told, which may be more than the verdict says.
	Allowed bool `json:"allowed"`
	// Shadow: the verdict is what would have been, and nothing came of it.
	Shadow bool `json:"shadow,omitempty"`
	// Undecided says why nobody could decide; empty where somebody did.
	Undecided string `json:"undecided,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
	// Images are the first sixteen; ImagesLeftOut says how many more there were.
	Images        []DecidedImage `json:"images,omitempty"`
	ImagesLeftOut int            `json:"imagesLeftOut,omitempty"`
	// DurationMilliseconds is what deciding took.
	DurationMilliseconds float64 `json:"durationMilliseconds"`
}

// DecidedImage is an image of a Decision.
type DecidedImage struct {
	ID      string  `json:"id"`
	Written string  `json:"written"`
	Verdict Verdict `json:"verdict"`
}

// Policy is what one policy came to.
type Policy struct {
	// ID is kind/name or kind/namespace/name.
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Hash is the SHA-256 of the document that was asked last, in hexadecimal.
	Hash string `json:"hash,omitempty"`
	// Images count what it says now of the images that are known.
	Images Results `json:"images"`
	// Admission and Scan count its results since the process began.
	Admission Results    `json:"admission"`
	Scan      Results    `json:"scan"`
	Rules     []RuleTold `json:"rules"`
	LastFail  time.Time  `json:"lastFail,omitzero"`
	LastSeen  time.Time  `json:"lastSeen"`
}

// RuleTold is what one rule came to, at admission and in scans.
type RuleTold struct {
	Name    string  `json:"name"`
	Results Results `json:"results"`
}

// Moment counts the decisions of one minute or hour.
type Moment struct {
	Start time.Time `json:"start"`
	Tally
}

// About says whose inventory it is.
type About struct {
	Replica string `json:"replica"`
	// Since is when it began, or the oldest that a decision log told it: what was decided
	// before is not in it.
	Since time.Time `json:"since"`
	// Dropped decisions came faster than they could be taken in.
	Dropped int64 `json:"dropped"`
	// Scanned is when a scan last told something; zero where none did.
	Scanned time.Time `json:"scanned,omitzero"`
	// Alone says why this is not the inventory of the replica that leads, which scans;
	// empty where it is, or where replicas do not ask one another.
	Alone string `json:"alone,omitempty"`
}
