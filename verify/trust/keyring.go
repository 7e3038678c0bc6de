package trust

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/verify"
)

// Secrets looks up an entry of a Kubernetes Secret.
type Secrets interface {
	// Secret returns the bytes under key of the Secret namespace/name.
	Secret(ctx context.Context, namespace, name, key string) ([]byte, error)
}

// KMS looks up the public half of a key in a key management service.
type KMS interface {
	// PublicKey returns the key behind an awskms://, azurekms://, gcpkms:// or
	// hashivault:// URI.
	PublicKey(ctx context.Context, uri string) (crypto.PublicKey, error)
}

// secretEntry is the entry of a Secret that holds a public key, as cosign
// writes it (cosign generate-key-pair k8s://namespace/name).
const secretEntry = "cosign.pub"

const secretScheme = "k8s://"

// keyring caches looked-up keys. A key older than the interval is still returned at once, while a
// background look-up renews it. A key without renewal for keyHold intervals is looked up within
// the request.
type keyring struct {
	secrets  Secrets
	kms      KMS
	retired  retired
	interval time.Duration
	// identities are bounded in time, like retired keys.
	identities []verify.RetiredIdentity
	now        func() time.Time

	flight singleflight.Group
	mu     sync.Mutex
	known  map[string]knownKey
	parsed map[string][]byte // checked inline keys by their text
}

type knownKey struct {
	pem     []byte
	fetched time.Time // last successful look-up
	tried   time.Time // last look-up
	err     error     // of the last look-up
}

func (k *keyring) get(ctx context.Context, ref string) ([]byte, error) {
	if !IsLookup(ref) {
		return k.inline(ref)
	}
	k.mu.Lock()
	have, ok := k.known[ref]
	k.mu.Unlock()
	now := k.now()
	if ok && now.Sub(have.fetched) < keyHold*k.interval {
		if now.Sub(have.tried) >= k.interval {
			k.renew(ctx, ref) // in the background
		}
		return have.pem, nil
	}
	select {
	case result := <-k.renew(ctx, ref):
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.([]byte), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("look up key %s: %w", ref, context.Cause(ctx))
	}
}

// inline checks a key from the policy itself, once.
func (k *keyring) inline(ref string) ([]byte, error) {
	k.mu.Lock()
	pem, ok := k.parsed[ref]
	k.mu.Unlock()
	if ok {
		return pem, nil
	}
	pem, err := parseInline(ref)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.parsed == nil || len(k.parsed) >= maxKeys {
		k.parsed = map[string][]byte{} // checking again is cheap
	}
	k.parsed[ref] = pem
	return pem, nil
}

func parseInline(ref string) ([]byte, error) {
	if !strings.Contains(ref, "-----BEGIN") {
		return nil, fmt.Errorf("want a key in PEM, or a reference to one: %w", CheckReference(ref))
	}
	key, err := ParsePublicKey([]byte(ref), "")
	if err != nil {
		return nil, err
	}
	return key.PEM, nil
}

// renew looks a key up, once for all concurrent callers, with a deadline of its own.
func (k *keyring) renew(ctx context.Context, ref string) <-chan singleflight.Result {
	return k.flight.DoChan(ref, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
		defer cancel()
		pem, err := k.lookUp(ctx, ref)
		k.remember(ref, pem, err)
		if err != nil {
			return nil, err
		}
		return pem, nil
	})
}

func (k *keyring) remember(ref string, pem []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	entry, ok := k.known[ref]
	entry.tried, entry.err = k.now(), err
	if err == nil {
		entry.pem, entry.fetched = pem, entry.tried
	} else if !ok {
		return // errors are not cached
	}
	if !ok && len(k.known) >= maxKeys {
		clear(k.known)
	}
	k.known[ref] = entry
}

func (k *keyring) lookUp(ctx context.Context, ref string) ([]byte, error) {
	if strings.HasPrefix(ref, secretScheme) {
		return k.secret(ctx, ref)
	}
	if k.kms == nil {
		return nil, fmt.Errorf("look up key %s: no key management service is configured here", ref)
	}
	public, err := k.kms.PublicKey(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("look up key %s: %w", ref, err)
	}
	key, err := NewPublicKey(public, "")
	if err != nil {
		return nil, fmt.Errorf("look up key %s: %w", ref, err)
	}
	return key.PEM, nil
}

func (k *keyring) secret(ctx context.Context, ref string) ([]byte, error) {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(ref, secretScheme), "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("key %s: want k8s://namespace/name", ref)
	}
	if k.secrets == nil {
		return nil, fmt.Errorf("look up key %s: there is no cluster to ask; give the key itself", ref)
	}
	text, err := k.secrets.Secret(ctx, namespace, name, secretEntry)
	if err != nil {
		return nil, fmt.Errorf("look up key %s: %w", ref, err)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("look up key %s: the Secret has no entry %s", ref, secretEntry)
	}
	key, err := ParsePublicKey(text, "")
	if err != nil {
		return nil, fmt.Errorf("look up key %s, entry %s: %w", ref, secretEntry, err)
	}
	return key.PEM, nil
}

// stale lists the errors of look-ups that failed while an older key is still used.
func (k *keyring) stale() []error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for ref, entry := range k.known {
		if entry.err != nil {
			errs = append(errs, fmt.Errorf("key %s is of %s and could not be renewed: %w", ref, entry.fetched.UTC().Format(time.RFC3339), entry.err))
		}
	}
	return errs
}

func shorten(s string) string {
	const most = 80
	return limit.Text(s, most)
}

var errOffline = errors.New("refreshing the trusted root is switched off")
