package sink

import "time"

// The bounds of one delivery.
const (
	// maxLines and maxBytes bound what is delivered at once. One line that is larger
	// goes alone.
	maxLines = 500
	maxBytes = 1 << 20
	// deliveryTimeout bounds one attempt.
	deliveryTimeout = 30 * time.Second
	// minPause and maxPause are between attempts, twice as long each time.
	minPause = 500 * time.Millisecond
	maxPause = time.Minute
	// lastDelivery bounds what is still delivered when the log is closed; the rest is
	// when it is opened again, if the disk is still there then.
	lastDelivery = 5 * time.Second
	// maxCursor bounds the file that says how far a Follower came, and maxToken that of
	// a token, in bytes.
	maxCursor = 1 << 10
	maxToken  = 64 << 10
	// maxAnswer bounds what is read of a webhook's answer, for messages.
	maxAnswer = 512
)
