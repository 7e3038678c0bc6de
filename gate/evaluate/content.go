package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// maxConfig bounds an image's configuration, in bytes. It holds a line for each
// step of the build and the environment; the largest seen have some hundred
// kilobytes.
const maxConfig = 4 << 20

// maxPlatforms bounds the children of an index that are verified one by one. The largest
// official images have about a dozen.
const maxPlatforms = 64

// maxNested bounds the manifests, nested indexes included, that are read to list the
// children of an index. Build tools nest none.
const maxNested = 8

// dataKey identifies the data of an image (its manifest and configuration). The data of a
// digest never changes. The scope is part of the key, so only callers with read access
// receive it.
type dataKey struct {
	digest image.Digest
	scope  string
	want   policy.Data
}

// index holds the children that an index lists.
type index struct {
	pinned   image.Pinned // zero for a manifest
	children []image.Descriptor
	err      error
}

// content reads the manifests of one reference where it is resolved.
type content struct {
	*Evaluator
	registry Registry
	scope    string  // of the registry
	target   *Target // nil unless the target's answer counts
}

// manifest reads a manifest: at a target, if its answer counts.
func (c *content) manifest(ctx context.Context, pinned image.Pinned) (image.Descriptor, []byte, error) {
	if c.target == nil {
		return c.registry.Manifest(ctx, pinned.Repository(), pinned.Digest().String())
	}
	var err error
	for _, candidate := range c.target.Route.Candidates {
		repository := candidate.Ref.Repository()
		opened, failed := c.target.Open(ctx, repository)
		registry, ok := opened.(Registry)
		if failed == nil && ok {
			var descriptor image.Descriptor
			var body []byte
			descriptor, body, failed = registry.Manifest(ctx, repository, pinned.Digest().String())
			if failed == nil {
				return descriptor, body, nil
			}
		}
		err = errors.Join(err, failed)
	}
	return image.Descriptor{}, nil, err
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
func (c *content) cachedData(pinned image.Pinned, want policy.Data) (data policy.ImageData, ok bool) {
	if want == policy.NoData {
		return policy.ImageData{}, true
	}
	return c.data.Get(dataKey{digest: pinned.Digest(), scope: c.scope, want: want})
}

// readData reads the manifests and configurations of an image, and caches them.
func (c *content) readData(ctx context.Context, pinned image.Pinned, want policy.Data) (data policy.ImageData, err error) {
	panicked := panics.Catch(func() { data, err = c.fetchData(ctx, pinned, want) })
	if panicked != nil {
		err = panicked
	}
	if err == nil {
		c.data.Put(dataKey{digest: pinned.Digest(), scope: c.scope, want: want}, data, c.Age)
	}
	return data, err
}

func (c *content) fetchData(ctx context.Context, pinned image.Pinned, want policy.Data) (policy.ImageData, error) {
	descriptor, body, err := c.manifest(ctx, pinned)
	if err != nil {
		return policy.ImageData{}, err
	}
	data := policy.ImageData{Descriptor: descriptor}
	if !descriptor.IsIndex() {
		child, err := c.readImage(ctx, pinned, policy.ImageManifest{Descriptor: descriptor, Manifest: body})
		data.Children = []policy.ImageManifest{child}
		return data, err
	}
	data.Index = body
	listed := c.index(ctx, pinned)
	if listed.err != nil {
		return data, listed.err
	}
	children := listed.children
	if one := image.Usual(children); want == policy.DataOne && len(children) > 0 {
		children = children[one : one+1]
	}
	data.Children = make([]policy.ImageManifest, len(children))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.Parallel)
	for i, child := range children {
		group.Go(func() error {
			return c.readChild(ctx, pinned, child, &data.Children[i])
		})
	}
	return data, group.Wait()
}

