package redis

import "time"

// Reason says why an entry was not believed. It is a label for metrics.
type Reason string

// The reasons.
const (
	// TooLarge is an entry of more than MaxValue bytes.
	TooLarge Reason = "too_large"
	// TooShort is an entry that lacks what each has.
	TooShort Reason = "too_short"
	// UnknownVersion is an entry of a form that is not known here.
	UnknownVersion Reason = "unknown_version"
	// Forged is an entry that no replica sealed for this key: it was written by
	// somebody else, belongs to another key, was cut or changed, or was sealed under
	// a key that is not accepted any more.
	Forged Reason = "forged"
	// Ended is an entry whose time is over by our clock, though the server still
	// has it.
	Ended Reason = "ended"
	// Future is an entry that was written later than now, by more than clocks
	// differ.
	Future Reason = "future"
	// WrongType is something in the server that is no text.
	WrongType Reason = "wrong_type"
)

// Op is what was tried, as a label for metrics.
type Op string

// The operations.
const (
	OpRecall Op = "recall"
	OpKeep   Op = "keep"
	OpProbe  Op = "probe"
)

// Observer is told how the memory does, from many goroutines. It must not block.
type Observer interface {
	// Recalled says how many keys the server was asked for, and how many of them
	// were known. While the server rests it is not asked.
	Recalled(asked, known int)
	// Rejected says that an entry was not believed.
	Rejected(why Reason)
	// Kept says that n values were written.
	Kept(n int)
	// Dropped says that n values were not kept: there was no room, or the server
	// did not take them.
	Dropped(n int)
	// Failed says that the server could not be asked or told.
	Failed(op Op)
}

// Status says how the server does.
type Status struct {
	// Resting says that the server failed and is not asked for the moment.
	Resting bool
	// Since is when Resting became what it is.
	Since time.Time
	// LastError is of the last failure, nil if there was none; it outlives the
	// failure.
	LastError error
}

// nobody is the Observer of who set none.
type nobody struct{}

func (nobody) Recalled(int, int) {}
func (nobody) Rejected(Reason)   {}
func (nobody) Kept(int)          {}
func (nobody) Dropped(int)       {}
func (nobody) Failed(Op)         {}
