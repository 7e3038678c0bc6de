// Package source reads documents of other systems and collects their problems.
//
// Documents are YAML 1.2 or JSON. They are read strictly: an unknown field, a duplicate
// key and a field in another case are refused with their path, as is content that its
// reader cannot convert. Keys and certificates are PEM (RFC 7468).
package source
