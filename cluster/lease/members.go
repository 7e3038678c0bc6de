package lease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/cluster/internal/mirror"
)

const (
	// ComponentLabel marks the Lease of a replica.
	ComponentLabel = "quaymaster.dev/component"
	// ReplicaComponent is the label's value.
	ReplicaComponent = "replica"
	// AddressAnnotation is the address of the replica.
	AddressAnnotation = "quaymaster.dev/address"

	// memberPrefix is the prefix of the Leases' names.
	memberPrefix = "quaymaster-replica-"
	// A replica renews every renewPeriod and expires after memberDuration.
	memberDuration = 30 * time.Second
	renewPeriod    = 10 * time.Second
	renewTimeout   = 5 * time.Second
	// skew is the tolerated clock skew before a Lease that is observed for the first time counts
	// as expired.
	skew = time.Minute
	// sweepAge is the time after its expiry at which a Lease is removed, and sweepPeriod the
	// interval of these checks.
	sweepAge    = 5 * time.Minute
	sweepPeriod = time.Minute
	// maxMembers bounds the result of Others. It exceeds realistic deployments, and limits the
	// requests that a client with write access to Leases can cause.
	maxMembers = 100
	// maxAddress bounds an address, in bytes.
	maxAddress = 512
)

// Member is a replica of the gateway.
type Member struct {
	// ID is its identity, and Address its address, as registered by itself.
	ID, Address string
}

// MembersOptions are the dependencies of Members.
type MembersOptions struct {
	// Client is required.
	Client coordination.LeasesGetter
	// Namespace is the gateway's own; Identity and Address are this replica's. All are required.
	Namespace, Identity, Address string
	// Owner, if not nil, owns the Lease, so that it is deleted with the release.
	Owner *metav1.OwnerReference
	// Failed is called when a request to the API server failed; it is retried. May be nil.
	Failed func(error)
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Members registers this replica and lists the others. It is safe for concurrent use. Create one
// with NewMembers.
type Members struct {
	options MembersOptions
	mirror  *mirror.Mirror[replica]

	mu   sync.Mutex
	seen map[types.NamespacedName]time.Time // the time of the last observed renewal, by the local clock
}

// replica is the retained part of a Lease.
type replica struct {
	member   Member
	renewed  time.Time // by its own clock
	duration time.Duration
}

// NewMembers creates Members, and returns an error for a missing required option.
func NewMembers(o MembersOptions) (*Members, error) {
	if o.Client == nil || o.Namespace == "" || o.Identity == "" || o.Address == "" || len(o.Address) > maxAddress {
		return nil, fmt.Errorf("members: Client, Namespace, Identity and Address (at most %d bytes) are required", maxAddress)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Members{options: o, seen: make(map[types.NamespacedName]time.Time)}
	var err error
	m.mirror, err = mirror.New(mirror.Options[replica]{What: "leases of replicas", Keep: keepReplica, Changed: m.note, Failed: o.Failed})
	return m, err
}

// Run registers this replica, renews the registration and watches the others until ctx ends. Then
// it removes the registration. It returns when all of its goroutines have ended.
func (m *Members) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { m.mirror.Run(ctx, m.source()) })
	ticker := time.NewTicker(renewPeriod)
	defer ticker.Stop()
	for ctx.Err() == nil {
		m.failed(ctx, "renew", m.renew(ctx))
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := m.options.Client.Leases(m.options.Namespace).Delete(bye, m.name(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && m.options.Failed != nil {
		m.options.Failed(fmt.Errorf("sign off: delete lease %s: %w", m.name(), err))
	}
	wg.Wait()
}

// Ready is closed when the replicas have been listed once.
func (m *Members) Ready() <-chan struct{} { return m.mirror.Synced() }

// Others returns the other live replicas, by ID; at most 100.
func (m *Members) Others() []Member {
	now := m.options.Now()
	var others []Member
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mirror.Each(func(key types.NamespacedName, r replica) {
		if r.member.ID == m.options.Identity || r.member.Address == "" || now.Sub(m.seen[key]) > r.duration {
			return
		}
		others = append(others, r.member)
	})
	slices.SortFunc(others, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return others[:min(len(others), maxMembers)]
}

// Sweep removes long expired Leases until ctx ends; it is for the leader.
func (m *Members) Sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.sweep(ctx)
		}
	}
}

func (m *Members) sweep(ctx context.Context) {
	now := m.options.Now()
	var gone []string
	m.mu.Lock()
	m.mirror.Each(func(key types.NamespacedName, r replica) {
		if now.Sub(m.seen[key]) > r.duration+sweepAge && r.member.ID != m.options.Identity {
			gone = append(gone, key.Name)
		}
	})
	m.mu.Unlock()
	for _, name := range gone {
		request, cancel := context.WithTimeout(ctx, renewTimeout)
		err := m.options.Client.Leases(m.options.Namespace).Delete(request, name, metav1.DeleteOptions{})
		cancel()
		if !apierrors.IsNotFound(err) {
			m.failed(ctx, "remove "+name, err)
		}
	}
}

func (m *Members) name() string { return memberPrefix + m.options.Identity }

func (m *Members) failed(ctx context.Context, what string, err error) {
	if err != nil && m.options.Failed != nil && ctx.Err() == nil {
		m.options.Failed(fmt.Errorf("lease of this replica: %s: %w", what, err))
	}
}

// renew writes the whole Lease, and creates it if it does not exist.
func (m *Members) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	seconds, now := int32(memberDuration/time.Second), metav1.NewMicroTime(m.options.Now())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{ComponentLabel: ReplicaComponent},
			Annotations: map[string]string{AddressAnnotation: m.options.Address},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &m.options.Identity, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	if m.options.Owner != nil {
		lease.OwnerReferences = []metav1.OwnerReference{*m.options.Owner}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": lease.Labels, "annotations": lease.Annotations}, "spec": lease.Spec,
	})
	if err != nil {
		return err
	}
	client := m.options.Client.Leases(m.options.Namespace)
	_, err = client.Patch(ctx, m.name(), types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	lease.Name = m.name()
	_, err = client.Create(ctx, lease, metav1.CreateOptions{})
	return err
}

