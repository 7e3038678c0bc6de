package externaldata_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

// TestOverrides: what keys come to on a bad day.
func TestOverrides(t *testing.T) {
	h := endpointtest.NewEnv(t)
	signed := testkit.Must(h.Policy(endpointtest.SignedImages))(t)
	good, bad := testkit.Must(h.Signed("good"))(t), h.Build("shop/bad", "1", "bad")
	digest := func(of string) string { return `{"digests": ["` + of + `"]}` }
	for _, c := range []struct {
		reason   string
		endpoint externaldata.Endpoint
		effect   policy.OverrideEffect
		match    string
		key      string
		value    string
		says     string
	}{
		{"signed, and denied", externaldata.Verify, policy.OverrideDeny, digest(good.Manifest.Digest), good.Name, "", "[override-denied]"},
		{"the same, to be written", externaldata.Mutate, policy.OverrideDeny, digest(good.Manifest.Digest), good.Name, "", "[override-denied]"},
		{"signed, and another is denied", externaldata.Verify, policy.OverrideDeny, digest(bad.Manifest.Digest), good.Name, good.Name + "@" + good.Manifest.Digest, ""},
		{"not signed, and allowed", externaldata.Verify, policy.OverrideAllow, digest(bad.Manifest.Digest), bad.ByDigest(), bad.ByDigest(), ""},
		{"the same, to be written by its digest", externaldata.Mutate, policy.OverrideAllow, digest(bad.Manifest.Digest), bad.Name, bad.Name + "@" + bad.Manifest.Digest, ""},
		{"not signed, and another is allowed", externaldata.Verify, policy.OverrideAllow, digest(good.Manifest.Digest), bad.ByDigest(), "", "[unsigned]"},
	} {
		g := testkit.Must(h.Overriding(c.effect, c.match, signed))(t)
		values, errs := send(t, endpoint(t, c.endpoint, g, withTimeout(10*time.Second)), c.key)
		if values[0] != c.value || !strings.Contains(errs[0], c.says) {
			t.Errorf("%s: value %q, error %q", c.reason, values[0], errs[0])
		}
	}
}
