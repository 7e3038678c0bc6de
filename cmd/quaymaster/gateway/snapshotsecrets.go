package gateway

import (
	"context"
	"errors"
	"fmt"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

const (
	// snapshotName begins the names of the Secrets.
	snapshotName = "quaymaster-snapshot-"
	// snapshotEntry is their only entry.
	snapshotEntry = "part"
	// snapshotType distinguishes them from other Secrets.
	snapshotType = "quaymaster.dev/snapshot"
	// snapshotMost bounds an entry in bytes: the API server refuses a Secret of more than a
	// mebibyte.
	snapshotMost = 1<<20 - 1<<14
)

// snapshotSecrets implements snapshot.Store by a Secret for each part.
type snapshotSecrets struct{ secrets typed.SecretInterface }

func snapshotSecret(i int) string { return fmt.Sprint(snapshotName, i) }

// Load implements snapshot.Store. Parts are valid without missing ones.
func (s *snapshotSecrets) Load(ctx context.Context) ([][]byte, error) {
	var parts [][]byte
	for i := range snapshotParts {
		secret, err := s.secrets.Get(ctx, snapshotSecret(i), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return parts, fmt.Errorf("read a snapshot: %w", err)
		}
		if part := secret.Data[snapshotEntry]; secret.Type == snapshotType && len(part) > 0 {
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// Save implements snapshot.Store. Obsolete parts are emptied, so that the right to delete is not
// needed.
func (s *snapshotSecrets) Save(ctx context.Context, parts [][]byte) error {
	var errs []error
	for i := range snapshotParts {
		var part []byte
		if i < len(parts) {
			part = parts[i]
		}
		if len(part) > snapshotMost {
			errs = append(errs, fmt.Errorf("keep a snapshot: part %d has %d bytes, and %d have room in a Secret", i, len(part), snapshotMost))
			continue
		}
		errs = append(errs, s.put(ctx, snapshotSecret(i), part))
	}
	return errors.Join(errs...)
}

// put writes one Secret; an empty part is written only over another.
func (s *snapshotSecrets) put(ctx context.Context, name string, part []byte) error {
	secret, err := s.secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && len(part) == 0, err == nil && len(part) == 0 && (secret.Type != snapshotType || len(secret.Data[snapshotEntry]) == 0):
		return nil
	case apierrors.IsNotFound(err):
		_, err = s.secrets.Create(ctx, &core.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{configuration.ManagedBy: configuration.Name}},
			Type:       snapshotType, Data: map[string][]byte{snapshotEntry: part},
		}, metav1.CreateOptions{})
	case err != nil:
	case secret.Type != snapshotType:
		err = errors.New("it is there already and somebody else's: remove it, or set snapshot.folder")
	default:
		secret.Data = map[string][]byte{snapshotEntry: part}
		_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("keep a snapshot in Secret %s: %w", name, err)
	}
	return nil
}
