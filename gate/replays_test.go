package gate_test

import (
	"fmt"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// replay is a pattern of a public incident, with keys of our own: an image that the policies accept, since
// its signature or statement is genuine, until it is found to be malicious.
type replay struct {
	// pattern names it, with the identifier of an advisory about an incident of the pattern, where one was
	// found. No replay claims to be exact.
	pattern string
	// found is how long after its publication it is found.
	found time.Duration
	// attack publishes the malicious image, and returns the name by which it is used.
	attack func(t *testing.T, h *env, at time.Time) string
}

// replays are the patterns. All of them have the good image shop/app:v1, which the key of the project has
// signed, and a statement of its build.
func replays() []replay {
	signed := func(t *testing.T, h *env, image gatetest.Image, by *verifytest.Signer, at time.Time) string {
		must(0, h.SignLegacy(image, verifytest.Claim{Signer: by, Time: at}, nil))(t)
		must(0, h.AttestLegacy(image, verifytest.Claim{Signer: by, Time: at}, "https://slsa.dev/provenance/v1", map[string]any{"built": "yes"}))(t)
		return image.Name
	}
	return []replay{
		{"a stolen token publishes a new version (GHSA-6m4g-vm7c-f8w6)", 12 * time.Hour, func(t *testing.T, h *env, at time.Time) string {
			return signed(t, h, h.Build("shop/app", "v1.0.1", "with a stealer"), h.key, at)
		}},
		{"a tag is moved to another digest (CVE-2025-30066)", 24 * time.Hour, func(t *testing.T, h *env, at time.Time) string {
			return signed(t, h, h.Build("shop/app", "v1", "with a memory dump"), h.key, at)
		}},
		{"a look-alike name is published by another signer", 70 * time.Hour, func(t *testing.T, h *env, at time.Time) string {
			return signed(t, h, h.Build("shopp/app", "v1", "with a remote shell"), h.stranger, at)
		}},
		{"the build system adds to the release", 40 * time.Hour, func(t *testing.T, h *env, at time.Time) string {
			return signed(t, h, h.backdated("shop/app", "v2", "with a miner"), h.key, at)
		}},
		{"the account of a maintainer signs a release", 5 * time.Hour, func(t *testing.T, h *env, at time.Time) string {
			return signed(t, h, h.Build("shop/lib", "v1", "with a thief of keys"), h.key, at)
		}},
	}
}

// backdated builds an image that claims to be years old, wherever its author can write a time.
func (h *env) backdated(repository, tag, content string) gatetest.Image {
	const old = "2020-01-01T00:00:00Z"
	config := h.Registry.PutBlob(repository, ocispec.MediaTypeImageConfig,
		[]byte(`{"created": "`+old+`", "architecture": "amd64", "os": "linux", "history": [{"created": "`+old+`"}], "rootfs": {"type": "layers", "diff_ids": []}}`))
	layer := h.Registry.PutBlob(repository, ocispec.MediaTypeImageLayer, []byte(content))
	body := fmt.Sprintf(`{"schemaVersion": 2, "mediaType": %q, "config": {"mediaType": %q, "digest": %q, "size": %d}, "layers": [{"mediaType": %q, "digest": %q, "size": %d}],
		"annotations": {"org.opencontainers.image.created": %q}}`, ocispec.MediaTypeImageManifest, config.MediaType, config.Digest, config.Size, layer.MediaType, layer.Digest, layer.Size, old)
	return gatetest.Image{
		Name: h.Registry.Host() + "/" + repository + ":" + tag, Repository: repository,
		Manifest: h.Registry.PutManifest(repository, tag, ocispec.MediaTypeImageManifest, []byte(body)),
	}
}

// TestBackdated: times that the author of an image writes change nothing, in the image or in its signature.
func TestBackdated(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.backdated("shop/app", "v1", "1")
	must(0, h.SignLegacy(app, verifytest.Claim{Signer: h.key, Time: time.Now().Add(-time.Hour)}, map[string]any{"created": "2020-01-01T00:00:00Z"}))(t)
	untimed := h.backdated("shop/app", "v2", "2")
	must(0, h.SignLegacy(untimed, byKey(h.key), map[string]any{"created": "2020-01-01T00:00:00Z"}))(t)
	logged, unlogged := loggedBy(1, h.key), signedBy(h.key)
	for _, c := range []struct {
		image gatetest.Image
		rule  policy.Rule
		want  gate.Result
		codes string
	}{{app, logged, gate.Deny, "too-young"}, {app, unlogged, gate.Error, "no-verified-time"}, {untimed, unlogged, gate.Error, "no-verified-time"}} {
		p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{c.rule}}
		if out := decide(t, h.requiring(t, []*policy.Policy{p, settings(t, minimum(72*time.Hour))}), c.image.Name); out.Result != c.want || codesOf(out) != c.codes {
			t.Errorf("%s: %s (%s), want %s (%s)", c.image.Name, out.Result, codesOf(out), c.want, c.codes)
		}
	}
}

// TestReplays: of each pattern, the malicious digest is refused by the cool-down alone until it is found,
// and the good one never is.
func TestReplays(t *testing.T) {
	for _, r := range replays() {
		t.Run(r.pattern, func(t *testing.T) {
			h := newEnv(t, registrytest.Options{})
			published := time.Now().Add(-96 * time.Hour).Truncate(time.Second)
			good := h.Build("shop/app", "v1", "good")
			must(0, h.SignLegacy(good, verifytest.Claim{Signer: h.key, Time: published.Add(-500 * time.Hour)}, nil))(t)
			must(0, h.AttestLegacy(good, verifytest.Claim{Signer: h.key, Time: published.Add(-500 * time.Hour)}, "https://slsa.dev/provenance/v1", map[string]any{"built": "yes"}))(t)
			malicious := r.attack(t, h, published)
			rule := loggedBy(1, h.key, h.stranger)
			rule.check.Attestations = []policy.Attestation{{Path: "attestations[0]", PredicateType: "https://slsa.dev/provenance/v1", Signers: rule.check.Requirements}}
			policies := []*policy.Policy{{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{rule}}}
			at := func(passed time.Duration) gate.Option {
				return gate.WithClock(func() time.Time { return published.Add(passed) })
			}
			for _, passed := range []time.Duration{time.Second, time.Hour, r.found / 2, r.found} {
				if out := decide(t, h.requiring(t, policies, at(passed)), malicious); out.Result != gate.Allow {
					t.Fatalf("after %s, without a cool-down: %s (%s), so it would show nothing", passed, out.Result, codesOf(out))
				}
				g := h.requiring(t, append([]*policy.Policy{settings(t, minimum(72*time.Hour))}, policies...), at(passed))
				if out := decide(t, g, malicious); out.Result != gate.Deny || codesOf(out) != "too-young" {
					t.Errorf("after %s, the malicious image: %s (%s), want too-young", passed, out.Result, codesOf(out))
				}
				if out := decide(t, g, good.ByDigest()); out.Result != gate.Allow {
					t.Errorf("after %s, the good image: %s (%s), want allow", passed, out.Result, codesOf(out))
				}
			}
		})
	}
}
