package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// imageContent reads the manifests of one reference where it is resolved.
type imageContent struct {
	*Evaluator
	registry Registry
	scope    string  // of the registry
	target   *Target // nil unless the target's answer counts
}

// Manifest reads a manifest: at a target, if its answer counts.
func (c *imageContent) Manifest(ctx context.Context, of image.Repository, reference string) (image.Descriptor, []byte, error) {
	if c.target == nil {
		return c.registry.Manifest(ctx, of, reference)
	}
	var err error
	for _, candidate := range c.target.Route.Candidates {
		repository := candidate.Ref.Repository()
		opened, failed := c.target.Open(ctx, repository)
		registry, ok := opened.(Registry)
		if failed == nil && ok {
			var descriptor image.Descriptor
			var body []byte
			descriptor, body, failed = registry.Manifest(ctx, repository, reference)
			if failed == nil {
				return descriptor, body, nil
			}
		}
		if failed == nil {
			failed = fmt.Errorf("the session for %s reads no manifests; this is a defect", repository)
		}
		err = errors.Join(err, failed)
	}
	return image.Descriptor{}, nil, err
}

// Blob reads a blob.
func (c *imageContent) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, limit int64) ([]byte, error) {
	return c.registry.Blob(ctx, repository, blob, limit)
}

func (c *imageContent) reader() content.Reader {
	return content.Reader{Fetcher: c, Parallel: c.Parallel}
}

// wantsData returns how much of the image's own content the checks read.
func wantsData(checks []*policy.Check) policy.Data {
	want := policy.NoData
	for _, check := range checks {
		switch check.WantsData {
		case policy.DataEach:
			return policy.DataEach
		case policy.DataOne:
			want = policy.DataOne
		}
	}
	return want
}

// cachedData returns the image data from the cache; ok if it holds what is wanted.
func (c *imageContent) cachedData(pinned image.Pinned, want policy.Data) (data policy.ImageData, ok bool) {
	if want == policy.NoData {
		return policy.ImageData{}, true
	}
	return c.data.Get(dataKey{digest: pinned.Digest(), scope: c.scope, want: want})
}

// readData reads the manifests and configurations of an image, and caches them.
func (c *imageContent) readData(ctx context.Context, pinned image.Pinned, want policy.Data) (data policy.ImageData, err error) {
	panicked := panics.Catch(func() { data, err = c.reader().Data(ctx, pinned, want) })
	if panicked != nil {
		err = panicked
	}
	if err == nil {
		c.data.Put(dataKey{digest: pinned.Digest(), scope: c.scope, want: want}, data, c.Age)
	}
	return data, err
}

// descendants returns the digests that an index lists, and those that nested indexes list;
// none for a manifest. They never change, so they may come from the cache.
func (c *imageContent) descendants(ctx context.Context, pinned image.Pinned) ([]image.Digest, error) {
	if known, ok := c.indexes.Get(pinned.Digest()); ok {
		return known, nil
	}
	all, err := c.reader().Descendants(ctx, pinned)
	if err != nil {
		return all, deadline.Mark(ctx, err)
	}
	c.indexes.Put(pinned.Digest(), all, c.Age)
	return all, nil
}
