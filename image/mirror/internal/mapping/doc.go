// Package mapping converts the names of a source to names at a mirror, and back.
//
// A Mapping is a template of components with exactly one inverse. A template without a unique
// inverse is refused when it is parsed.
package mapping
