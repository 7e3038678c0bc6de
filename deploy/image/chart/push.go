package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// The media types of Helm.
const (
	configType  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	contentType = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// The project's package has about 100 KiB, its Chart.yaml 1 KiB.
const (
	maxPackage  = 8 << 20
	maxMetadata = 64 << 10
)

// Push pushes a packaged chart (FILE.tgz) below a registry's path, without a tag, and returns it by
// digest. The repository has the chart's name. Credentials are those of docker login.
func Push(ctx context.Context, file, under string) (string, error) {
	content, err := read(file)
	if err != nil {
		return "", err
	}
	metadata, chart, err := describe(content)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	repository, err := name.NewRepository(strings.TrimSuffix(under, "/") + "/" + chart.Name)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", file, err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	config, layer := static.NewLayer(metadata, configType), static.NewLayer(content, contentType)
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: map[string]string{
		"org.opencontainers.image.title":       chart.Name,
		"org.opencontainers.image.version":     chart.Version,
		"org.opencontainers.image.description": chart.Description,
	}}
	for _, blob := range []v1.Layer{config, layer} {
		if err := remote.WriteLayer(repository, blob, options...); err != nil {
			return "", fmt.Errorf("push %s: %w", file, err)
		}
	}
	manifest.Config, err = descriptor(config)
	if err != nil {
		return "", err
	}
	described, err := descriptor(layer)
	if err != nil {
		return "", err
	}
	manifest.Layers = []v1.Descriptor{described}
	written, err := json.Marshal(manifest)
	if err != nil {
		return "", err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(written))
	if err != nil {
		return "", err
	}
	to := repository.Digest(digest.String())
	if err := remote.Put(to, document(written), options...); err != nil {
		return "", fmt.Errorf("push %s: %w", to, err)
	}
	return to.String(), nil
}

// document is a manifest that Push encodes itself.
type document []byte

func (d document) RawManifest() ([]byte, error)        { return d, nil }
func (d document) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func descriptor(l v1.Layer) (v1.Descriptor, error) {
	digest, err := l.Digest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	size, err := l.Size()
	if err != nil {
		return v1.Descriptor{}, err
	}
	mediaType, err := l.MediaType()
	return v1.Descriptor{MediaType: mediaType, Size: size, Digest: digest}, err
}

func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: no data can be lost
	content, err := io.ReadAll(io.LimitReader(f, maxPackage+1))
	if err == nil && len(content) > maxPackage {
		err = fmt.Errorf("%s: more than %d bytes", file, maxPackage)
	}
	return content, err
}

// identity is the part of Chart.yaml that Push needs.
type identity struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
}

// describe finds the chart's own Chart.yaml, in the top-level folder of the package, and returns it
// as JSON.
func describe(content []byte) ([]byte, *identity, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, nil, err
	}
	for r := tar.NewReader(io.LimitReader(unpacked, maxPackage)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil, errors.New("there is no Chart.yaml in it; \"helm package\" makes what is wanted here")
		}
		if err != nil {
			return nil, nil, err
		}
		if folder, file := path.Split(header.Name); file != "Chart.yaml" || strings.Count(folder, "/") != 1 {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(r, maxMetadata))
		if err != nil {
			return nil, nil, err
		}
		metadata, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, nil, fmt.Errorf("read Chart.yaml: %w", err)
		}
		var chart identity
		if err := json.Unmarshal(metadata, &chart); err != nil {
			return nil, nil, fmt.Errorf("read Chart.yaml: %w", err)
		}
		if chart.Name == "" || chart.Version == "" {
			return nil, nil, errors.New("the Chart.yaml has no name or no version")
		}
		return metadata, &chart, nil
	}
}
