package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/footprint"
)

// calm is how long nothing may be wrong before all counts as it was, and look how often that
// is asked.
const calm, look = 2 * time.Second, 100 * time.Millisecond

// outcome is a line of the table: what became of the pods that were wanted during a fault.
type outcome struct {
	fault  string
	lasted time.Duration
	counts map[checker.Outcome]int
	// first is when the first signed pod came in after the fault's end, and all when the last
	// answer came that was not as it should be; counted from the end.
	first, all time.Duration
	after      []footprint.Reading
}

// chaos plays the faults and prints the results.
func (s *stand) chaos(ctx context.Context, out io.Writer) error {
	chosen, err := chosen(s.settings.faults)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.settings.most, fmt.Errorf("the faults took longer than %s (-most)", s.settings.most))
	defer cancel()
	var before, after []footprint.Reading
	err = s.underLoad(ctx, func(ctx context.Context) (err error) {
		before, err = s.readings(ctx)
		if err != nil {
			return err
		}
		for _, f := range chosen {
			if err := s.play(ctx, f); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		after, err = s.settled(ctx, before)
		return err
	})
	s.printFaults(out, before, after)
	return errors.Join(err, s.conclude(ctx, out)) // a finding is worse than a fault that does not end
}

// underLoad does something while pods are wanted, once all is well.
func (s *stand) underLoad(ctx context.Context, do func(context.Context) error) error {
	loading, stop := context.WithCancel(ctx)
	defer stop()
	loaded := make(chan error, 1)
	began := time.Now()
	go func() { loaded <- s.load(loading) }()
	_, _, err := s.settle(ctx, began)
	if err == nil {
		err = do(ctx)
	}
	stop()
	return errors.Join(err, <-loaded)
}

// play has one thing fail and come back, and waits until all is as it was.
func (s *stand) play(ctx context.Context, f fault) error {
	progress("%s", f.name)
	w := checker.Window{Fault: f.name, Start: time.Now(), Allows: f.allows}
	end, err := f.begin(ctx, s)
	if err == nil && !f.brief {
		err = wait(ctx, max(s.settings.hold, f.least))
	}
	if end != nil {
		err = errors.Join(err, end(context.WithoutCancel(ctx)))
	}
	w.End = time.Now()
	line := outcome{fault: f.name, lasted: w.End.Sub(w.Start)}
	if err == nil {
		line.first, line.all, err = s.settle(ctx, w.End)
	}
	w.Calm = time.Now()
	if err == nil {
		w.Calm = w.End.Add(line.all)
		line.after, err = s.readings(ctx)
	}
	line.counts = s.count(w)
	if shows := cmp.Or(f.shows, checker.Denied); line.counts[shows] == 0 {
		err = errors.Join(err, fmt.Errorf("it has no effect: no answer is %q", shows))
	}
	s.windows, s.lines = append(s.windows, w), append(s.lines, line)
	return err
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// count counts the answers to the requests of a window.
func (s *stand) count(w checker.Window) map[checker.Outcome]int {
	counts := map[checker.Outcome]int{}
	for _, a := range s.record.All() {
		if !a.Start.Before(w.Start) && !a.Start.After(w.Calm) {
			counts[a.Outcome]++
		}
	}
	return counts
}

// settle waits until all answers to requests since a moment are as expected, for some time.
// It returns how long after that moment the first signed pod was admitted, and how long the
// last unexpected answer came.
func (s *stand) settle(ctx context.Context, since time.Time) (first, all time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("all is not as it was after %s", within))
	defer cancel()
	for {
		state := s.record.Look(since)
		if state.Good >= len(mix) && state.Waiting < calm && time.Since(state.LastBad) >= calm && time.Since(since) >= calm {
			return state.First.Sub(since), state.LastBad.Sub(since), nil
		}
		if waited := wait(ctx, look); waited != nil {
			said := "no answer"
			if state.Bad != nil {
				said = state.Bad.String()
			}
			return 0, 0, fmt.Errorf("%w; last: %s", waited, said)
		}
	}
}

// conclude ends the gateways and holds everything against everything.
func (s *stand) conclude(ctx context.Context, out io.Writer) error {
	findings, err := s.findings(context.WithoutCancel(ctx), out)
	if err != nil {
		return err
	}
	if len(findings) == 0 {
		fmt.Fprintln(out, "No wrong admission, no wrong answer and no lost record.")
		return nil
	}
	checker.Sort(findings)
	var all strings.Builder
	for i, f := range findings {
		if i < mostTold {
			fmt.Fprintln(out, f)
		}
		fmt.Fprintln(&all, f)
	}
	return errors.Join(
		fmt.Errorf("%d answers or records are not as they should be, the first: %s", len(findings), findings[0]),
		os.WriteFile(filepath.Join(s.folder, "findings.log"), []byte(all.String()), 0o600),
	)
}

// mostTold is how many findings are printed; all are in findings.log.
const mostTold = 20
