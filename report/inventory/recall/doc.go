// Package recall restores an inventory after a restart, from the decision log and the reports in
// the cluster.
//
// An inventory is in memory only. With a decision log, the lines of the latest decisions are
// joined to records again, in the order of the log:
//
//	last, err := recall.Last(folder)       // before the first new decision
//	n, err := recall.Fill(known, recall.Source{Folder: folder, Through: last})
//
// Decided returns the same lines as decisions, for the writer of reports. Reported converts the
// image results of reports to records.
//
// A line contains less than a record: of an exception only the name, of a proof only the signer
// and the location. Package decisionlog defines the format of lines (docs/decision-log.md). This
// package does not verify the log (decisionlog.Verify does).
package recall
