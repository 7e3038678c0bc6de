// Package catalog answers: which policies are active now?
//
// Documents come in by key, from a cluster's watch or from a folder, and each is
// in one of three states: ours; not ours, and left alone; or broken, and then the
// kinds that it names are undecided. Only a document that changed is compiled
// again, in the goroutine that brings it and not in a request; what is active is
// an immutable Snapshot that is swapped at once. TrustRoots are no policies; what
// they trust is told before the policies that name them become active.
package catalog
