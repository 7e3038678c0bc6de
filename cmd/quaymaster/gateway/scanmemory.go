package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	leases "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/scan"
)

const (
	// scanLease stores the position of a scan: a Lease, which the gateway may write anyway, and
	// which is not used for leader election.
	scanLease = "quaymaster-scan"
	// scanPosition is its annotation with the position.
	scanPosition = "quaymaster.dev/scan-position"
)

// scanMemory implements scan.Memory.
type scanMemory struct {
	client    coordination.LeasesGetter
	namespace string
	holder    string // identity of the writer, for diagnosis
}

// Load reads the last saved position. An unreadable one counts as empty: the next round is a
// complete one.
func (m *scanMemory) Load(ctx context.Context) (scan.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	lease, err := m.client.Leases(m.namespace).Get(ctx, scanLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return scan.Position{}, nil
	}
	if err != nil {
		return scan.Position{}, err
	}
	var p scan.Position
	if json.Unmarshal([]byte(lease.Annotations[scanPosition]), &p) != nil {
		return scan.Position{}, nil
	}
	return p, nil
}

// Save writes the position.
func (m *scanMemory) Save(ctx context.Context, p scan.Position) error {
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the position: %w", err)
	}
	of := m.client.Leases(m.namespace)
	lease, err := of.Get(ctx, scanLease, metav1.GetOptions{})
	isNew := apierrors.IsNotFound(err)
	if isNew {
		lease = &leases.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: scanLease, Labels: map[string]string{"app.kubernetes.io/name": "quaymaster"}}}
	} else if err != nil {
		return err
	}
	began := metav1.NewMicroTime(p.Began)
	lease.Spec.RenewTime, lease.Spec.HolderIdentity = &began, &m.holder
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[scanPosition] = string(text)
	if isNew {
		_, err = of.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = of.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}
