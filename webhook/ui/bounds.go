package ui

import "time"

const (
	// maxToken bounds a token, in bytes. Tokens of Kubernetes have about 1,200.
	maxToken = 8 << 10
	// maxParameter bounds the text of a query's parameter, in bytes.
	maxParameter = 512
	// maxAtOnce bounds concurrent requests, authentication included. Each takes some milliseconds
	// of CPU time for 20,000 images.
	maxAtOnce = 16
	// maxDefinition bounds the text of a policy's document, in bytes.
	maxDefinition = 64 << 10
	// maxOverTime is the number of policies up to which their list has the results over time, 2 KiB
	// each.
	maxOverTime = 500
	// timeout bounds authentication and authorisation.
	timeout = 10 * time.Second
)
