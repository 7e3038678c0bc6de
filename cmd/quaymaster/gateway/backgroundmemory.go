package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	leases "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/background"
)

const (
	// memoryLease stores the progress of rules about other objects: a Lease, which the gateway
	// may write anyway, and which is not used for leader election.
	memoryLease = "quaymaster-background"
	// memoryKinds is its annotation with the kinds of generated objects.
	memoryKinds = "quaymaster.dev/generated-kinds"
	// memoryTimeout bounds one request.
	memoryTimeout = 5 * time.Second
)

// leaseMemory implements background.Memory.
type leaseMemory struct {
	client    coordination.LeasesGetter
	namespace string
	holder    string // identity of the writer, for diagnosis
}

// Load reads the last saved progress.
func (m *leaseMemory) Load(ctx context.Context) (background.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	lease, err := m.client.Leases(m.namespace).Get(ctx, memoryLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return background.Progress{}, nil
	case err != nil:
		return background.Progress{}, err
	}
	var p background.Progress
	if lease.Spec.RenewTime != nil {
		p.Until = lease.Spec.RenewTime.Time
	}
	if text := lease.Annotations[memoryKinds]; text != "" {
		if err := json.Unmarshal([]byte(text), &p.Kinds); err != nil {
			return p, fmt.Errorf("lease %s/%s, annotation %s: %w; delete the lease if nobody can mend it", m.namespace, memoryLease, memoryKinds, err)
		}
	}
	return p, nil
}

// Save writes the progress.
func (m *leaseMemory) Save(ctx context.Context, p background.Progress) error {
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	kinds, err := json.Marshal(p.Kinds)
	if err != nil {
		return err
	}
	of := m.client.Leases(m.namespace)
	lease, err := of.Get(ctx, memoryLease, metav1.GetOptions{})
	isNew := apierrors.IsNotFound(err)
	if isNew {
		lease = &leases.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: memoryLease, Labels: map[string]string{"app.kubernetes.io/name": "quaymaster"}}}
	} else if err != nil {
		return err
	}
	until := metav1.NewMicroTime(p.Until)
	lease.Spec.RenewTime, lease.Spec.HolderIdentity = &until, &m.holder
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[memoryKinds] = string(kinds)
	if isNew {
		_, err = of.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = of.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}
