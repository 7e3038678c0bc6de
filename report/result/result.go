// Package result answers: what did each rule say about each object, in the words that
// readers of policy reports know?
//
// A Result is one line of a report: one rule on one object, or on one image of it. It
// is made from an outcome once, holds nothing of the object but its name, and is what
// reports in the cluster, the report formats of the command line, the audit scan and
// the dashboard have in common. The words follow PolicyReport v1alpha2 of
// wgpolicyk8s.io and Report v1alpha1 of openreports.io.
package result

import (
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Source is what the results of this product say they come from.
const Source = "quaymaster"

// OverrideKind is the kind of an override, which a result of its own names as its policy.
const OverrideKind = "ImageOverride"

// Status is what a rule came to.
type Status string

// The statuses.
const (
	Pass Status = "pass"
	Fail Status = "fail"
	// Warn is a failure of a rule whose author says that it does not count, or only warns.
	Warn Status = "warn"
	// Error: the rule could not be asked, or something that it needs could not be looked at.
	Error Status = "error"
	// Skip: the rule's conditions or an exception leave the object alone.
	Skip Status = "skip"
)

// Statuses are all of them, in the order of a report's summary.
func Statuses() []Status { return []Status{Pass, Fail, Warn, Error, Skip} }

// Result is what one rule said. It is immutable.
type Result struct {
	Policy   Policy
	Rule     string
	Resource report.Resource
	// Image is the image that it is about; nil where it is about the object itself.
	Image  *Image
	Status Status
	// Enforced: a failure denies.
	Enforced bool
	// Code is the reason's, empty where there is none.
	Code    policy.Code
	Message string
	// Exception is what left the object alone, as namespace/name; empty where nothing did.
	Exception string
	Time      time.Time
	Process   report.Process
	// Properties are the author's words for reports.
	Properties map[string]string
}

// Policy is what a Result says of its policy.
type Policy struct {
	Kind, Namespace, Name     string
	Title, Category, Severity string
	// Hash is the SHA-256 of the document, in hexadecimal.
	Hash string
	// Unscored: its author says that failures do not count.
	Unscored bool
}

// String returns the name as reports have it: namespace/name, or the name alone.
func (p Policy) String() string {
	if p.Namespace != "" {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
}

// Image is what a Result says of its image.
type Image struct {
	Container string
	// Written is the reference as it stands in the object.
	Written string
	// Digest is what it was resolved to; empty where nobody asked or found out.
	Digest string
	// Signer is who signed, and Evidence where that was found, as repository@digest;
	// both empty where nothing was proved. Of several, those of the first proof.
	Signer, Evidence string
}

// Key tells results of one report apart: what has the same Key is about the same, and
// the newer one holds.
type Key struct {
	Kind, Policy, Rule string
	Resource           string
	Container          string
}

// Key returns the result's.
func (r Result) Key() Key {
	k := Key{Kind: r.Policy.Kind, Policy: r.Policy.String(), Rule: r.Rule, Resource: identity(r.Resource)}
	if r.Image != nil {
		k.Container = r.Image.Container
	}
	return k
}

// identity is the UID, or without one the whole name.
func identity(r report.Resource) string {
	if r.UID != "" {
		return r.UID
	}
	return r.APIVersion + "/" + r.Kind + "/" + r.Namespace + "/" + r.Name
}
