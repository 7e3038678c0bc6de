package webhook

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// errorLog hands what net/http complains about, and who may not enter, to the
// structured log, at a bounded rate: strangers can bring it about.
type errorLog struct {
	to      *slog.Logger
	limit   *rate.Limiter
	leftOut atomic.Int64
}

func newErrorLog(to *slog.Logger) *errorLog {
	return &errorLog{to: to, limit: rate.NewLimiter(linesPerSecond, lineBurst)}
}

// tell writes a line, unless there were too many.
func (e *errorLog) tell(ctx context.Context, level slog.Level, what string, attrs ...slog.Attr) {
	if !e.limit.Allow() {
		e.leftOut.Add(1)
		return
	}
	if n := e.leftOut.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("left out", n))
	}
	e.to.LogAttrs(ctx, level, what, attrs...)
}

// Write implements io.Writer, with one line a call.
func (e *errorLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	// Probes of load balancers connect and leave.
	if bytes.Contains(line, []byte("TLS handshake error")) && bytes.HasSuffix(bytes.TrimSpace(line), []byte(": EOF")) {
		level = slog.LevelDebug
	}
	e.tell(context.Background(), level, "connection", slog.String("error", oneLine(string(line))))
	return len(line), nil
}
