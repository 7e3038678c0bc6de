package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/leaf"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/line"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/machine"
)

// fault is something that fails and comes back.
type fault struct {
	name   string
	allows checker.Allowance
	// begin has it fail; the function that it returns has it come back.
	begin func(ctx context.Context, s *stand) (end func(context.Context) error, err error)
	// brief: it is over when begin returns, and is not held. least is how long it is held at
	// least, to have its effect.
	brief bool
	least time.Duration
	// shows is an outcome that must occur meanwhile, or else the fault had no effect.
	shows checker.Outcome
	// clock: the gateways need one that can be set.
	clock bool
}

// faultDisk is the fault in which lines may be lost without an answer.
const faultDisk = "disk"

// webhookSeconds is how long the API server waits for a gateway, by the policies, and
// outlasts is longer than that.
const webhookSeconds, outlasts = 5, 7 * time.Second

// forgets is longer than Secrets and service accounts are remembered without an API server
// that is silent (ages.secret).
const forgets = 40 * time.Second

// within is how long all may take to be as before, after any fault: a lease of 12 s, webhooks
// of 10 s, and an API server that comes back slowly on a machine that is busy.
const within = 45 * time.Second

// The allowances of faults.
var (
	nothing     = checker.Allowance{}
	noAnswer    = checker.Allowance{Unanswered: true}
	notTheNew   = checker.Allowance{NewError: true}
	noAPIServer = checker.Allowance{Unanswered: true, Away: true}
)

// The weathers.
var (
	slow   = line.Weather{Delay: 300 * time.Millisecond}
	lossy  = line.Weather{Delay: 10 * time.Millisecond, Loss: 0.2, Cut: 0.02}
	silent = line.Weather{Silent: true}
	gone   = line.Weather{Refuse: true}
)

// faults are all there are, in the order in which they are played.
func faults() []fault {
	return []fault{
		{name: "kill", allows: noAnswer, begin: kill, shows: checker.Unanswered},
		{name: "kill-all", allows: noAnswer, begin: killAll, shows: checker.Unanswered},
		{name: "stop", allows: noAnswer, begin: stop, least: outlasts, shows: checker.Unanswered},
		{name: faultDisk, allows: noAnswer, begin: fill, shows: checker.Unanswered},
		{name: "clock-ahead", allows: nothing, begin: step(2 * time.Hour), clock: true},
		{name: "clock-back", allows: nothing, begin: step(-30 * time.Minute), clock: true},
		{name: "registry-slow", allows: nothing, begin: weather(registry, slow)},
		{name: "registry-lossy", allows: notTheNew, begin: weather(registry, lossy)},
		{name: "registry-silent", allows: notTheNew, begin: weather(registry, silent), least: outlasts, shows: checker.Error},
		{name: "registry-gone", allows: notTheNew, begin: weather(registry, gone), shows: checker.Error},
		{name: "webhook-slow", allows: nothing, begin: weather(webhook, slow)},
		{name: "webhook-lossy", allows: noAnswer, begin: weather(webhook, lossy)},
		{name: "redis-slow", allows: nothing, begin: weather(redis, slow)},
		{name: "redis-lossy", allows: nothing, begin: weather(redis, lossy)},
		{name: "redis-silent", allows: nothing, begin: weather(redis, silent)},
		{name: "redis-gone", allows: nothing, begin: weather(redis, gone)},
		{name: "api-slow", allows: nothing, begin: weather(apiServer, slow)},
		{name: "api-lossy", allows: nothing, begin: weather(apiServer, lossy)},
		{name: "api-silent", allows: nothing, begin: weather(apiServer, silent), least: forgets},
		{name: "api-down", allows: noAPIServer, begin: down, shows: checker.Away},
		{name: "certificate", allows: nothing, begin: expired, brief: true},
		{name: "policies", allows: nothing, begin: storm, brief: true},
		{name: "namespaces", allows: nothing, begin: thousand, brief: true},
		{name: "outage", allows: checker.Allowance{NewError: true, Unanswered: true}, begin: outage, brief: true},
	}
}

func faultNames() (names []string) {
	for _, f := range faults() {
		names = append(names, f.name)
	}
	return names
}

