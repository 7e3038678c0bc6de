// Package journal writes the decision log (package decisionlog) to disk.
//
// A Journal is the report.Sink that writes into a folder. It accepts decisions without blocking,
// writes them in batches, rotates to another file by size or age, compresses the earlier files
// and removes the oldest ones. Decisions that cannot be written are counted, and the log records
// the loss as soon as it can.
//
// After a crash the last line may be incomplete. Its remains are moved to a file that the log
// names, and the log continues after the last whole line. No other damage is repaired.
package journal
