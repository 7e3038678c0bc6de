package health

import (
	"context"
	"fmt"
	"time"
)

// schedule has a registry probed after its rest.
func (b *Breaker) schedule(e *entry) {
	turn := e.turn
	e.timer = time.AfterFunc(e.rest, func() { b.look(e, turn) })
}

// look probes a registry that rests, unless something changed since the probe was
// scheduled.
func (b *Breaker) look(e *entry, turn int) {
	b.inTurn(func(ctx context.Context) {
		if turn, ok := b.halfOpen(e, turn); ok {
			b.settle(e, turn, b.safeProbe(ctx, e.Registry))
		}
	})
}

// clear probes a registry while requests continue, and opens the breaker if that fails by
// the rules of settle.
func (b *Breaker) clear(e *entry, turn int) {
	b.inTurn(func(ctx context.Context) {
		err := b.safeProbe(ctx, e.Registry)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.closed || e.turn != turn || err == nil || judge(err) == nothing {
			return
		}
		b.open(e, err)
	})
}

// open has a registry that was asked begin to rest.
func (b *Breaker) open(e *entry, err error) {
	e.Err, e.rest = err, b.first
	b.change(e, Open)
	b.schedule(e)
}

// inTurn probes when there is a slot, unless the Breaker is closed before.
func (b *Breaker) inTurn(probe func(context.Context)) {
	if !b.begin() {
		return
	}
	defer b.running.Done()
	select {
	case b.slots <- struct{}{}:
	case <-b.live.Done():
		return
	}
	defer func() { <-b.slots }()
	ctx, cancel := context.WithTimeout(b.live, b.timeout)
	defer cancel()
	probe(ctx)
}

// begin has Close wait for a probe, unless it came first.
func (b *Breaker) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Add(1)
	return true
}

// halfOpen reports whether the probe is still wanted.
func (b *Breaker) halfOpen(e *entry, turn int) (now int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || e.turn != turn {
		return 0, false
	}
	b.change(e, HalfOpen)
	return e.turn, true
}

// settle ends a probe. Almost every failure counts against the registry: another server
// that answers in its place serves no image. A probe that could not be sent does not
// count, and is repeated after the same rest.
func (b *Breaker) settle(e *entry, turn int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed || e.turn != turn:
	case err == nil:
		b.change(e, Closed)
	case b.now().Sub(e.asked) > idleTime:
		e.Err = err
		b.forget(e)
	default:
		if judge(err) != nothing {
			e.Err = err
			e.rest = min(2*e.rest, b.most)
		}
		b.change(e, Open)
		b.schedule(e)
	}
}

// safeProbe turns a panic into a failure: on a goroutine of its own it would end
// the process.
func (b *Breaker) safeProbe(ctx context.Context, registry string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("probe %s: internal error, which is a defect: %v", registry, p)
		}
	}()
	return b.probe(ctx, registry)
}
