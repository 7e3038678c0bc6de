package imageverifier

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Process is the part of the process environment that a verifier uses.
type Process struct {
	// In has the descriptor, Out receives the reason and Err the text that containerd logs at
	// debug level.
	In       io.Reader
	Out, Err io.Writer
	// Env looks up a variable of the environment.
	Env func(string) string
}

// Look decides whether an image may be pulled. An error denies.
type Look func(ctx context.Context, settings *Settings, question Question) (Verdict, error)

// Run handles one request of containerd and returns the exit status. It returns in time even if
// standard input, a file or look blocks.
func Run(ctx context.Context, args []string, p Process, look Look) int {
	started := time.Now()
	verdict, err := judge(ctx, args, p, look)
	if err != nil {
		verdict = Verdict{Reason: "denied, since the image could not be verified: " + err.Error()}
	}
	fmt.Fprintf(p.Err, "quaymaster: answered in %s\n", time.Since(started).Round(time.Millisecond))
	fmt.Fprintln(p.Out, line("quaymaster: "+verdict.Reason))
	if verdict.Allowed {
		return Allow
	}
	return Deny
}

// judge returns the verdict within the settings' time limit.
func judge(ctx context.Context, args []string, p Process, look Look) (Verdict, error) {
	type result struct {
		verdict Verdict
		err     error
	}
	started := time.Now()
	settings, err := ReadSettings(Path(p.Env))
	if err != nil {
		return Verdict{}, err
	}
	ctx, cancel := context.WithDeadlineCause(ctx, started.Add(settings.timeout), fmt.Errorf("no answer within %s", settings.timeout))
	defer cancel()
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if broken := recover(); broken != nil {
				r = result{err: fmt.Errorf("internal error: %v", broken)}
			}
			done <- r
		}()
		r.verdict, r.err = consider(ctx, settings, args, p, look)
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() != nil {
			r.err = context.Cause(ctx)
		}
		return r.verdict, r.err
	case <-ctx.Done():
		return Verdict{}, context.Cause(ctx)
	}
}

func consider(ctx context.Context, settings *Settings, args []string, p Process, look Look) (Verdict, error) {
	question, err := Read(args, p.In)
	if err != nil {
		return Verdict{}, err
	}
	if settings.IsUnverified(question) {
		return Verdict{Allowed: true, Reason: "allowed without proof: the node's settings name this very digest"}, nil
	}
	fmt.Fprintf(p.Err, "quaymaster: asked about %s\n", line(question.Image))
	return look(ctx, settings, question)
}