func (m *Members) source() mirror.Source {
	client := m.options.Client.Leases(m.options.Namespace)
	selector := ComponentLabel + "=" + ReplicaComponent
	return mirror.Source{
		Client: m.options.Client, Example: &coordinationv1.Lease{},
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return client.List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return client.Watch(ctx, o)
		},
	}
}

// note records the times of observed renewals.
func (m *Members) note(changes []mirror.Change[replica]) {
	now := m.options.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		_, known := m.seen[c.Key]
		switch {
		case c.Object == nil:
			delete(m.seen, c.Key)
		case !known && now.Sub(c.New.renewed) > c.New.duration+skew:
			m.seen[c.Key] = c.New.renewed // it had expired before this replica started
		case !known || !c.New.renewed.Equal(c.Old.renewed):
			m.seen[c.Key] = now
		}
	}
}

func keepReplica(object runtime.Object) (replica, error) {
	l, ok := object.(*coordinationv1.Lease)
	if !ok {
		return replica{}, errors.New("not a lease")
	}
	r := replica{member: Member{ID: strings.TrimPrefix(l.Name, memberPrefix), Address: l.Annotations[AddressAnnotation]}}
	if len(r.member.Address) > maxAddress {
		r.member.Address = ""
	}
	if l.Spec.RenewTime != nil {
		r.renewed = l.Spec.RenewTime.Time
	}
	// At most memberDuration: a Lease with a duration of years would never expire.
	r.duration = memberDuration
	if s := l.Spec.LeaseDurationSeconds; s != nil {
		r.duration = min(r.duration, max(0, time.Duration(*s)*time.Second))
	}
	return r, nil
}
