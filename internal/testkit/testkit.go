// Package testkit holds what the tests of several packages share: failing on an error, polling
// for a condition, and a log that goroutines write to while a test reads it.
package testkit

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// The limit of Eventually is far above what a loaded machine needs; only a failing test reaches it.
const (
	limit    = 20 * time.Second
	interval = 20 * time.Millisecond
)

// Must returns the value of a call; the returned function fails the test on the call's error:
//
//	digest := testkit.Must(image.ParseDigest(text))(t)
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Eventually polls check until it returns nil, and fails the test with its last error.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", limit, err)
		}
		<-time.After(interval)
	}
}

// Log is a buffer for a log's lines, safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
