package webhooks

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/policy"
)

const (
	// nativeTimeout bounds one request for a record, and nativeInterval the time until a failed one is repeated.
	nativeTimeout, nativeInterval = 5 * time.Second, 10 * time.Second
	// coverageInterval is the time until the coverage is recorded again: another client may have changed or deleted it,
	// and native policies that are not wanted any more would stay.
	coverageInterval = 5 * time.Minute
)

// natives reads which policies the API servers evaluate themselves, and records which have webhooks (package record).
type natives struct {
	client      typed.ConfigMapsGetter
	namespace   string
	shadow      bool
	controllers *status.Controllers // nil: nothing is read
	readiness   *status.Readiness
	log         *slog.Logger
	// changed: the coverage may have changed, or the states were read.
	changed gateway.Signal
}

// read returns the record. Without one, with one that cannot be read, or while nothing repairs native
// policies, no policy is left out.
func (n *natives) read(ctx context.Context) status.Native {
	native := status.Native{LeftOut: func(*policy.Policy) bool { return false }}
	if n.controllers == nil {
		return native
	}
	ctx, cancel := context.WithTimeout(ctx, nativeTimeout)
	defer cancel()
	have, err := n.client.ConfigMaps(n.namespace).Get(ctx, record.Enforced, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return native
	}
	if err == nil {
		native.States, err = record.DecodeStates(have.Data)
	}
	if err != nil {
		n.log.Warn("it cannot be read which policies the API servers evaluate themselves; all have their webhooks", slog.String("configMap", record.Enforced), slog.String("error", err.Error()))
		return native
	}
	native.Version = have.ResourceVersion
	if n.controllers.Runs() && !n.shadow {
		native.LeftOut = func(p *policy.Policy) bool { return native.States.Enforces(p.ID(), p.Hash) }
	}
	return native
}

// follow calls notify when the record changes or the role starts or stops, and records the coverage, until ctx ends.
func (n *natives) follow(ctx context.Context, running *sync.WaitGroup, notify func()) {
	if n.controllers == nil {
		return
	}
	running.Go(func() { n.controllers.Follow(ctx, notify) })
	running.Go(func() {
		gateway.WatchObject(ctx, n.client.ConfigMaps(n.namespace), record.Enforced, n.log, notify)
	})
	running.Go(func() { n.publish(ctx) })
}

// publish records the coverage after each change of it, until ctx ends. Nothing is recorded before there are states.
func (n *natives) publish(ctx context.Context) {
	var last record.Coverage
	for ctx.Err() == nil {
		changed, covered := n.changed.Changed(), n.readiness.HoldingChanged()
		now, known := n.readiness.Holding()
		wait := coverageInterval
		if known && now.States != "" && (now.States != last.States || !maps.Equal(now.Policies, last.Policies)) {
			if err := n.save(ctx, now); err == nil {
				last = now
			} else if ctx.Err() == nil {
				wait = nativeInterval
				n.log.Warn("it cannot be recorded which policies the webhooks enforce; native policies stay until it is", slog.String("configMap", record.Covered), slog.String("error", err.Error()))
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-covered:
		case <-timer.C:
			last = record.Coverage{}
		}
		timer.Stop()
	}
}

// save writes the coverage.
func (n *natives) save(ctx context.Context, coverage record.Coverage) error {
	data, err := coverage.Encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, nativeTimeout)
	defer cancel()
	api := n.client.ConfigMaps(n.namespace)
	have, err := api.Get(ctx, record.Covered, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: n.namespace, Name: record.Covered, Labels: map[string]string{"app.kubernetes.io/name": "quaymaster"},
		}, Data: data}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	have.Data = data
	_, err = api.Update(ctx, have, metav1.UpdateOptions{})
	return err
}
