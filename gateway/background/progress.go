package background

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/policy"
)

const (
	// progressLease stores the progress of rules about other objects.
	progressLease = "quaymaster-background"
	// progressKinds is its annotation with the kinds of generated objects, and progressPositions
	// that with the positions of watches with rules for deletions.
	progressKinds     = "quaymaster.dev/generated-kinds"
	progressPositions = "quaymaster.dev/deletion-positions"
)

// progressStore implements background.Memory.
type progressStore struct {
	kinds     lease.State[[]policy.ObjectKind]
	positions lease.State[[]background.Position]
}

func newProgressStore(client coordination.LeasesGetter, namespace, holder string) progressStore {
	return progressStore{
		kinds: lease.State[[]policy.ObjectKind]{
			Client: client, Namespace: namespace, Name: progressLease, Annotation: progressKinds, Holder: holder,
		},
		positions: lease.State[[]background.Position]{
			Client: client, Namespace: namespace, Name: progressLease, Annotation: progressPositions, Holder: holder,
		},
	}
}

// Load reads the last saved progress.
func (s progressStore) Load(ctx context.Context) (background.Progress, error) {
	kinds, until, err := s.kinds.Load(ctx)
	positions, _, errPositions := s.positions.Load(ctx)
	if err := errors.Join(err, errPositions); err != nil {
		return background.Progress{}, fmt.Errorf("%w; if its annotation is malformed, delete the lease", err)
	}
	return background.Progress{Until: until, Kinds: kinds, Positions: positions}, nil
}

// Save writes the progress.
func (s progressStore) Save(ctx context.Context, p background.Progress) error {
	if err := s.kinds.Save(ctx, p.Kinds, p.Until); err != nil {
		return err
	}
	if len(p.Positions) == 0 {
		saved, _, err := s.positions.Load(ctx)
		if err != nil || len(saved) == 0 {
			return err
		}
	}
	return s.positions.Save(ctx, p.Positions, time.Time{})
}
