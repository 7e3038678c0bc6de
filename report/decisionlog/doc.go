// Package decisionlog defines the decision log: a tamper-evident record of decisions.
//
// A log is a folder of files of JSON lines (JSON Lines, RFC 8259). Each line has a number and the
// SHA-256 of the line before it. A changed, removed, added or moved line breaks the chain at a
// position that Verify reports. Some lines are checkpoints: a signature (ECDSA on P-256 with
// SHA-256, FIPS 186-5) of the number, the time and the hash before it. docs/decision-log.md
// documents every field, and the verification of a log with sha256sum, jq and openssl.
//
// This package is the format: Entry, Decisions, Chain, and reading: Read, ReadBack, Verify.
// Package journal writes logs, and package sink forwards their lines.
//
//	for line, err := range decisionlog.Read(folder, 1) { ... }     // oldest first
//	for line, err := range decisionlog.ReadBack(folder) { ... }    // newest first
//
// Both may run while the log is written. They skip an incomplete last line.
package decisionlog
