// Package segment lists the files of a decision log and reads their lines in either direction.
//
// A file has one JSON text a line (JSON Lines), and may be compressed (gzip, RFC 1952). The
// content of lines is opaque here: package decisionlog parses it, and package journal writes it.
package segment
