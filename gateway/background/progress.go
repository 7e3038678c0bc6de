package background

import (
	"context"
	"fmt"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/policy"
)

const (
	// progressLease stores the progress of rules about other objects.
	progressLease = "quaymaster-background"
	// progressKinds is its annotation with the kinds of generated objects.
	progressKinds = "quaymaster.dev/generated-kinds"
)

// progressStore implements background.Memory.
type progressStore struct {
	lease.State[[]policy.ObjectKind]
}

func newProgressStore(client coordination.LeasesGetter, namespace, holder string) progressStore {
	return progressStore{lease.State[[]policy.ObjectKind]{
		Client: client, Namespace: namespace, Name: progressLease, Annotation: progressKinds, Holder: holder,
	}}
}

// Load reads the last saved progress.
func (s progressStore) Load(ctx context.Context) (background.Progress, error) {
	kinds, until, err := s.State.Load(ctx)
	if err != nil {
		return background.Progress{}, fmt.Errorf("%w; if its annotation is malformed, delete the lease", err)
	}
	return background.Progress{Until: until, Kinds: kinds}, nil
}

// Save writes the progress.
func (s progressStore) Save(ctx context.Context, p background.Progress) error {
	return s.State.Save(ctx, p.Kinds, p.Until)
}
