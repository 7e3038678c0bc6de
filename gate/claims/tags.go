package claims

import (
	"context"
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
)

// Tags caches the digests behind tags: briefly those that a registry returned, and as stale
// entries those that were verified.
type Tags struct {
	config   *Config
	digests  *cache.Cache[Tag, image.Descriptor]
	verified *cache.Cache[Tag, Verified] // nil: nothing outlives its age
	resolves *cache.Flight[Tag, image.Descriptor]
}

// Tag identifies a tag as some credentials see it.
type Tag struct{ Scope, Reference string }

// Verified is the digest last verified for a tag; none records that the tag was gone, so
// that a snapshot does not restore an older one.
type Verified struct {
	Descriptor image.Descriptor
	At         time.Time
}

func (v Verified) isGone() bool { return v.Descriptor.Digest.IsZero() }

func newTags(config *Config) (*Tags, error) {
	t := &Tags{config: config}
	var err error
	t.digests, err = cache.New(cache.Options[Tag, image.Descriptor]{MaxCost: maxTags, MaxTTL: config.Tag, Now: config.Now})
	if err != nil {
		return nil, err
	}
	if config.Stale > 0 {
		t.verified, err = cache.New(cache.Options[Tag, Verified]{MaxCost: maxTags, MaxTTL: config.Stale, Now: config.Now})
		if err != nil {
			return nil, err
		}
	}
	t.resolves, err = cache.NewFlight[Tag, image.Descriptor](config.Timeout)
	return t, err
}

var errNotCached = errors.New("the tag's digest is not cached")

// Pin returns the digest of a reference from the cache alone.
func (t *Tags) Pin(scope string, ref image.Ref) (image.Pinned, error) {
	if digest := ref.Digest(); !digest.IsZero() {
		return ref.Pin(image.Descriptor{Digest: digest})
	}
	known, ok := t.digests.Get(Tag{Scope: scope, Reference: ref.String()})
	if !ok {
		return image.Pinned{}, errNotCached
	}
	return ref.Pin(known)
}

// Resolve returns the digest of a tag, from the cache while it is fresh. Concurrent callers
// with the same tag, credentials and apart share one request.
func (t *Tags) Resolve(
	ctx context.Context, scope, apart string, ref image.Ref, ask func(context.Context, image.Ref) (image.Pinned, error),
) (image.Pinned, error) {
	key := Tag{Scope: scope, Reference: ref.String()}
	known, ok := t.digests.Get(key)
	t.config.asked(LayerTags, ok)
	if ok {
		return ref.Pin(known)
	}
	together := key
	together.Scope += apart
	descriptor, err := t.resolves.Do(ctx, together, func(ctx context.Context) (image.Descriptor, error) {
		pinned, err := ask(ctx, ref)
		if err != nil {
			return image.Descriptor{}, err
		}
		t.digests.Put(key, pinned.Descriptor(), t.config.Tag)
		return pinned.Descriptor(), nil
	})
	if err != nil {
		return image.Pinned{}, err
	}
	return ref.Pin(descriptor)
}

// Stale returns the digest that was verified for a tag less than window ago.
func (t *Tags) Stale(key Tag, window time.Duration) (Verified, bool) {
	if t.verified == nil {
		return Verified{}, false
	}
	known, ok := t.verified.Get(key)
	return known, ok && !known.isGone() && passed(known.At, t.config.Now()) < window
}

// Keep caches a digest that was just verified for a tag; the zero descriptor records that
// the tag is gone.
func (t *Tags) Keep(key Tag, descriptor image.Descriptor) {
	if t.verified != nil {
		t.verified.Put(key, Verified{Descriptor: descriptor, At: t.config.Now()}, t.config.Stale)
	}
}
