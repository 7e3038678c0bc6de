package imagevalidating

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// otherData is image data that the gate does not read.
type otherData struct {
	data map[string]any
	err  error
}

// otherData reads an image that spec.matchImageReferences exclude, or of no object, once for all
// evaluations. It uses the policy's registry credentials.
func (h *imageEvaluation) otherData(ctx context.Context, text string) (map[string]any, error) {
	if known, ok := h.others[text]; ok {
		return known.data, known.err
	}
	var found otherData
	switch images := h.rule.compiler.options.Images; {
	case images == nil:
		found.err = errors.New("no registry can be asked about an image that the policy does not verify")
	case len(h.others) >= maxOthers:
		found.err = &image.Error{Kind: image.Bound, Op: "read metadata", On: kyvernocel.Shorten(text),
			Err: fmt.Errorf("more than %d images that the policy does not verify", maxOthers)}
	default:
		found.data, found.err = images.ImageData(ctx, text, h.rule.credentials)
	}
	if found.err != nil {
		found.err = &cel.UnknownError{Gaps: []error{unproved{found.err}}}
	}
	if len(h.others) < maxOthers {
		h.others[text] = found
	}
	return found.data, found.err
}

// imageData returns the result of getImageData, with the fields of Kyverno's: the parts of the
// reference, the index if there is one, and the manifest and the configuration of the image for
// linux/amd64 (image.Usual).
func imageData(text string, given *policy.Given) (map[string]any, error) {
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
