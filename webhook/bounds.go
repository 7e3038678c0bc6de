package webhook

import "time"

// Limits on clients, and the server's timeouts.
const (
	// headerTimeout bounds the TLS handshake and the reading of a request's header. An API server
	// needs milliseconds.
	headerTimeout = 5 * time.Second
	// readTimeout bounds the arrival of a request with its body. It equals the longest timeout that
	// a webhook may have.
	readTimeout = 30 * time.Second
	// writeTimeout runs from a request's header to the end of the response. The API server's own
	// timeout has passed by then.
	writeTimeout = readTimeout + 5*time.Second
	// idleTimeout exceeds the 90 s after which Go's clients, the API server among them, close an
	// idle connection. The server must not close first, because a request may already be in
	// transit.
	idleTimeout = 3 * time.Minute
	// pingAfter is the idle time after which an HTTP/2 connection is checked with a ping.
	pingAfter = time.Minute

	// maxHeader bounds a request's header, in bytes. The headers of an API server take some hundred
	// bytes; a client certificate is not part of them.
	maxHeader = 16 << 10
	// maxStreams bounds the requests on one HTTP/2 connection. An API server uses one connection,
	// and so one replica, until all its streams are in use. A higher load opens a second
	// connection, which a Service may route to another replica.
	maxStreams = 100
	// maxConnections bounds the connections to the endpoints. One costs about 50 KiB. A cluster has
	// a handful of API servers; under load some open many connections.
	maxConnections = 512
	// maxRequests bounds the requests inside handlers, including those that wait in a queue. One
	// costs about 30 KiB before its body is read, so the streams of all connections would take more
	// than a gigabyte. One address gets at most three quarters of the limit; an API server has some
	// hundred concurrent requests.
	maxRequests = 2048
	// maxPlainConnections bounds the connections to the plain server, which serves probes and
	// scrapers.
	maxPlainConnections = 64

	// DefaultDrainDelay is how long a draining server keeps accepting requests, until the endpoints
	// are updated everywhere.
	DefaultDrainDelay = 5 * time.Second
	// maxDrainDelay is the longest configurable delay.
	maxDrainDelay = 5 * time.Minute
	// shutdownTimeout bounds the requests in flight after the drain delay. It is the longest
	// webhook timeout plus a margin for the second that Go keeps an HTTP/2 connection open after
	// its GOAWAY.
	shutdownTimeout = readTimeout + 2*time.Second
	// plainTimeout bounds a request to the plain server. Profiles are exempt.
	plainTimeout = 10 * time.Second

	// linesPerSecond and lineBurst bound the log lines that failing clients can cause. The number
	// of suppressed lines is logged.
	linesPerSecond = 1
	lineBurst      = 10
	// maxLine bounds one such line, and the reason of a check, in bytes.
	maxLine = 1 << 10
	// maxStack bounds the stack of a panic in the log, in bytes.
	maxStack = 8 << 10
)