// chosen are the faults of these names; all of no names.
func chosen(names []string) ([]fault, error) {
	all := faults()
	if len(names) == 0 {
		return all, nil
	}
	var some []fault
	for _, name := range names {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q (-faults)", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// rush is how many pods are wanted at once when a gateway is killed, so that it is at work.
const rush = 60

// kill ends a gateway at once, in the midst of a rush, and starts it again with its folder.
func kill(ctx context.Context, s *stand) (func(context.Context) error, error) {
	r, err := s.busier(ctx)
	if err != nil {
		return nil, err
	}
	return s.killed(ctx, r)
}

// killAll ends all gateways at once.
func killAll(ctx context.Context, s *stand) (func(context.Context) error, error) {
	return s.killed(ctx, s.replicas[:]...)
}

func (s *stand) killed(ctx context.Context, some ...*replica) (func(context.Context) error, error) {
	var work sync.WaitGroup
	begun := make(chan struct{}, rush)
	for turn := range rush {
		image, byDigest, err := s.pick(turn)
		if err != nil {
			return nil, err
		}
		work.Go(func() {
			s.want(ctx, fmt.Sprint(prefix, turn%namespaces), image, byDigest)
			begun <- struct{}{}
		})
	}
	<-begun // the first is answered, and most are not
	for _, r := range some {
		r.now().Kill()
	}
	return func(ctx context.Context) error {
		work.Wait()
		for _, r := range some {
			if err := r.start(ctx); err != nil {
				return err
			}
		}
		for _, r := range some {
			if err := r.now().Ready(ctx); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// stop suspends a gateway: its connections stay, without answers.
func stop(ctx context.Context, s *stand) (func(context.Context) error, error) {
	r, err := s.busier(ctx)
	if err != nil {
		return nil, err
	}
	g := r.now()
	return func(context.Context) error { return g.Signal(syscall.SIGCONT) }, g.Signal(syscall.SIGSTOP)
}

// fill leaves a gateway no room for its decision log.
func fill(ctx context.Context, s *stand) (func(context.Context) error, error) {
	r, err := s.busier(ctx)
	if err != nil {
		return nil, err
	}
	free, err := r.disk.Fill(ctx, r.now().Pid())
	return func(context.Context) error { return free() }, err
}

// step sets the clock of both gateways, and looks whether they go by it.
func step(by time.Duration) func(context.Context, *stand) (func(context.Context) error, error) {
	return func(ctx context.Context, s *stand) (func(context.Context) error, error) {
		back := func(context.Context) error { return s.clock.Set(0) }
		if err := s.clock.Set(by); err != nil {
			return back, err
		}
		for _, r := range s.replicas {
			off, err := machine.Off(ctx, "http://"+r.options.Configuration.Listen.Plain+"/healthz")
			if err == nil && (off-by).Abs() > time.Minute {
				err = fmt.Errorf("its clock was set by %s and is off by %s", by, off)
			}
			if err != nil {
				return back, err
			}
		}
		return back, nil
	}
}

// The lines to the other servers.
func registry(s *stand) *line.Line  { return s.ports[0].Line }
func redis(s *stand) *line.Line     { return s.toRedis }
func apiServer(s *stand) *line.Line { return s.toPlane }
func webhook(s *stand) *line.Line   { return s.toFront }

func weather(of func(*stand) *line.Line, w line.Weather) func(context.Context, *stand) (func(context.Context) error, error) {
	return func(_ context.Context, s *stand) (func(context.Context) error, error) {
		of(s).Set(w)
		return func(context.Context) error {
			of(s).Set(line.Weather{})
			return nil
		}, nil
	}
}

// down ends the API server; etcd keeps its data.
func down(_ context.Context, s *stand) (func(context.Context) error, error) {
	s.plane.KillAPIServer()
	return func(ctx context.Context) error { return s.plane.StartAPIServer(ctx) }, nil
}

// expiries is how often a certificate ends, one after the other.
const expiries = 10

// expired has the gateways' certificate end again and again.
func expired(ctx context.Context, s *stand) (func(context.Context) error, error) {
	var addresses []string
	for _, r := range s.replicas {
		addresses = append(addresses, r.options.Configuration.Listen.Address)
	}
	for range expiries {
		if err := leaf.Expire(ctx, s.client, addresses...); err != nil {
			return over, err
		}
		if err := wait(ctx, s.settings.hold/expiries); err != nil {
			return over, err
		}
	}
	return over, nil
}

// over is for what has come to its end by itself.
func over(context.Context) error { return nil }
