package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	leases "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/background/cleanup"
)

const (
	// RunsLease stores the records of runs, in runsAnnotation.
	RunsLease      = "quaymaster-cleanup"
	runsAnnotation = "quaymaster.dev/cleanup-runs"
	// maxStored bounds an annotation, in bytes: those of an object have 256 KiB.
	maxStored = 250 << 10
	// storeTimeout bounds one request.
	storeTimeout = 10 * time.Second
)

// runStore implements cleanup.Store in an annotation of a Lease. The API server refuses a write
// with another resourceVersion than that of the stored object.
type runStore struct {
	client            coordination.LeasesGetter
	namespace, holder string
}

// Load reads the records. Unreadable ones are an error: without them a run might be repeated.
func (s runStore) Load(ctx context.Context) (cleanup.Records, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stored, err := s.client.Leases(s.namespace).Get(ctx, RunsLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return cleanup.Records{}, nil
	case err != nil:
		return cleanup.Records{}, err
	}
	found := cleanup.Records{Version: stored.ResourceVersion}
	if text := stored.Annotations[runsAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &found.Runs); err != nil {
			return cleanup.Records{}, fmt.Errorf("lease %s/%s, annotation %s is malformed: %w; delete the lease: policies then begin with their next time",
				s.namespace, RunsLease, runsAnnotation, err)
		}
	}
	return found, nil
}

// Save writes the records with the version that they were read with.
func (s runStore) Save(ctx context.Context, r cleanup.Records) (string, error) {
	text, err := json.Marshal(r.Runs)
	if err != nil {
		return "", err
	}
	if len(text) > maxStored {
		return "", fmt.Errorf("the records of %d policies have %d bytes, more than %d (maxStored): delete some of the policies", len(r.Runs), len(text), maxStored)
	}
	written := &leases.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: RunsLease, ResourceVersion: r.Version,
			Labels:      map[string]string{"app.kubernetes.io/name": "quaymaster"},
			Annotations: map[string]string{runsAnnotation: string(text)},
		},
		Spec: leases.LeaseSpec{HolderIdentity: &s.holder},
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if r.Version == "" {
		written, err = s.client.Leases(s.namespace).Create(ctx, written, metav1.CreateOptions{})
	} else {
		written, err = s.client.Leases(s.namespace).Update(ctx, written, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return "", fmt.Errorf("%w: %w", cleanup.ErrConflict, err)
	case err != nil:
		return "", err
	case written.ResourceVersion == "":
		return "", errors.New("the API server returned no version")
	}
	return written.ResourceVersion, nil
}
