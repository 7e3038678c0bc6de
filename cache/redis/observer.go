package redis

import "time"

// Reason is why an entry was rejected. It is a label for metrics.
type Reason string

// The reasons.
const (
	// TooLarge is an entry of more than MaxValue bytes.
	TooLarge Reason = "too_large"
	// TooShort is an entry without the mandatory parts.
	TooShort Reason = "too_short"
	// UnknownVersion is an entry of an unknown format.
	UnknownVersion Reason = "unknown_version"
	// Forged is an entry that no replica sealed for this key: it is from another writer, belongs
	// to another key, was truncated or changed, or was sealed under a key that is no longer
	// accepted.
	Forged Reason = "forged"
	// Ended is an entry that has expired by the local clock, though the server still has it.
	Ended Reason = "ended"
	// Future is an entry with a time of writing after now, by more than the allowed clock skew.
	Future Reason = "future"
	// WrongType is a value in the server that is not a string.
	WrongType Reason = "wrong_type"
)

// Op is an operation, as a label for metrics.
type Op string

// The operations.
const (
	OpGet   Op = "get"
	OpKeep  Op = "keep"
	OpProbe Op = "probe"
)

// Observer receives the cache's events, from many goroutines. It must not block.
type Observer interface {
	// Requested reports the number of requested keys, and of those found. While the server is
	// unavailable, no request is made.
	Requested(asked, known int)
	// Rejected reports a rejected entry.
	Rejected(why Reason)
	// Kept reports n written values.
	Kept(n int)
	// Dropped reports n values that were not written: the queue was full, or the server refused
	// them.
	Dropped(n int)
	// Failed reports a failed operation.
	Failed(op Op)
}

// Status is the state of the server.
type Status struct {
	// Unavailable means that the server failed and is not contacted for now.
	Unavailable bool
	// Since is the time of the last change of Unavailable.
	Since time.Time
	// LastError is the last failure, nil if there was none; it remains after recovery.
	LastError error
}

// none is the default Observer. It ignores all events.
type none struct{}

func (none) Requested(int, int) {}
func (none) Rejected(Reason)    {}
func (none) Kept(int)           {}
func (none) Dropped(int)        {}
func (none) Failed(Op)          {}
