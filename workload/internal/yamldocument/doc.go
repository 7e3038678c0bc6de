// Package yamldocument converts one YAML document (1.2, with the merge key and the scalars of YAML
// 1.1, as kubectl reads it) to JSON, strictly and within bounds.
package yamldocument
