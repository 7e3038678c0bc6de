package externaldata

import "time"

// Limits on requests and responses.
const (
	// MaxBody bounds a request, in bytes: MaxKeys keys and their JSON overhead.
	MaxBody = 512 << 10
	// MaxKeys bounds the keys of a request. Gatekeeper requests the images of one object at a time.
	MaxKeys = 256
	// MaxKey bounds a key, in bytes: the names of a namespace (63) and of a service
	// account (253), and a reference of 1 KiB.
	MaxKey = 1<<10 + 63 + 253 + 3

	// DefaultVerifyTimeout is below the 3 s that Gatekeeper's validating webhook has by default. A
	// later response would be lost, including the decisions for other keys.
	DefaultVerifyTimeout = 2500 * time.Millisecond
	// DefaultMutateTimeout is below the 1 s of its mutating webhook. Verification continues after
	// the timeout, and its result is cached for the next request.
	DefaultMutateTimeout = 800 * time.Millisecond
	// MaxTimeout leaves time for the response within the 30 s that a webhook has at most.
	MaxTimeout = 28 * time.Second

	// maxError bounds the error of an item, in bytes. A constraint's message displays it.
	maxError = 1 << 10
	// maxField bounds each untrusted text in it, in bytes.
	maxField = 256
	// keptBuffer is the largest buffer that is reused, in bytes.
	keptBuffer = 64 << 10
)
