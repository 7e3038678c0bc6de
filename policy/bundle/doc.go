// Package bundle reads and writes the input of verification as one file, for environments
// without network access.
//
// A bundle is a tar archive (POSIX.1-1988, ustar) compressed by gzip (RFC 1952). Its first entry
// is manifest.json: the name and version of the format, notes on content that could not be
// included, and the path, size and SHA-256 of every further entry, in their order. Entries that
// the manifest does not list, or that differ from it, are refused. Equal contents produce equal
// bytes. docs/offline.md describes the entries.
//
// A bundle decides which images may run, so it must come from a trusted source. The digest of
// the file pins it.
package bundle
