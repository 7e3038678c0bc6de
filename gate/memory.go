package gate

import (
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// Bounds of the gate's caches.
const (
	maxIndexes   = 10_000
	refBytes     = 8 << 20
	dataBytes    = 16 << 20
	dataOverhead = 1 << 10
)

// memory is the gate's cache, shared by all requests: the verified claims, and content of
// images, which never changes.
type memory struct {
	claims  *claims.Cache
	refs    *cache.Cache[string, image.Ref]
	data    *cache.Cache[dataKey, policy.ImageData]
	indexes *cache.Cache[image.Digest, []image.Digest]
}

func newMemory(o options) (*memory, error) {
	config := claims.Config{
		Fact: o.age, None: o.noneAge, Tag: o.tagAge, Stale: o.keptFor(), Timeout: o.timeout, Now: o.now, Peers: o.peers, Store: o.store,
	}
	if o.observer != nil {
		config.Observer = o.observer
	}
	m := &memory{}
	var err error
	m.claims, err = claims.New(config)
	if err != nil {
		return nil, err
	}
	m.refs, err = cache.New(cache.Options[string, image.Ref]{
		MaxCost: refBytes, MaxTTL: 24 * time.Hour, Now: o.now,
		Cost: func(text string, _ image.Ref) int { return 256 + 2*len(text) },
	})
	if err != nil {
		return nil, err
	}
	m.data, err = cache.New(cache.Options[dataKey, policy.ImageData]{
		MaxCost: dataBytes, MaxTTL: o.age, Now: o.now,
		Cost: func(_ dataKey, d policy.ImageData) int { return dataCost(d) },
	})
	if err != nil {
		return nil, err
	}
	m.indexes, err = cache.New(cache.Options[image.Digest, []image.Digest]{MaxCost: maxIndexes, MaxTTL: o.age, Now: o.now})
	return m, err
}

func dataCost(d policy.ImageData) int {
	cost := dataOverhead + len(d.Index)
	for _, child := range d.Children {
		cost += dataOverhead + len(child.Manifest) + len(child.Config)
	}
	return cost
}

// parse reads a reference. Its meaning never changes, and the same few are read repeatedly.
func (m *memory) parse(text string) (image.Ref, error) {
	if ref, ok := m.refs.Get(text); ok {
		return ref, nil
	}
	text = strings.Clone(text) // a substring would keep all of the object's text alive
	ref, err := image.Parse(text)
	if err == nil {
		m.refs.Put(text, ref, 24*time.Hour)
	}
	return ref, err
}

// apart returns a name that separates a caller from the shared requests of others, from
// the session's method Apart if it has one; "" shares.
func apart(session any, repository image.Repository) string {
	if tenant, ok := session.(interface{ Apart(image.Repository) string }); ok {
		if name := tenant.Apart(repository); name != "" {
			return "\x00" + name
		}
	}
	return ""
}
