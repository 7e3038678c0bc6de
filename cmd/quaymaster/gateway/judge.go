package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

// newTrust opens the trust store. It fetches nothing.
func newTrust(c config.Trust, secrets trust.Secrets) (*trust.Store, error) {
	options := trust.Options{Secrets: secrets, KMS: kms.Providers{}, Retired: c.Retired()}
	if c.TrustedRoot != "" {
		text, err := os.ReadFile(c.TrustedRoot)
		if err != nil {
			return nil, fmt.Errorf("trust.trustedRoot: %w", err)
		}
		options.TrustedRoot = text
	}
	if c.Refresh {
		options.TUF = &trust.TUF{
			Client: &http.Client{Timeout: 30 * time.Second, Transport: engine.GuardedTransport()}, CachePath: c.CacheFolder,
		}
	}
	store, err := trust.New(options)
	if err != nil {
		return nil, err
	}
	if err := store.Snapshot().Check(); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	return store, nil
}

// trusted keeps the state's prover bound to the newest root.
type trusted struct {
	store *trust.Store
	state *gate.Current
	log   *slog.Logger
	bound chan struct{} // closed once there is a prover
}

func newTrusted(store *trust.Store, state *gate.Current, log *slog.Logger) *trusted {
	return &trusted{store: store, state: state, log: log, bound: make(chan struct{})}
}

// Ready returns a channel that is closed once there is a prover.
func (t *trusted) Ready() <-chan struct{} { return t.bound }

// age is the age of the trust material.
func (t *trusted) age() time.Duration { return time.Since(t.store.Status().Loaded) }

// ends returns the latest end of each part of the trusted root.
func (t *trusted) ends() map[string]time.Time {
	parts, err := t.store.Snapshot().Ends()
	if err != nil {
		return nil // it was parsed before
	}
	ends := make(map[string]time.Time, len(parts))
	for part, end := range parts {
		ends[string(part)] = end
	}
	return ends
}

// staleKeys is the number of keys with a failed look-up.
func (t *trusted) staleKeys() int { return len(t.store.Status().Stale) }

func (t *trusted) bind(snapshot *trust.Snapshot) error {
	prover, err := engine.NewProver(snapshot)
	if err != nil {
		return err
	}
	t.state.ReplaceProver(prover)
	return nil
}

// follow binds the prover, and again after each change of the root, until ctx ends.
func (t *trusted) follow(ctx context.Context) error {
	used := t.store.Snapshot()
	if err := t.bind(used); err != nil {
		return err
	}
	close(t.bound)
	ticker := time.NewTicker(trustInterval)
	defer ticker.Stop()
	for failed := used; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := t.store.Snapshot()
		if now == used || now == failed {
			continue
		}
		if err := t.bind(now); err != nil {
			failed = now
			t.log.Error("the new trusted root is not used", slog.String("error", err.Error()))
			continue
		}
		used = now
		t.log.Info("a new trusted root is used", slog.String("generation", now.Generation()))
	}
}

// trustInterval bounds the delay before a refreshed root is used.
const trustInterval = time.Second

// newKeychain selects the credentials for registries.
func newKeychain(c config.Registries, client *registry.Client, around surroundings, key []byte) (*keychain.Keychain, error) {
	providers := map[string]registry.Source{}
	for _, name := range engine.Providers() {
		source, err := engine.Provider(name)
		if err != nil {
			return nil, err
		}
		providers[name] = source
	}
	return keychain.New(keychain.Config{
		Registry: client, Secrets: around.credentials, Accounts: around.accounts,
		Gateway: c.PullSecrets, Providers: providers, Cloud: c.Providers, Key: key,
	})
}

// newChooser makes the chooser among the targets of mirrors.
func newChooser(c config.Ages, health redirect.Health) (*redirect.Chooser, error) {
	return redirect.New(redirect.WithHealth(health), redirect.WithAges(time.Duration(c.Mirror), time.Duration(c.Tag), time.Duration(c.None)))
}

// newGate makes the engine.
func newGate(c config.Configuration, opened gate.Registries, state gate.State, more ...gate.Option) (*gate.Gate, error) {
	return gate.New(gate.Config{Registries: opened, State: state}, append([]gate.Option{
		gate.WithConcurrency(c.Limits.Images),
		gate.WithAges(gate.Ages{Tag: time.Duration(c.Ages.Tag), Fact: time.Duration(c.Ages.Fact), None: time.Duration(c.Ages.None)}),
	}, more...)...)
}
