// Package trace sends OpenTelemetry spans of requests to endpoints, and of the phases in them, by
// OTLP over HTTP. A span continues the trace of its caller (W3C Trace Context).
package trace
