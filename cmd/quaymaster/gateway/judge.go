package gateway

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/registry/keychain/provider"
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

// newKeychain selects the credentials for registries.
func newKeychain(c config.Registries, client *registry.Client, around lookups.Lookups, key []byte) (*keychain.Keychain, error) {
	providers := map[string]registry.Source{}
	for _, name := range provider.Names() {
		source, err := provider.Named(name, os.Getenv)
		if err != nil {
			return nil, err
		}
		providers[name] = source
	}
	return keychain.New(keychain.Config{
		Registry: client, Secrets: around.Credentials, Accounts: around.Accounts,
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

// proverOf makes the prover of a snapshot.
func proverOf(snapshot *trust.Snapshot) (gate.Prover, error) { return engine.NewProver(snapshot) }
