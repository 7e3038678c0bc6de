package sink

import "time"

// The bounds of one delivery.
const (
	// maxLines and maxBytes bound one delivery. A larger line is delivered alone.
	maxLines = 500
	maxBytes = 1 << 20
	// deliveryTimeout bounds one attempt.
	deliveryTimeout = 30 * time.Second
	// minPause and maxPause bound the pause between attempts, which doubles each time.
	minPause = 500 * time.Millisecond
	maxPause = time.Minute
	// lastDelivery bounds deliveries after the log is closed. The rest is delivered after a
	// restart, if the log's disk persists.
	lastDelivery = 5 * time.Second
	// maxCursor bounds the file with the position of a Follower, and maxToken the file of a
	// token, in bytes.
	maxCursor = 1 << 10
	maxToken  = 64 << 10
	// maxAnswer bounds the part of a webhook's response that is read for error messages.
	maxAnswer = 512
)
