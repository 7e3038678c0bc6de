package audit

import (
	"context"
	"errors"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/scan"
)

const (
	// scanLease stores the position of a scan.
	scanLease = "quaymaster-scan"
	// scanPosition is its annotation with the position.
	scanPosition = "quaymaster.dev/scan-position"
)

// positionStore implements scan.Memory.
type positionStore struct{ lease.State[scan.Position] }

// NewPositionStore stores the position of a scan in a Lease.
func NewPositionStore(client coordination.LeasesGetter, namespace, holder string) scan.Memory {
	return positionStore{lease.State[scan.Position]{
		Client: client, Namespace: namespace, Name: scanLease, Annotation: scanPosition, Holder: holder,
	}}
}

// Load reads the last saved position. An unreadable one counts as empty: the next round is a
// complete one.
func (s positionStore) Load(ctx context.Context) (scan.Position, error) {
	p, _, err := s.State.Load(ctx)
	if errors.Is(err, lease.ErrUnreadable) {
		return scan.Position{}, nil
	}
	return p, err
}

// Save writes the position.
func (s positionStore) Save(ctx context.Context, p scan.Position) error {
	return s.State.Save(ctx, p, p.Began)
}
