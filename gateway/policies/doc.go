// Package policies publishes the active policies: it compiles the documents of folders and of the
// cluster (package policy/catalog), waits until the initial documents of all sources are complete, and
// reports the state of each document to the log, the metrics and the cluster.
package policies
