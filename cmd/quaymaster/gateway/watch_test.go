package gateway

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/certificates"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/webhook/certificate"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// nobody is a prover that proves nothing.
type nobody struct{ gate.Prover }

// watching is a gateway with nothing but a client.
func watching(client *fake.Clientset) *assembly {
	return &assembly{log: slog.New(slog.DiscardHandler), cluster: &lookups.Cluster{Client: &cluster.Client{Typed: client}}, configuration: config.Configuration{Namespace: "quaymaster"}}
}

// TestWatchTellsAtOnce: a change is told in no time, and one after a watch that broke
// as soon as it is opened again.
func TestWatchTellsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		broken := 2
		client.PrependWatchReactor("mutatingwebhookconfigurations", func(kubetesting.Action) (bool, watch.Interface, error) {
			broken--
			if broken >= 0 {
				return true, nil, errors.New("connection refused")
			}
			return false, nil, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		told := make(chan struct{}, 10)
		done := make(chan struct{})
		go func() {
			defer close(done)
			watching(client).watchConfigurations(ctx, func() { told <- struct{}{} })
		}()
		after(gateway.WatchPause + 2*gateway.WatchPause) // two tries failed
		begun := time.Now()
		for range 2 {
			made := &registration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: configuration.Name}}
			if _, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, made, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			<-told
			if err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, configuration.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			<-told
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("told of four changes after %s", took)
		}
		stop()
		<-done
	})
}

// TestDeletedConfigurationIsMendedByTheWatch: long before anybody looks by himself.
func TestDeletedConfigurationIsMendedByTheWatch(t *testing.T) {
	for _, watched := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(&rbac.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "quaymaster", UID: "u1"}})
			client.Discovery().(*discoveryfake.FakeDiscovery).Resources = []*metav1.APIResourceList{{
				GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"create", "update"}}},
			}}
			g := watching(client)
			store := certificates.NewSecretStore(client.CoreV1().Secrets("quaymaster"), "c")
			own, err := certificate.NewOwn(certificate.OwnConfig{Store: store, Where: "Secret", Names: []string{"quaymaster.quaymaster.svc"}, Log: g.log})
			if err != nil {
				t.Fatal(err)
			}
			if err := own.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			policies, err := set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "p", Targets: []policy.Target{{Group: "*", Version: "*", Kind: "Pod"}}})
			if err != nil {
				t.Fatal(err)
			}
			mirrors, err := mirror.NewSet()
			if err != nil {
				t.Fatal(err)
			}
			written := &writes{}
			kept := &webhooks{
				keeping:   &keeping{metrics: written},
				settings:  config.Webhooks{Service: "quaymaster", Owner: "quaymaster", ExcludedNamespaces: &[]string{}},
				namespace: "quaymaster", client: g.cluster.Client, log: g.log, bundle: own.Bundle,
				policies: func() *set.Set { return policies }, mirrors: func() *mirror.Set { return mirrors },
				sequence: func() int64 { return 1 }, readiness: status.NewReadiness(g.log, func() {}),
			}
			changed := make(chan struct{}, 1)
			reconciler, err := kept.reconciler(changed)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go reconciler.Run(ctx)
			if watched {
				go g.watchConfigurations(ctx, func() {
					select {
					case changed <- struct{}{}:
					default:
					}
				})
			}
			after(5 * time.Second)
			api := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
			if err := api.Delete(ctx, configuration.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			after(2 * time.Second)
			if _, err := api.Get(ctx, configuration.Name, metav1.GetOptions{}); (err == nil) != watched {
				t.Errorf("2 s after it was deleted, watched %t: %v", watched, err)
			}
			if got := slices.Contains(written.all(), "validating missing"); got != watched || kept.keeping.last().IsZero() {
				t.Errorf("watched %t: written were %q, and kept at %s", watched, written.all(), kept.keeping.last())
			}
			stop()
			synctest.Wait()
		})
	}
}

// writes are those of webhook configurations.
type writes struct {
	mu   sync.Mutex
	list []string
}

func (w *writes) ConfigurationWritten(configuration, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, configuration+" "+reason)
}

func (w *writes) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// TestCertificateOfAnotherReplicaIsServedAtOnce: it changed the Secret.
func TestCertificateOfAnotherReplicaIsServedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		g := watching(client)
		g.configuration.Certificate.Secret = "c"
		made := func() *certificate.Own {
			store := certificates.NewSecretStore(client.CoreV1().Secrets("quaymaster"), "c")
			own, err := certificate.NewOwn(certificate.OwnConfig{Store: store, Where: "Secret", Names: []string{"quaymaster.quaymaster.svc"}, Log: g.log})
			if err != nil {
				t.Fatal(err)
			}
			return own
		}
		ours, others := made(), made()
		g.certificates = certificates.New(ours)
		if err := ours.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go g.watchSecret(ctx)
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

// after waits on the bubble's clock, until all others wait.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
