package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/extract"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/workload"
)

// Config holds the dependencies of a Runner.
type Config struct {
	Client dynamic.Interface
	// Leases stores the progress, in the gateway's own namespace.
	Leases coordination.LeasesGetter
	// Namespace is the gateway's own, and Replica the name of this process.
	Namespace, Replica string
	// Excluded are the other namespaces that are left out.
	Excluded []string
	Kinds    Kinds
	Policies Policies
	// Namespaces returns the labels of namespaces.
	Namespaces background.Namespaces
	// Key waits for the replicas' key, which authenticates the records in generated objects; false
	// if the context ended first.
	Key     func(context.Context) ([]byte, bool)
	Metrics Metrics
	Events  Events  // nil: none are written
	Reports Reports // nil: none are written
	Log     *slog.Logger
}

// Kinds are the resources that the API server serves.
type Kinds interface {
	// Resources returns nil before they are known.
	Resources() []configuration.Resource
}

// Policies are the active ones.
type Policies interface {
	// Policies returns nil until they are loaded.
	Policies() *set.Set
	// Changed returns a channel that is closed when policies or the served resources change;
	// policies that name these resources are then compiled again.
	Changed() <-chan struct{}
}

// Metrics counts work.
type Metrics interface {
	Worked(action string, outcome metrics.WorkOutcome)
}

// Events writes events soon and never waits.
type Events interface {
	Record(event record.Event)
}

// Reports writes the results of decisions to reports. Put waits while too many are pending.
type Reports interface {
	Put(ctx context.Context, d report.Decided) error
}

// Runner is the component that runs rules about other objects, on the leader.
type Runner struct {
	gateway.OnLeader
	config Config
}

// New makes a Runner.
func New(c Config) *Runner { return &Runner{config: c} }

// Run runs the rules until ctx ends. An error is logged, and the gateway continues without them.
func (r *Runner) Run(ctx context.Context) error {
	c := r.config
	key, ok := c.Key(ctx)
	if !ok {
		return nil
	}
	controller, err := c.controller(key)
	if err != nil {
		c.Log.Error("rules about other objects are not followed", slog.String("error", err.Error()))
		return nil
	}
	controller.Run(ctx)
	return nil
}

func (c Config) controller(key []byte) (*background.Controller, error) {
	records, err := generated.New(key)
	if err != nil {
		return nil, err
	}
	cluster := &apiServer{client: c.Client, kinds: c.Kinds, own: c.Namespace}
	options := background.Options{
		Cluster: cluster, Sources: cluster, Policies: policies{c.Policies, cluster}, Namespaces: c.Namespaces, Images: objectImages{},
		Records: records, Observer: observer{log: c.Log, metrics: c.Metrics, events: c.Events}, Excluded: append(slices.Clone(c.Excluded), c.Namespace),
		Memory: newProgressStore(c.Leases, c.Namespace, c.Replica),
	}
	if c.Reports != nil {
		options.Reports = results{to: c.Reports, log: c.Log}
	}
	return background.New(options)
}

// results implements background.Reports.
type results struct {
	to  Reports
	log *slog.Logger
}

// Report passes the results about an object on as a decision about it.
func (r results) Report(ctx context.Context, about *policy.Subject, of []policy.RuleResult) {
	err := r.to.Put(ctx, report.Decided{
		Outcome:  gate.Outcome{Subject: about, Rules: of},
		Occasion: report.Occasion{Time: time.Now(), Process: report.ProcessBackground, Allowed: true}, // the object exists
	})
	if err != nil && ctx.Err() == nil {
		r.log.Warn("results of rules about other objects are not in reports", slog.String("error", err.Error()))
	}
}

// policies implements background.Policies.
type policies struct {
	current Policies
	cluster *apiServer
}

// Policies returns the current policies.
func (p policies) Policies() *set.Set { return p.current.Policies() }

// Changed returns a channel that is closed at the next change.
func (p policies) Changed() <-chan struct{} { return p.current.Changed() }

// Gone asks the API server whether a policy without a known document is deleted. A kind that it
// does not serve has no documents.
func (p policies) Gone(ctx context.Context, id string) (bool, error) {
	kind, name, _ := strings.Cut(id, "/")
	namespace, rest, namespaced := strings.Cut(name, "/")
	if namespaced {
		name = rest
	} else {
		namespace = ""
	}
	list := kinds.Policies()
	i := slices.IndexFunc(list, func(k kinds.Kind) bool { return k.Name == kind })
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
	return extract.Finder(func() (workload.Object, error) { return parseContent(object) }, image.Parse)
}

// observer implements background.Observer.
type observer struct {
	log     *slog.Logger
	metrics Metrics
	events  Events // nil: no events
}

// Worked logs and counts completed and failed work; failures also get an event.
func (l observer) Worked(w background.Work) {
	l.metrics.Worked(string(w.Action), workOutcome(w))
	about := []any{
		slog.String("policy", w.Policy), slog.String("rule", w.Rule), slog.String("object", w.Object),
		slog.String("triggerKind", w.Trigger.Kind), slog.String("triggerNamespace", w.Trigger.Namespace), slog.String("trigger", w.Trigger.Name),
	}
	if w.Err == nil {
		l.log.Info("an object was "+string(w.Action)+" because of a rule", about...)
		return
	}
	l.log.Warn("a generate or mutate-existing rule failed", append(about, slog.String("error", w.Err.Error()), slog.Bool("final", w.Final))...)
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
	event := record.Event{
		Type: core.EventTypeWarning, Reason: "PolicyError", Action: "Generate", Note: note,
		Regarding: core.ObjectReference{APIVersion: w.Trigger.APIVersion, Kind: w.Trigger.Kind, Namespace: w.Trigger.Namespace, Name: w.Trigger.Name},
	}
	l.events.Record(event)
	if of := kinds.ReferenceOf(w.Policy); of.Name != "" {
		// The event on a cluster-wide policy is in another namespace, where the object's error is not public.
		event.Regarding, event.Related = of, event.Regarding
		if of.Namespace == "" {
			event.Note = "rule " + w.Rule + " failed for " + w.Trigger.Kind + " " + strings.TrimPrefix(w.Trigger.Namespace+"/"+w.Trigger.Name, "/")
		}
		l.events.Record(event)
	}
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
func (l observer) Failed(err error) {
	l.log.Warn("rules about other objects", slog.String("error", err.Error()))
}
