package deleting

import (
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Kind is the kind of cluster-wide policies; that of policies of a namespace begins with
// Namespaced.
const Kind = "DeletingPolicy"

// Ignored returns the fields that are accepted and mean nothing here. Every other one is honoured
// or refused.
func Ignored() []kyvernocel.IgnoredField {
	return []kyvernocel.IgnoredField{
		{Path: "status", Reason: "the API server's record of what Kyverno did"},
		{Path: "spec.matchConstraints.resourceRules[].operations", Reason: "the policy is evaluated for stored objects; Kyverno replaces them by *"},
		{Path: "spec.matchConstraints.excludeResourceRules[].operations", Reason: "the same; in Kyverno an exclusion without CREATE excludes nothing, and here it keeps the objects"},
		{Path: "PolicyException spec.images, spec.allowedValues, spec.reportResult", Reason: "of an exception from these policies; as in Kyverno it keeps the objects that it matches, and no part of an object can be deleted"},
	}
}
