// Package workload finds the images of an object and their locations in it.
//
// An Object is a Kubernetes object as plain JSON; a Use is one image in it, with the JSON pointer
// of the text that names it; an Operation changes that text. The package contains the paths of
// pod specifications by the Kubernetes API conventions (v1.36), and accepts further paths as an
// Extractor, with the meaning of Kyverno's imageExtractors. A document that is not a Kubernetes
// object (from a CI system, for example) is an Object without kind, in which only extractors find
// images. Manifests are YAML 1.2 by kubectl's rules or JSON (RFC 8259); pointers follow RFC 6901,
// patches RFC 6902.
package workload
