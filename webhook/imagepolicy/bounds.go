package imagepolicy

import "time"

// Limits on requests and responses.
const (
	// MaxBody bounds a review, in bytes. A pod's annotations take at most 256 KiB; the rest holds
	// thousands of images.
	MaxBody = 1 << 20
	// maxImages bounds the images of a review. A node runs some hundred pods.
	maxImages = 1000
	// maxImage bounds a reference, in bytes: a name of 255, a tag, a digest of SHA-512, and a
	// registry's name.
	maxImage = 1 << 10

	// DefaultTimeout bounds a review. The API server's timeout is 30 s, with up to five attempts.
	// The client's request times out after 34 s or sooner, and other webhooks also need time.
	DefaultTimeout = 8 * time.Second
	// MaxTimeout leaves time for the response within the API server's 30 s.
	MaxTimeout = 28 * time.Second

	// maxReason bounds a denial, in bytes. Whole lines are omitted and counted.
	maxReason = 4 << 10
	// maxAudited bounds the containers in the audit annotations, to keep the audit event small.
	maxAudited = 32
	// keptBuffer is the largest buffer that is reused, in bytes.
	keptBuffer = 64 << 10
)
