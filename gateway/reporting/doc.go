// Package reporting passes the decisions of all endpoints on: to the log, the metrics, Events of
// the cluster, and the sinks of reports, the dashboard and the decision log.
package reporting
