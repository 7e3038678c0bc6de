// Package publish answers: when are reports written, and what if somebody else writes
// too?
//
// A Publisher is handed what was decided, puts it into words, and collects the words
// for each report in memory until nothing more has come for some seconds. Then it reads
// the report, merges, and writes it under the version that it has read, and only if a
// reader sees a difference; where somebody else was faster it merges again. So replicas
// and the scan share reports by nothing else, there are no objects between, and a burst
// of creations is about one write for each report.
//
// All of it is bounded. What is lost with the process, or for want of room, comes back
// with the next round of the scan; what was lost is counted.
package publish
