package gateway

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

// newTrust opens the trust store. It fetches nothing.
func newTrust(c config.Trust, secrets trust.Secrets) (*trust.Store, error) {
	options := trust.Options{Secrets: secrets, KMS: kms.Providers{}, Retired: c.Retired(), RetiredIdentities: c.Identities()}
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

// proverOf makes the prover of a snapshot.
func proverOf(snapshot *trust.Snapshot) (gate.Prover, error) { return engine.NewProver(snapshot) }
