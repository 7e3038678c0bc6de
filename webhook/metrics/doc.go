// Package metrics answers: how is the gateway doing, in numbers and in traces?
//
// Metrics are Prometheus collectors on a registry of their own, in the format
// that promhttp writes; docs/metrics.md lists them. A Tracer sends OpenTelemetry
// spans by OTLP over HTTP, where an endpoint is configured. Both observe the gate
// and the doors; Observers combines them.
//
// No label grows with images, digests, subjects or callers. Policies are as many
// as there are, hosts are the first hundred, and everything else that is a label
// is a word of the gateway's own.
package metrics
