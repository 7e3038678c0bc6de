package certificates

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// TestCertificateOfAnotherReplicaIsServedAtOnce: it changed the Secret.
func TestCertificateOfAnotherReplicaIsServedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		log := slog.New(slog.DiscardHandler)
		made := func() *certificate.Own {
			store := NewSecretStore(client.CoreV1().Secrets("quaymaster"), "c")
			own, err := certificate.NewOwn(certificate.OwnConfig{Store: store, Where: "Secret", Names: []string{"quaymaster.quaymaster.svc"}, Log: log})
			if err != nil {
				t.Fatal(err)
			}
			return own
		}
		ours, others := made(), made()
		served := newCertificates(ours)
		if err := ours.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go served.FollowSecret(ctx, client.CoreV1().Secrets("quaymaster"), "c", log)
		synctest.Wait()
		before := slices.Clone(ours.Bundle())
		// Another replica finds no Secret and makes a new authority.
		if err := client.CoreV1().Secrets("quaymaster").Delete(ctx, "c", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := others.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if string(ours.Bundle()) == string(before) {
			t.Error("the authority is the old one still")
		}
		secret, err := client.CoreV1().Secrets("quaymaster").Get(ctx, "c", metav1.GetOptions{})
		if err != nil || secret.Type != core.SecretTypeTLS {
			t.Errorf("the Secret: %v", err)
		}
		stop()
		synctest.Wait()
	})
}
