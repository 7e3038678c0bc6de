package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxWaiting and maxWaitingBytes bound the write queue: the facts of a rollout, through a
	// short outage of the server.
	maxWaiting, maxWaitingBytes = 1000, 8 << 20
	// maxBatch and maxBatchBytes bound one round trip of writes.
	maxBatch, maxBatchBytes = 64, 2 << 20
	// flushTime bounds the writes of a Close.
	flushTime = time.Second
)

// fact is a queued write.
type fact struct {
	key          string
	value        []byte
	written, end time.Time
}

// cost is the approximate memory of a fact.
func (f fact) cost() int { return len(f.key) + len(f.value) }

// sealed is a fact in its written form.
type sealed struct {
	name  string
	entry []byte
	ttl   time.Duration
}

// queue holds facts in the order of arrival; the oldest is dropped when it is full.
type queue struct {
	mu      sync.Mutex
	waiting []fact
	bytes   int

	woken chan struct{} // capacity 1: there are facts to write
}

func newQueue() *queue { return &queue{woken: make(chan struct{}, 1)} }

// put adds a fact and returns the number of dropped ones.
func (q *queue) put(f fact) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	dropped := 0
	for len(q.waiting) > 0 && (len(q.waiting) >= maxWaiting || q.bytes+f.cost() > maxWaitingBytes) {
		q.shift()
		dropped++
	}
	q.waiting = append(q.waiting, f)
	q.bytes += f.cost()
	q.wake()
	return dropped
}

// take removes the oldest facts, up to one batch.
func (q *queue) take() []fact {
	q.mu.Lock()
	defer q.mu.Unlock()
	var batch []fact
	for bytes := 0; len(q.waiting) > 0 && len(batch) < maxBatch; {
		bytes += q.waiting[0].cost()
		if bytes > maxBatchBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, q.shift())
	}
	return batch
}

func (q *queue) shift() fact {
	f := q.waiting[0]
	q.waiting[0] = fact{} // releases its value
	q.waiting = q.waiting[1:]
	q.bytes -= f.cost()
	return f
}

// clear removes all facts and returns their number.
func (q *queue) clear() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.waiting)
	q.waiting, q.bytes = nil, 0
	return n
}

// wake wakes the writer.
func (q *queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// runWriter writes queued facts, and probes the server while it is unavailable, until Close.
func (s *Store) runWriter() {
	defer close(s.stopped)
	defer s.client.Close()
	for !s.closed() {
		if left, unavailable := s.breaker.remaining(); unavailable {
			s.waitAndProbe(left)
			continue
		}
		batch := s.queue.take()
		if len(batch) > 0 {
			s.write(batch)
			continue
		}
		select {
		case <-s.queue.woken:
		case <-s.stop:
		}
	}
	s.flush()
}

// waitAndProbe waits for the end of a pause and then probes the server.
func (s *Store) waitAndProbe(left time.Duration) {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.probe()
	case <-s.stop:
	}
}

// probe marks the server available if it responds within the limits of a Get. Connecting may take
// longer, since later calls of Get use the connection.
func (s *Store) probe() {
	defer s.contain(OpProbe, s.breaker.extend)
	ctx, cancel := context.WithTimeout(context.Background(), slowTime)
	defer cancel()
	name := []string{s.prefix + "probe"}
	_, err := s.fetch(ctx, name)
	if err == nil {
		quick, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		_, err = s.fetch(quick, name)
	}
	if err != nil {
		s.breaker.extend(fmt.Errorf("probe: %w", err))
		s.observer.Failed(OpProbe)
		return
	}
	s.breaker.close()
}

// write seals and writes a batch. Failed writes are not repeated: their loss only costs time.
func (s *Store) write(batch []fact) {
	defer s.contain(OpKeep, s.markUnavailable)
	kept := 0
	defer func() {
		if kept > 0 {
			s.observer.Kept(kept)
		}
		if lost := len(batch) - kept; lost > 0 {
			s.observer.Dropped(lost)
		}
	}()
	sealers, err := s.ring.get()
	if err != nil {
		s.fail(OpKeep, fmt.Errorf("%w: %w", errKeys, err), false)
		return
	}
	now := s.now()
	facts := make([]sealed, 0, len(batch))
	for _, f := range batch {
		if ttl := f.end.Sub(now); ttl >= time.Millisecond {
			facts = append(facts, sealed{
				name: sealers[0].name(s.prefix, f.key), entry: sealers[0].seal(f.key, f.value, f.written, f.end), ttl: ttl,
			})
		}
	}
	if len(facts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), slowTime)
	defer cancel()
	var refused *refusedError
	switch err := s.store(ctx, facts); {
	case errors.As(err, &refused):
		kept = len(facts) - refused.count
		s.fail(OpKeep, err, false) // it still responds
	case err != nil:
		s.fail(OpKeep, fmt.Errorf("keep: %w", err), !errors.Is(err, errBusy))
	default:
		kept = len(facts)
	}
}

// flush writes the queue when the Store is closed, unless the server is unavailable.
func (s *Store) flush() {
	defer s.contain(OpKeep, s.markUnavailable)
	for end := time.Now().Add(flushTime); time.Now().Before(end); {
		if _, unavailable := s.breaker.remaining(); unavailable {
			break
		}
		batch := s.queue.take()
		if len(batch) == 0 {
			break
		}
		s.write(batch)
	}
	if n := s.queue.clear(); n > 0 {
		s.observer.Dropped(n)
	}
}
