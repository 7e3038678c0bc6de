package reconcile

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

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

const (
	// resync is the interval at which changes by other clients are corrected without a
	// notification.
	resync = 30 * time.Second
	// pause is the minimum time between two rounds. It limits the load when a thousand policies
	// arrive at once or another client keeps reverting changes.
	pause = time.Second
	// roundTimeout bounds one round.
	roundTimeout = 20 * time.Second
	// maxTries bounds the attempts to write one configuration in a round if another client writes
	// it concurrently. The next round tries again.
	maxTries = 5
)

// Source returns the current input.
type Source interface {
	Input(ctx context.Context) (configuration.Input, error)
}

// Store accesses one kind of configuration at the API server. Clients of client-go implement it.
type Store[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error)
	Create(ctx context.Context, object *T, options metav1.CreateOptions) (*T, error)
	Update(ctx context.Context, object *T, options metav1.UpdateOptions) (*T, error)
}

// Options configure a Reconciler.
type Options struct {
	// Source, Mutating and Validating are required.
	Source     Source
	Mutating   Store[admission.MutatingWebhookConfiguration]
	Validating Store[admission.ValidatingWebhookConfiguration]
	// Further returns mutating webhooks that follow those of policies. May be nil.
	Further func(in configuration.Input) []admission.MutatingWebhook
	// Changed signals that the Source has new input, or that another client changed or deleted a
	// configuration. It may be nil; then changes are detected within 30 s.
	Changed <-chan struct{}
	// Warned receives the warnings of the configurations each time that they change. May be nil.
	Warned func([]configuration.Warning)
	// Kept is called after a round that found or wrote the correct configurations and read them
	// back. May be nil.
	Kept func(Round)
	// Wrote is called after a configuration, mutating or validating, was written, with the reason.
	// May be nil.
	Wrote func(configuration string, why Why)
	// Failed receives the error of a failed round; the configurations are unchanged. May be nil.
	Failed func(error)
}

// Round is the state at the API server after a round.
type Round struct {
	// Mutating and Validating are the marks of the two configurations: the probe webhook
	// of each is called at ProbePath/mark. Equal marks mean the same webhooks.
	Mutating, Validating string
	// Resources are those that the configurations were built from, and Warnings the result of
	// Build.
	Resources []configuration.Resource
	Warnings  []configuration.Warning
}

// Why is the reason for writing a configuration.
type Why string

// The reasons.
const (
	// Wanted means that the input changed, or that it is the first round.
	Wanted Why = "wanted"
	// Foreign means that another client had changed the gateway's part.
	Foreign Why = "foreign"
	// Missing means that another client had deleted the configuration.
	Missing Why = "missing"
)

// Reconciler keeps the configurations up to date. Only one replica may run it. Make one with New.
type Reconciler struct {
	options  Options
	warned   []configuration.Warning
	reported bool
	// recentDeletions holds the deleted policies in their grace period.
	recentDeletions recentDeletions
	// mutating and validating are the configurations as the last successful round wrote them.
	mutating   *admission.MutatingWebhookConfiguration
	validating *admission.ValidatingWebhookConfiguration
}

// New makes a Reconciler. It requires the fields that Options marks as required.
func New(o Options) (*Reconciler, error) {
	if o.Source == nil || o.Mutating == nil || o.Validating == nil {
		return nil, errors.New("webhook configurations: Source, Mutating and Validating are required")
	}
	if o.Warned == nil {
		o.Warned = func([]configuration.Warning) {}
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

// Run keeps the configurations up to date until ctx ends, and does not delete them. Afterwards,
// unanswered requests are denied or admitted according to the policies.
func (r *Reconciler) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.Reconcile(ctx); err != nil && ctx.Err() == nil {
			r.options.Failed(err)
		}
		if !sleep(ctx, pause, nil) || !sleep(ctx, r.recentDeletions.next(time.Now(), resync-pause), r.options.Changed) {
			return
		}
	}
}

