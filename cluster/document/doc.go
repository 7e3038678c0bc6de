// Package document watches the policies and exceptions of a cluster, in whatever custom resources
// it serves.
//
// A Watcher is configured with resources. It watches those that the API server serves, and starts
// with any subset of them. It handles CustomResourceDefinitions that are added or removed later,
// and reports every change as the exact difference. If a CustomResourceDefinition serves no
// supported version, its documents are retained until they can be read again. Documents are JSON
// without metadata.managedFields and without status, on which no policy depends; changes of only
// these fields are ignored. It follows apiextensions.k8s.io/v1.
package document
