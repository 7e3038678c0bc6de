// Package sink answers: who else is told what the decision log says?
//
// A Follower passes the lines of a log on, in their order, each at least once: to a
// writer, to a webhook (HTTPS), or to a collector of OpenTelemetry logs (OTLP over HTTP).
// The log's own files are its queue, so that nothing is kept twice: it remembers in a
// small file how far it came, goes on there after a restart, and is bounded by what the
// log keeps. Lines that the log removed before they were delivered are counted and told.
//
// Who receives lines can check them as the log itself is checked: they are the same
// bytes.
package sink
