package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quaymaster/quaymaster/cluster/typed"
	"github.com/quaymaster/quaymaster/internal/fairqueue"
)

const (
	// DefaultTTL is the cache lifetime of Secrets and service accounts.
	DefaultTTL = 30 * time.Second
	// DefaultConfigMapTTL is the cache lifetime of ConfigMaps.
	DefaultConfigMapTTL = 10 * time.Second
	// maxSecrets and maxConfigMaps bound the caches, in bytes; one object has 1 MiB at most.
	// maxAccounts is the bound for service accounts, of which only names are stored.
	maxSecrets    = 4 << 20
	maxConfigMaps = 4 << 20
	maxAccounts   = 2 << 20
)

// LookupOptions are the dependencies of Lookups.
type LookupOptions struct {
	// Client is required.
	Client typed.Interface
	// Credentials is the client for Held, with at most CredentialQPS requests a second for
	// objects that workloads name, so that Client's limit remains for trust material; nil means
	// Client.
	Credentials typed.Interface
	// TTL and ConfigMapTTL are cache lifetimes; 0 means the defaults, and negative values are an
	// error.
	TTL, ConfigMapTTL time.Duration
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Lookups reads single objects, each cached for seconds. Errors are *Error. It is safe for
// concurrent use. Create one with NewLookups.
type Lookups struct {
	secrets    *lookup[*core.Secret]
	configMaps *lookup[map[string]any]
	// These are for Held.
	credentials *lookup[*core.Secret]
	accounts    *lookup[[]string]
}

// NewLookups creates Lookups, and returns an error for invalid options.
func NewLookups(o LookupOptions) (*Lookups, error) {
	if o.Client == nil || o.TTL < 0 || o.ConfigMapTTL < 0 {
		return nil, errors.New("look-ups: Client is required, and the TTLs must not be below 0")
	}
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.ConfigMapTTL == 0 {
		o.ConfigMapTTL = DefaultConfigMapTTL
	}
	if o.Credentials == nil {
		o.Credentials = o.Client
	}
	places, err := fairqueue.New(fairqueue.Bounds{Total: maxAsking})
	if err != nil {
		return nil, fmt.Errorf("look-ups: %w", err)
	}
	trusted, named := reader{o.Client}, reader{o.Credentials}
	var l Lookups
	var errs [4]error
	l.secrets, errs[0] = newLookup("secret", limits{ttl: o.TTL, cost: maxSecrets, now: o.Now}, trusted.secret)
	l.configMaps, errs[1] = newLookup("configmap", limits{ttl: o.ConfigMapTTL, cost: maxConfigMaps, now: o.Now}, trusted.configMap)
	l.credentials, errs[2] = newLookup("secret", limits{ttl: o.TTL, hold: maxHold, cost: maxSecrets, now: o.Now, places: places}, named.secret)
	l.accounts, errs[3] = newLookup("serviceaccount", limits{ttl: o.TTL, hold: maxHold, cost: maxAccounts, now: o.Now, places: places}, named.account)
	return &l, errors.Join(errs[:]...)
}

// Close stops the goroutines that evict expired entries.
func (l *Lookups) Close() {
	l.secrets.close()
	l.configMaps.close()
	l.credentials.close()
	l.accounts.close()
}

// Secret returns the type and the entries of a Secret, which must not be modified. The caller
// checks the type.
func (l *Lookups) Secret(ctx context.Context, namespace, name string) (kind string, data map[string][]byte, err error) {
	s, err := l.secrets.get(ctx, namespace, name)
	if err != nil {
		return "", nil, err
	}
	return string(s.Type), s.Data, nil
}

// ConfigMap returns a ConfigMap as JSON, which the caller owns.
func (l *Lookups) ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error) {
	m, err := l.configMaps.get(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSON(m), nil
}

// PullSecrets returns the names of the imagePullSecrets of a service account, in its order; they
// are Secrets of its namespace. The list must not be modified.
func (l *Lookups) PullSecrets(ctx context.Context, namespace, serviceAccount string) ([]string, error) {
	return l.accounts.get(ctx, namespace, serviceAccount)
}

// Held is Lookups for credentials. While the API server does not respond, it returns the last
// state of a Secret or a service account for up to 10 minutes. Known images can therefore start.
// It respects a response at once. Trust does not depend on it: content that is fetched with a
// credential is verified like any other.
type Held struct{ *Lookups }

// Secret is Secret of Lookups, with stale entries.
func (h Held) Secret(ctx context.Context, namespace, name string) (kind string, data map[string][]byte, err error) {
	s, err := h.credentials.held(ctx, namespace, name)
	if err != nil {
		return "", nil, err
	}
	return string(s.Type), s.Data, nil
}

// PullSecrets is PullSecrets of Lookups, with stale entries.
func (h Held) PullSecrets(ctx context.Context, namespace, serviceAccount string) ([]string, error) {
	return h.accounts.held(ctx, namespace, serviceAccount)
}

// Served counts the stale Secrets and service accounts that were returned because the API server
// did not respond.
func (h Held) Served() uint64 { return h.credentials.served.Load() + h.accounts.served.Load() }

// Keys is Lookups for trust material: one entry of a Secret.
type Keys struct{ *Lookups }

// Secret returns the bytes under key of the Secret namespace/name. A Secret
// without that entry is ErrNotFound.
func (k Keys) Secret(ctx context.Context, namespace, name, key string) ([]byte, error) {
	s, err := k.secrets.get(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	value, ok := s.Data[key]
	if !ok {
		return nil, &Error{Kind: fmt.Sprintf("entry %q of secret", key), Namespace: namespace, Name: name, Reason: ErrNotFound}
	}
	return bytes.Clone(value), nil
}

// PullSecrets is Lookups for the existence of Secrets.
type PullSecrets struct{ *Lookups }

// Has reports whether a Secret exists. An existing one is cached as in Lookups. A missing one is
// cached for at most 5 s, because a Secret may be created together with its Pods. While the API
// server does not respond, the last state is used (Held). An error is an *Error: the lookup is
// forbidden or failed.
func (p PullSecrets) Has(ctx context.Context, namespace, name string) (bool, error) {
	_, err := p.credentials.held(ctx, namespace, name)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// reader sends the requests to the API server.
type reader struct{ client typed.Interface }

func (r reader) secret(ctx context.Context, namespace, name string) (*core.Secret, int, error) {
	s, err := r.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	cost := 0
	for key, value := range s.Data {
		cost += len(key) + len(value)
	}
	return &core.Secret{Type: s.Type, Data: s.Data}, cost, nil
}

func (r reader) configMap(ctx context.Context, namespace, name string) (map[string]any, int, error) {
	m, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	m.ManagedFields = nil
	cost := m.Size()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, 0, err
	}
	object["apiVersion"], object["kind"] = "v1", "ConfigMap"
	return object, cost, nil
}

func (r reader) account(ctx context.Context, namespace, name string) ([]string, int, error) {
	a, err := r.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	names, cost := []string{}, 0
	for _, s := range a.ImagePullSecrets {
		names = append(names, s.Name)
		cost += len(s.Name)
	}
	return names, cost, nil
}
