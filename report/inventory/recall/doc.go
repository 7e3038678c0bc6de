// Package recall answers: what do the decision log and the reports in the cluster know
// that a process has forgotten?
//
// An inventory is in memory. Where a decision log is kept, the lines of the latest
// decisions are put together to records again, in the order in which they were written:
//
//	last, err := recall.Last(folder)       // before anything new is decided
//	n, err := recall.Fill(known, recall.Source{Folder: folder, Through: last})
//
// Decided hands the same lines over as what was decided, for who writes reports of it, and
// Reported puts what reports say of images to records.
//
// A line has less than a record: of an exception its name, of a proof who signed and where
// it was found. The lines' format is that of package decisionlog (docs/decision-log.md).
// Whether the log was changed is not asked (decisionlog.Verify).
package recall
