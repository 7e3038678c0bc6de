package configuration

import "time"

// Limits of a timeout in seconds, as in the API server. The default is that of Kyverno.
const minSeconds, defaultSeconds, maxSeconds = 1, 10, 30

// shadowSeconds is the timeout of a shadow's webhooks. It bounds the delay that an unresponsive
// gateway adds to each request. A cached result takes milliseconds, a new image some registry
// requests; requests that take longer are recorded as undecided.
const shadowSeconds = 3

// recordSeconds is the timeout for a Lease or an Event: a leader has 10 s to renew, at two webhooks.
const recordSeconds = 3

func timeoutSeconds(timeout time.Duration) int32 {
	if timeout == 0 {
		return defaultSeconds
	}
	bounded := min(max(timeout, minSeconds*time.Second), maxSeconds*time.Second)
	return int32((bounded + time.Second - 1) / time.Second)
}
