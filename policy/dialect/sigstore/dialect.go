package sigstore

import "slices"

// The names of the dialect.
const (
	group = "policy.sigstore.dev"
	kind  = "ClusterImagePolicy"
)

// Policies implements the dialect of policies for package catalog.
type Policies struct{ *Compiler }

// Recognises is the function of that name.
func (Policies) Recognises(apiVersion, kind string) bool { return Recognises(apiVersion, kind) }

// Recognises reports whether a document of this apiVersion and kind is a policy
// of this dialect.
func Recognises(apiVersion, named string) bool {
	return slices.Contains([]string{group + "/v1beta1", group + "/v1alpha1"}, apiVersion) && named == kind
}
