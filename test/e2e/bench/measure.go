package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// measurement is one phase in one round.
type measurement struct {
	rate          float64 // requests a second
	p50, p90, p99 time.Duration
	webhookCPU    time.Duration // per request, user and system
	serverCPU     time.Duration // the same of the API server
	clientCPU     time.Duration // the same of this process, with the registry in it
	peak          int64         // bytes of RssAnon of the webhook
	registry      int           // requests to the registry, from start to end
	calls         int           // requests that the gateway answered, from start to end
	start, end    time.Time     // with the time that does not count
}

// round is a measurement of each phase.
type round map[string]measurement

// measure lets users create pods, and measures after a while.
func (s *stand) measure(ctx context.Context, p phase, users int, settings settings) (m measurement, err error) {
	if p.webhook != nil {
		peak := p.webhook.Peak(ctx)
		defer func() { m.peak = peak() }() // after the return statement has set m
	}
	s.env.Registry.Reset()
	calls, err := s.asked(ctx)
	if err != nil {
		return m, err
	}
	begin := time.Now()
	if _, err := s.load(ctx, p, users, settings.warm); err != nil {
		return m, err
	}
	before, err := used(p.webhook, s.plane.APIServer())
	if err != nil {
		return m, err
	}
	start := time.Now()
	took, err := s.load(ctx, p, users, settings.measure)
	if err != nil {
		return m, err
	}
	end := time.Now()
	after, err := used(p.webhook, s.plane.APIServer())
	if err != nil {
		return m, err
	}
	answered, err := s.asked(ctx)
	if err != nil {
		return m, err
	}
	slices.Sort(took)
	n := len(took)
	each := func(i int) time.Duration { return (after[i] - before[i]) / time.Duration(n) }
	return measurement{
		rate: float64(n) / end.Sub(start).Seconds(),
		p50:  took[n/2], p90: took[n*9/10], p99: took[n*99/100],
		webhookCPU: each(0), serverCPU: each(1), clientCPU: each(2),
		registry: len(s.env.Registry.Requests()), calls: answered - calls, start: begin, end: end,
	}, nil
}

// used returns the CPU time of processes, zero for those that are nil, and of
// this one.
func used(processes ...*process.Process) ([]time.Duration, error) {
	var times []time.Duration
	for _, p := range processes {
		var spent time.Duration
		if p != nil {
			var err error
			spent, err = p.CPU()
			if err != nil {
				return nil, err
			}
		}
		times = append(times, spent)
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return nil, err
	}
	return append(times, time.Duration(own.Utime.Nano()+own.Stime.Nano())), nil
}

// load lets users create pods one after another for a time, and returns how long
// each request took. Requests that are under way at the end are waited for, so
// the last of them end a moment after the time.
func (s *stand) load(ctx context.Context, p phase, users int, period time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([][]time.Duration, users)
	end := time.Now().Add(period)
	var work sync.WaitGroup
	for user := range users {
		work.Go(func() {
			for start := time.Now(); start.Before(end) && ctx.Err() == nil; {
				if err := s.create(ctx, p); err != nil {
					cancel(err)
					return
				}
				now := time.Now()
				took[user] = append(took[user], now.Sub(start))
				start = now
			}
		})
	}
	work.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("create a pod: %w", err)
	}
	all := slices.Concat(took...)
	if len(all) == 0 && period > 0 {
		return nil, fmt.Errorf("no request ended within %s", period)
	}
	return all, nil
}
