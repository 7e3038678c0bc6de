package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quaymaster/quaymaster/policy/held"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

const (
	// guardSecret holds the ledger: a Secret, since the gateway may make those anyhow.
	guardSecret = "quaymaster-guard"
	guardEntry  = "policies"
	// ledgerPatience is how long a start waits for an API server that does not say what
	// was approved; then every policy is in force, and the guard begins when it is known.
	ledgerPatience = 10 * time.Second
	ledgerPause    = time.Second
	// ledgerTimeout bounds one request.
	ledgerTimeout = 5 * time.Second
)

var (
	// errNoLedger says that nothing was ever approved.
	errNoLedger = errors.New("there is no ledger")
	// errDamaged says that what is there is none. The leader writes it anew, as if there
	// were nothing: else no policy would be approved until somebody deletes it.
	errDamaged = errors.New("it is made anew")
)

// ledgerStore keeps the ledger in the cluster.
type ledgerStore struct{ secrets typed.SecretInterface }

// load returns the ledger and its version; errNoLedger where there is none, and errDamaged
// with the version of what is there in its place.
func (s ledgerStore) load(ctx context.Context) (*held.Ledger, string, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	secret, err := s.secrets.Get(ctx, guardSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", errNoLedger
	}
	if err != nil {
		return nil, "", fmt.Errorf("Secret %s: %w", guardSecret, err)
	}
	ledger, err := held.Decode(secret.Data[guardEntry])
	if err != nil && !errors.Is(err, held.ErrVersion) {
		return nil, secret.ResourceVersion, fmt.Errorf("Secret %s: %w: %w", guardSecret, errDamaged, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("Secret %s: %w", guardSecret, err)
	}
	return ledger, secret.ResourceVersion, nil
}

// save writes the ledger over that of a version; an empty one means that there is none.
func (s ledgerStore) save(ctx context.Context, ledger *held.Ledger, version string) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	text, err := ledger.Encode()
	if err != nil {
		return err
	}
	secret := &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: guardSecret, ResourceVersion: version, Labels: map[string]string{configuration.ManagedBy: configuration.Name}},
		Data:       map[string][]byte{guardEntry: text},
	}
	if version == "" {
		_, err = s.secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("Secret %s: %w", guardSecret, err)
	}
	return nil
}

func (g *gateway) ledgers() ledgerStore {
	return ledgerStore{g.cluster.client.Typed.CoreV1().Secrets(g.configuration.Namespace)}
}

// guardPolicies has policies wait until it is known what was approved of them.
func (g *gateway) guardPolicies() {
	if g.cluster == nil || !g.configuration.guards() {
		return
	}
	g.policies.await(fromGuard)
	g.tasks = append(g.tasks, forever("guard", g.followLedger))
}

// followLedger reads the ledger, again whenever it changes, until ctx ends.
func (g *gateway) followLedger(ctx context.Context) {
	if !g.firstLedger(ctx) {
		return
	}
	g.watchOne(ctx, g.cluster.client.Typed.CoreV1().Secrets(g.configuration.Namespace), guardSecret, func() {
		ledger, _, err := g.ledgers().load(ctx)
		switch {
		case errors.Is(err, errNoLedger): // what is known stays so
		case err != nil:
			g.failed("what the guard approved cannot be read; what was known stays so")(err)
		case !ledger.Equal(g.policies.inForce.ledger.Load()):
			g.policies.approve("", ledger)
		}
	})
}

// firstLedger reads it for the first time. Without one every policy is in force: nothing
// is weakened because nobody knows. It returns false when ctx ends.
func (g *gateway) firstLedger(ctx context.Context) bool {
	began := time.Now()
	for {
		ledger, _, err := g.ledgers().load(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err == nil || errors.Is(err, errNoLedger) {
			g.policies.approve(fromGuard, ledger)
			return true
		}
		if lasting := apierrors.IsForbidden(err) || errors.Is(err, held.ErrVersion); lasting || time.Since(began) > ledgerPatience {
			g.log.Error("what the guard approved cannot be read: every policy is in force as it is written, untried", slog.String("error", err.Error()))
			g.policies.approve(fromGuard, nil)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(ledgerPause):
		}
	}
}
