package ratelimit

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads a Retry-After (RFC 9110, section 10.2.3): seconds or a date. Anything
// else is 0, and so is a past date.
func RetryAfter(value string, now time.Time) time.Duration {
	text := strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}

// Remaining reads a "ratelimit-remaining", with or without its window; false where
// there is none.
func Remaining(header http.Header) (int64, bool) {
	n, _, ok := quantity(header.Get("Ratelimit-Remaining"))
	return n, ok
}

func retryAfter(header http.Header, now time.Time) time.Duration {
	return RetryAfter(header.Get("Retry-After"), now)
}

// left is the limit that an answer reports.
type left struct {
	remaining, limit int64 // limit is 0 where it is not reported
	window           time.Duration
}

func readLeft(header http.Header) (left, bool) {
	remaining, window, ok := quantity(header.Get("Ratelimit-Remaining"))
	if !ok {
		return left{}, false
	}
	said := left{remaining: remaining, window: window}
	said.limit, _, _ = quantity(header.Get("Ratelimit-Limit"))
	if seconds, err := strconv.ParseUint(strings.TrimSpace(header.Get("Ratelimit-Reset")), 10, 31); err == nil {
		said.window = time.Duration(seconds) * time.Second
	}
	return said, true
}

// maxQuantity is above any real limit, and twice its value does not overflow.
const maxQuantity = 1 << 50

// quantity reads "76" or "76;w=21600"; false where it is neither.
func quantity(text string) (n int64, window time.Duration, ok bool) {
	count, rest, _ := strings.Cut(text, ";")
	parsed, err := strconv.ParseUint(strings.TrimSpace(count), 10, 64)
	if err != nil || parsed > maxQuantity {
		return 0, 0, false
	}
	for parameter := range strings.SplitSeq(rest, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if seconds, err := strconv.ParseUint(value, 10, 31); name == "w" && err == nil {
			window = time.Duration(seconds) * time.Second
		}
	}
	return int64(parsed), window, true
}
