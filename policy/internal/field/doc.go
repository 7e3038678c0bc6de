// Package field reports errors in policy documents with their paths.
//
// It decodes strictly, and parses field values of several kinds: PEM and addresses.
package field
