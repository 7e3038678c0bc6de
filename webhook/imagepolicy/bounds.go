package imagepolicy

import "time"

// The bounds on what a caller may ask for, and on the answers.
const (
	// MaxBody is the size of a review, in bytes: the annotations of a pod come to
	// 256 KiB at most, and the rest is room for thousands of images.
	MaxBody = 1 << 20
	// maxImages bounds the images of a review. A node runs some hundred pods.
	maxImages = 1000
	// maxImage bounds a reference, in bytes: a name of 255, a tag, a digest of
	// SHA-512, and room for a registry's name.
	maxImage = 1 << 10

	// DefaultTimeout is what a review may take. The API server waits 30 s for an
	// answer, and asks up to five times where there is none. The time is that of a
	// request whose client gives up after 34 s or sooner, and which other webhooks
	// want a share of.
	DefaultTimeout = 8 * time.Second
	// MaxTimeout leaves the way back of the API server's 30 s.
	MaxTimeout = 28 * time.Second
	// grace is what the gate has, once time is up, to say so itself: it knows what
	// each policy wants then.
	grace = 100 * time.Millisecond

	// maxReason bounds a denial, in bytes. Whole lines are left out, and counted.
	maxReason = 4 << 10
	// maxField bounds each text in a denial that somebody else wrote, in bytes.
	maxField = 512
	// maxAudited bounds the containers that an audit annotation tells of, so that
	// they do not crowd out the event.
	maxAudited = 32
	// keptBuffer is the greatest buffer that is kept for the next request, in bytes.
	keptBuffer = 64 << 10
)
