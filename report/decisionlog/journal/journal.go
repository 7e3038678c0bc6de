package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// Journal writes a decision log. It is safe for concurrent use. Create one with New, and Run it.
type Journal struct {
	config Config
	disk   disk
	queue  chan item
	memory *report.MemoryLimit
	ready  chan struct{} // closed once the log is open
	ended  chan struct{}

	mu      sync.Mutex
	lost    decisionlog.Lost // not recorded in the log yet
	changed chan struct{}    // closed with the next commit

	committed            atomic.Uint64
	written, gone        atomic.Uint64
	failures             atomic.Uint64
	flushed, bytesOnDisk atomic.Int64
}

// item is a decision, the line of another event, or a request to flush all earlier items.
type item struct {
	decided report.Decided
	event   *decisionlog.Entry
	waiting chan<- error
}

// New creates a Journal. It opens no file yet.
func New(config Config) (*Journal, error) {
	if err := config.fill(); err != nil {
		return nil, err
	}
	return &Journal{
		config: config, disk: realDisk{}, queue: make(chan item, config.Queue), memory: report.NewMemoryLimit(maxHeld),
		ready: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
	}, nil
}

// Take implements report.Sink. It never blocks. Decisions that do not fit into the queue are
// counted, and the log records the loss.
func (j *Journal) Take(d report.Decided) { j.put(item{decided: d}) }

// TakeBreakGlass records a break-glass event of a namespace, as of now.
func (j *Journal) TakeBreakGlass(b decisionlog.BreakGlass) {
	j.put(item{event: &decisionlog.Entry{Kind: decisionlog.KindBreakGlass, Time: time.Now(), BreakGlass: &b}})
}

// TakeDeletion records the deletion of an object, as of now.
func (j *Journal) TakeDeletion(d decisionlog.Deletion) {
	j.put(item{event: &decisionlog.Entry{Kind: decisionlog.KindDeletion, Time: time.Now(), Deletion: &d}})
}

func (j *Journal) put(next item) {
	if !j.memory.Reserve(next.decided) {
		j.lose(1, "what waits was too large")
		return
	}
	select {
	case j.queue <- next:
	default:
		j.memory.Release(next.decided)
		j.lose(1, "the queue was full")
	}
}

// Mark is a moment, for Flush.
type Mark struct{ gone uint64 }

// Mark returns the current moment. Callers take it before the decisions that Flush must cover.
func (j *Journal) Mark() Mark { return Mark{j.gone.Load()} }

// Flush waits until every earlier decision is on disk. It fails if any decision was lost since
// the mark, including those of other callers, and when ctx ends.
func (j *Journal) Flush(ctx context.Context, since Mark) error {
	answer := make(chan error, 1)
	select {
	case j.queue <- item{waiting: answer}:
	case <-j.ended:
		return errors.New("decision log: it is closed")
	case <-ctx.Done():
		return fmt.Errorf("decision log: not flushed in time: %w", ctx.Err())
	}
	select {
	case err := <-answer:
		if err == nil && j.gone.Load() != since.gone {
			err = errors.New("decision log: decisions were lost")
		}
		return err
	case <-j.ended:
		return errors.New("decision log: it is closed")
	case <-ctx.Done():
		return fmt.Errorf("decision log: not flushed in time: %w", ctx.Err())
	}
}

// Ready is closed once the log is open.
func (j *Journal) Ready() <-chan struct{} { return j.ready }

// Ended is closed once the log is closed.
func (j *Journal) Ended() <-chan struct{} { return j.ended }

// Committed is the number of the last written line. Changed signals further ones.
func (j *Journal) Committed() uint64 { return j.committed.Load() }

// Changed is closed when more lines are written. Call it before Committed.
func (j *Journal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// Stats are the values for metrics.
type Stats struct {
	// Written counts decision lines, Lost the objects without lines, and Failures disk errors.
	Written, Lost, Failures uint64
	// Queued counts the objects in the queue.
	Queued int
	// Flushed is the last time at which all written lines were on disk.
	Flushed time.Time
	// Bytes is the size of the log's files.
	Bytes int64
}

// Stats returns the current values.
func (j *Journal) Stats() Stats {
	s := Stats{
		Written: j.written.Load(), Lost: j.gone.Load(), Failures: j.failures.Load(),
		Queued: len(j.queue), Bytes: j.bytesOnDisk.Load(),
	}
	if at := j.flushed.Load(); at != 0 {
		s.Flushed = time.Unix(0, at)
	}
	return s
}

// lose counts objects that will have no line.
func (j *Journal) lose(objects uint64, why string) {
	j.gone.Add(objects)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lost.Records == 0 {
		j.lost.Since = time.Now().UTC().Truncate(time.Microsecond)
	}
	j.lost.Records += objects
	j.lost.Why = why
}

// takeLost returns the unrecorded losses, and marks them as recorded.
func (j *Journal) takeLost() (lost decisionlog.Lost) {
	j.mu.Lock()
	defer j.mu.Unlock()
	lost, j.lost = j.lost, lost
	return lost
}

// giveBack undoes takeLost after a failed write.
func (j *Journal) giveBack(lost decisionlog.Lost) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if lost.Records == 0 {
		return
	}
	if j.lost.Records == 0 {
		j.lost.Why = lost.Why
	}
	j.lost.Since = lost.Since
	j.lost.Records += lost.Records
}

// Run opens the log and writes it until ctx ends. Then it drains the queue, signs the log and
// closes it. key signs checkpoints. It fails if the log cannot be opened or cannot be closed in
// order. It is called once.
func (j *Journal) Run(ctx context.Context, key *decisionlog.Key) error {
	defer close(j.ended)
	w, err := j.open(key)
	if err != nil {
		return err
	}
	close(j.ready)
	housekeeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	if w.files != nil {
		beside.Go(func() { w.compressor.run(housekeeping) })
	}
	w.work(ctx)
	stop()
	beside.Wait()
	return w.close()
}

// work writes until ctx ends and the queue is empty.
func (w *writer) work(ctx context.Context) {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			for left := maxDrain; left > 0 && w.drain(); left -= maxBatch {
			}
			return
		case first := <-w.journal.queue:
			w.commit(w.collect(first))
		case <-ticks.C:
			w.tend()
		}
	}
}

// drain writes one more batch, and returns false if there is none.
func (w *writer) drain() bool {
	select {
	case first := <-w.journal.queue:
		w.commit(w.collect(first))
		return true
	default:
		return false
	}
}

// collect takes the queued items after the first one.
func (w *writer) collect(first item) []item {
	w.batch = append(w.batch[:0], first)
	for len(w.batch) < maxBatch {
		select {
		case next := <-w.journal.queue:
			w.batch = append(w.batch, next)
		default:
			return w.batch
		}
	}
	return w.batch
}

// complaints logs errors, at most once a minute.
type complaints struct {
	log   *slog.Logger
	limit *rate.Limiter
}

func newComplaints(log *slog.Logger) complaints {
	return complaints{log: log, limit: rate.NewLimiter(rate.Every(time.Minute), 3)}
}

func (c complaints) report(what string, err error) {
	if c.limit.Allow() {
		c.log.Error("decision log: "+what, slog.String("error", err.Error()))
	}
}
