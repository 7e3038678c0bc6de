package externaldata

import "time"

// The bounds on what a caller may ask for, and on the answers.
const (
	// MaxBody is the size of a request, in bytes: as many keys as there may be, and
	// what JSON makes of them.
	MaxBody = 512 << 10
	// MaxKeys bounds the keys of a request. Gatekeeper asks about the images of one
	// object at a time.
	MaxKeys = 256
	// MaxKey bounds a key, in bytes: the names of a namespace (63) and of a service
	// account (253), and a reference of 1 KiB.
	MaxKey = 1<<10 + 63 + 253 + 3

	// DefaultVerifyTimeout is below the 3 s that Gatekeeper's validating webhook has
	// unless its chart is told otherwise: an answer that comes later is not heard,
	// and says nothing of the keys that were decided.
	DefaultVerifyTimeout = 2500 * time.Millisecond
	// DefaultMutateTimeout is below the 1 s of its mutating webhook. What was not
	// proved by then goes on being proved, and is known when it is asked again.
	DefaultMutateTimeout = 800 * time.Millisecond
	// MaxTimeout leaves the way back of the 30 s that a webhook has at most.
	MaxTimeout = 28 * time.Second
	// grace is what the gate has, once time is up, to say so itself: it knows what
	// each policy wants then.
	grace = 100 * time.Millisecond

	// maxError bounds the error of an item, in bytes: a constraint's message shows
	// it.
	maxError = 1 << 10
	// maxField bounds each text in it that somebody else wrote, in bytes.
	maxField = 256
	// keptBuffer is the greatest buffer that is kept for the next request, in bytes.
	keptBuffer = 64 << 10
)
