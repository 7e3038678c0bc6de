package api_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
)

// TestOverrides: the results for CI systems and nodes during an incident.
func TestOverrides(t *testing.T) {
	h := testkit.Must(gatetest.NewEnv())(t)
	t.Cleanup(h.Close)
	good, other := h.Build("shop/good", "1", "good"), h.Build("shop/other", "1", "other")
	endpoint := newEndpoint(t, testkit.Must(h.Overriding(policy.OverrideDeny, `{"digests": ["`+good.Manifest.Digest+`"]}`))(t))
	for _, c := range []struct {
		image    string
		want     gate.Result
		override string
	}{
		{good.Name, gate.Deny, "ImageOverride/bad-day"},
		{good.ByDigest(), gate.Deny, "ImageOverride/bad-day"},
		{other.Name, gate.Unchecked, ""},
	} {
		image := listOf(t, call(endpoint, `{"images": ["`+c.image+`"], "namespace": "shop"}`, nil)).Items[0].Images[0]
		if image.Result != c.want || image.Override != c.override {
			t.Errorf("%s: %s by %q", c.image, image.Result, image.Override)
		}
	}
}
