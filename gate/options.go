package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/policy"
)

type options struct {
	images  int            // images evaluated at once, per request
	timeout time.Duration  // for one request
	age     time.Duration  // greatest age of a fact
	noneAge time.Duration  // age of "none found"
	tagAge  time.Duration  // age of a tag's digest
	stale   *time.Duration // greatest age of both where a registry does not answer; nil: none is kept
	now     func() time.Time

	observer Observer     // nil: no notifications
	peers    claims.Peers // nil: no peer requests
	store    claims.Store // nil: there is none
	chooser  *redirect.Chooser
	secrets  PullSecrets // nil: no Secret is added to pods
}

// Option changes a default of a Gate.
type Option func(*options) error

// WithConcurrency bounds how many images of a request are evaluated at once; 16
// unless set.
func WithConcurrency(images int) Option {
	return func(o *options) error {
		if images < 1 {
			return fmt.Errorf("concurrency %d: want at least 1", images)
		}
		o.images = images
		return nil
	}
}

// WithTimeout bounds a request as a whole; 30 s unless set. Images not verified by then
// are errors.
func WithTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("timeout %s must be positive", d)
		}
		o.timeout = d
		return nil
	}
}

// Ages sets how long the gate caches results; zero fields keep their defaults.
type Ages struct {
	// Fact is the greatest age of a verified claim: 1 h.
	Fact time.Duration
	// None is the age of "no evidence found": 10 s.
	None time.Duration
	// Tag is the age of the digest behind a tag: 10 s.
	Tag time.Duration
}

// WithAges changes how long the gate caches results.
func WithAges(ages Ages) Option {
	return func(o *options) error {
		for _, set := range []struct {
			to   *time.Duration
			from time.Duration
		}{{&o.age, ages.Fact}, {&o.noneAge, ages.None}, {&o.tagAge, ages.Tag}} {
			if set.from < 0 {
				return fmt.Errorf("age %s must not be negative", set.from)
			}
			if set.from > 0 {
				*set.to = set.from
			}
		}
		return nil
	}
}

// WithClock replaces the clock: for tests, and to evaluate as of a later time.
func WithClock(now func() time.Time) Option {
	return func(o *options) error {
		o.now = now
		return nil
	}
}

// WithStale lets verified results be used beyond their age where a registry does not
// answer: the last digest verified for a tag, with the same credentials, and the facts of
// a digest. Age is the maximum, unless a policy sets its own (policy.StaleIfError): from
// zero to policy.MaxStale. A stale entry only allows and never denies. A registry's
// answer, whatever it is, overrides stale entries. Without this option none are kept.
func WithStale(age time.Duration) Option {
	return func(o *options) error {
		if age < 0 || age > policy.MaxStale {
			return fmt.Errorf("stale %s: want from nothing to %s", age, policy.MaxStale)
		}
		o.stale = &age
		return nil
	}
}

// keptFor is how long a fact is kept at most for when a registry does not answer.
func (o *options) keptFor() time.Duration {
	if o.stale != nil {
		return policy.MaxStale
	}
	return 0
}

// PullSecrets looks up Secrets of the cluster.
type PullSecrets interface {
	// Has reports whether a Secret exists. An error means that the lookup failed.
	Has(ctx context.Context, namespace, name string) (bool, error)
}

// WithMirrors redirects images as the snapshot's mirrors say; without it, mirrors
// only add the names that an image is judged by. With secrets, pods are given the
// pull secrets of mirrors that exist in their namespace; nil gives none.
func WithMirrors(chooser *redirect.Chooser, secrets PullSecrets) Option {
	return func(o *options) error {
		if chooser == nil {
			return errors.New("mirrors: want a chooser")
		}
		o.chooser, o.secrets = chooser, secrets
		return nil
	}
}

// WithObserver sets the observer of evaluations; none unless set.
func WithObserver(observer Observer) Option {
	return func(o *options) error {
		o.observer = observer
		return nil
	}
}

// WithPeers asks other replicas for facts that are not cached, before the registry is
// asked for evidence. Peers never answer for "none found" or for tags: only the registry
// can report absence or resolve a tag.
func WithPeers(peers claims.Peers) Option {
	return func(o *options) error {
		o.peers = peers
		return nil
	}
}

// WithStore asks a shared store for facts that are not cached, before peers and the
// registry are asked, and stores the facts verified here. It never holds "none found" or
// tags.
func WithStore(store claims.Store) Option {
	return func(o *options) error {
		if store == nil {
			return errors.New("store: want one")
		}
		o.store = store
		return nil
	}
}
