// Command chaos answers: does anything wrong get in, or anything that was recorded get lost,
// while everything fails that can?
//
// Everything is real but the nodes: an API server, kube-controller-manager, two gateways
// behind what a Service is, two registries and a Redis, and between them lines that delay,
// lose, cut and swallow. Pods are wanted all the time, in several namespaces: signed ones by
// tag and by digest, unsigned ones, those of a wrong signer, and new ones. One fault after
// the other comes and goes. A checker (package checker) compares each answer of the API
// server with what should have been decided, and in the end both decision logs with both.
//
// With -soak nothing fails: the same load goes on for that time, and the gateways' memory,
// goroutines and file descriptors must not grow.
//
// All of it shares this machine's cores.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	faults  []string // empty: all
	rate    int
	hold    time.Duration
	most    time.Duration
	soak    time.Duration // zero: faults are played
	heaps   string        // folder for heap profiles; empty: none are kept
	program string        // empty: built from this checkout
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1) //nolint:forbidigo // a program of its own
	}
}

func parse(args []string) (settings, error) {
	var s settings
	var names string
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.StringVar(&names, "faults", "", "which faults, in their order, with commas between; all unless set: "+strings.Join(faultNames(), ", "))
	flags.IntVar(&s.rate, "rate", 20, "pods a second")
	flags.DurationVar(&s.hold, "hold", 6*time.Second, "how long a fault lasts that has no length of its own")
	flags.DurationVar(&s.most, "most", 20*time.Minute, "the most that all faults may take together")
	flags.DurationVar(&s.soak, "soak", 0, "no faults: steady load for so long, in which nothing may grow")
	flags.StringVar(&s.heaps, "heaps", "", "folder that a soak writes heap profiles of the gateways to, at the beginning and at the end of the judged time")
	flags.StringVar(&s.program, "program", "", "the gateway's program; built from this checkout unless set")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for name := range strings.SplitSeq(names, ",") {
		if name != "" {
			s.faults = append(s.faults, name)
		}
	}
	switch {
	case s.rate < len(mix) || s.hold < time.Second || s.most < time.Minute:
		return s, fmt.Errorf("want at least %d pods a second (-rate), so that each kind has its turn, a second (-hold) and a minute (-most)", len(mix))
	case s.soak != 0 && s.soak < leastSoak:
		return s, fmt.Errorf("want to soak for at least %s (-soak)", leastSoak)
	case s.soak != 0 && len(s.faults) > 0:
		return s, errors.New("-soak is without -faults")
	}
	faults, err := chosen(s.faults)
	if err == nil && s.program != "" && s.soak == 0 && slices.ContainsFunc(faults, func(f fault) bool { return f.clock }) {
		err = errors.New("the faults of the clock need a program that is built for them: leave them out (-faults), or -program")
	}
	return s, err
}

func run(ctx context.Context, out io.Writer) error {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "quaymaster-chaos-")
	if err != nil {
		return err
	}
	stand, err := build(ctx, folder, s)
	if err == nil && s.soak > 0 {
		err = stand.soak(ctx, out)
	} else if err == nil {
		err = stand.chaos(ctx, out)
	}
	if stand != nil {
		stand.close()
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w; the logs of the programs, and findings.log where there are some, stay in %s", err, folder)
	}
	return errors.Join(err, os.RemoveAll(folder))
}

// progress prints the current step.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