func (c *content) readChild(ctx context.Context, pinned image.Pinned, child image.Descriptor, into *policy.ImageManifest) (err error) {
	panicked := panics.Catch(func() {
		var body []byte
		_, body, err = c.manifest(ctx, pinned.Child(child))
		if err == nil {
			*into, err = c.readImage(ctx, pinned, policy.ImageManifest{Descriptor: child, Manifest: body})
		}
	})
	if panicked != nil {
		return panicked
	}
	return err
}

// readImage checks a manifest, and adds the configuration that it names.
func (c *content) readImage(ctx context.Context, pinned image.Pinned, m policy.ImageManifest) (policy.ImageManifest, error) {
	var manifest struct {
		Config image.Descriptor `json:"config"`
	}
	err := image.CheckManifest(m.Manifest)
	if err == nil {
		err = json.Unmarshal(m.Manifest, &manifest)
	}
	if err == nil && manifest.Config.Digest.IsZero() {
		err = errors.New("it names no configuration, so it is no image")
	}
	if err != nil {
		return m, corrupt("read manifest", pinned, m.Descriptor.Digest, err)
	}
	m.Config, err = c.registry.Blob(ctx, pinned.Repository(), manifest.Config, maxConfig)
	if err != nil {
		return m, err
	}
	if err := image.CheckConfig(m.Config); err != nil {
		return m, corrupt("read configuration", pinned, manifest.Config.Digest, err)
	}
	return m, nil
}

// corrupt is the error of a document in the repository of an image.
func corrupt(op string, of image.Pinned, digest image.Digest, err error) error {
	return &image.Error{Kind: image.Corrupt, Op: op, On: of.Repository().String() + "@" + digest.String(), Err: err}
}

// index reads the manifest behind a digest; one that is no index has no children.
func (c *content) index(ctx context.Context, pinned image.Pinned) index {
	descriptor, body, err := c.manifest(ctx, pinned)
	if err != nil {
		return index{err: err}
	}
	out := index{pinned: pinned}
	if !descriptor.IsIndex() {
		return out
	}
	var document struct {
		Manifests []image.Descriptor `json:"manifests"`
	}
	err = image.CheckManifest(body)
	if err == nil {
		err = json.Unmarshal(body, &document)
	}
	if err != nil {
		return index{err: &image.Error{Kind: image.Corrupt, Op: "read index", On: pinned.String(), Err: err}}
	}
	for _, child := range document.Manifests {
		if p := child.Platform; p != nil && p.OS == "unknown" && p.Architecture == "unknown" {
			continue // BuildKit's attestations; runtimes choose by platform, and none is unknown
		}
		out.children = append(out.children, child)
	}
	if len(out.children) > maxPlatforms {
		return index{err: &image.Error{
			Kind: image.Bound, Op: "read index", On: pinned.String(),
			Err: fmt.Errorf("%d platforms, at most %d are looked at", len(out.children), maxPlatforms),
		}}
	}
	return out
}

// descendants returns the digests that an index lists, and those that nested indexes list;
// none for a manifest. They never change, so they may come from the cache.
func (c *content) descendants(ctx context.Context, pinned image.Pinned) ([]image.Digest, error) {
	if known, ok := c.indexes.Get(pinned.Digest()); ok {
		return known, nil
	}
	var all []image.Digest
	open := []image.Pinned{pinned}
	for read := 0; len(open) > 0; read++ {
		if read == maxNested {
			return all, &image.Error{Kind: image.Bound, Op: "read index", On: pinned.String(), Err: fmt.Errorf("more than %d indexes in one another", maxNested)}
		}
		listed := c.index(ctx, open[0])
		if listed.err != nil {
			return all, deadline.Mark(ctx, listed.err)
		}
		open = open[1:]
		for _, child := range listed.children {
			all = append(all, child.Digest)
			if !child.IsManifest() { // some runtimes do not mind its type
				open = append(open, pinned.Child(child))
			}
		}
	}
	c.indexes.Put(pinned.Digest(), all, c.Age)
	return all, nil
}
