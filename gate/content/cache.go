package content

import (
	"context"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// Bounds of a Cache.
const (
	maxIndexes   = 10_000
	dataBytes    = 16 << 20
	dataOverhead = 1 << 10
)

// Cache holds the content of images, which never changes. It is safe for concurrent use.
type Cache struct {
	age     time.Duration
	data    *cache.Cache[Key, policy.ImageData]
	indexes *cache.Cache[image.Digest, []image.Digest]
}

// Key identifies the data of an image. The scope names the credentials with which it was read: only
// callers with the same receive it.
type Key struct {
	Digest image.Digest
	Scope  string
	Want   policy.Data
}

// NewCache makes a Cache whose entries live for age at most.
func NewCache(age time.Duration, now func() time.Time) (*Cache, error) {
	data, err := cache.New(cache.Options[Key, policy.ImageData]{
		MaxCost: dataBytes, MaxTTL: age, Now: now,
		Cost: func(_ Key, d policy.ImageData) int { return dataCost(d) },
	})
	if err != nil {
		return nil, fmt.Errorf("content of images: %w", err)
	}
	indexes, err := cache.New(cache.Options[image.Digest, []image.Digest]{MaxCost: maxIndexes, MaxTTL: age, Now: now})
	if err != nil {
		return nil, fmt.Errorf("indexes: %w", err)
	}
	return &Cache{age: age, data: data, indexes: indexes}, nil
}

func dataCost(d policy.ImageData) int {
	cost := dataOverhead + len(d.Index)
	for _, child := range d.Children {
		cost += dataOverhead + len(child.Manifest) + len(child.Config)
	}
	return cost
}

// Data returns cached data; ok if it holds the wanted data.
func (c *Cache) Data(key Key) (data policy.ImageData, ok bool) {
	if key.Want == policy.NoData {
		return policy.ImageData{}, true
	}
	return c.data.Get(key)
}

// ReadData reads the manifests and configurations of an image, and caches them.
func (c *Cache) ReadData(ctx context.Context, from Reader, pinned image.Pinned, key Key) (data policy.ImageData, err error) {
	panicked := panics.Catch(func() { data, err = from.Data(ctx, pinned, key.Want) })
	if panicked != nil {
		err = panicked
	}
	if err == nil {
		c.data.Put(key, data, c.age)
	}
	return data, err
}

// Descendants returns the digests that an index lists, and those that nested indexes list; none
// for a manifest.
func (c *Cache) Descendants(ctx context.Context, from Reader, pinned image.Pinned) ([]image.Digest, error) {
	if known, ok := c.indexes.Get(pinned.Digest()); ok {
		return known, nil
	}
	all, err := from.Descendants(ctx, pinned)
	if err != nil {
		return all, deadline.Mark(ctx, err)
	}
	c.indexes.Put(pinned.Digest(), all, c.age)
	return all, nil
}
