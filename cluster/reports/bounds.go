package reports

import "time"

const (
	// requestTimeout bounds one request: reports are in nobody's way.
	requestTimeout = 10 * time.Second
	// maxReport bounds a report that is read, in bytes of JSON; etcd keeps objects of
	// 1.5 MiB unless it is told otherwise.
	maxReport = 2 << 20
	// pageSize is how many reports one list takes.
	pageSize = 100
	// maxWorkloads bounds the controllers that are remembered, at some 300 bytes each;
	// workloadAge is how long one is, and absentAge how long that there is none.
	maxWorkloads = 50_000
	workloadAge  = time.Hour
	absentAge    = 30 * time.Second
)
