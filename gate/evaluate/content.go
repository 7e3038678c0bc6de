package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
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
func (c *imageContent) Manifest(ctx context.Context, of image.Repository, reference string) (descriptor image.Descriptor, body []byte, err error) {
	err = c.read(ctx, of, func(registry Registry, repository image.Repository) (err error) {
		descriptor, body, err = registry.Manifest(ctx, repository, reference)
		return err
	})
	return descriptor, body, err
}

// Blob reads a blob, where Manifest reads.
func (c *imageContent) Blob(ctx context.Context, of image.Repository, blob image.Descriptor, limit int64) (body []byte, err error) {
	err = c.read(ctx, of, func(registry Registry, repository image.Repository) (err error) {
		body, err = registry.Blob(ctx, repository, blob, limit)
		return err
	})
	return body, err
}

// read reads from the first target that answers, where its answer counts, and otherwise, and where
// the route falls back to it, from the source. All have the same content under a digest.
func (c *imageContent) read(ctx context.Context, source image.Repository, from func(Registry, image.Repository) error) error {
	var errs []error
	for _, candidate := range c.candidates() {
		repository := candidate.Ref.Repository()
		opened, err := c.target.Open(ctx, repository)
		registry, ok := opened.(Registry)
		switch {
		case err == nil && ok:
			err = from(registry, repository)
		case err == nil:
			err = fmt.Errorf("the session for %s reads no content; this is a defect", repository)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	if c.target == nil || c.target.Route.Otherwise != mirror.Deny && ctx.Err() == nil {
		errs = append(errs, from(c.registry, source))
		if errs[len(errs)-1] == nil {
			return nil
		}
	}
	return errors.Join(errs...)
}

// candidates are the targets to read from; none if the source decides.
func (c *imageContent) candidates() []mirror.Candidate {
	if c.target == nil {
		return nil
	}
	return c.target.Route.Candidates
}

func (c *imageContent) reader() content.Reader {
	return content.Reader{Fetcher: c, Parallel: c.Parallel}
}

// key identifies the content that the checks read of an image.
func (c *imageContent) key(pinned image.Pinned, checks []*policy.Check) content.Key {
	return content.Key{Digest: pinned.Digest(), Scope: c.scope, Want: wantsData(checks)}
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
