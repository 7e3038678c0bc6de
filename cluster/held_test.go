package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster"
)

// TestHeld: while the API server does not answer, only credentials are served from the
// cache, for a limited time. Any answer of the server applies at once.
func TestHeld(t *testing.T) {
	silent := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	says := func(err error) func(context.Context) error {
		return func(context.Context) error { return err }
	}
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, row := range []struct {
		reason string
		server func(context.Context) error
		after  time.Duration
		want   error         // of a lookup that may serve held entries
		waits  time.Duration // of each look-up, at most
	}{
		{"still remembered", silent, 29 * time.Second, nil, 0},
		{"silent after that", silent, 31 * time.Second, nil, 500 * time.Millisecond},
		{"away", says(errors.New("connection refused")), 31 * time.Second, nil, 0},
		{"overloaded", says(apierrors.NewTooManyRequestsError("later")), 31 * time.Second, nil, 0},
		{"just before the end", silent, 10*time.Minute - 2*time.Second, nil, 500 * time.Millisecond},
		{"broken", says(apierrors.NewInternalError(errors.New("etcd"))), 31 * time.Second, nil, 0},
		{"an unknown client", says(apierrors.NewUnauthorized("no")), 31 * time.Second, cluster.ErrUnavailable, 0},
		{"a malformed request", says(apierrors.NewBadRequest("no")), 31 * time.Second, cluster.ErrUnavailable, 0},
		{"too long", says(errors.New("connection refused")), 10 * time.Minute, cluster.ErrUnavailable, 0},
		{"deleted meanwhile", says(apierrors.NewNotFound(secrets, "x")), 31 * time.Second, cluster.ErrNotFound, 0},
		{"forbidden meanwhile", says(apierrors.NewForbidden(secrets, "x", errors.New("no"))), 31 * time.Second, cluster.ErrForbidden, 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &troubled{Interface: fake.NewClientset(objects()...)}
				l, err := cluster.NewLookups(cluster.LookupOptions{Client: client})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				defer time.Sleep(time.Minute) //nolint:forbidigo // the bubble's: for requests that continue after the caller left
				held := cluster.Held{Lookups: l}
				look := func(ctx context.Context) (secret, account error) {
					_, _, secret = held.Secret(ctx, "shop", "pull")
					_, account = held.PullSecrets(ctx, "shop", "web")
					return secret, account
				}
				if secret, account := look(t.Context()); secret != nil || account != nil {
					t.Fatal(secret, account)
				}
				client.trouble = row.server
				time.Sleep(row.after) //nolint:forbidigo // the clock of the bubble
				began := time.Now()
				secret, account := look(t.Context())
				if took := time.Since(began); took > 2*row.waits {
					t.Errorf("took %s, want at most %s for two", took, 2*row.waits)
				}
				if !errors.Is(secret, row.want) || !errors.Is(account, row.want) {
					t.Errorf("got %v and %v, want %v", secret, account, row.want)
				}
				began = time.Now()
				if secret, account := look(t.Context()); !errors.Is(secret, row.want) || !errors.Is(account, row.want) || time.Since(began) > 0 {
					t.Errorf("at once again: got %v and %v after %s, want %v without a wait", secret, account, time.Since(began), row.want)
				}
				if served := held.Served(); (served > 0) != (row.after > 30*time.Second && row.want == nil) {
					t.Errorf("%d look-ups are counted as served held", served)
				}
				if row.after < 30*time.Second || row.want != nil {
					return
				}
				if _, _, err := l.Secret(t.Context(), "shop", "pull"); !errors.Is(err, cluster.ErrUnavailable) {
					t.Errorf("a lookup without held entries: got %v, want ErrUnavailable", err)
				}
			})
		})
	}
}

// troubled is a client that returns errors for Secrets and service accounts. A reactor of
// the fake client holds a lock meanwhile.
type troubled struct {
	kubernetes.Interface
	trouble func(context.Context) error // nil for none
}

func (c *troubled) CoreV1() corev1.CoreV1Interface { return troubledCore{c.Interface.CoreV1(), c} }

type troubledCore struct {
	corev1.CoreV1Interface
	client *troubled
}

func (c troubledCore) Secrets(namespace string) corev1.SecretInterface {
	return troubledSecrets{c.CoreV1Interface.Secrets(namespace), c.client}
}

func (c troubledCore) ServiceAccounts(namespace string) corev1.ServiceAccountInterface {
	return troubledAccounts{c.CoreV1Interface.ServiceAccounts(namespace), c.client}
}

type troubledSecrets struct {
	corev1.SecretInterface
	client *troubled
}

func (s troubledSecrets) Get(ctx context.Context, name string, o metav1.GetOptions) (*core.Secret, error) {
	if s.client.trouble != nil {
		if err := s.client.trouble(ctx); err != nil {
			return nil, err
		}
	}
	return s.SecretInterface.Get(ctx, name, o)
}

type troubledAccounts struct {
	corev1.ServiceAccountInterface
	client *troubled
}

func (a troubledAccounts) Get(ctx context.Context, name string, o metav1.GetOptions) (*core.ServiceAccount, error) {
	if a.client.trouble != nil {
		if err := a.client.trouble(ctx); err != nil {
			return nil, err
		}
	}
	return a.ServiceAccountInterface.Get(ctx, name, o)
}

