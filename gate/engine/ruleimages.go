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
	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/gate/internal/tagdigest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// RuleImages reads image data for the contexts of rules (imageRegistry), and verifies signed manifests.
// Policies are compiled before the registries and the trust exist, so Use sets them later. It is safe
// for concurrent use.
type RuleImages struct {
	config atomic.Pointer[gate.Config]
}

// Use sets the registries and the trust; before that, every request fails. Without a state, signed
// manifests cannot be verified.
func (r *RuleImages) Use(config gate.Config) { r.config.Store(&config) }

// ImageData implements rulecontext.Images. Of an index it reads the image that a linux/amd64 node
// runs (image.Usual).
func (r *RuleImages) ImageData(ctx context.Context, reference string, credentials policy.Credentials) (map[string]any, error) {
	config := r.config.Load()
	if config == nil {
		return nil, errors.New("no registry can be asked here")
	}
	ref, err := image.Parse(reference)
	if err != nil {
		return nil, err
	}
	session, err := config.Registries.Open(ctx, gate.Access{Credentials: credentials}, ref.Repository())
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	pinned, err := tagdigest.Read(ctx, ref, session.Resolve)
	if err != nil {
		return nil, err
	}
	read, index, err := content.Reader{Fetcher: session, Parallel: 1}.Image(ctx, pinned)
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{"manifest": read.Manifest, "configData": read.Config}
	if len(index) > 0 {
		texts["imageIndex"] = index
	}
	data := map[string]any{
		"image": ref.String(), "resolvedImage": ref.Repository().String() + "@" + pinned.Digest().String(),
		"registry": ref.Repository().Registry(), "repository": ref.Repository().Path(), "identifier": identifier(ref),
	}
	for name, text := range texts {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return nil, &image.Error{Kind: image.Corrupt, Op: "read " + name, On: pinned.String(), Err: err}
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
