// Package sink forwards the lines of the decision log to other receivers.
//
// A Follower delivers the lines in order, each at least once: to a writer, to a webhook (HTTPS),
// or to an OpenTelemetry collector (OTLP over HTTP). The log's own files are its queue. It stores
// its position in a small file, resumes there after a restart, and is bounded by the retention of
// the log. Lines that the log removed before their delivery are counted and reported.
//
// Receivers can verify the lines like the log itself, since both have the same bytes.
package sink
