// Package catalog holds the active policies.
//
// Documents come in by key, from a cluster's watch or from a folder, and each is in one of
// three states: ours; not ours, and ignored; or broken, and then the kinds that it names
// are undecided. Only a changed document is compiled again, in the goroutine that delivers
// it and not in a request. The active policies are an immutable Snapshot that is replaced
// atomically. TrustRoots are no policies; they are published before the policies that name
// them become active.
package catalog
