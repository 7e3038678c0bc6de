// Package tagdigest gives each tag one digest in a request: the gate verifies the image of which rules
// read the metadata, also where the tag moves during the request. Digests that the target of a mirror
// resolves stay apart.
package tagdigest

import (
	"context"
	"sync"

	"github.com/quaymaster/quaymaster/image"
)

// Digests are the digests of tags that one request has resolved; the first one counts. It is safe for
// concurrent use, and nil outside of a request.
type Digests struct {
	mu    sync.Mutex
	known map[string]known // by the normalised reference
}

type known struct {
	descriptor image.Descriptor
	isRead     bool // by a rule
}

type key struct{}

// With returns a context in which each tag has one digest. One that has them is returned unchanged.
func With(ctx context.Context) context.Context {
	if Of(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, &Digests{known: map[string]known{}})
}

// Of returns the digests of the context's request.
func Of(ctx context.Context) *Digests {
	d, _ := ctx.Value(key{}).(*Digests)
	return d
}

// Verify returns the digest to verify for a reference that was resolved to found: the digest of
// which a rule has read the metadata, if one has. Without such a rule, other credentials may resolve another
// digest. An error is returned as it is.
func (d *Digests) Verify(found image.Pinned, err error) (image.Pinned, error) {
	if err != nil || d == nil || !found.Ref().Digest().IsZero() {
		return found, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	first, ok := d.known[found.Ref().String()]
	if !ok {
		d.known[found.Ref().String()] = known{descriptor: found.Descriptor()}
		return found, nil
	}
	if !first.isRead || first.descriptor.Digest == found.Digest() {
		return found, nil
	}
	return found.Ref().Pin(first.descriptor)
}

// Read returns the digest of a reference of which a rule reads the metadata: the first one of the request,
// whatever its credentials, or else the result of resolve.
func Read(ctx context.Context, ref image.Ref, resolve func(context.Context, image.Ref) (image.Pinned, error)) (image.Pinned, error) {
	d := Of(ctx)
	if d == nil || !ref.Digest().IsZero() {
		return resolve(ctx, ref)
	}
	if first, ok := d.read(ref, nil); ok {
		return ref.Pin(first)
	}
	found, err := resolve(ctx, ref)
	if err != nil {
		return image.Pinned{}, err
	}
	descriptor := found.Descriptor()
	first, _ := d.read(ref, &descriptor)
	return ref.Pin(first)
}

// read returns the first digest of a reference, which is found where there is none yet.
func (d *Digests) read(ref image.Ref, found *image.Descriptor) (image.Descriptor, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, ok := d.known[ref.String()]
	if !ok && found == nil {
		return image.Descriptor{}, false
	}
	if !ok {
		first.descriptor = *found
	}
	first.isRead = true
	d.known[ref.String()] = first
	return first.descriptor, true
}
