package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// Receiver accepts lines. Without an error all of them have arrived.
type Receiver interface {
	Deliver(ctx context.Context, lines []decisionlog.Line) error
}

// Log is the log to follow; *journal.Journal implements it.
type Log interface {
	// Committed is the number of the last readable line, and Changed is closed when there are
	// more.
	Committed() uint64
	Changed() <-chan struct{}
	// Ready is closed when the log is open, and Ended when it is closed.
	Ready() <-chan struct{}
	Ended() <-chan struct{}
}

// Config configures a Follower. All fields are required.
type Config struct {
	// Name is the sink's name, for its file, as in webhook.
	Name string
	// Folder is the log's folder.
	Folder string
	Log    Log
	To     Receiver
	// Trouble receives delivery errors.
	Trouble *slog.Logger
}

// Follower delivers lines to a Receiver. Create one with New, and Run it.
type Follower struct {
	config     Config
	complaints *rate.Limiter

	delivered, dropped, failures atomic.Uint64
	at                           atomic.Uint64
}

// New creates a Follower. It reads nothing yet.
func New(config Config) (*Follower, error) {
	if config.Log == nil || config.To == nil || config.Trouble == nil || config.Folder == "" {
		return nil, errors.New("decision log's sink: want a log, its folder, a receiver and a log for trouble")
	}
	if config.Name == "" || strings.Trim(config.Name, "abcdefghijklmnopqrstuvwxyz") != "" {
		return nil, fmt.Errorf("decision log's sink: name %q: want lower case letters", config.Name)
	}
	return &Follower{config: config, complaints: rate.NewLimiter(rate.Every(time.Minute), 3)}, nil
}

// Stats are the values for metrics.
type Stats struct {
	// Delivered and Dropped count lines, Failures attempts.
	Delivered, Dropped, Failures uint64
	// Behind counts the undelivered lines.
	Behind uint64
}

// Stats returns the current values.
func (f *Follower) Stats() Stats {
	committed, at := f.config.Log.Committed(), f.at.Load()
	return Stats{
		Delivered: f.delivered.Load(), Dropped: f.dropped.Load(), Failures: f.failures.Load(),
		Behind: max(committed, at) - at,
	}
}

// Name is the sink's name.
func (f *Follower) Name() string { return f.config.Name }

// Run delivers until the log is closed, or until ctx ends if the log was never open. The
// remaining lines are delivered within a few seconds, or after the next start.
func (f *Follower) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		if !isClosed(f.config.Log.Ready()) {
			return nil
		}
	case <-f.config.Log.Ready():
	}
	at, err := f.start()
	if err != nil {
		f.complain("it is not known how far it came; it begins with the oldest line", err)
	}
	f.at.Store(at)
	beyond, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go f.end(beyond, cancel)
	tail := decisionlog.NewTail(f.config.Folder, at+1)
	defer func() { _ = tail.Close() }() // opened read-only
	f.follow(beyond, tail)
	return nil
}

// end cancels the deliveries some time after the log is closed.
func (f *Follower) end(ctx context.Context, cancel func()) {
	select {
	case <-ctx.Done():
		return
	case <-f.config.Log.Ended():
	}
	select {
	case <-ctx.Done():
	case <-time.After(lastDelivery):
		cancel()
	}
}

// follow delivers until ctx ends, or until the log is closed and everything is delivered.
func (f *Follower) follow(ctx context.Context, tail *decisionlog.Tail) {
	log := f.config.Log
	for ctx.Err() == nil {
		changed := log.Changed()
		ended := isClosed(log.Ended())
		lines, err := f.collect(tail, log.Committed())
		if err != nil {
			f.failures.Add(1)
			f.complain("a line of the log cannot be read, and is passed over", err)
		}
		if len(lines) == 0 {
			if ended {
				return
			}
			f.wait(ctx, changed, err)
			continue
		}
		if !f.deliver(ctx, lines) {
			return
		}
		f.arrived(lines)
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// wait waits for more lines, or after an error for a pause, since the error need not be followed
// by a further line.
func (f *Follower) wait(ctx context.Context, changed <-chan struct{}, failed error) {
	if failed != nil {
		pause(ctx, minPause)
		return
	}
	select {
	case <-ctx.Done():
	case <-f.config.Log.Ended():
	case <-changed:
	}
}

// collect reads the readable lines, up to the bounds of one delivery.
func (f *Follower) collect(tail *decisionlog.Tail, committed uint64) (lines []decisionlog.Line, _ error) {
	if err := tail.Refresh(); err != nil {
		return nil, err
	}
	bytes, next := 0, f.at.Load()+1
	for next <= committed && len(lines) < maxLines && bytes < maxBytes {
		line, ok, err := tail.Next()
		if err != nil || !ok {
			return lines, err
		}
		lines = append(lines, line)
		bytes += len(line.Raw) + 1
		next = line.Seq + 1
	}
	return lines, nil
}

// deliver retries until the lines arrive, and returns false if ctx ends first.
func (f *Follower) deliver(ctx context.Context, lines []decisionlog.Line) bool {
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		attempt, cancel := context.WithTimeout(ctx, deliveryTimeout)
		err := f.config.To.Deliver(attempt, lines)
		cancel()
		if err == nil {
			return true
		}
		f.failures.Add(1)
		f.complain("lines cannot be delivered; they wait in the log", err)
		if !pause(ctx, wait) {
			return false
		}
	}
}

// pause waits, and returns false if ctx ends first.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// arrived stores the position, and counts the lines that were pruned before delivery.
func (f *Follower) arrived(lines []decisionlog.Line) {
	var gone uint64
	at := f.at.Load()
	for i := range lines {
		gone += lines[i].Seq - at - 1
		at = lines[i].Seq
	}
	if gone > 0 {
		f.dropped.Add(gone)
		f.complain("lines were removed before they were delivered", fmt.Errorf("%d lines before number %d", gone, at))
	}
	f.delivered.Add(uint64(len(lines)))
	f.at.Store(at)
	if err := writeCursor(f.path(), at); err != nil {
		f.complain("how far it came cannot be kept; lines are delivered again after a restart", err)
	}
}

// complain logs errors at a limited rate.
func (f *Follower) complain(what string, err error) {
	if f.complaints.Allow() {
		f.config.Trouble.Warn("decision log's sink: "+what, slog.String("sink", f.config.Name), slog.String("error", err.Error()))
	}
}
