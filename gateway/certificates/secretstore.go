package certificates

import (
	"context"
	"maps"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quaymaster/quaymaster/webhook/certificate"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// secretStore keeps the gateway's own authority in a Secret.
type secretStore struct {
	secrets typed.SecretInterface
	name    string
}

// Get implements certificate.Store.
func (s secretStore) Get(ctx context.Context) (certificate.Content, error) {
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return certificate.Content{}, certificate.ErrAbsent
	}
	if err != nil {
		return certificate.Content{}, err
	}
	return certificate.Content{
		Entries: secret.Data, Version: secret.ResourceVersion,
		Ours: secret.Labels[configuration.ManagedBy] == configuration.Name,
	}, nil
}

// Put implements certificate.Store.
func (s secretStore) Put(ctx context.Context, entries map[string][]byte, version string) error {
	if version == "" {
		_, err := s.secrets.Create(ctx, &core.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{configuration.ManagedBy: configuration.Name}},
			Type:       core.SecretTypeTLS, Data: entries,
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return certificate.ErrConflict
		}
		return err
	}
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return certificate.ErrConflict
	}
	if err != nil {
		return err
	}
	if secret.ResourceVersion != version {
		return certificate.ErrConflict
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, entries)
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	secret.Labels[configuration.ManagedBy] = configuration.Name
	_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return certificate.ErrConflict
	}
	return err
}
