// Package audit is the component that evaluates running workloads: rounds of package scan, and the
// changes between them, on the leader. It passes only changed results to the decision log, and
// removes deleted objects from reports and the dashboard.
package audit
