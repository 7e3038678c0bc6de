// Package source answers: what does a document of another system say, and what of it
// cannot be carried?
//
// Documents are YAML 1.2 or JSON. They are read strictly: an unknown field, a key that
// is there twice and a field in another case are refused with their path, as is what
// its reader cannot carry. Keys and certificates are PEM (RFC 7468).
package source
