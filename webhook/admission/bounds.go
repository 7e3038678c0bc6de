package admission

import "time"

// The bounds on what a caller may ask for.
const (
	// MaxBody is the size of a review, in bytes: an object and its former state of
	// 3 MiB each, which is what the API server takes at most, and what it says about
	// them. An object full of characters that JSON escapes grows beyond it on the
	// way, and is denied.
	MaxBody = 7 << 20
	// MaxTimeout is the longest time that a webhook may be given.
	MaxTimeout = 30 * time.Second
	// defaultTimeout is the API server's own default.
	defaultTimeout = 10 * time.Second
	// maxMargin is what is left of a timeout at most, for the way back.
	maxMargin = time.Second

	// maxMessage bounds a denial, in bytes: what a terminal shows without
	// scrolling far. Whole lines are left out, and counted.
	maxMessage = 4 << 10
	// maxField bounds each text in a denial that somebody else wrote, in bytes.
	maxField = 512
	// maxWarnings and maxWarning are what the API server passes on: it cuts longer
	// ones.
	maxWarnings = 10
	maxWarning  = 256
	// maxAnnotations and maxAnnotation bound the words of policies for the audit log,
	// the latter in bytes: what the API server takes of a policy of its own, and a
	// part of what it takes of each.
	maxAnnotations = 20
	maxAnnotation  = 4 << 10
	// maxWritten bounds the annotation that is read back, in bytes; those of an
	// object come to 256 KiB at most.
	maxWritten = 256 << 10
	// maxParsed bounds what the values of one request take in memory once they are
	// read, in bytes, by the estimate of costOf: some five times what the largest
	// real objects do. A few megabytes of empty objects would take hundreds.
	maxParsed = 24 << 20
	// maxHead is how much of a body that is not read as a whole is looked at for
	// the request's UID, in bytes; an API server writes it at the front.
	maxHead = 16 << 10
	// workStack is the stack that it takes to read an object, and to judge one, in
	// bytes; more is made where more is needed.
	workStack = 8 << 10
	// keptBuffer is the greatest buffer that is kept for the next request.
	keptBuffer = 256 << 10
)
