package snapshots

import (
	"context"
	"errors"
	"fmt"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quaymaster/quaymaster/cache/snapshot"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

const (
	// namePrefix begins the names of the Secrets.
	namePrefix = "quaymaster-snapshot-"
	// entry is their only entry.
	entry = "part"
	// secretType distinguishes them from other Secrets.
	secretType = "quaymaster.dev/snapshot"
	// maxEntry bounds an entry in bytes: the API server refuses a Secret of more than a
	// mebibyte.
	maxEntry = 1<<20 - 1<<14
)

// secretStore implements snapshot.Store by a Secret for each part.
type secretStore struct{ secrets typed.SecretInterface }

// NewSecretStore makes a store in Secrets, one for each part.
func NewSecretStore(secrets typed.SecretInterface) snapshot.Store {
	return &secretStore{secrets: secrets}
}

func secretName(i int) string { return fmt.Sprint(namePrefix, i) }

// Load implements snapshot.Store. Parts are valid without missing ones.
func (s *secretStore) Load(ctx context.Context) ([][]byte, error) {
	var parts [][]byte
	for i := range maxParts {
		secret, err := s.secrets.Get(ctx, secretName(i), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return parts, fmt.Errorf("read a snapshot: %w", err)
		}
		if part := secret.Data[entry]; secret.Type == secretType && len(part) > 0 {
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// Save implements snapshot.Store. Obsolete parts are emptied, so that the right to delete is not
// needed.
func (s *secretStore) Save(ctx context.Context, parts [][]byte) error {
	var errs []error
	for i := range maxParts {
		var part []byte
		if i < len(parts) {
			part = parts[i]
		}
		if len(part) > maxEntry {
			errs = append(errs, fmt.Errorf("keep a snapshot: part %d has %d bytes, and %d have room in a Secret", i, len(part), maxEntry))
			continue
		}
		errs = append(errs, s.put(ctx, secretName(i), part))
	}
	return errors.Join(errs...)
}

// put writes one Secret; an empty part is written only over another.
func (s *secretStore) put(ctx context.Context, name string, part []byte) error {
	secret, err := s.secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && len(part) == 0, err == nil && len(part) == 0 && (secret.Type != secretType || len(secret.Data[entry]) == 0):
		return nil
	case apierrors.IsNotFound(err):
		_, err = s.secrets.Create(ctx, &core.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{configuration.ManagedBy: configuration.Name}},
			Type:       secretType, Data: map[string][]byte{entry: part},
		}, metav1.CreateOptions{})
	case err != nil:
	case secret.Type != secretType:
		err = errors.New("a Secret of that name and another type exists: remove it, or set snapshot.folder")
	default:
		secret.Data = map[string][]byte{entry: part}
		_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("keep a snapshot in Secret %s: %w", name, err)
	}
	return nil
}
