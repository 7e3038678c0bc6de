package mutating

import (
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Kind is the kind of cluster-wide policies; that of policies of a namespace begins
// with Namespaced.
const Kind = "MutatingPolicy"

// Ignored returns the fields that are accepted and mean nothing here. Every other
// one is honoured or refused.
func Ignored() []kyvernocel.IgnoredField {
	return []kyvernocel.IgnoredField{
		{Path: "status", Reason: "the API server's record of what Kyverno did"},
		{Path: "spec.evaluation.background", Reason: "whether scans evaluate the policy; a scan here evaluates no rule that changes objects"},
		{Path: "spec.reinvocationPolicy", Reason: "the gateway's webhook has IfNeeded, so that what other webhooks add is seen; a mutation with Never may be evaluated again, too"},
	}
}
