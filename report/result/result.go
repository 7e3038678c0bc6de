// Package result converts decisions to results in the terms of policy reports.
//
// A Result is one line of a report: one rule for one object, or for one image of it. It is made
// from an outcome once, and holds only the name of the object. Reports in the cluster, the report
// formats of the command line, the audit scan and the dashboard share it. The terms are those of
// PolicyReport v1alpha2 of wgpolicyk8s.io and Report v1alpha1 of openreports.io.
package result

import (
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Source is the source of this product's results.
const Source = "quaymaster"

// OverrideKind is the kind of an override, for results with an override as their policy.
const OverrideKind = "ImageOverride"

// Status is the result of a rule.
type Status string

// The statuses.
const (
	Pass Status = "pass"
	Fail Status = "fail"
	// Warn is a failure of a rule that is not scored, or only warns.
	Warn Status = "warn"
	// Error: the rule could not be evaluated, or an image could not be verified.
	Error Status = "error"
	// Skip: the rule's conditions or an exception exempt the object.
	Skip Status = "skip"
)

// Statuses returns all statuses, in the order of a report's summary.
func Statuses() []Status { return []Status{Pass, Fail, Warn, Error, Skip} }

// Result is the result of one rule. It is immutable.
type Result struct {
	Policy   Policy
	Rule     string
	Resource report.Resource
	// Image is the image of the result; nil for the object itself.
	Image  *Image
	Status Status
	// Enforced: a failure denies.
	Enforced bool
	// Code is the code of the reason; empty where there is none.
	Code    policy.Code
	Message string
	// Exception is the exception that exempts the object, as namespace/name, with commas between
	// several; empty where there is none.
	Exception string
	Time      time.Time
	Process   report.Process
	// Properties are added to reports by the rule's author.
	Properties map[string]string
}

// Policy is the policy of a Result.
type Policy struct {
	Kind, Namespace, Name     string
	Title, Category, Severity string
	// Hash is the SHA-256 of the document, in hexadecimal.
	Hash string
	// Unscored: its author excludes failures from the score.
	Unscored bool
	// Unreported: its author disables its results in reports of the cluster.
	Unreported bool
}

// String returns the name in the form of reports: namespace/name, or the name alone.
func (p Policy) String() string {
	if p.Namespace != "" {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
}

// Rule identifies a rule by its policy, of which only kind, namespace and name count, and its name.
type Rule struct {
	Policy Policy
	Rule   string
}

// Image is the image of a Result.
type Image struct {
	Container string
	// Written is the reference as written in the object.
	Written string
	// Digest is the resolved digest; empty where it was not resolved.
	Digest string
	// Signer is the signer of the first proof, and Evidence its location, as repository@digest.
	// Both are empty without a proof.
	Signer, Evidence string
}

// Key identifies results of one report: of results with equal keys, the newer one is used.
type Key struct {
	Kind, Policy, Rule string
	Resource           string
	Container          string
}

// Key returns the key of the result.
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
