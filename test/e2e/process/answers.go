package process

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxAnswer bounds the part of an answer that is read, in bytes.
const maxAnswer = 64 << 10

// Answers returns nil if a GET of the URL gives status 200, and otherwise what
// came in its place. It is for Await and
// Eventually.
func Answers(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}

// Eventually calls check until it returns nil. When ctx ends first, the error is the last one
// of check.
func Eventually(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	var last error // except those that only report the end of ctx
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || !over(ctx) {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
		}
	}
}

// over reports whether the time is up: a dial by a deadline fails at it, a moment before the
// context does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
