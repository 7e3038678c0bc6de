package reports

import "time"

const (
	// requestTimeout bounds one request. No admission request waits for it.
	requestTimeout = 10 * time.Second
	// maxReport bounds a report that is read, in bytes of JSON; etcd's default limit is 1.5 MiB.
	maxReport = 2 << 20
	// pageSize is the number of reports of one list request.
	pageSize = 100
	// maxWorkloads bounds the cached controllers, at some 300 bytes each; workloadAge is the
	// lifetime of an entry, and absentAge that of a missing controller.
	maxWorkloads = 50_000
	workloadAge  = time.Hour
	absentAge    = 30 * time.Second
)
