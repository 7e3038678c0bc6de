// Package env makes images to admit, and their signatures.
//
// It is a registry in the test's own process, which counts its requests, with signed and
// unsigned images, and writes policies that require those signatures.
package env

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Env is a registry and signers. It is not safe for concurrent use, but the
// registry is.
type Env struct {
	*gatetest.Yard
	// Signer is trusted by the policies here, and Stranger is not.
	Signer, Stranger *verifytest.Signer
	built            int
}

// Open starts a registry on loopback over plain HTTP, unless the options say
// otherwise. Close it in the end.
func Open(options registrytest.Options) (*Env, error) {
	sigstore, err := verifytest.New(verifytest.Options{})
	if err != nil {
		return nil, fmt.Errorf("open a test environment: %w", err)
	}
	h := &Env{}
	for _, signer := range []**verifytest.Signer{&h.Signer, &h.Stranger} {
		*signer, err = verifytest.KeySigner(verifytest.KeyOptions{})
		if err != nil {
			return nil, fmt.Errorf("open a test environment: %w", err)
		}
	}
	registry, err := registrytest.Listen(options)
	if err != nil {
		return nil, fmt.Errorf("open a test environment: %w", err)
	}
	h.Yard = gatetest.New(registry, sigstore)
	return h, nil
}

// Close ends the registry.
func (h *Env) Close() { h.Registry.Close() }

// Unsigned builds an image like no other under a tag, and moves the tag if it is
// there.
func (h *Env) Unsigned(repository, tag string) gatetest.Image {
	h.built++
	return h.Build(repository, tag, fmt.Sprintf("%s:%s %d", repository, tag, h.built))
}

// Signed builds an image and signs it with the signer's key, as cosign 2 does
// without a transparency log.
func (h *Env) Signed(repository, tag string) (gatetest.Image, error) {
	return h.SignedBy(h.Signer, repository, tag)
}

// SignedBy is Signed with another's key.
func (h *Env) SignedBy(signer *verifytest.Signer, repository, tag string) (gatetest.Image, error) {
	image := h.Unsigned(repository, tag)
	return image, h.SignLegacy(image, verifytest.Claim{Signer: signer, NoLog: true}, nil)
}

// Pinned is the name that admission writes: by tag and digest.
func Pinned(image gatetest.Image) string { return image.Name + "@" + image.Manifest.Digest }

// maxManifest bounds a manifest that is copied, in bytes.
const maxManifest = 1 << 20

// CopyTo puts an image's manifest, and nothing else, into another registry, as a mirror that
// leaves signatures behind. The layers of an image are not pulled here.
func (h *Env) CopyTo(other *Env, image gatetest.Image, repository, tag string) (gatetest.Image, error) {
	url := "http://" + h.Registry.Host() + "/v2/" + image.Repository + "/manifests/" + image.Manifest.Digest
	response, err := http.Get(url) //nolint:noctx // loopback, in the same process
	if err != nil {
		return gatetest.Image{}, fmt.Errorf("copy %s: %w", image.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxManifest))
	if err != nil || response.StatusCode != http.StatusOK {
		return gatetest.Image{}, fmt.Errorf("copy %s: %s, %w", image.Name, response.Status, err)
	}
	return gatetest.Image{
		Name: other.Registry.Host() + "/" + repository + ":" + tag, Repository: repository,
		Manifest: other.Registry.PutManifest(repository, tag, image.Manifest.MediaType, body),
	}, nil
}

// Policy is a ClusterPolicy with one rule: images are signed with the signer's
// key. Only Name is required.
type Policy struct {
	Name string
	// Kinds that the rule matches; the default is Pod.
	Kinds []string
	// Namespaces that the rule matches; the default is all.
	Namespaces []string
	// Images are patterns; the default is every image of the registry.
	Images []string
	// Action is Enforce, Audit or Warn; the default is Enforce.
	Action string
	// FailurePolicy is Fail or Ignore; empty leaves it out.
	FailurePolicy string
	// Rule holds further fields of the entry of verifyImages, for example
	// mutateDigest: false.
	Rule map[string]any
	// Extractors are the rule's imageExtractors, by kind.
	Extractors map[string]any
	// Spec holds further fields of the specification, for example emitWarning:
	// true.
	Spec map[string]any
	// Labels of the policy itself.
	Labels map[string]string
}

// YAML writes a policy as a manifest.
func (h *Env) YAML(p Policy) (string, error) {
	resources := map[string]any{"kinds": orDefault(p.Kinds, "Pod")}
	if len(p.Namespaces) > 0 {
		resources["namespaces"] = p.Namespaces
	}
	entry := map[string]any{
		"imageReferences": orDefault(p.Images, h.Registry.Host()+"/*"),
		"failureAction":   orDefault(compact(p.Action), "Enforce")[0],
		"attestors": []any{map[string]any{"entries": []any{map[string]any{"keys": map[string]any{
			"publicKeys": string(h.Signer.PublicPEM()), "rekor": map[string]any{"ignoreTlog": true},
			"ctlog": map[string]any{"ignoreSCT": true},
		}}}}},
	}
	maps.Copy(entry, p.Rule)
	maps.DeleteFunc(entry, func(_ string, value any) bool { return value == nil }) // nil leaves a field out
	rule := map[string]any{
		"name":         "signed",
		"match":        map[string]any{"any": []any{map[string]any{"resources": resources}}},
		"verifyImages": []any{entry},
	}
	if p.Extractors != nil {
		rule["imageExtractors"] = p.Extractors
	}
	spec := map[string]any{
		"webhookTimeoutSeconds": 10,
		"rules":                 []any{rule},
	}
	if p.FailurePolicy != "" {
		spec["failurePolicy"] = p.FailurePolicy
	}
	maps.Copy(spec, p.Spec)
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy",
		"metadata": map[string]any{"name": p.Name, "labels": p.Labels}, "spec": spec,
	})
	if err != nil {
		return "", fmt.Errorf("write the policy %s: %w", p.Name, err)
	}
	return string(text), nil
}

func compact(text string) []string { return strings.Fields(text) }

func orDefault(list []string, fallback string) []string {
	if len(list) == 0 {
		return []string{fallback}
	}
	return list
}
