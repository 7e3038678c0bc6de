package webhooks

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
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/certificates"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/webhook/certificate"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// configOf has nothing but a client.
func configOf(client *fake.Clientset) Config {
	return Config{Log: slog.New(slog.DiscardHandler), Client: &cluster.Client{Typed: client}}
}

// TestWatchReportsAtOnce: a change is reported without delay, and one after a broken watch as soon
// as the watch is opened again.
func TestWatchReportsAtOnce(t *testing.T) {
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
			configOf(client).watch(ctx, func() { told <- struct{}{} })
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
			t.Errorf("four changes took %s", took)
		}
		stop()
		<-done
	})
}

// TestDeletedConfigurationIsMendedByTheWatch: long before the periodic check.
func TestDeletedConfigurationIsMendedByTheWatch(t *testing.T) {
	for _, watched := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(&rbac.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "quaymaster", UID: "u1"}})
			client.Discovery().(*discoveryfake.FakeDiscovery).Resources = []*metav1.APIResourceList{{
				GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"create", "update"}}},
			}}
			config := configOf(client)
			store := certificates.NewSecretStore(client.CoreV1().Secrets("quaymaster"), "c")
			own, err := certificate.NewOwn(certificate.OwnConfig{Store: store, Where: "Secret", Names: []string{"quaymaster.quaymaster.svc"}, Log: config.Log})
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
			config.Certificates, config.Metrics, config.Readiness = own, written, status.NewReadiness(config.Log, func() {})
			config.Settings = Settings{Namespace: "quaymaster", Service: "quaymaster", Owner: "quaymaster"}
			config.Documents, config.Mirrors = active{policies}, func() *mirror.Set { return mirrors }
			kept := &Controller{config: config}
			changed := make(chan struct{}, 1)
			reconciler, err := (&source{Config: config, reconciled: &kept.reconciled}).reconciler(changed)
			if err != nil {
				t.Fatal(err)
			}
			if !kept.Reconciled().IsZero() {
				t.Error("kept before it was")
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go reconciler.Run(ctx)
			if watched {
				go config.watch(ctx, func() {
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
			if got := slices.Contains(written.all(), "validating missing"); got != watched || kept.Reconciled().IsZero() {
				t.Errorf("watched %t: written were %q, and kept at %s", watched, written.all(), kept.Reconciled())
			}
			if since := time.Since(kept.Reconciled()); since < 0 || since > time.Minute {
				t.Errorf("kept %s ago", since)
			}
			stop()
			synctest.Wait()
		})
	}
}

// active are policies that do not change.
type active struct{ set *set.Set }

func (a active) Active() *set.Set          { return a.set }
func (active) Sequence() int64             { return 1 }
func (active) WriteStatus(context.Context) {}

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

// after waits on the bubble's clock, until all others wait.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
