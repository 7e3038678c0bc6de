// Package trusttest answers: what does a client of The Update Framework take from a
// repository that lies?
//
// It is a throw-away repository (TUF 1.0) in memory with one target, trusted_root.json.
// Root and targets want the signatures of two keys. It is honest unless a [Lie] is asked
// for, and is served over HTTP as it stands. Every lie is one thing that is wrong: who
// mirrors a repository, or has one of its keys, could tell it.
//
// It is for tests and demonstrations: its keys live in memory, and nothing that it says
// is worth trusting.
package trusttest
