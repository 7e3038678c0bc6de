package gate

import (
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/image"
)

// refBytes bounds the parsed references that are cached.
const refBytes = 8 << 20

// memory is what all requests share: the verified claims, the content of images, and parsed
// references, which never change.
type memory struct {
	claims    *claims.Cache
	evaluator *evaluate.Evaluator
	refs      *cache.Cache[string, image.Ref]
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
	m.evaluator, err = evaluate.New(evaluate.Config{
		Claims: m.claims, Observer: o.observer, Now: o.now, Parallel: o.images, Age: o.age, Stale: o.stale,
	})
	if err != nil {
		return nil, err
	}
	m.refs, err = cache.New(cache.Options[string, image.Ref]{
		MaxCost: refBytes, MaxTTL: 24 * time.Hour, Now: o.now,
		Cost: func(text string, _ image.Ref) int { return 256 + 2*len(text) },
	})
	return m, err
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
