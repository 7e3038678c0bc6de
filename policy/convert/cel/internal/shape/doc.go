// Package shape describes the values that a field of an object may have, as far as the type of its kind
// determines them.
//
// The types are the Go types of the Kubernetes API (1.37), as an API server decodes and encodes them: a field
// that is left out where it is empty is never empty. A value of a kind that is not known may be anything.
package shape
