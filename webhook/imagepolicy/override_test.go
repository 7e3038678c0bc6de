package imagepolicy_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

// TestOverrides: the review of a pod's images on a bad day.
func TestOverrides(t *testing.T) {
	h := endpointtest.NewEnv(t)
	signed := testkit.Must(h.Policy(endpointtest.SignedImages))(t)
	good, bad := testkit.Must(h.Signed("good"))(t), h.Build("shop/bad", "1", "bad")
	elsewhere := h.Build("tools/x", "1", "x")
	digest := func(of string) string { return `{"digests": ["` + of + `"]}` }
	repository := `{"repositories": ["` + h.Registry.Host() + `/shop/*"]}`
	for _, c := range []struct {
		reason  string
		effect  policy.OverrideEffect
		match   string
		image   string
		allowed bool
		says    string
	}{
		{"signed, and denied", policy.OverrideDeny, digest(good.Manifest.Digest), good.ByDigest(), false, "[override-denied]"},
		{"signed, and another is denied", policy.OverrideDeny, digest(bad.Manifest.Digest), good.ByDigest(), true, ""},
		{"no policy matches it, and it is denied by its tag", policy.OverrideDeny, digest(elsewhere.Manifest.Digest), elsewhere.Name, false, "[override-denied]"},
		{"its repository is denied", policy.OverrideDeny, repository, good.ByDigest(), false, "INC-7"},
		{"not signed, and allowed", policy.OverrideAllow, digest(bad.Manifest.Digest), bad.ByDigest(), true, ""},
		{"not signed, and its repository allowed", policy.OverrideAllow, repository, bad.Name, true, ""},
		{"not signed, allowed by digest, and named by a tag that is not pinned", policy.OverrideAllow, digest(bad.Manifest.Digest), bad.Name, false, "[unsigned]"},
	} {
		g := testkit.Must(h.Overriding(c.effect, c.match, signed))(t)
		status := send(t, endpoint(t, g), "shop", c.image)
		if status.Allowed != c.allowed || !strings.Contains(status.Reason, c.says) {
			t.Errorf("%s: allowed %t: %s", c.reason, status.Allowed, status.Reason)
		}
	}
}