// sleep reports false when ctx ended.
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

// Reconcile runs one round. It writes only the differences. After an error, the affected
// configurations are unchanged.
func (r *Reconciler) Reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	in, err := r.input(ctx)
	if err != nil {
		return fmt.Errorf("webhook configurations: %w", err)
	}
	wanted, err := configuration.Build(in)
	if err != nil {
		return err
	}
	if r.options.Further != nil {
		wanted.Mutating.Webhooks = append(wanted.Mutating.Webhooks, r.options.Further(in)...)
	}
	if err := addProbes(&wanted, in); err != nil {
		return err
	}
	if !r.reported || !slices.Equal(r.warned, wanted.Warnings) {
		r.reported, r.warned = true, wanted.Warnings
		r.options.Warned(wanted.Warnings)
	}
	// Validation first: it keeps unsigned images out.
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

// keeper reconciles one configuration.
type keeper[T any] struct {
	what  string
	store Store[T]
	// wanted is the gateway's part of the configuration, and last that of the last successful
	// round; nil before.
	wanted *T
	last   **T
	meta   func(*T) metav1.ObjectMeta
	// probe returns the client configuration of the probe webhook; nil if there is none.
	probe func(*T) *admission.WebhookClientConfig
	// merge sets the gateway's part in a configuration.
	merge func(current, wanted *T)
	wrote func(configuration string, why Why)
}

// keep returns the mark of the stored configuration.
func (k keeper[T]) keep(ctx context.Context) (mark string, err error) {
	for range maxTries {
		mark, err = k.try(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s webhook configuration %s: %w", k.what, configuration.Name, err)
	}
	return mark, nil
}

func (k keeper[T]) try(ctx context.Context) (mark string, err error) {
	current, err := k.store.Get(ctx, configuration.Name, metav1.GetOptions{})
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

// merged returns a copy of a configuration with the gateway's part, and with the salt of a mark.
// Objects of a shared cache must not be changed in place.
func (k keeper[T]) merged(current, ours *T, mark string) *T {
	merged := new(T)
	*merged = *current
	k.merge(merged, ours)
	at := k.probe(merged)
	*at = marked(*at, mark)
	return merged
}

// holds reports whether a configuration contains the gateway's part. Build also sets the API
// server's defaults, so that the comparison is exact. A configuration without a salt has another
// writer.
func (k keeper[T]) holds(current, ours *T) bool {
	at := k.probe(current)
	if at == nil {
		return false
	}
	mark := markOf(*at)
	return len(mark) == hashLength+1+saltLength && equality.Semantic.DeepEqual(current, k.merged(current, ours, mark))
}

// fresh returns a configuration with the wanted part, under a new mark.
func (k keeper[T]) fresh(current *T) *T {
	return k.merged(current, k.wanted, markOf(*k.probe(k.wanted))+"-"+newSalt())
}

// left records a successful write. It returns an error if the API server stored something else.
func (k keeper[T]) left(stored *T, err error, why Why) (mark string, _ error) {
	if err != nil {
		return "", err
	}
	*k.last = k.wanted
	k.wrote(k.what, why)
	if !k.holds(stored, k.wanted) {
		return "", errors.New("the API server stored a different object")
	}
	return markOf(*k.probe(stored)), nil
}

// mergeMeta sets the gateway's part and keeps labels, annotations and owners of others.
func mergeMeta(current *metav1.ObjectMeta, wanted metav1.ObjectMeta) {
	current.Name = wanted.Name
	current.Labels = with(current.Labels, wanted.Labels)
	current.Annotations = with(current.Annotations, wanted.Annotations)
	for _, ours := range wanted.OwnerReferences {
		if slices.ContainsFunc(current.OwnerReferences, func(o metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(o, ours) }) {
			continue
		}
		// A recreated ClusterRole has a new UID. With the old one, the configuration would be
		// garbage collected.
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
