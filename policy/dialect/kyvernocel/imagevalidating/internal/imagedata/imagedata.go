// Package imagedata converts an image's manifests and configuration to the value of getImageData in
// ImageValidatingPolicies (policies.kyverno.io, Kyverno 1.19).
package imagedata

import (
	"encoding/json"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// Of returns the result of getImageData, with the fields of Kyverno's: the parts of the
// reference, the index if there is one, and the manifest and the configuration of the image for
// linux/amd64 (image.Usual).
func Of(text string, given *policy.Given) (map[string]any, error) {
	ref, err := image.Parse(text)
	if err != nil {
		return nil, err
	}
	registry := ref.Registry()
	if registry == "docker.io" {
		registry = "index.docker.io" // as go-containerregistry has it
	}
	repository := ref.Repository().Path()
	out := map[string]any{"image": text, "registry": registry, "repository": repository}
	digest := given.Pinned.Digest().String()
	if ref.Digest().IsZero() {
		out["tag"], out["identifier"] = ref.Tag(), ref.Tag()
		out["resolvedImage"] = registry + "/" + repository + ":" + ref.Tag() + "@" + digest
	} else {
		out["identifier"] = ref.Digest().String()
		out["resolvedImage"] = registry + "/" + repository + "@" + digest
	}
	out["digest"] = digest
	if len(given.Data.Index) > 0 {
		out["imageIndex"], err = decoded(given.Data.Index, "image index")
		if err != nil {
			return nil, err
		}
	}
	child, config, err := platform(given.Data.Children)
	if err != nil || child == nil {
		return out, err
	}
	out["manifest"], err = decoded(child.Manifest, "manifest")
	if err != nil {
		return nil, err
	}
	out["config"], out["configData"] = config, config
	return out, nil
}

// platform chooses one of the images of an index by the platforms that it lists, as container
// runtimes do. They do not read the platform in the configuration of one that is listed with it.
func platform(children []policy.ImageManifest) (*policy.ImageManifest, any, error) {
	if len(children) == 0 {
		return nil, nil, nil
	}
	listed := make([]image.Descriptor, len(children))
	for i := range children {
		listed[i] = children[i].Descriptor
	}
	one, err := image.Usual(listed, func(child int) []byte { return children[child].Config })
	if err != nil {
		return nil, nil, fmt.Errorf("the image index: %w", err)
	}
	child := &children[one]
	config, err := decoded(child.Config, "configuration")
	return child, config, err
}

func decoded(text []byte, what string) (any, error) {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("the image's %s: %w", what, err)
	}
	return value, nil
}
