// Command bench answers: what does the gateway add to a pod's creation?
//
// In one run, against one API server, it creates pods (dry run, so that etcd
// takes no part) without any webhook, with a pair of webhooks that allow
// everything, with such a pair that answers with the gateway's patch, unseen, and
// with the gateway, which proves an image by tag that is signed with a key. They
// take turns, round by round, because machines are noisy;
// each has a namespace of its own, so that nothing is switched in between.
// Everything runs on this machine and shares its cores.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	users   []int
	rounds  int
	measure time.Duration
	warm    time.Duration
	gateway bool
	policy  string // the gateway's policies
	check   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:forbidigo // a program of its own
	}
}

func run(ctx context.Context) error {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "quaymaster-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	stand, err := build(ctx, folder, s)
	if stand != nil {
		defer stand.close()
	}
	if err != nil {
		return err
	}
	results := map[int][]round{}
	for _, users := range s.users {
		for i := range s.rounds {
			measured := round{}
			for _, phase := range turns(stand.phases, i) {
				m, err := stand.measure(ctx, phase, users, s)
				if err != nil {
					return fmt.Errorf("%s, %d users: %w", phase.name, users, err)
				}
				fmt.Fprintf(os.Stderr, "round %d of %d, %d users, %s: %.0f/s\n", i+1, s.rounds, users, phase.name, m.rate)
				measured[phase.name] = m
			}
			results[users] = append(results[users], measured)
		}
	}
	return summarize(os.Stdout, s, stand, results)
}

// turns returns the phases in the order of a round: forth, then back, so that a machine that
// gets slower slows each phase alike.
func turns(phases []phase, round int) []phase {
	ordered := slices.Clone(phases)
	if round%2 == 1 {
		slices.Reverse(ordered)
	}
	return ordered
}

func parse(args []string) (settings, error) {
	var s settings
	var users string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&users, "users", "100,500", "numbers of users, each of which creates one pod after another")
	flags.IntVar(&s.rounds, "rounds", 5, "rounds of each phase")
	flags.DurationVar(&s.measure, "time", 4*time.Second, "time to measure, each phase and round")
	flags.DurationVar(&s.warm, "warm", time.Second, "time before that which does not count")
	flags.BoolVar(&s.gateway, "gateway", true, "measure the gateway")
	flags.StringVar(&s.policy, "policy", clusterPolicy, "the gateway's policies: "+clusterPolicy+" or "+imageValidatingPolicy+", which want the image signed, the 18 of "+podSecurity+", or 18 in CEL, evaluated by the API server and by the gateway: "+nativePolicies)
	flags.BoolVar(&s.check, "check", false, "fail if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for text := range strings.SplitSeq(users, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return s, fmt.Errorf("-users: %q is no number of users", text)
		}
		s.users = append(s.users, n)
	}
	if s.policy != clusterPolicy && s.policy != imageValidatingPolicy && s.policy != podSecurity && s.policy != nativePolicies {
		return s, fmt.Errorf("-policy: %q is no kind that is measured", s.policy)
	}
	if s.policy == nativePolicies && !s.gateway {
		return s, errors.New("-policy " + nativePolicies + " is about the gateway: leave -gateway=false out")
	}
	if s.rounds < 1 || s.measure < time.Second || s.warm < 0 {
		return s, errors.New("want at least one round of at least a second")
	}
	return s, nil
}
