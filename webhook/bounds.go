package webhook

import "time"

// The bounds on callers and on the server's own patience.
const (
	// headerTimeout is how long a caller may take for the TLS handshake and for a
	// request's header: an API server needs milliseconds.
	headerTimeout = 5 * time.Second
	// readTimeout is how long a request with its body may take to arrive: the
	// longest time that a webhook may be given.
	readTimeout = 30 * time.Second
	// writeTimeout is from a request's header to the end of its answer: what is
	// not answered by then, nobody waits for.
	writeTimeout = readTimeout + 5*time.Second
	// idleTimeout is longer than the 90 s after which Go's clients, and so the
	// API server, drop an idle connection: who closes first cannot be the side that
	// a request may be on its way to.
	idleTimeout = 3 * time.Minute
	// pingAfter is how long a connection of HTTP/2 may be silent before the other
	// side is asked whether it is there.
	pingAfter = time.Minute

	// maxHeader bounds a request's header, in bytes; those of an API server come to
	// some hundred, with a client's certificate beside them, not in them.
	maxHeader = 16 << 10
	// maxStreams bounds the requests on one connection of HTTP/2. One API server
	// keeps to one connection, and so to one replica, until it is full; more opens
	// a second one, which a Service may hand to another replica.
	maxStreams = 100
	// maxConnections bounds the connections to the doors. One costs about 50 KiB;
	// a cluster has a handful of API servers, some with many connections while they
	// are busy.
	maxConnections = 512
	// maxRequests bounds the requests that are behind a door, those that wait for a turn
	// among them: one costs about 30 KiB before its body is read, and the streams of all
	// connections would come to more than a gigabyte. One address has three quarters of it
	// at most; an API server has some hundred requests at work.
	maxRequests = 2048
	// maxPlainConnections bounds those to the plain server: probes and scrapers.
	maxPlainConnections = 64

	// DefaultDrainDelay is how long after the beginning of a drain requests are
	// still taken, so that endpoints are updated everywhere.
	DefaultDrainDelay = 5 * time.Second
	// maxDrainDelay is what a delay may be at most.
	maxDrainDelay = 5 * time.Minute
	// shutdownTimeout is how long requests at work may take to end after that: the
	// longest time that a webhook may be given, and the second for which Go keeps
	// a connection of HTTP/2 after its GOAWAY.
	shutdownTimeout = readTimeout + 2*time.Second
	// plainTimeout bounds a request to the plain server, but for profiles.
	plainTimeout = 10 * time.Second

	// linesPerSecond and lineBurst bound what strangers can write into the log by
	// failing; how many lines were left out is told.
	linesPerSecond = 1
	lineBurst      = 10
	// maxLine bounds one such line, and the reason of a check, in bytes.
	maxLine = 1 << 10
	// maxStack bounds the stack of a panic in the log, in bytes.
	maxStack = 8 << 10
)
