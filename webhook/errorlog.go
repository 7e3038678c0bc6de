package webhook

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// errorLog hands what net/http complains about to the structured log, at a
// bounded rate: strangers can make it complain.
type errorLog struct {
	to      *slog.Logger
	limit   *rate.Limiter
	leftOut atomic.Int64
}

func newErrorLog(to *slog.Logger) *log.Logger {
	return log.New(&errorLog{to: to, limit: rate.NewLimiter(linesPerSecond, lineBurst)}, "", 0)
}

// Write implements io.Writer, with one line a call.
func (e *errorLog) Write(line []byte) (int, error) {
	if !e.limit.Allow() {
		e.leftOut.Add(1)
		return len(line), nil
	}
	level := slog.LevelWarn
	// Probes of load balancers connect and leave.
	if bytes.Contains(line, []byte("TLS handshake error")) && bytes.HasSuffix(bytes.TrimSpace(line), []byte(": EOF")) {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.String("error", oneLine(string(line)))}
	if n := e.leftOut.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("left out", n))
	}
	e.to.LogAttrs(context.Background(), level, "connection", attrs...)
	return len(line), nil
}
