package policy

import (
	"context"
	"fmt"
	"time"
)

// Exception leaves objects out of rules, for a time: a compiled PolicyException
// of any dialect. It is immutable once it is in a Set.
type Exception struct {
	// Group is the document's API group. It distinguishes documents of two dialects with the same
	// name.
	Group string
	// Namespace and Name are the document's; Source is where it was read, and Hash is the SHA-256
	// of its content.
	Namespace, Name, Source, Hash string
	// Rules are the rules that it covers; at least one.
	Rules []ExceptedRule
	// Images are patterns for references, in the syntax of package reference; none means every
	// image of the object. An exception for some images never covers another.
	Images []string
	// Expires is when it ends; zero means never.
	Expires time.Time
	// AsPass: reports call an excepted object passed, not skipped.
	AsPass bool
	// Unscanned: scans of existing objects ignore the exception.
	Unscanned bool
	// Properties are its author's words for reports.
	Properties map[string]string
	// Reason is why there is one, in its author's words; may be empty.
	Reason string
	// Scope selects the objects that it covers; nil means all.
	Scope ExceptionScope
	// PodSecurity is all that the exception leaves out, where it has any: the rest of
	// the rule holds. Of an exception from a ValidatingPolicy it has the images and values
	// that are allowed, without a control.
	PodSecurity []PodSecurityExemption
}

// ExceptedRule names rules of a policy.
type ExceptedRule struct {
	// Kind is the policy's; empty means ClusterPolicy and Policy: Kyverno's older exceptions
	// distinguish these only by the name.
	Kind string
	// Policy is the name of a cluster-wide policy, or namespace/name.
	Policy string
	// Rules are patterns for names of rules; at least one.
	Rules []string
}

// ExceptionScope is a compiled match of an exception.
type ExceptionScope interface {
	// Covers reports whether the exception covers the subject. An error means that it could not
	// be evaluated: it then covers nothing.
	Covers(ctx context.Context, subject *Subject) (bool, error)
}

// ID returns namespace/name.
func (e *Exception) ID() string { return e.Namespace + "/" + e.Name }

// Validate refuses an exception without rules.
func (e *Exception) Validate() error {
	if len(e.Rules) == 0 {
		return fmt.Errorf("exception %s: names no rule", e.ID())
	}
	for _, r := range e.Rules {
		if r.Policy == "" || len(r.Rules) == 0 {
			return fmt.Errorf("exception %s: names a policy without rules, or rules without a policy", e.ID())
		}
	}
	return nil
}
