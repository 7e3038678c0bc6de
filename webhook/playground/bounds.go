package playground

import "time"

const (
	// MaxBody bounds the body of a request, in bytes: all documents. Parsed YAML takes about fifty times as much
	// memory.
	MaxBody = 512 << 10
	// DefaultTimeout bounds an evaluation. It is the default timeout of a webhook.
	DefaultTimeout = 10 * time.Second
	// seats bounds concurrent evaluations, those included of which the time is over and that did not end yet.
	// Of several callers each has one. They share the processor with admission.
	seats = 2
	// queueTimeout bounds the wait for a seat.
	queueTimeout = 2 * time.Second
	// maxAnswer bounds an answer, in bytes: policies repeat texts of objects.
	maxAnswer = 4 << 20
)
