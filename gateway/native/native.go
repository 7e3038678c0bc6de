package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/native/record"
)

// Runner is the component that keeps the native policies, on the leader.
type Runner struct {
	gateway.OnLeader
	config Config
}

// New makes a Runner, and returns an error for a missing dependency or an unknown mode.
func New(c Config) (*Runner, error) {
	if c.Servers == nil || c.Dynamic == nil || c.Typed == nil || c.Policies == nil || c.Metrics == nil || c.Log == nil || c.Namespace == "" {
		return nil, errors.New("native policies: all dependencies but Withheld are required")
	}
	if !slices.Contains([]record.Mode{record.Off, record.Requested, record.Auto}, c.Mode) {
		return nil, fmt.Errorf("native policies: the mode %q is none of off, requested and auto", c.Mode)
	}
	return &Runner{config: c}, nil
}

// controller makes the controller of one term.
func (r *Runner) controller() *controller {
	objects := api{r.config.Dynamic}
	return &controller{
		Config: r.config, api: objects, reported: map[string]string{},
		planner: planner{settings: r.config.Settings, withheld: r.config.Withheld},
		store:   store{client: r.config.Typed.CoreV1(), namespace: r.config.Namespace},
		probes:  &probes{servers: r.config.Servers, namespace: r.config.Namespace, api: objects},
	}
}

// Run keeps the native policies until ctx ends. An error is logged, and repeated after a second.
func (r *Runner) Run(ctx context.Context) error {
	config := r.config
	config.Log.Info("this replica leads the native policies", slog.String("mode", string(config.Mode)))
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		gateway.WatchObject(ctx, config.Typed.CoreV1().ConfigMaps(config.Namespace), record.Covered, config.Log, notify)
	})
	if now, err := served(config.Typed.Discovery()); err == nil {
		for _, one := range []resource{validatingPolicies, validatingBindings, mutatingPolicies, mutatingBindings} {
			if in := now.of(one); in != "" {
				all.Go(func() {
					gateway.WatchObject(ctx, labelled{config.Dynamic.Resource(one.in(in))}, "", config.Log, notify)
				})
			}
		}
	}
	r.controller().run(ctx, changed)
	return nil
}

// labelled watches the objects of the component in place of one object.
type labelled struct{ dynamic.ResourceInterface }

// Watch implements gateway.Watcher.
func (l labelled) Watch(ctx context.Context, _ meta.ListOptions) (watch.Interface, error) {
	return l.ResourceInterface.Watch(ctx, meta.ListOptions{LabelSelector: Label})
}
