// Package field answers: what is wrong with a document of a policy, and where in it?
//
// It decodes strictly, and reads what stands in fields of several kinds: PEM and
// addresses.
package field
