// Package decisionlog answers: what was decided, and has anybody changed the record of
// it since?
//
// A log is a folder of files of JSON lines (JSON Lines, RFC 8259). Each line has a
// number and the SHA-256 of the line before it, so that a line that was changed,
// removed, added or moved breaks the chain at a place that Verify names. From time to
// time a line is a checkpoint: a signature (ECDSA on P-256 with SHA-256, FIPS 186-5) of
// the number, the time and the hash before it. docs/decision-log.md has every field, and
// how a stranger checks a log with sha256sum, jq and openssl.
//
// This package is the format: Entry, Decisions, Chain, and reading: Read, ReadBack,
// Verify. Package journal writes logs, package sink passes their lines on.
//
//	for line, err := range decisionlog.Read(folder, 1) { ... }     // oldest first
//	for line, err := range decisionlog.ReadBack(folder) { ... }    // newest first
//
// Both may be read while the log is written; a line that is not whole yet is not seen.
package decisionlog
