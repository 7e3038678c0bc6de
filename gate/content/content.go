// Package content reads the manifests and the configurations of images: of those that an index
// lists, or of the one that a linux/amd64 node runs of it (OCI Image Specification 1.1).
package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/strictjson"
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

// Fetcher reads documents of a repository, as an evidence fetcher does.
type Fetcher interface {
	// Manifest returns a manifest by its digest.
	Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error)
	// Blob returns a blob of at most limit bytes.
	Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, limit int64) ([]byte, error)
}

// Reader reads the content of images. It is safe for concurrent use if its Fetcher is.
type Reader struct {
	Fetcher
	// Parallel is how many children of an index are read at once, at least 1.
	Parallel int
}

// Index holds the children that an index lists.
type Index struct {
	Pinned   image.Pinned // zero if it was not read
	Children []image.Descriptor
	Err      error // why the children are not known
}

// Image reads the manifest and the configuration of an image, or of the one that a linux/amd64
// node runs of an index (image.Usual), and that index in JSON.
func (r Reader) Image(ctx context.Context, pinned image.Pinned) (read policy.ImageManifest, index []byte, err error) {
	data, err := r.Data(ctx, pinned, policy.DataOne)
	if err == nil && len(data.Children) == 0 {
		err = badIndex(pinned, errors.New("it lists no image"))
	}
	if err != nil {
		return policy.ImageManifest{}, nil, err
	}
	return data.Children[0], data.Index, nil
}

// Data reads an image, or as many images of an index as are wanted.
func (r Reader) Data(ctx context.Context, pinned image.Pinned, want policy.Data) (policy.ImageData, error) {
	descriptor, body, err := r.manifest(ctx, pinned)
	if err != nil {
		return policy.ImageData{}, err
	}
	data := policy.ImageData{Descriptor: descriptor}
	if !descriptor.IsIndex() {
		child, err := r.readImage(ctx, pinned, policy.ImageManifest{Descriptor: descriptor, Manifest: body})
		data.Children = []policy.ImageManifest{child}
		return data, err
	}
	data.Index = body
	listed := listedIn(pinned, body)
	if listed.Err != nil {
		return data, listed.Err
	}
	if want == policy.DataOne {
		data.Children, err = r.readUsual(ctx, pinned, listed.Children)
		return data, err
	}
	data.Children = make([]policy.ImageManifest, len(listed.Children))
	return data, r.readChildren(ctx, pinned, listed.Children, data.Children)
}

// readUsual reads the image that nodes run of an index.
func (r Reader) readUsual(ctx context.Context, pinned image.Pinned, children []image.Descriptor) ([]policy.ImageManifest, error) {
	candidates := image.UsualCandidates(children)
	if len(candidates) == 0 {
		return nil, nil
	}
	descriptors, position := make([]image.Descriptor, len(candidates)), map[int]int{}
	for i, child := range candidates {
		descriptors[i], position[child] = children[child], i
	}
	read := make([]policy.ImageManifest, len(candidates))
	if err := r.readChildren(ctx, pinned, descriptors, read); err != nil {
		return nil, err
	}
	one, err := image.Usual(children, func(child int) []byte { return read[position[child]].Config })
	if err != nil {
		return nil, badIndex(pinned, err)
	}
	return []policy.ImageManifest{read[position[one]]}, nil
}

// readChildren reads children of an index at once.
func (r Reader) readChildren(ctx context.Context, pinned image.Pinned, children []image.Descriptor, into []policy.ImageManifest) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.Parallel)
	for i, child := range children {
		group.Go(func() error {
			return r.readChild(ctx, pinned, child, &into[i])
		})
	}
	return group.Wait()
}

func (r Reader) readChild(ctx context.Context, pinned image.Pinned, child image.Descriptor, into *policy.ImageManifest) (err error) {
	panicked := panics.Catch(func() {
		var body []byte
		_, body, err = r.manifest(ctx, pinned.Child(child))
		if err == nil {
			*into, err = r.readImage(ctx, pinned, policy.ImageManifest{Descriptor: child, Manifest: body})
		}
	})
	if panicked != nil {
		return panicked
	}
	return err
}

// readImage checks a manifest, and adds the configuration that it names.
func (r Reader) readImage(ctx context.Context, pinned image.Pinned, m policy.ImageManifest) (policy.ImageManifest, error) {
	var manifest struct {
		Config image.Descriptor `json:"config"`
	}
	err := image.CheckManifest(m.Manifest)
	if err == nil {
		err = strictjson.Readable(json.Unmarshal(m.Manifest, &manifest))
	}
	if err == nil && manifest.Config.Digest.IsZero() {
		err = errors.New("it names no configuration, so it is no image")
	}
	if err != nil {
		return m, corrupt("read manifest", pinned, m.Descriptor.Digest, err)
	}
	m.Config, err = r.Blob(ctx, pinned.Repository(), manifest.Config, maxConfig)
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

// Index reads the manifest behind a digest; one that is no index has no children.
func (r Reader) Index(ctx context.Context, pinned image.Pinned) Index {
	descriptor, body, err := r.manifest(ctx, pinned)
	if err != nil {
		return Index{Err: err}
	}
	if !descriptor.IsIndex() {
		return Index{Pinned: pinned}
	}
	return listedIn(pinned, body)
}

// listedIn decodes an index.
func listedIn(pinned image.Pinned, body []byte) Index {
	out := Index{Pinned: pinned}
	var document struct {
		Manifests []image.Descriptor `json:"manifests"`
	}
	err := image.CheckManifest(body)
	if err == nil {
		err = json.Unmarshal(body, &document)
	}
	if err != nil {
		return Index{Err: badIndex(pinned, err)}
	}
	for _, child := range document.Manifests {
		if p := child.Platform; p != nil && p.OS == "unknown" && p.Architecture == "unknown" {
			continue // BuildKit's attestations; runtimes choose by platform, and none is unknown
		}
		out.Children = append(out.Children, child)
	}
	if len(out.Children) > maxPlatforms {
		return Index{Err: &image.Error{
			Kind: image.Bound, Op: "read index", On: pinned.String(),
			Err: fmt.Errorf("%d platforms, at most %d are looked at", len(out.Children), maxPlatforms),
		}}
	}
	return out
}

// badIndex is the error of an index of which nothing is read.
func badIndex(pinned image.Pinned, err error) error {
	return &image.Error{Kind: image.Corrupt, Op: "read index", On: pinned.String(), Err: err}
}

// manifest reads a manifest by its digest.
func (r Reader) manifest(ctx context.Context, pinned image.Pinned) (image.Descriptor, []byte, error) {
	return r.Manifest(ctx, pinned.Repository(), pinned.Digest().String())
}

// Descendants returns the digests that an index lists, and those that nested indexes list;
// none for a manifest.
func (r Reader) Descendants(ctx context.Context, pinned image.Pinned) ([]image.Digest, error) {
	var all []image.Digest
	open := []image.Pinned{pinned}
	for read := 0; len(open) > 0; read++ {
		if read == maxNested {
			return all, &image.Error{Kind: image.Bound, Op: "read index", On: pinned.String(), Err: fmt.Errorf("more than %d indexes in one another", maxNested)}
		}
		listed := r.Index(ctx, open[0])
		if listed.Err != nil {
			return all, listed.Err
		}
		open = open[1:]
		for _, child := range listed.Children {
			all = append(all, child.Digest)
			if !child.IsManifest() { // some runtimes do not mind its type
				open = append(open, pinned.Child(child))
			}
		}
	}
	return all, nil
}
