package certificates

import (
	"errors"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/webhook/certificate"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

func storeOf(objects ...runtime.Object) secretStore {
	return secretStore{secrets: fake.NewClientset(objects...).CoreV1().Secrets("quaymaster"), name: "own"}
}

func secretOf(version string, labels map[string]string, data map[string][]byte) *core.Secret {
	return &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "quaymaster", Name: "own", ResourceVersion: version, Labels: labels}, Data: data}
}

func TestSecretStoreReads(t *testing.T) {
	ours := map[string]string{configuration.ManagedBy: configuration.Name}
	entries := map[string][]byte{"tls.crt": []byte("c")}
	for _, c := range []struct {
		reason string
		store  secretStore
		err    error
		ours   bool
	}{
		{"ours", storeOf(secretOf("7", ours, entries)), nil, true},
		{"of another owner", storeOf(secretOf("7", nil, entries)), nil, false},
		{"absent", storeOf(), certificate.ErrAbsent, false},
	} {
		got, err := c.store.Get(t.Context())
		if !errors.Is(err, c.err) || got.Ours != c.ours {
			t.Errorf("%s: ours %t, %v", c.reason, got.Ours, err)
		}
		if c.err == nil && (string(got.Entries["tls.crt"]) != "c" || got.Version != "7") {
			t.Errorf("%s: %+v", c.reason, got)
		}
	}
}

func TestSecretStoreDetectsConflicts(t *testing.T) {
	entries := map[string][]byte{"tls.crt": []byte("new")}
	for _, c := range []struct {
		reason, version string
		store           secretStore
		err             error
	}{
		{"nothing is there, as it was read", "", storeOf(), nil},
		{"it was created meanwhile", "", storeOf(secretOf("7", nil, nil)), certificate.ErrConflict},
		{"it is as it was read", "7", storeOf(secretOf("7", nil, map[string][]byte{"theirs": []byte("t")})), nil},
		{"it was written meanwhile", "6", storeOf(secretOf("7", nil, nil)), certificate.ErrConflict},
		{"it was deleted meanwhile", "7", storeOf(), certificate.ErrConflict},
	} {
		if err := c.store.Put(t.Context(), entries, c.version); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.reason, err, c.err)
		}
		if c.err != nil {
			continue
		}
		got, err := c.store.Get(t.Context())
		if err != nil || !got.Ours || string(got.Entries["tls.crt"]) != "new" {
			t.Errorf("%s: %+v, %v", c.reason, got, err)
		}
		if c.version != "" && string(got.Entries["theirs"]) != "t" {
			t.Errorf("%s: entries under other names are gone", c.reason)
		}
	}
}
