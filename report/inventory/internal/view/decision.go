package view

import (
	"encoding/json"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// Decision is one response to a request.
type Decision struct {
	// ID names the decision on the replica that made it.
	ID        string          `json:"id"`
	Time      time.Time       `json:"time"`
	Endpoint  string          `json:"endpoint,omitempty"`
	Operation string          `json:"operation,omitempty"`
	UID       string          `json:"uid,omitempty"`
	User      string          `json:"user,omitempty"`
	Resource  report.Resource `json:"resource"`
	Verdict   verdict.Verdict `json:"verdict"`
	// Allowed is the response, which may be more permissive than the verdict.
	Allowed bool `json:"allowed"`
	// Shadow: the verdict is recorded but not enforced.
	Shadow bool `json:"shadow,omitempty"`
	// Undecided is the reason why there is no decision; empty otherwise.
	Undecided string `json:"undecided,omitempty"`
	// Cause has the container or the rule, with its reason; empty for an allowed object.
	verdict.Cause
	// Images are the first sixteen, and ImagesLeftOut counts the others.
	Images        []DecidedImage `json:"images,omitempty"`
	ImagesLeftOut int            `json:"imagesLeftOut,omitempty"`
	// DurationMilliseconds is the duration of the evaluation.
	DurationMilliseconds float64 `json:"durationMilliseconds"`
}

// DecidedImage is an image of a Decision.
type DecidedImage struct {
	ID      string          `json:"id"`
	Written string          `json:"written"`
	Verdict verdict.Verdict `json:"verdict"`
	// Container is its container, and Copy means that it was evaluated as a mirror's copy.
	Container string `json:"container,omitempty"`
	Copy      bool   `json:"copy,omitempty"`
}

// DecisionDetails are a decision with its evidence.
type DecisionDetails struct {
	Decision
	// Record has the images and rules of docs/record.md, with truncated texts and lists; empty
	// where it was too large, or evicted.
	Record json.RawMessage `json:"record,omitempty"`
}

// Moment counts the decisions of one minute or hour.
type Moment struct {
	Start time.Time `json:"start"`
	verdict.Tally
}

// About describes the inventory's origin.
type About struct {
	Replica string `json:"replica"`
	// Since is the start of the inventory, or the time of the oldest decision restored from a
	// log. Earlier decisions are missing.
	Since time.Time `json:"since"`
	// Restores: the decisions from before a restart are restored from a decision log. Otherwise
	// the history starts with the process.
	Restores bool `json:"restores"`
	// Dropped counts the decisions that exceeded the queue.
	Dropped int64 `json:"dropped"`
	// Scanned is the time of the last scan result; zero where there is none.
	Scanned time.Time `json:"scanned,omitzero"`
	// Alone is the reason why this is not the inventory of the leader, which scans; empty where
	// it is, or where replicas do not query each other.
	Alone string `json:"alone,omitempty"`
}
