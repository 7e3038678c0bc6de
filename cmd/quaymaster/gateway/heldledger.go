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

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy/held"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

const (
	// guardSecret contains the ledger: a Secret, since the gateway may create Secrets anyway.
	guardSecret = "quaymaster-guard"
	guardEntry  = "policies"
	// ledgerPatience is how long a start waits for the approvals from the API server. After that
	// every policy is in force, and the guard starts when the ledger is loaded.
	ledgerPatience = 10 * time.Second
	ledgerPause    = time.Second
	// ledgerTimeout bounds one request.
	ledgerTimeout = 5 * time.Second
)

var (
	// errNoLedger means that no policy was ever approved.
	errNoLedger = errors.New("there is no ledger")
	// errDamaged means that the ledger is invalid. The leader replaces it: otherwise no policy
	// would be approved until it is deleted manually.
	errDamaged = errors.New("it is made anew")
)

// ledgerStore keeps the ledger in the cluster.
type ledgerStore struct{ secrets typed.SecretInterface }

// load returns the ledger and its version; errNoLedger where there is none, and errDamaged with
// the version of an invalid one.
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

// save writes the ledger over a version; an empty version means that there is none.
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

func (g *assembly) ledgers() ledgerStore {
	return ledgerStore{g.cluster.client.Typed.CoreV1().Secrets(g.configuration.Namespace)}
}

// guardPolicies makes policies wait until their approvals are loaded.
func (g *assembly) guardPolicies() {
	if g.cluster == nil || !g.configuration.Guards() {
		return
	}
	g.policies.await(fromGuard)
	g.group.Add("guard", gateway.Loop(g.followLedger))
}

// followLedger reads the ledger after each change until ctx ends.
func (g *assembly) followLedger(ctx context.Context) {
	if !g.firstLedger(ctx) {
		return
	}
	gateway.WatchObject(ctx, g.cluster.client.Typed.CoreV1().Secrets(g.configuration.Namespace), guardSecret, g.log, func() {
		ledger, _, err := g.ledgers().load(ctx)
		switch {
		case errors.Is(err, errNoLedger): // the loaded approvals stay valid
		case err != nil:
			g.failed("what the guard approved cannot be read; what was known stays so")(err)
		case !ledger.Equal(g.policies.inForce.ledger.Load()):
			g.policies.approve("", ledger)
		}
	})
}

// firstLedger reads the ledger for the first time. Without one every policy is in force, so that
// a missing ledger weakens nothing. It returns false when ctx ends.
func (g *assembly) firstLedger(ctx context.Context) bool {
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
