package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Write writes an image and its bills as an OCI image layout. It creates the folder.
func (i *Index) Write(folder string) error {
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("write %s: %w", folder, err)
	}
	if err := at.AppendIndex(i.index); err != nil {
		return fmt.Errorf("write %s: %w", folder, err)
	}
	config, err := blob(emptyType, emptyConfig)
	if err != nil {
		return err
	}
	write := func(digest v1.Hash, content []byte) error {
		return at.WriteBlob(digest, io.NopCloser(bytes.NewReader(content)))
	}
	for _, a := range i.bills {
		document, err := blob(billType, a.document)
		if err != nil {
			return err
		}
		err = errors.Join(write(config.Digest, emptyConfig), write(document.Digest, a.document),
			write(a.descriptor.Digest, a.manifest), at.AppendDescriptor(a.descriptor))
		if err != nil {
			return fmt.Errorf("write %s: %w", folder, err)
		}
	}
	return nil
}

// Push copies the contents of a layout into a repository, by digest: no tag is set. It returns the
// image by digest. Credentials are those of docker login.
func Push(ctx context.Context, folder, repository string) (string, error) {
	to, err := name.NewRepository(repository)
	if err != nil {
		return "", fmt.Errorf("push to %q: %w", repository, err)
	}
	from, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", folder, err)
	}
	manifest, err := from.IndexManifest()
	if err != nil {
		return "", fmt.Errorf("read %s: %w", folder, err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	var pushed []string
	for _, d := range manifest.Manifests {
		to := to.Digest(d.Digest.String())
		switch d.MediaType {
		case types.OCIImageIndex:
			index, err := from.ImageIndex(d.Digest)
			if err == nil {
				err = remote.WriteIndex(to, index, options...)
			}
			if err != nil {
				return "", fmt.Errorf("push %s: %w", to, err)
			}
			pushed = append(pushed, to.String())
		case types.OCIManifestSchema1:
			image, err := from.Image(d.Digest)
			if err == nil {
				err = remote.Write(to, image, options...)
			}
			if err != nil {
				return "", fmt.Errorf("push %s: %w", to, err)
			}
		default:
			return "", fmt.Errorf("%s: %s is a %s, which is none of ours", folder, d.Digest, d.MediaType)
		}
	}
	if len(pushed) != 1 {
		return "", fmt.Errorf("%s: want the layout of one image, and there are %d", folder, len(pushed))
	}
	return pushed[0], nil
}
