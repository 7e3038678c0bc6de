package webhook

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// ErrorLog writes errors that unauthenticated clients can cause to the structured log, at a bounded
// rate: errors of net/http, rejected clients and failed requests. Make one with NewErrorLog.
type ErrorLog struct {
	to         *slog.Logger
	limit      *rate.Limiter
	suppressed atomic.Int64
}

// NewErrorLog makes an ErrorLog that writes to a logger.
func NewErrorLog(to *slog.Logger) *ErrorLog {
	return &ErrorLog{to: to, limit: rate.NewLimiter(linesPerSecond, lineBurst)}
}

// Log writes a line unless the rate limit is exceeded.
func (e *ErrorLog) Log(ctx context.Context, level slog.Level, what string, attrs ...slog.Attr) {
	if !e.limit.Allow() {
		e.suppressed.Add(1)
		return
	}
	if n := e.suppressed.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("left out", n))
	}
	e.to.LogAttrs(ctx, level, what, attrs...)
}

// Write implements io.Writer. Each call is one line.
func (e *ErrorLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	// Load balancers probe by connecting and closing again.
	if bytes.Contains(line, []byte("TLS handshake error")) && bytes.HasSuffix(bytes.TrimSpace(line), []byte(": EOF")) {
		level = slog.LevelDebug
	}
	e.Log(context.Background(), level, "connection", slog.String("error", oneLine(string(line))))
	return len(line), nil
}
