// Package document answers: which policies and exceptions are in the cluster
// just now, whatever custom resources it serves?
//
// A Watcher is named the resources that matter. It watches those that the API
// server serves, begins with any subset of them, takes up a
// CustomResourceDefinition that appears later and lets go of one that vanishes,
// and tells every change as the exact difference. One that is there and serves no
// version that is understood takes nothing away: its documents stay as they were
// told until they can be read again. Documents are told as JSON
// without metadata.managedFields and without status, on which no policy rests;
// a change of nothing else is not told. It follows apiextensions.k8s.io/v1.
package document
