package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/footprint"
)

// A soak reads each gateway every so often; the first part of the time is for caches to fill
// and is not judged. Shorter soaks would say nothing.
const (
	readEach  = 5 * time.Second
	warmShare = 4 // one in so many
	leastSoak = 8 * time.Minute
)

// soak creates pods for a long time, and judges the gateways' resources.
func (s *stand) soak(ctx context.Context, out io.Writer) error {
	var series [][]footprint.At
	err := s.underLoad(ctx, func(ctx context.Context) (err error) {
		series, err = s.read(ctx)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s at %d pods a second; the first %s are not judged\n", s.settings.soak, s.settings.rate, s.settings.soak/warmShare)
	grown, err := footprint.Judge(out, series, s.settings.soak/warmShare)
	if err != nil {
		return err
	}
	if err := s.conclude(ctx, out); err != nil {
		return err
	}
	if grown > 0 {
		return fmt.Errorf("%d readings grow", grown)
	}
	return nil
}

// read reads the gateways' resources for as long as the soak lasts.
func (s *stand) read(ctx context.Context) ([][]footprint.At, error) {
	series := make([][]footprint.At, replicas)
	began := time.Now()
	tick := time.NewTicker(readEach)
	defer tick.Stop()
	for told, kept := began, false; time.Since(began) < s.settings.soak; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		now, err := s.readings(ctx)
		if err != nil {
			return nil, err
		}
		for i, r := range now {
			series[i] = append(series[i], footprint.At{After: time.Since(began), Reading: r})
		}
		if time.Since(told) >= time.Minute {
			told = time.Now()
			progress("%s of %s: goroutines, files, MiB: %v", time.Since(began).Round(time.Second), s.settings.soak, footprint.Cells(now))
		}
		if !kept && time.Since(began) >= s.settings.soak/warmShare {
			kept = true
			if err := s.keepHeaps(ctx, "begin"); err != nil {
				return nil, err
			}
		}
	}
	return series, s.keepHeaps(ctx, "end")
}

// keepHeaps writes a heap profile of each gateway, where that is wanted: `go tool pprof
// -diff_base` shows what has grown between two.
func (s *stand) keepHeaps(ctx context.Context, when string) error {
	if s.settings.heaps == "" {
		return nil
	}
	for i, r := range s.replicas {
		file := filepath.Join(s.settings.heaps, fmt.Sprint("heap-", i, "-", when, ".pprof"))
		if err := footprint.KeepHeap(ctx, r.now(), file); err != nil {
			return err
		}
	}
	return nil
}
