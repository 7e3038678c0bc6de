package generating

import (
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Kind is the kind of cluster-wide policies; that of policies of a namespace begins with Namespaced.
const Kind = "GeneratingPolicy"

// Ignored returns the fields that are accepted and mean nothing here. Every other one is honoured or
// refused.
func Ignored() []kyvernocel.IgnoredField {
	return []kyvernocel.IgnoredField{
		{Path: "status", Reason: "the API server's record of what Kyverno did"},
		{Path: "spec.webhookConfiguration", Reason: "no request is evaluated: the triggers are what watches return"},
	}
}
