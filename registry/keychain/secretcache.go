package keychain

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/registry"
)

// secretCache caches parsed Secrets: parsing one costs more than all the rest, and it seldom
// changes. An entry is valid only for the very bytes it was parsed from.
type secretCache struct {
	secrets Secrets
	key     []byte // of scopes
	pages   *cache.Cache[secretName, *page]
}

type secretName struct{ namespace, name string }

// page is one Secret as it was read.
type page struct {
	kind    string
	content []byte
	file    *File
	err     error // why it is of no use

	mu    sync.Mutex
	hosts map[string]*bound // nil values for hosts that it has nothing for
}

// bound holds the entries of one Secret for one host. Sessions that are bound to equal
// entries have the same access to that host.
type bound struct {
	entries []entry
	scope   string
}

func newSecretCache(secrets Secrets, key []byte) (*secretCache, error) {
	pages, err := cache.New(cache.Options[secretName, *page]{
		MaxCost: maxPages, MaxTTL: pageAge,
		Cost: func(_ secretName, p *page) int { return 1<<10 + 2*len(p.content) },
	})
	if err != nil {
		return nil, fmt.Errorf("new keychain: %w", err)
	}
	return &secretCache{secrets: secrets, key: key, pages: pages}, nil
}

// read returns the current Secret. The error is that of the lookup; an unusable Secret is
// a page with an error.
func (b *secretCache) read(ctx context.Context, name secretName) (*page, error) {
	kind, data, err := b.secrets.Secret(ctx, name.namespace, name.name)
	if err != nil {
		return nil, err
	}
	content, unusable := contentOf(kind, data)
	if unusable != nil {
		return &page{kind: kind, err: unusable}, nil //nolint:nilerr // it was looked up, and is of no use
	}
	if known, ok := b.pages.Get(name); ok && known.kind == kind && bytes.Equal(known.content, content) {
		return known, nil
	}
	fresh := &page{kind: kind, content: content, hosts: map[string]*bound{}}
	fresh.file, fresh.err = parseContent(kind, content)
	b.pages.Put(name, fresh, pageAge)
	return fresh, nil
}

// forHost returns the page's entries for a host, or nil.
func (b *secretCache) forHost(p *page, host string) *bound {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.hosts[host]; ok {
		return known
	}
	var found *bound
	if entries := p.file.forHost(host); len(entries) > 0 {
		found = &bound{entries: entries, scope: b.scopeOf(entries)}
	}
	if len(p.hosts) >= maxHosts {
		clear(p.hosts)
	}
	p.hosts[host] = found
	return found
}

// scopeOf identifies credentials and their use. It is a keyed hash, so that passwords
// cannot be guessed from it.
func (b *secretCache) scopeOf(entries []entry) string {
	parts := []string{"secret"}
	for _, e := range entries {
		parts = append(parts, e.host, e.prefix, e.auth.Username, e.auth.Password, e.auth.IdentityToken, e.auth.RegistryToken)
	}
	return b.hash(parts...)
}

// hash is the HMAC-SHA-256 of a list, each part behind its length, cut to 128
// bits.
func (b *secretCache) hash(parts ...string) string {
	mac := hmac.New(sha256.New, b.key)
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		mac.Write(size[:])
		mac.Write([]byte(part))
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// candidates implements list.
func (b *bound) candidates(_ context.Context, repository, host string) ([]entry, error) {
	var mine []entry
	for _, e := range b.entries {
		if e.isFor(host) {
			mine = append(mine, e)
		}
	}
	return fitting(mine, repository), nil
}

// lookup reads a Secret when it is needed: for evidence that a policy keeps in another
// repository than the image.
type lookup struct {
	secretCache *secretCache
	name        secretName
}

// candidates implements list.
func (l lookup) candidates(ctx context.Context, repository, host string) ([]entry, error) {
	p, err := l.secretCache.read(ctx, l.name)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	if err != nil || p.err != nil {
		return nil, nil //nolint:nilerr // what is missing or of no use has no credential
	}
	return p.file.candidates(ctx, repository, host)
}

// elsewhere is a source for every repository but one with a credential that is already
// decided.
type elsewhere struct {
	repository string // as authn.Resource.String has it
	keychain   authn.Keychain
}

// Resolve implements authn.Keychain.
func (e elsewhere) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return e.ResolveContext(context.Background(), target)
}

// ResolveContext implements authn.ContextKeychain.
func (e elsewhere) ResolveContext(ctx context.Context, target authn.Resource) (authn.Authenticator, error) {
	if repository, host := repositoryOf(target); host+"/"+repository == e.repository {
		return authn.Anonymous, nil
	}
	return authn.Resolve(ctx, e.keychain, target)
}

// Entry implements registry.Entries.
func (e elsewhere) Entry(ctx context.Context, target authn.Resource) string {
	if named, is := e.keychain.(registry.Entries); is {
		return named.Entry(ctx, target)
	}
	return ""
}
