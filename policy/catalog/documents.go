package catalog

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// OnlyDocuments reports whether a policy has rules about documents that are no Kubernetes objects
// (evaluation.mode JSON), and no others, so that no endpoint evaluates it.
func OnlyDocuments(p *policy.Policy) bool {
	return len(p.Rules)+len(p.Validations) > 0 && len(p.Mutations) == 0 &&
		!slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return !policy.OnlyDocuments(r) }) &&
		!slices.ContainsFunc(p.Validations, func(v policy.Validation) bool { return !policy.OnlyDocuments(v) })
}
