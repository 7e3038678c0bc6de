// Package journal answers: is what was decided on disk?
//
// A Journal is the report.Sink that writes a decision log (package decisionlog) into a
// folder: it takes what was decided without waiting, writes it in batches, goes on in
// another file when one is large or old enough, compresses the files before and removes
// the oldest ones. What cannot be written is counted, and the log says so itself as soon
// as it can.
//
// After a crash the last line may not be whole. What is there of it is set aside in a
// file that the log names, and the log goes on after the last whole line. Nothing else is
// ever mended.
package journal
