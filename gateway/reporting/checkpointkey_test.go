package reporting

import (
	"testing"

	"github.com/quaymaster/quaymaster/gateway/certificates"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/webhook/certificate"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

// TestKeyInSecret: the first replica makes the key, all others take it, and what else is
// in the Secret stays.
func TestKeyInSecret(t *testing.T) {
	store := storeOf(secretOf("7", map[string]string{configuration.ManagedBy: configuration.Name}, map[string][]byte{"tls.crt": []byte("c")}))
	first, err := keyInStore(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	second, err := keyInStore(t.Context(), store)
	if err != nil || second.ID() != first.ID() {
		t.Errorf("another key: %v", err)
	}
	content, err := store.Get(t.Context())
	if err != nil || string(content.Entries["tls.crt"]) != "c" {
		t.Errorf("got %v, %v", content.Entries, err)
	}
	if keys, err := decisionlog.ParsePublicKeys(content.Entries[entryLogPublic]); err != nil || keys[first.ID()] == nil {
		t.Errorf("the public key is another one: %v", err)
	}
	if _, err := keyInStore(t.Context(), storeOf()); err == nil {
		t.Error("there is no Secret, and there is a key")
	}
	broken := storeOf(secretOf("7", nil, map[string][]byte{entryLogKey: []byte("no key")}))
	if _, err := keyInStore(t.Context(), broken); err == nil {
		t.Error("an invalid key is accepted")
	}
}

func storeOf(objects ...runtime.Object) certificate.Store {
	return certificates.NewSecretStore(fake.NewClientset(objects...).CoreV1().Secrets("quaymaster"), "own")
}

func secretOf(version string, labels map[string]string, data map[string][]byte) *core.Secret {
	return &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "quaymaster", Name: "own", ResourceVersion: version, Labels: labels}, Data: data}
}
