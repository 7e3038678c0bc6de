// Package publish writes reports to the cluster.
//
// A Publisher receives decisions, converts them to results, and collects the results of each
// report in memory until no more have arrived for some seconds. Then it reads the report and
// merges. It writes only visible changes, under the resourceVersion that it read, and merges
// again after a conflict. Replicas and the scan therefore share reports without coordination or
// intermediate objects, and a burst of creations causes about one write for each report.
//
// All of it is bounded. Results that are lost with the process, or exceed a bound, are restored
// by the next scan; the latter are counted.
package publish
