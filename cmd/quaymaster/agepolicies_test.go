package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestAgePolicies: each policy of docs/requirements.md accepts an image of its age, by signatures of its builder,
// and refuses others, with one thing different.
func TestAgePolicies(t *testing.T) {
	page, err := os.ReadFile("../../docs/requirements.md")
	ok(t, err)
	h := newEnv(t, registrytest.Options{})
	var secrets strings.Builder
	for _, namespace := range []string{"security", "cosign-system"} {
		secrets.WriteString("---\napiVersion: v1\nkind: Secret\nmetadata: {name: builder, namespace: " + namespace + "}\ndata: {cosign.pub: " +
			base64.StdEncoding.EncodeToString(h.key.PublicPEM()) + "}\n")
	}
	secret := h.file(t, "secrets.yaml", secrets.String())
	const day = 24 * time.Hour
	backdated := json.RawMessage(`{"creationInfo":{"created":"2026-01-01T00:00:00Z"},"quaymaster":{"signedAt":"2020-01-01T00:00:00Z","timeSource":"log","ageSeconds":99999999}}`)
	build := func(name string, by *verifytest.Signer, signed, attested time.Duration) gatetest.Image {
		image := h.Build("shop/"+name, "v1", name)
		ok(t, h.SignLegacy(image, verifytest.Claim{Signer: by, Time: time.Now().Add(-signed)}, nil))
		ok(t, h.AttestLegacy(image, verifytest.Claim{Signer: by, Time: time.Now().Add(-attested)}, "https://spdx.dev/Document", backdated))
		return image
	}
	good, young, stale, foreign := build("good", h.key, 4*day, 4*day), build("young", h.key, day, 4*day), build("stale", h.key, 4*day, 31*day), build("foreign", h.stranger, 4*day, 4*day)
	mixed := build("mixed", h.key, day, 31*day)
	ok(t, h.SignLegacy(mixed, verifytest.Claim{Signer: h.stranger, Time: time.Now().Add(-9 * day)}, nil))
	ok(t, h.AttestLegacy(mixed, verifytest.Claim{Signer: h.stranger, Time: time.Now().Add(-day)}, "https://spdx.dev/Document", backdated))
	seen := map[string]int{}
	for _, example := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(example, "```")
		if strings.Contains(text, "kind: Configuration") {
			continue
		}
		kind, _, _ := strings.Cut(strings.SplitN(text, "kind: ", 2)[1], "\n")
		seen[kind]++
		bounds := []bool{strings.Contains(text, "first"), strings.Contains(text, "spdx")} // cool-down, fresh SBOM
		file := h.file(t, "policy.yaml", strings.ReplaceAll(text, "registry.example", h.Registry.Host()))
		for _, c := range []struct {
			reason string
			image  gatetest.Image
			denied bool
		}{
			{"good", good, false}, {"too young", young, bounds[0]}, {"a stale SBOM", stale, bounds[1]},
			{"signed by another", foreign, true}, {"an old signature of another", mixed, true},
		} {
			want := command.ExitAllowed
			if c.denied {
				want = command.ExitDenied
			}
			code, out, errs := quaymaster(t, "verify", c.image.Name, "--policy", file, "--resource", secret, "--trusted-root", h.path("trusted_root.json"))
			if code != want {
				t.Errorf("%s, %s: status %d, want %d: %s%s", kind, c.reason, code, want, out, errs)
			}
		}
	}
	if seen["ImageValidatingPolicy"] != 1 || seen["ClusterPolicy"] != 1 || seen["ClusterImagePolicy"] != 2 {
		t.Errorf("policies: %v", seen)
	}
}
