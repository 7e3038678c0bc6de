package equality

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/sampling"
)

// Times returns the mean time of the evaluation of a request by each form, on generated requests: the least of some rounds,
// in which the forms take turns. The clock is read before and after a round: that of the CPU time of a process is right on a
// busy machine, too.
func Times(ctx context.Context, o Options, rounds int, clock func() time.Duration) (source, result time.Duration, err error) {
	c, err := New(ctx, o)
	if err != nil {
		return 0, 0, err
	}
	g := sampling.NewGenerator(c.found, c.Targets(), c.options.Seed, nil)
	around := g.World()
	requests := make([]gate.Request, c.options.Objects)
	for i := range requests {
		_, requests[i] = g.Next()
	}
	for range rounds {
		for _, of := range []struct {
			side  *side
			least *time.Duration
		}{{c.source, &source}, {c.result, &result}} {
			if err := of.side.exist(around); err != nil {
				return 0, 0, err
			}
			began := clock()
			if _, err := of.side.verdicts(ctx, requests); err != nil {
				return 0, 0, err
			}
			if took := (clock() - began) / time.Duration(len(requests)); *of.least == 0 || took < *of.least {
				*of.least = took
			}
		}
	}
	return source, result, nil
}
