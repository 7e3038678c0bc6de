// Package workload answers: which images does an object run, and where is that
// written?
//
// An Object is a Kubernetes object as plain JSON; a Use is one image in it, with
// the JSON pointer of the text that names it; an Operation changes that text.
// The package knows where pod specifications are by the Kubernetes API
// conventions (v1.36), and takes further places as an Extractor, with the meaning
// of Kyverno's imageExtractors. A document that is no Kubernetes object (what a CI
// system sends) is an Object without kind, in which extractors alone find images.
// Manifests are YAML 1.2 as kubectl reads it or JSON (RFC 8259); pointers follow
// RFC 6901, patches RFC 6902.
package workload