// TestHeldIsRenewed: an API server that answers again is asked again within seconds.
func TestHeldIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, away := fake.NewClientset(objects()...), true
		l, err := cluster.NewLookups(cluster.LookupOptions{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		held := cluster.Held{Lookups: l}
		password := func() string {
			t.Helper()
			_, data, err := held.Secret(t.Context(), "shop", "pull")
			if err != nil {
				t.Fatal(err)
			}
			return string(data[".dockerconfigjson"])
		}
		first := password()
		rotated := &core.Secret{Type: core.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{}}`)}}
		client.PrependReactor("get", "secrets", func(kubetesting.Action) (bool, runtime.Object, error) {
			if away {
				return true, nil, errors.New("connection refused")
			}
			return true, rotated, nil
		})
		time.Sleep(31 * time.Second) //nolint:forbidigo // the clock of the bubble
		if got := password(); got != first {
			t.Errorf("while the server does not answer: %s", got)
		}
		away = false
		time.Sleep(4 * time.Second) //nolint:forbidigo // the clock of the bubble
		if got := password(); got != first {
			t.Errorf("during the pause between requests: %s", got)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		if got := password(); got == first {
			t.Error("5 s later the old Secret is still used")
		}
	})
}

// TestHeldUsesLateAnswers: an answer that arrives at the moment in which the caller stops
// waiting is stored, and replaces the held entry.
func TestHeldUsesLateAnswers(t *testing.T) {
	for range 50 { // which of the two is first is chance
		synctest.Test(t, func(t *testing.T) {
			held := onceThere(t, after(500*time.Millisecond, gone))
			_, _, _ = held.Secret(t.Context(), "shop", "pull")
			synctest.Wait()
			if _, _, err := held.Secret(t.Context(), "shop", "pull"); !errors.Is(err, cluster.ErrNotFound) {
				t.Fatalf("got %v of a Secret that is gone", err)
			}
		})
	}
}

// onceThere are look-ups that know a Secret which has to be asked for again, from now on of an
// API server in trouble.
func onceThere(t *testing.T, trouble func(context.Context) error) cluster.Held {
	t.Helper()
	client := &troubled{Interface: fake.NewClientset(objects()...)}
	l, err := cluster.NewLookups(cluster.LookupOptions{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	held := cluster.Held{Lookups: l}
	if _, _, err := held.Secret(t.Context(), "shop", "pull"); err != nil {
		t.Fatal(err)
	}
	client.trouble = trouble
	time.Sleep(31 * time.Second) //nolint:forbidigo // the clock of the bubble
	return held
}

var gone = apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "pull")

// after has an API server take its time.
func after(wait time.Duration, err error) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(wait) //nolint:forbidigo // the clock of the bubble
		return err
	}
}

// TestALaterAnswerStays: a question that takes long does not bring back what a later one has
// found to be gone, nor for what trust hangs on.
func TestALaterAnswerStays(t *testing.T) {
	for _, row := range []struct {
		reason string
		look   func(context.Context, *cluster.Lookups) error
	}{
		{"credentials", func(ctx context.Context, l *cluster.Lookups) error {
			_, _, err := cluster.Held{Lookups: l}.Secret(ctx, "shop", "pull")
			return err
		}},
		{"trust", func(ctx context.Context, l *cluster.Lookups) error {
			_, err := cluster.Keys{Lookups: l}.Secret(ctx, "shop", "pull", ".dockerconfigjson")
			return err
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				client := &troubled{Interface: fake.NewClientset(objects()...)}
				client.trouble = func(ctx context.Context) error {
					if asked.Add(1) > 1 {
						return gone
					}
					return after(4900*time.Millisecond, nil)(ctx)
				}
				l, err := cluster.NewLookups(cluster.LookupOptions{Client: client})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				first := make(chan error, 1)
				go func() { first <- row.look(t.Context(), l) }()
				time.Sleep(3100 * time.Millisecond) //nolint:forbidigo // the clock of the bubble
				if err := row.look(t.Context(), l); !errors.Is(err, cluster.ErrNotFound) {
					t.Fatalf("the later question: %v", err)
				}
				if err := <-first; err != nil {
					t.Errorf("the earlier question: %v", err)
				}
				if err := row.look(t.Context(), l); !errors.Is(err, cluster.ErrNotFound) {
					t.Errorf("after the earlier one's answer: %v", err)
				}
			})
		})
	}
}

// TestHeldIsShared: a namespace that names many Secrets neither keeps others from theirs nor
// takes its own wait for a silence of the API server.
func TestHeldIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := onceThere(t, after(400*time.Millisecond, gone))
		ctx, cancel := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		for i := range 500 {
			crowd.Go(func() { _, _, _ = held.Secret(ctx, "shop", fmt.Sprint("missing-", i)) })
		}
		synctest.Wait()
		began := time.Now()
		if _, _, err := held.Secret(t.Context(), "office", "pull"); !errors.Is(err, cluster.ErrNotFound) || time.Since(began) > time.Second {
			t.Errorf("another namespace waited %s: %v", time.Since(began), err)
		}
		began = time.Now()
		if _, _, err := held.Secret(t.Context(), "shop", "pull"); !errors.Is(err, cluster.ErrNotFound) || time.Since(began) < 2*time.Second {
			t.Errorf("the crowd's own namespace after %s: %v, want that its Secret is gone", time.Since(began), err)
		}
		cancel()
		crowd.Wait()
	})
}
