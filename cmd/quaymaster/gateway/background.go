package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	generated "github.com/quaymaster/quaymaster/policy/generating/record"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/workload"
)

// tend runs the rules about other objects until ctx ends.
func (g *assembly) tend(ctx context.Context) {
	if g.configuration.Shadow() {
		return // also where namespaces are cut over: no selector limits the rules to them
	}
	key, ok := g.certificates.wait(ctx)
	if !ok {
		return
	}
	records, err := generated.New(key)
	if err != nil {
		g.log.Error("rules about other objects are not followed", slog.String("error", err.Error()))
		return
	}
	told := backgroundLog{log: g.log, metrics: g.metrics}
	if g.cluster.events != nil {
		told.events = g.cluster.events
	}
	cluster := &backgroundCluster{client: g.cluster.client.Dynamic, kinds: g.kinds}
	c, err := background.New(background.Options{
		Cluster: cluster, Policies: backgroundPolicies{g, cluster}, Namespaces: g.around.namespaces, Images: objectImages{},
		Records: records, Observer: told, Excluded: append(slices.Clone(*g.configuration.Webhooks.ExcludedNamespaces), g.configuration.Namespace),
		Memory: &leaseMemory{client: g.cluster.client.Leases, namespace: g.configuration.Namespace, holder: g.options.Replica},
	})
	if err != nil {
		g.log.Error("rules about other objects are not followed", slog.String("error", err.Error()))
		return
	}
	c.Run(ctx)
}

// backgroundPolicies implements background.Policies.
type backgroundPolicies struct {
	*assembly
	cluster *backgroundCluster
}

// Policies returns the current policies.
func (p backgroundPolicies) Policies() *policy.Set { return p.activePolicies() }

// Changed returns a channel that is closed when policies or the served resources change; policies
// that name these resources are then compiled again.
func (p backgroundPolicies) Changed() <-chan struct{} { return p.policies.changed.Changed() }

// Gone asks the API server whether a policy without a known document is deleted. A kind that it
// does not serve has no documents.
func (p backgroundPolicies) Gone(ctx context.Context, id string) (bool, error) {
	kind, name, _ := strings.Cut(id, "/")
	namespace, rest, namespaced := strings.Cut(name, "/")
	if namespaced {
		name = rest
	} else {
		namespace = ""
	}
	list := policyKinds()
	i := slices.IndexFunc(list, func(k policyKind) bool { return k.kind == kind })
	if i < 0 {
		return false, fmt.Errorf("%s is no kind of policies", kind)
	}
	for _, version := range list[i].Versions {
		of, err := p.cluster.Kind(ctx, policy.ObjectKind{APIVersion: schema.GroupVersion{Group: list[i].Group, Version: version}.String(), Kind: kind})
		if errors.Is(err, background.ErrNotServed) {
			continue
		}
		if err == nil {
			_, err = p.cluster.Get(ctx, of, namespace, name)
		}
		if errors.Is(err, background.ErrNotFound) {
			return true, nil
		}
		return false, err
	}
	return true, nil
}

// objectImages implements background.Images.
type objectImages struct{}

// Finder returns a finder of the images of an object. An unreadable object is an error.
func (objectImages) Finder(object map[string]any) policy.Finder {
	parsed := sync.OnceValues(func() (workload.Object, error) { return parseContent(object) })
	return func(extractors []policy.Extractor) ([]policy.Image, error) {
		within, err := parsed()
		if err != nil {
			return nil, err
		}
		uses, err := workload.Extract(within)
		if len(extractors) > 0 {
			uses, err = workload.ExtractWith(within, imagePlaces(extractors))
		}
		if err != nil {
			return nil, err
		}
		var images []policy.Image
		for _, use := range uses {
			ref, err := image.Parse(use.Image)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", use.Pointer, err)
			}
			images = append(images, policy.Image{Container: use.Container, Role: string(use.Role), Pointer: use.Pointer, Ref: ref})
		}
		return images, nil
	}
}

func imagePlaces(extractors []policy.Extractor) []workload.Extractor {
	list := make([]workload.Extractor, len(extractors))
	for i, e := range extractors {
		list[i] = workload.Extractor{Name: e.Name, Path: e.Path, Value: e.Value, Key: e.Key, Transform: e.Transform}
	}
	return list
}

// backgroundLog implements background.Observer.
type backgroundLog struct {
	log     *slog.Logger
	metrics *metrics.Metrics
	events  eventWriter // nil: no events
}

// Worked logs and counts completed and failed work; failures also get an event.
func (l backgroundLog) Worked(w background.Work) {
	l.metrics.Worked(string(w.Action), workOutcome(w))
	about := []any{
		slog.String("policy", w.Policy), slog.String("rule", w.Rule), slog.String("object", w.Object),
		slog.String("triggerKind", w.Trigger.Kind), slog.String("triggerNamespace", w.Trigger.Namespace), slog.String("trigger", w.Trigger.Name),
	}
	if w.Err == nil {
		l.log.Info("an object was "+string(w.Action)+" because of a rule", about...)
		return
	}
	l.log.Warn("what a rule wants is not done", append(about, slog.String("error", w.Err.Error()), slog.Bool("final", w.Final))...)
	if l.events == nil {
		return
	}
	note := w.Err.Error()
	if w.Object != "" {
		note = w.Object + ": " + note
	}
	if w.Policy != "" {
		note = "policy " + w.Policy + "/" + w.Rule + ": " + note
	}
	l.events.Record(record.Event{
		Type: core.EventTypeWarning, Reason: "PolicyError", Action: "Generate", Note: note,
		Regarding: core.ObjectReference{APIVersion: w.Trigger.APIVersion, Kind: w.Trigger.Kind, Namespace: w.Trigger.Namespace, Name: w.Trigger.Name},
	})
}

func workOutcome(w background.Work) metrics.WorkOutcome {
	switch {
	case w.Err == nil:
		return metrics.WorkDone
	case w.Final:
		return metrics.WorkGivenUp
	}
	return metrics.WorkRetried
}

// Failed logs errors with a retry.
func (l backgroundLog) Failed(err error) {
	l.log.Warn("rules about other objects", slog.String("error", err.Error()))
}
