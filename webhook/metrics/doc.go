// Package metrics exports the gateway's metrics.
//
// Metrics are Prometheus collectors on their own registry, in the format of promhttp;
// docs/metrics.md lists them. They observe the gate and the endpoints; Observers combines them with
// other observers, such as a webhook/trace.Tracer.
//
// Label cardinality is bounded: it does not depend on images, digests, subjects or callers.
// Policies have one value each up to a limit, and hosts are limited to the first hundred. All other
// labels have values that the gateway defines.
package metrics
