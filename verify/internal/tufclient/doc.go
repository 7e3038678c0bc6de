// Package tufclient fetches one target of a repository of The Update Framework (TUF 1.0).
//
// go-tuf verifies the metadata. This package adds what go-tuf leaves to its callers: it keeps all
// verified roots, so that keys of an earlier root are never accepted again, and the versions
// of an accepted state, also without a folder. It bounds the size of files and of a whole fetch,
// whatever lengths the repository signs, their values and their keys, and it removes stored files
// that are damaged.
package tufclient
