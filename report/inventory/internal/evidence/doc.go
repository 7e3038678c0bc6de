// Package evidence answers: how is the record of an image kept in little room?
//
// The record is report's, version 1 (docs/record.md), as JSON with long texts and lists
// cut, compressed (DEFLATE, RFC 1951).
package evidence
