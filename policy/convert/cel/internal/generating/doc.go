// Package generating converts Kyverno's rules that generate (kyverno.io/v1, Kyverno 1.19) into specifications of a
// GeneratingPolicy of policies.kyverno.io/v1.
package generating
