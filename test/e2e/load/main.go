// Command load answers: what does a cluster feel of the gateway under the load of a release,
// on an unsaturated day and when nodes are drained?
//
// Everything is real but the nodes: an API server, kube-controller-manager, three replicas of
// the gateway behind what a Service is, with reports and a decision log, and a registry that
// takes 20 ms for an answer. Nodes are simulated, as kwok does. Three scenarios:
//
//   - drain: 500 pods of 60 images are evicted at once, and the images are not cached yet
//   - ramp: users that come, stay, rush in and leave; each creates pods and Deployments
//   - steady: pods at a fixed rate, through a pair of webhooks that allow everything and
//     through the gateway in turns, one in twenty images seen for the first time
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
	"runtime"
	"strings"
	"syscall"
	"time"
)

// How images are named.
const tags, digests = "tag", "digest"

// The scenarios.
const draining, ramping, steadily = "drain", "ramp", "steady"

// settings are the flags.
type settings struct {
	scenarios map[string]bool
	nodes     int
	pods      int
	users     int
	rate      int
	rounds    int
	measure   time.Duration
	delay     time.Duration
	by        string
	program   string // empty: built from this checkout
	check     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1) //nolint:forbidigo // a program of its own
	}
}

func parse(args []string) (settings, error) {
	var s settings
	var names string
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&names, "scenarios", strings.Join([]string{draining, ramping, steadily}, ","), "which scenarios")
	flags.IntVar(&s.nodes, "nodes", 100, "simulated nodes")
	flags.IntVar(&s.pods, "pods", 500, "pods that are drained")
	flags.IntVar(&s.users, "users", 20, "users of the ramp; three times as many rush in")
	flags.IntVar(&s.rate, "rate", 100, "pods a second, steady")
	flags.IntVar(&s.rounds, "rounds", 3, "rounds of each phase, steady")
	flags.DurationVar(&s.measure, "time", 12*time.Second, "time to measure, each phase and round, steady")
	flags.DurationVar(&s.delay, "delay", 20*time.Millisecond, "what an answer of the registry takes")
	flags.StringVar(&s.by, "by", digests, "how images are named, steady: "+digests+" or "+tags)
	flags.StringVar(&s.program, "program", "", "the gateway's program, of another release for example; built from this checkout unless set")
	flags.BoolVar(&s.check, "check", false, "fail if a target is missed")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.by != tags && s.by != digests {
		return s, fmt.Errorf("-by: %q is no way to name images", s.by)
	}
	s.scenarios = map[string]bool{}
	for name := range strings.SplitSeq(names, ",") {
		if name != draining && name != ramping && name != steadily {
			return s, fmt.Errorf("-scenarios: %q is none", name)
		}
		s.scenarios[name] = true
	}
	if s.nodes < 1 || s.pods < drained || s.users < 1 || s.rate < 1 || s.rounds < 1 || s.measure < time.Second || s.delay < 0 {
		return s, errors.New("want at least one node, user, pod a second and round of at least a second, and a pod of each image that is drained")
	}
	if n := int(float64(s.rate) * s.measure.Seconds()); n < images/oneIn {
		return s, fmt.Errorf("%d pods a phase do not reach the %d images that are new in each", n, images/oneIn)
	}
	return s, nil
}

func run(ctx context.Context, out io.Writer) error {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "quaymaster-load-")
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
	fmt.Fprintf(out, "kube-apiserver %s, %s %s/%s, %d CPUs for all programs; %d simulated nodes, %d replicas of the gateway,\n"+
		"reports and the decision log on, %s to the registry. Latencies are those of the API server.\n",
		stand.version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), s.nodes, replicas, s.delay)
	missed, err := stand.play(ctx, out)
	if err != nil {
		return err
	}
	if s.check && missed > 0 {
		return fmt.Errorf("%d targets missed", missed)
	}
	return nil
}

// play runs the scenarios in the order that they need: the pods to drain are created before
// the gateway starts.
func (s *stand) play(ctx context.Context, out io.Writer) (missed int, err error) {
	say := &verdicts{out: out}
	var d *drain
	if s.settings.scenarios[draining] {
		progress("making the pods to drain")
		d, err = s.fill(ctx)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", draining, err)
		}
	}
	progress("starting the gateway")
	if err := s.openGateway(ctx); err != nil {
		return 0, fmt.Errorf("start the gateway: %w", err)
	}
	if d != nil {
		progress("draining")
		if err := d.run(ctx, say); err != nil {
			return 0, fmt.Errorf("%s: %w", draining, err)
		}
	}
	if s.settings.scenarios[ramping] {
		if err := s.ramp(ctx, say); err != nil {
			return 0, fmt.Errorf("%s: %w", ramping, err)
		}
	}
	if s.settings.scenarios[steadily] {
		if err := s.steady(ctx, say); err != nil {
			return 0, fmt.Errorf("%s: %w", steadily, err)
		}
	}
	return say.missed, nil
}

// progress prints the current step.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
