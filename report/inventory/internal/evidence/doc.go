// Package evidence stores the record of an image in compact form.
//
// The record is report's, version 1 (docs/record.md), as JSON with truncated texts and lists,
// compressed (DEFLATE, RFC 1951).
package evidence
