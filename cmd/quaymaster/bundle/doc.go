// Package bundle answers: what does a verdict rest on, in one file that can be
// carried to where there is no network?
//
// A bundle is a tar archive (POSIX.1-1988, ustar) compressed by gzip (RFC 1952). Its
// first entry is manifest.json: the name and version of the format, what could not
// be carried, and of every further entry its path, size and SHA-256, in the order in
// which they follow. Whatever is not in the manifest is refused, and so is whatever
// differs from it. Equal contents make equal bytes. docs/offline.md describes what
// the entries hold.
//
// A bundle decides what may run: who can replace it decides that. The digest of the
// file pins it.
package bundle
