// Package deletion writes the specification of cleanup policies (CleanupPolicy and
// ClusterCleanupPolicy of kyverno.io/v2, Kyverno 1.19) as that of a DeletingPolicy of
// policies.kyverno.io/v1.
//
// No request brings a stored object, so that its namespace is read from the object itself. What cannot
// be said exactly is a source.Unsupported error with the path: a wrong deletion cannot be undone.
package deletion
