// Package mutation has the mutations of a MutatingPolicy of policies.kyverno.io/v1 and their parts: places in
// an object as CEL reads them and as JSON pointers (RFC 6901), and operations.
package mutation
