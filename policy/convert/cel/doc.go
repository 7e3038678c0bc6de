// Package cel converts policies of kyverno.io into those of policies.kyverno.io, whose rules are
// expressions in CEL.
//
// It reads ClusterPolicy, Policy, the cleanup policies and PolicyException (Kyverno 1.19) and writes the policies and
// exceptions of policies.kyverno.io/v1. A policy is converted whole, or refused with the path and the construct
// that has no form in CEL.
package cel
