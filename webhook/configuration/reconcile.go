package configuration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// resync is how long a change that somebody made stands if nobody tells of it.
	resync = 30 * time.Second
	// pause is the least time between two rounds, so that neither a thousand
	// policies that come at once nor somebody who disagrees makes a storm.
	pause = time.Second
	// roundTimeout bounds one round.
	roundTimeout = 20 * time.Second
	// maxTries is how often one configuration is written in a round when somebody
	// else writes it at the same time; the next round goes on.
	maxTries = 5
)

// Source says what the configurations follow from, at this moment.
type Source interface {
	Input(ctx context.Context) (Input, error)
}

// Store is one kind of configuration at the API server; clients of client-go
// satisfy it.
type Store[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error)
	Create(ctx context.Context, object *T, options metav1.CreateOptions) (*T, error)
	Update(ctx context.Context, object *T, options metav1.UpdateOptions) (*T, error)
}

// Options are what a Reconciler needs.
type Options struct {
	// Source, Mutating and Validating are required.
	Source     Source
	Mutating   Store[admission.MutatingWebhookConfiguration]
	Validating Store[admission.ValidatingWebhookConfiguration]
	// Changed says that the Source has something new, or that somebody changed or
	// deleted a configuration. It may be nil; then changes are seen within 30 s.
	Changed <-chan struct{}
	// Warned is told what of the policies is not asked about, each time that it
	// changes. May be nil.
	Warned func([]Warning)
	// Kept is told of a round after which the configurations are as they should be. May
	// be nil.
	Kept func()
	// Wrote is told of a configuration, mutating or validating, that was written, and
	// why. May be nil.
	Wrote func(configuration string, why Why)
	// Failed is told of a round that failed; the configurations are as they were.
	// May be nil.
	Failed func(error)
}

// Why says why a configuration was written.
type Why string

// The reasons.
const (
	// Wanted: the Source wants something else than before, or it is the first round.
	Wanted Why = "wanted"
	// Foreign: somebody else had changed what is ours.
	Foreign Why = "foreign"
	// Missing: it was there, and somebody else had deleted it.
	Missing Why = "missing"
)

// Reconciler keeps the configurations what they should be. Only one replica may
// run it. Make one with New.
type Reconciler struct {
	options Options
	warned  []Warning
	told    bool
	// lingering is what is asked about though nobody wants it any more.
	lingering lingering
	// mutating and validating are what the last round that could be made left there.
	mutating   *admission.MutatingWebhookConfiguration
	validating *admission.ValidatingWebhookConfiguration
}

// New makes a Reconciler; it refuses options without what is required.
func New(o Options) (*Reconciler, error) {
	if o.Source == nil || o.Mutating == nil || o.Validating == nil {
		return nil, errors.New("webhook configurations: Source, Mutating and Validating are required")
	}
	if o.Warned == nil {
		o.Warned = func([]Warning) {}
	}
	if o.Kept == nil {
		o.Kept = func() {}
	}
	if o.Wrote == nil {
		o.Wrote = func(string, Why) {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	return &Reconciler{options: o}, nil
}

// Run keeps the configurations until ctx ends, and leaves them there: what
// nobody answers is then denied or admitted as policies say.
func (r *Reconciler) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.Reconcile(ctx); err != nil && ctx.Err() == nil {
			r.options.Failed(err)
		}
		if !sleep(ctx, pause, nil) || !sleep(ctx, r.lingering.next(time.Now(), resync-pause), r.options.Changed) {
			return
		}
	}
}

// sleep returns false when ctx ended.
func sleep(ctx context.Context, d time.Duration, earlier <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-earlier:
	case <-timer.C:
	}
	return true
}

