package rollout

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
	"github.com/quaymaster/quaymaster/policy/rollout"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

const (
	// approvalSecret contains the approvals: a Secret, since the gateway may create Secrets anyway.
	approvalSecret = "quaymaster-guard"
	approvalEntry  = "policies"
	// approvalWait is how long a start waits for the approvals from the API server. After that
	// every policy is in force, and the guard starts when the approvals are loaded.
	approvalWait  = 10 * time.Second
	approvalRetry = time.Second
	// approvalTimeout bounds one request.
	approvalTimeout = 5 * time.Second
)

var (
	// errNone means that no policy was ever approved.
	errNone = errors.New("there are no approvals")
	// errDamaged means that the approvals are invalid. The leader replaces them: otherwise no policy
	// would be approved until they are deleted manually.
	errDamaged = errors.New("the leader replaces it")
)

// Store keeps the approvals in a Secret of the cluster.
type Store struct{ secrets typed.SecretInterface }

// NewStore makes a store among the Secrets of the gateway's own namespace.
func NewStore(secrets typed.SecretInterface) Store { return Store{secrets} }

// load returns the approvals and their version; errNone where there are none, and errDamaged with
// the version of invalid ones.
func (s Store) load(ctx context.Context) (*rollout.Approvals, string, error) {
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	secret, err := s.secrets.Get(ctx, approvalSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", errNone
	}
	if err != nil {
		return nil, "", fmt.Errorf("secret %s: %w", approvalSecret, err)
	}
	approvals, err := rollout.Decode(secret.Data[approvalEntry])
	if err != nil && !errors.Is(err, rollout.ErrVersion) {
		return nil, secret.ResourceVersion, fmt.Errorf("secret %s: %w: %w", approvalSecret, errDamaged, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("secret %s: %w", approvalSecret, err)
	}
	return approvals, secret.ResourceVersion, nil
}

// save writes the approvals over a version; an empty version means that there is none.
func (s Store) save(ctx context.Context, approvals *rollout.Approvals, version string) error {
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	text, err := approvals.Encode()
	if err != nil {
		return err
	}
	secret := &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: approvalSecret, ResourceVersion: version, Labels: map[string]string{configuration.ManagedBy: configuration.Name}},
		Data:       map[string][]byte{approvalEntry: text},
	}
	if version == "" {
		_, err = s.secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("secret %s: %w", approvalSecret, err)
	}
	return nil
}

// Source is the source that policies await until the approvals are loaded.
const Source = "guard"

// Approvals is the component that follows the stored approvals. It also delays the first policies
// until they are loaded.
type Approvals struct{ config Config }

// NewApprovals makes an Approvals.
func NewApprovals(c Config) *Approvals { return &Approvals{config: c} }

// Ready implements gateway.Component: the policies wait for it themselves.
func (*Approvals) Ready() <-chan struct{} { return nil }

// NeedLeaderElection implements gateway.Component.
func (*Approvals) NeedLeaderElection() bool { return false }

// Run reads the approvals after each change until ctx ends.
func (a *Approvals) Run(ctx context.Context) error {
	c := a.config
	if !c.firstApprovals(ctx) {
		return nil
	}
	gateway.WatchObject(ctx, c.Approvals.secrets, approvalSecret, c.Log, func() {
		approvals, _, err := c.Approvals.load(ctx)
		switch {
		case errors.Is(err, errNone): // the loaded approvals stay valid
		case err != nil:
			c.failed("rollout approvals cannot be read; the loaded ones stay in use", err)
		case !approvals.Equal(c.Effective.approvals.Load()):
			c.approve("", approvals)
		}
	})
	return nil
}

// firstApprovals reads the approvals for the first time. Without any every policy is in force, so
// that a missing Secret weakens nothing. It returns false when ctx ends.
func (c Config) firstApprovals(ctx context.Context) bool {
	began := time.Now()
	for {
		approvals, _, err := c.Approvals.load(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err == nil || errors.Is(err, errNone) {
			c.approve(Source, approvals)
			return true
		}
		if lasting := apierrors.IsForbidden(err) || errors.Is(err, rollout.ErrVersion); lasting || time.Since(began) > approvalWait {
			c.Log.Error("rollout approvals cannot be read: every policy is active in its current version, without a rollout check", slog.String("error", err.Error()))
			c.approve(Source, nil)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(approvalRetry):
		}
	}
}
