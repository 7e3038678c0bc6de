package validating

import (
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Kind is the kind of cluster-wide policies; that of policies of a namespace begins
// with Namespaced.
const Kind = "ValidatingPolicy"

// Ignored returns the fields that are accepted and mean nothing here. Every other
// one is honoured or refused.
func Ignored() []kyvernocel.IgnoredField {
	return []kyvernocel.IgnoredField{
		{Path: "status", Reason: "the API server's record of what Kyverno did"},
		{Path: "spec.validations[].reason", Reason: "not used by Kyverno's webhook, only by a ValidatingAdmissionPolicy that it makes; an unknown value is refused"},
	}
}