// Reconcile makes one round: it writes what differs and nothing else. An error
// leaves alone what could not be decided or written.
func (r *Reconciler) Reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	in, err := r.input(ctx)
	if err != nil {
		return fmt.Errorf("webhook configurations: %w", err)
	}
	wanted, err := Build(in)
	if err != nil {
		return err
	}
	if !r.told || !slices.Equal(r.warned, wanted.Warnings) {
		r.told, r.warned = true, wanted.Warnings
		r.options.Warned(wanted.Warnings)
	}
	mutating := keeper[admission.MutatingWebhookConfiguration]{
		what: "mutating", store: r.options.Mutating, last: &r.mutating, wrote: r.options.Wrote, wanted: wanted.Mutating,
		meta: func(c *admission.MutatingWebhookConfiguration) metav1.ObjectMeta { return c.ObjectMeta },
		merge: func(current, wanted *admission.MutatingWebhookConfiguration) {
			mergeMeta(&current.ObjectMeta, wanted.ObjectMeta)
			current.Webhooks = wanted.Webhooks
		},
	}
	validating := keeper[admission.ValidatingWebhookConfiguration]{
		what: "validating", store: r.options.Validating, last: &r.validating, wrote: r.options.Wrote, wanted: wanted.Validating,
		meta: func(c *admission.ValidatingWebhookConfiguration) metav1.ObjectMeta { return c.ObjectMeta },
		merge: func(current, wanted *admission.ValidatingWebhookConfiguration) {
			mergeMeta(&current.ObjectMeta, wanted.ObjectMeta)
			current.Webhooks = wanted.Webhooks
		},
	}
	// Validation first: it is what keeps an unsigned image out.
	err = errors.Join(validating.keep(ctx), mutating.keep(ctx))
	if err == nil {
		r.options.Kept()
	}
	return err
}

// keeper keeps one configuration.
type keeper[T any] struct {
	what  string
	store Store[T]
	// wanted is what is ours, and last what was when it was left as it should be; nil
	// before.
	wanted *T
	last   **T
	meta   func(*T) metav1.ObjectMeta
	// merge sets in a configuration what is ours.
	merge func(current, wanted *T)
	wrote func(configuration string, why Why)
}

func (k keeper[T]) keep(ctx context.Context) error {
	var err error
	for range maxTries {
		err = k.try(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s webhook configuration %s: %w", k.what, Name, err)
	}
	return nil
}

func (k keeper[T]) try(ctx context.Context) error {
	current, err := k.store.Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		created, why := new(T), Wanted
		if *k.last != nil {
			why = Missing
		}
		k.merge(created, k.wanted)
		_, err = k.store.Create(ctx, created, metav1.CreateOptions{})
		return k.left(err, why)
	}
	if err != nil {
		return err
	}
	if err := rival(k.meta(current), k.meta(k.wanted)); err != nil {
		return err
	}
	merged, same := k.merged(current, k.wanted)
	if same {
		*k.last = k.wanted
		return nil
	}
	why := Wanted
	if *k.last != nil {
		if _, same := k.merged(current, *k.last); !same {
			why = Foreign
		}
	}
	_, err = k.store.Update(ctx, merged, metav1.UpdateOptions{})
	return k.left(err, why)
}

// merged returns a configuration with what is ours in it, and whether it had it
// before. What the API server fills in is set by Build too, so that equal is equal;
// what a shared client or a fake hands out is not changed in place.
func (k keeper[T]) merged(current, ours *T) (merged *T, same bool) {
	merged = new(T)
	*merged = *current
	k.merge(merged, ours)
	return merged, equality.Semantic.DeepEqual(current, merged)
}

// left notes that the configuration was written, unless it was not.
func (k keeper[T]) left(err error, why Why) error {
	if err == nil {
		*k.last = k.wanted
		k.wrote(k.what, why)
	}
	return err
}

// mergeMeta sets what is ours and leaves labels, annotations and owners of
// others.
func mergeMeta(current *metav1.ObjectMeta, wanted metav1.ObjectMeta) {
	current.Name = wanted.Name
	current.Labels = with(current.Labels, wanted.Labels)
	current.Annotations = with(current.Annotations, wanted.Annotations)
	for _, ours := range wanted.OwnerReferences {
		if slices.ContainsFunc(current.OwnerReferences, func(o metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(o, ours) }) {
			continue
		}
		// A ClusterRole that was made anew has another UID; the old one would have
		// the configuration collected.
		others := slices.DeleteFunc(slices.Clone(current.OwnerReferences), func(o metav1.OwnerReference) bool {
			return o.UID == ours.UID || o.Kind == ours.Kind && o.Name == ours.Name
		})
		current.OwnerReferences = append(others, ours)
	}
}

func with(current, wanted map[string]string) map[string]string {
	merged := make(map[string]string, len(current)+len(wanted))
	maps.Copy(merged, current)
	maps.Copy(merged, wanted)
	return merged
}
