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
	// Kept is called after a round that found or wrote the configurations as they should
	// be, and read them back. May be nil.
	Kept func(Round)
	// Wrote is told of a configuration, mutating or validating, that was written, and
	// why. May be nil.
	Wrote func(configuration string, why Why)
	// Failed is told of a round that failed; the configurations are as they were.
	// May be nil.
	Failed func(error)
}

// Round is what the API server stores after a round.
type Round struct {
	// Mutating and Validating are the marks of the two configurations: the probe webhook
	// of each is called at ProbePath/mark. Equal marks mean the same webhooks.
	Mutating, Validating string
	// Resources are those that the configurations were built from, and Warnings what
	// Build returned.
	Resources []Resource
	Warnings  []Warning
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
		o.Kept = func(Round) {}
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
	if err := wanted.addProbes(in); err != nil {
		return err
	}
	if !r.told || !slices.Equal(r.warned, wanted.Warnings) {
		r.told, r.warned = true, wanted.Warnings
		r.options.Warned(wanted.Warnings)
	}
	// Validation first: it is what keeps an unsigned image out.
	validating, failed := r.keepValidating(ctx, wanted.Validating)
	mutating, err := r.keepMutating(ctx, wanted.Mutating)
	if err = errors.Join(failed, err); err == nil {
		r.options.Kept(Round{Mutating: mutating, Validating: validating, Resources: in.Resources, Warnings: wanted.Warnings})
	}
	return err
}

func (r *Reconciler) keepMutating(ctx context.Context, wanted *admission.MutatingWebhookConfiguration) (mark string, err error) {
	return keeper[admission.MutatingWebhookConfiguration]{
		what: "mutating", store: r.options.Mutating, last: &r.mutating, wrote: r.options.Wrote, wanted: wanted, probe: mutatingProbe,
		meta: func(c *admission.MutatingWebhookConfiguration) metav1.ObjectMeta { return c.ObjectMeta },
		merge: func(current, wanted *admission.MutatingWebhookConfiguration) {
			mergeMeta(&current.ObjectMeta, wanted.ObjectMeta)
			current.Webhooks = slices.Clone(wanted.Webhooks)
		},
	}.keep(ctx)
}

func (r *Reconciler) keepValidating(ctx context.Context, wanted *admission.ValidatingWebhookConfiguration) (mark string, err error) {
	return keeper[admission.ValidatingWebhookConfiguration]{
		what: "validating", store: r.options.Validating, last: &r.validating, wrote: r.options.Wrote, wanted: wanted, probe: validatingProbe,
		meta: func(c *admission.ValidatingWebhookConfiguration) metav1.ObjectMeta { return c.ObjectMeta },
		merge: func(current, wanted *admission.ValidatingWebhookConfiguration) {
			mergeMeta(&current.ObjectMeta, wanted.ObjectMeta)
			current.Webhooks = slices.Clone(wanted.Webhooks)
		},
	}.keep(ctx)
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
	// probe returns the client configuration of the probe webhook; nil where there is none.
	probe func(*T) *admission.WebhookClientConfig
	// merge sets in a configuration what is ours.
	merge func(current, wanted *T)
	wrote func(configuration string, why Why)
}

// keep returns the mark of the configuration that is there.
func (k keeper[T]) keep(ctx context.Context) (mark string, err error) {
	for range maxTries {
		mark, err = k.try(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s webhook configuration %s: %w", k.what, Name, err)
	}
	return mark, nil
}

func (k keeper[T]) try(ctx context.Context) (mark string, err error) {
	current, err := k.store.Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		why := Wanted
		if *k.last != nil {
			why = Missing
		}
		stored, err := k.store.Create(ctx, k.fresh(new(T)), metav1.CreateOptions{})
		return k.left(stored, err, why)
	}
	if err != nil {
		return "", err
	}
	if err := rival(k.meta(current), k.meta(k.wanted)); err != nil {
		return "", err
	}
	if k.holds(current, k.wanted) {
		*k.last = k.wanted
		return markOf(*k.probe(current)), nil
	}
	why := Wanted
	if *k.last != nil && !k.holds(current, *k.last) {
		why = Foreign
	}
	stored, err := k.store.Update(ctx, k.fresh(current), metav1.UpdateOptions{})
	return k.left(stored, err, why)
}

// merged returns a configuration with what is ours in it, and the salt of a mark. What a
// shared client or a fake hands out is not changed in place.
func (k keeper[T]) merged(current, ours *T, mark string) *T {
	merged := new(T)
	*merged = *current
	k.merge(merged, ours)
	at := k.probe(merged)
	*at = marked(*at, mark)
	return merged
}

// holds reports whether a configuration has what is ours. What the API server fills in
// is set by Build too, so that equal is equal. One without a salt was not written here.
func (k keeper[T]) holds(current, ours *T) bool {
	at := k.probe(current)
	if at == nil {
		return false
	}
	mark := markOf(*at)
	return len(mark) == hashLength+1+saltLength && equality.Semantic.DeepEqual(current, k.merged(current, ours, mark))
}

// fresh returns a configuration with what is wanted, under a mark that no other has.
func (k keeper[T]) fresh(current *T) *T {
	return k.merged(current, k.wanted, markOf(*k.probe(k.wanted))+"-"+newSalt())
}

// left notes that the configuration was written, unless it was not, or the API server
// stored another one.
func (k keeper[T]) left(stored *T, err error, why Why) (mark string, _ error) {
	if err != nil {
		return "", err
	}
	*k.last = k.wanted
	k.wrote(k.what, why)
	if !k.holds(stored, k.wanted) {
		return "", errors.New("the API server stored it otherwise than it was written")
	}
	return markOf(*k.probe(stored)), nil
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
