package policycount

import (
	"time"

	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

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
	Images verdict.Results `json:"images"`
	// Admission and Scan count its results since the process started.
	Admission verdict.Results `json:"admission"`
	Scan      verdict.Results `json:"scan"`
	Rules     []Rule          `json:"rules"`
	// Moments count its results over the last week, in intervals of six hours, the oldest first,
	// without empty ones.
	Moments  []Moment  `json:"moments,omitempty"`
	LastFail time.Time `json:"lastFail,omitzero"`
	LastSeen time.Time `json:"lastSeen"`
	// LastError is the last time that it could not be evaluated; nil for never.
	LastError *Problem `json:"lastError,omitempty"`
}

// Rule holds the results of one rule, at admission and in scans.
type Rule struct {
	Name    string          `json:"name"`
	Results verdict.Results `json:"results"`
}

// Moment counts the results of one interval.
type Moment struct {
	Start time.Time `json:"start"`
	verdict.Results
}

// Problem is why a policy could not be evaluated.
type Problem struct {
	Time    time.Time `json:"time"`
	Rule    string    `json:"rule,omitempty"`
	Code    string    `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
}
