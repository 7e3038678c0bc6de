// Package segment answers: which files does a decision log have, and which lines stand
// in them, in either direction?
//
// A file has one text in JSON a line (JSON Lines), and may be compressed (gzip, RFC
// 1952). What the lines say is not looked at: package decisionlog knows that, and package
// journal writes them.
package segment
