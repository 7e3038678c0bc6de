// Package reporting passes the decisions of all endpoints on: to the log, the metrics, Events of
// the cluster, and the sinks of reports, the dashboard and the decision log. It serves the dashboard,
// restores earlier decisions after a restart, and removes the results of deleted policies.
package reporting
