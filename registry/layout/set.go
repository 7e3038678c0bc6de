package layout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// Set combines several layouts. Content with a digest is read from any layout that has
// it; a tag that two of them have for different manifests is a contradiction; referrers
// are those of all. Methods are safe for use by many goroutines. Close it when done.
type Set struct{ list []*Layout }

// Join makes one of several layouts; at least one, at most 256.
func Join(list ...*Layout) (*Set, error) {
	if len(list) == 0 || len(list) > maxLayouts {
		return nil, fmt.Errorf("join OCI layouts: want between 1 and %d", maxLayouts)
	}
	return &Set{list: list}, nil
}

// Close releases all of them.
func (l *Set) Close() error {
	var all []error
	for _, one := range l.list {
		all = append(all, one.Close())
	}
	return errors.Join(all...)
}

// Notes returns the caveats about each of them.
func (l *Set) Notes() []string {
	var notes []string
	for _, one := range l.list {
		notes = append(notes, one.Notes()...)
	}
	return notes
}

// OnlyFullNames is Layout.OnlyFullNames of each.
func (l *Set) OnlyFullNames() *Set {
	full := &Set{}
	for _, one := range l.list {
		full.list = append(full.list, one.OnlyFullNames())
	}
	return full
}

// Resolve pins ref to the digest that its tag has; a digest is kept.
func (l *Set) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	if len(l.list) == 1 || ref.IsZero() || !ref.Digest().IsZero() {
		return l.list[0].Resolve(ctx, ref)
	}
	descriptor, _, err := l.Manifest(ctx, ref.Repository(), ref.Tag())
	if err != nil {
		return image.Pinned{}, err
	}
	return ref.Pin(descriptor)
}

// Describe returns pinned with media type and size of its manifest.
func (l *Set) Describe(ctx context.Context, pinned image.Pinned) (image.Pinned, error) {
	return firstOf(l.list, func(one *Layout) (image.Pinned, error) { return one.Describe(ctx, pinned) })
}

// Manifest reads the manifest at a tag or digest, as Layout.Manifest does.
func (l *Set) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	type manifest struct {
		descriptor image.Descriptor
		body       []byte
	}
	read := func(one *Layout) (manifest, error) {
		descriptor, body, err := one.Manifest(ctx, repository, reference)
		return manifest{descriptor, body}, err
	}
	if _, err := image.ParseDigest(reference); err == nil {
		found, err := firstOf(l.list, read)
		return found.descriptor, found.body, err
	}
	// All are asked: the first match need not be the right one.
	var found manifest
	var missing []string
	for _, one := range l.list {
		next, err := read(one)
		switch {
		case image.KindOf(err) == image.NotFound:
			missing = append(missing, one.path+": "+hintOf(err))
		case err != nil:
			return image.Descriptor{}, nil, err
		case found.body != nil && found.descriptor.Digest != next.descriptor.Digest:
			failure := one.fail("read manifest", reference, image.Corrupt, errors.New("another of the layouts has another manifest under this tag"))
			failure.Hint = "name the repository of each layout: REPOSITORY=PATH"
			return image.Descriptor{}, nil, failure
		default:
			found = next
		}
	}
	if found.body == nil {
		return image.Descriptor{}, nil, &registry.Error{
			Op: "read manifest", Host: "the OCI layouts", Reference: reference, Kind: image.NotFound, Hint: content.Shorten(strings.Join(missing, "; ")),
		}
	}
	return found.descriptor, found.body, nil
}

// hintOf is an error's hint.
func hintOf(err error) string {
	if failure, ok := errors.AsType[*registry.Error](err); ok {
		return failure.Hint
	}
	return ""
}

// Blob reads the bytes of a descriptor, as Layout.Blob does.
func (l *Set) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	return firstOf(l.list, func(one *Layout) ([]byte, error) { return one.Blob(ctx, repository, blob, most) })
}

// Referrers lists those of all layouts, each once. One that cannot be read to its end does not
// hide those of the others, which come with its error.
func (l *Set) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	var all []image.Descriptor
	var failed error
	seen := map[image.Digest]bool{}
	for _, one := range l.list {
		found, err := one.Referrers(ctx, repository, digest, artifactTypes)
		for _, descriptor := range found {
			if !seen[descriptor.Digest] {
				seen[descriptor.Digest] = true
				all = append(all, descriptor)
			}
		}
		if failed == nil {
			failed = err
		}
	}
	return all, failed
}

// firstOf returns the first layout's result for content that is equal in all of them. An
// unreadable layout does not hide another one that has it; but if none has, the unreadable
// one makes the result an error.
func firstOf[T any](list []*Layout, ask func(*Layout) (T, error)) (T, error) {
	var none T
	var missing, failed error
	for _, one := range list {
		found, err := ask(one)
		switch {
		case err == nil:
			return found, nil
		case image.KindOf(err) == image.NotFound:
			missing = err
		case failed == nil:
			failed = err
		}
	}
	if failed != nil {
		return none, failed
	}
	return none, missing
}
