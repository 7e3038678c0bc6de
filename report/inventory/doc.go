// Package inventory maintains the current state of the images in use.
//
// An Inventory is a report.Sink. In memory and within bounds, it holds the last decision on each
// image: the verdict, the signers, the workloads, and the evidence. It also holds the recent
// decisions, their counts by outcome over time, and the results of each policy. The dashboard
// shows it, and it answers queries such as the images signed with a key.
//
// It covers only the decisions of its own process. It is not a record: entries beyond the bounds,
// or not seen for a week, are evicted. The decision log is complete.
package inventory
