package rego

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

const (
	// sampling is the interval of the memory checks; most evaluations end before the first.
	sampling = 20 * time.Millisecond
	// maxGrowth bounds the growth of the process during one evaluation, in bytes. Other
	// goroutines contribute, so it is far above an evaluation's use.
	maxGrowth = 256 << 20
)

// answered is the result of an evaluation.
type answered struct {
	results rego.ResultSet
	err     error
}

// bounded waits for an evaluation within its time and memory bounds. It is interrupted
// then, but a function that ignores the interruption continues and keeps its seat.
func (c *Condition) bounded(input ast.Value) (rego.ResultSet, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	select {
	case c.running <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return nil, fmt.Errorf("%d evaluations of the policy in Rego are still going on", maxRunning)
	}
	done := make(chan answered, 1)
	go func() {
		defer func() {
			if defect := recover(); defect != nil {
				done <- answered{err: fmt.Errorf("rego: %v", defect)}
			}
			cancel()
			<-c.running
		}()
		done <- c.evaluate(ctx, input)
	}()
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	var before uint64
	for {
		select {
		case out := <-done:
			return out.results, out.err
		case <-ctx.Done():
			return c.late(done)
		case <-tick.C:
			now := heap()
			if before == 0 {
				before = now
			}
			if now > before+maxGrowth {
				cancel()
				return nil, fmt.Errorf("the policy in Rego was interrupted when memory had grown by %d MiB", maxGrowth>>20)
			}
		}
	}
}

func (c *Condition) evaluate(ctx context.Context, input ast.Value) answered {
	options := []rego.EvalOption{rego.EvalParsedInput(input)}
	if c.now != nil {
		options = append(options, rego.EvalTime(c.now()))
	}
	results, err := c.query.Eval(ctx, options...)
	switch {
	case err != nil && ctx.Err() != nil:
		err = c.tooLong()
	case err != nil:
		err = words(err)
	}
	return answered{results, err}
}

// late returns an answer that came when the time was over, if one did.
func (c *Condition) late(done <-chan answered) (rego.ResultSet, error) {
	select {
	case out := <-done:
		return out.results, out.err
	default:
		return nil, c.tooLong()
	}
}

func (c *Condition) tooLong() error {
	return fmt.Errorf("the policy in Rego took longer than %s: %w", c.limit, context.DeadlineExceeded)
}

// heap returns the bytes that the process has allocated and not freed.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
