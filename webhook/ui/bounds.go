package ui

import "time"

const (
	// maxToken bounds a token, in bytes: those of Kubernetes have about 1,200.
	maxToken = 8 << 10
	// maxParameter bounds the text of a query's parameter, in bytes.
	maxParameter = 512
	// maxAtOnce bounds the questions that are at work at once, tokens included: each
	// takes some milliseconds of a processor over 20,000 images.
	maxAtOnce = 16
	// minCompressed is what is worth being compressed, in bytes.
	minCompressed = 1 << 10
	// timeout bounds finding out who asks.
	timeout = 10 * time.Second
)
