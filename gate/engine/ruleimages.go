package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// maxRuleConfig bounds an image's configuration, in bytes, as package gate does.
const maxRuleConfig = 4 << 20

// RuleImages reads image data for the contexts of rules (imageRegistry). Policies are compiled
// before the registries exist, so Use sets them later. It is safe for concurrent use.
type RuleImages struct {
	registries atomic.Pointer[gate.Registries]
}

// Use sets the registries; before that, every request fails.
func (r *RuleImages) Use(registries gate.Registries) { r.registries.Store(&registries) }

// ImageData implements rulecontext.Images. Of an index it reads the image for linux/amd64, else
// the first for linux, else the first.
func (r *RuleImages) ImageData(ctx context.Context, reference string, credentials policy.Credentials) (map[string]any, error) {
	registries := r.registries.Load()
	if registries == nil {
		return nil, errors.New("no registry can be asked here")
	}
	ref, err := image.Parse(reference)
	if err != nil {
		return nil, err
	}
	session, err := (*registries).Open(ctx, gate.Access{Credentials: credentials}, ref.Repository())
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	pinned, err := session.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	manifest, err := oneManifest(ctx, session, pinned)
	if err != nil {
		return nil, err
	}
	var decoded struct {
		Config image.Descriptor `json:"config"`
	}
	corrupt := func(err error) error {
		return &image.Error{Kind: image.Corrupt, Op: "read manifest", On: pinned.String(), Err: err}
	}
	if err := json.Unmarshal(manifest, &decoded); err != nil {
		return nil, corrupt(err)
	}
	if decoded.Config.Digest.IsZero() {
		return nil, corrupt(errors.New("it names no configuration, so it is no image"))
	}
	config, err := session.Blob(ctx, ref.Repository(), decoded.Config, maxRuleConfig)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(image.CheckManifest(manifest), image.CheckConfig(config)); err != nil {
		return nil, corrupt(err)
	}
	data := map[string]any{
		"image": ref.String(), "resolvedImage": ref.Repository().String() + "@" + pinned.Digest().String(),
		"registry": ref.Repository().Registry(), "repository": ref.Repository().Path(), "identifier": identifier(ref),
	}
	for name, text := range map[string][]byte{"manifest": manifest, "configData": config} {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return nil, corrupt(err)
		}
		data[name] = value
	}
	return data, nil
}

// Metadata implements cel.ImageData. Every failure is indeterminate.
func (r *RuleImages) Metadata(ctx context.Context, reference string) (map[string]any, error) {
	data, err := r.ImageData(ctx, reference, policy.Credentials{})
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{err}}
	}
	return WithNames(data), nil
}

// WithNames adds the names of Kyverno's image.GetMetadata to those of a context.
func WithNames(data map[string]any) map[string]any {
	named := maps.Clone(data)
	if _, ok := named["config"]; !ok {
		named["config"] = named["configData"]
	}
	if resolved, ok := named["resolvedImage"].(string); ok {
		if _, digest, found := strings.Cut(resolved, "@"); found {
			named["digest"] = digest
		}
	}
	return named
}

func identifier(ref image.Ref) string {
	if !ref.Digest().IsZero() {
		return ref.Digest().String()
	}
	return ref.Tag()
}

// oneManifest returns the manifest of an image, or of one that an index lists.
func oneManifest(ctx context.Context, session gate.Session, pinned image.Pinned) ([]byte, error) {
	descriptor, body, err := session.Manifest(ctx, pinned.Repository(), pinned.Digest().String())
	if err != nil || !descriptor.IsIndex() {
		return body, err
	}
	var index struct {
		Manifests []image.Descriptor `json:"manifests"`
	}
	err = image.CheckManifest(body)
	if err == nil {
		err = json.Unmarshal(body, &index)
	}
	if err == nil && len(index.Manifests) == 0 {
		err = errors.New("it lists no image")
	}
	if err != nil {
		return nil, &image.Error{Kind: image.Corrupt, Op: "read index", On: pinned.String(), Err: err}
	}
	_, body, err = session.Manifest(ctx, pinned.Repository(), index.Manifests[image.Usual(index.Manifests)].Digest.String())
	return body, err
}
