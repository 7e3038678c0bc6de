// Package trusttest provides a TUF repository (TUF 1.0) with selectable faults, for tests of its
// clients.
//
// The repository is in memory and has one target, trusted_root.json. Root and targets need the
// signatures of two keys. It is valid unless a [Fault] is selected, and is served over HTTP. A
// mirror of the repository, or the holder of one of its keys, could cause each fault.
//
// It is for tests and demonstrations: its keys are in memory, and its content must not be
// trusted.
package trusttest
