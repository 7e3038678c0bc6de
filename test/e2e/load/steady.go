package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The targets of the steady day.
const (
	mostAbove = 5 * time.Millisecond   // warm p99 above the pair's
	mostCold  = 500 * time.Millisecond // cold p99
)

// proving is how many pods are created at once to have everything verified, and passes how
// often each: twelve requests to one replica of three leave one in 130 images that it has not
// cached. Its requests to the others all the same are counted.
const proving, passes = 16, 6

// settleTimeout bounds how long the reports of a phase may take: some 1,700 pods, at 100
// requests a second.
const settleTimeout = 2 * time.Minute

// phases are a round: the same pods through the pair and through the gateway.
type phases struct{ allowed, warm, cold []time.Duration }

// shot is a pod that is created at its time.
type shot struct {
	image string
	cold  bool
	took  time.Duration
}

// shots are n pods: each of the cold images once, at even distances, and otherwise the warm
// ones in turn.
func shots(n int, warm, cold []string) []shot {
	all, next := make([]shot, n), 0
	for i := range all {
		if used := (i + 1) * len(cold) / n; used > i*len(cold)/n {
			all[i] = shot{image: cold[used-1], cold: true}
			continue
		}
		all[i] = shot{image: warm[next%len(warm)]}
		next++
	}
	return all
}

// steady creates pods at a fixed rate, round by round through the pair and the gateway.
func (s *stand) steady(ctx context.Context, say *verdicts) error {
	progress("signing %d images", images+s.settings.rounds*images/oneIn)
	warm, err := s.yard.signed("warm", images-images/oneIn, s.settings.by == digests)
	if err != nil {
		return err
	}
	if err := s.openPair(ctx); err != nil {
		return err
	}
	for range passes {
		if err := s.prove(ctx, warm); err != nil {
			return fmt.Errorf("prove the images: %w", err)
		}
	}
	s.env.Registry.Reset()
	asked, err := s.count(ctx, "quaymaster_cache_lookups_total", "layer", "peers")
	if err != nil {
		return err
	}
	var rounds []phases
	ended, err := s.used(ctx)
	if err != nil {
		return err
	}
	for i := range s.settings.rounds {
		cold, err := s.yard.signed(fmt.Sprintf("cold-%d", i), images/oneIn, s.settings.by == digests)
		if err != nil {
			return err
		}
		round, err := s.round(ctx, i, warm, cold)
		if err != nil {
			return err
		}
		rounds = append(rounds, round)
		progress("steady: round %d of %d: p99 %s ms the pair, %s warm, %s cold", i+1, s.settings.rounds,
			milliseconds(quantile(round.allowed, 0.99)), milliseconds(quantile(round.warm, 0.99)), milliseconds(quantile(round.cold, 0.99)))
	}
	_, _, peak, err := ended()
	if err != nil {
		return err
	}
	var all phases
	for _, r := range rounds {
		all.allowed, all.warm, all.cold = append(all.allowed, r.allowed...), append(all.warm, r.warm...), append(all.cold, r.cold...)
	}
	fmt.Fprintf(say.out, "\nsteady: %d pods a second, %d rounds of %s each; %d images by %s,\n"+
		"of which one in %d is new in each round and one in %d is signed by a workflow and attested\n",
		s.settings.rate, len(rounds), s.settings.measure, images, s.settings.by, oneIn, keylessIn)
	table(say.out, latencyHead(""), append([]string{"no-op pair"}, latencies(all.allowed)...),
		append([]string{"gateway, warm"}, latencies(all.warm)...), append([]string{"gateway, new"}, latencies(all.cold)...))
	askedNow, err := s.count(ctx, "quaymaster_cache_lookups_total", "layer", "peers")
	if err != nil {
		return err
	}
	fmt.Fprintf(say.out, "requests to the registry: %d; questions to other replicas: %d; peak memory of a replica: %d MiB\n",
		len(s.env.Registry.Requests()), askedNow-asked, peak>>20)
	judge(say, rounds)
	return nil
}

// judge compares within rounds, for machines are noisy.
func judge(say *verdicts, rounds []phases) {
	var above, cold []time.Duration
	for _, r := range rounds {
		above = append(above, quantile(r.warm, 0.99)-quantile(r.allowed, 0.99))
		cold = append(cold, r.cold...)
	}
	say.say(median(above) <= mostAbove, "warm p99 is %s ms above the pair's (median of the rounds), want at most %s", milliseconds(median(above)), milliseconds(mostAbove))
	say.say(quantile(cold, 0.99) <= mostCold, "cold p99 is %s ms (of %d, so that below 100 it is the most), want at most %s", milliseconds(quantile(cold, 0.99)), len(cold), milliseconds(mostCold))
}

// round measures both, the one first and then the other, or the other way round. The measured
// pods were created once just before; a replica resolves a tag that only another one has
// seen, or that it has not resolved within ages.tag.
func (s *stand) round(ctx context.Context, number int, warm, cold []string) (r phases, err error) {
	n := int(float64(s.settings.rate) * s.settings.measure.Seconds())
	turns := []string{pairNamespace, steadyNamespace}
	if number%2 == 1 {
		slices.Reverse(turns)
	}
	for _, namespace := range turns {
		if err := s.settle(ctx); err != nil {
			return r, err
		}
		if err := s.fire(ctx, namespace, shots(len(warm), warm, nil)); err != nil {
			return r, err
		}
		all := shots(n, warm, cold)
		if err := s.fire(ctx, namespace, all); err != nil {
			return r, err
		}
		for _, shot := range all {
			switch {
			case namespace == pairNamespace:
				r.allowed = append(r.allowed, shot.took)
			case shot.cold:
				r.cold = append(r.cold, shot.took)
			default:
				r.warm = append(r.warm, shot.took)
			}
		}
		if err := s.clear(ctx, namespace); err != nil {
			return r, err
		}
	}
	return r, nil
}

// settle returns when the gateway has written the reports of what came before, so that what
// is measured next does not pay for it.
func (s *stand) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return patiently(ctx, func(ctx context.Context) error {
		left, err := s.count(ctx, "quaymaster_report_results_pending")
		if err == nil && left > 0 {
			err = fmt.Errorf("%d results wait for their report", left)
		}
		return err
	})
}

// fire creates each pod at its time, whatever became of those before, and measures from that
// time on, so that a wait for the turn is not left out.
func (s *stand) fire(ctx context.Context, namespace string, all []shot) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	start, pause := time.Now(), time.Second/time.Duration(s.settings.rate)
	tick := time.NewTimer(0)
	defer tick.Stop()
	for i := range all {
		due := start.Add(time.Duration(i) * pause)
		tick.Reset(time.Until(due))
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		work.Go(func() {
			if _, err := s.create(ctx, namespace, encode(all[i].image, "")); err != nil {
				cancel(fmt.Errorf("create a pod of %s in %s: %w", all[i].image, namespace, err))
			}
			all[i].took = time.Since(due)
		})
	}
	work.Wait()
	return context.Cause(ctx)
}

// prove has each image admitted once.
func (s *stand) prove(ctx context.Context, names []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	turn := make(chan string)
	for range proving {
		work.Go(func() {
			for name := range turn {
				if _, err := s.create(ctx, steadyNamespace, encode(name, "")); err != nil {
					cancel(fmt.Errorf("%s: %w", name, err))
				}
			}
		})
	}
	for _, name := range names {
		turn <- name
	}
	close(turn)
	work.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.clear(ctx, steadyNamespace)
}
