// Package inventory answers: what do we know now about the images in use?
//
// An Inventory is a report.Sink that keeps, in memory and within bounds, what was
// decided last about each image: the verdict, who signed, where it runs, and the
// chain of evidence, together with the recent decisions, how many there were of each
// outcome over time, and what each policy came to. It is what the dashboard shows and
// what "what stands on this key?" is answered from.
//
// It knows what its own process decided. It is no record: what falls out of the
// bounds, or was not seen for a week, is gone; the decision log keeps everything.
package inventory
