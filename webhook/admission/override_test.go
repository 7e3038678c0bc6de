package admission_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// TestOverrides sends pods to both endpoints, with overrides.
func TestOverrides(t *testing.T) {
	h := newEnv(t)
	signed := &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "1", Rules: []policy.Rule{h}}
	good, bad := testkit.Must(h.Signed("good"))(t), h.Build("shop/bad", "1", "bad")

	denies := testkit.Must(h.Overriding(policy.OverrideDeny, `{"digests": ["`+good.Manifest.Digest+`"]}`, signed))(t)
	for _, c := range []struct {
		endpoint admission.Endpoint
		image    string
	}{{admission.Mutate, good.Name}, {admission.Mutate, good.ByDigest()}, {admission.Validate, good.ByDigest()}} {
		message := send(t, endpoint(t, c.endpoint, denies), review(t, "CREATE", pod(c.image), nil, nil)).Response
		for _, text := range []string{"[override-denied]", "bad-day", "INC-7", "next: "} {
			if message.Allowed || !strings.Contains(message.Status.Message, text) {
				t.Errorf("%s at %s: allowed %t, and %q is not in\n%s", c.image, c.endpoint, message.Allowed, text, message.Status.Message)
			}
		}
	}

	allows := testkit.Must(h.Overriding(policy.OverrideAllow, `{"digests": ["`+bad.Manifest.Digest+`"]}`, signed))(t)
	mutate, validate := endpoint(t, admission.Mutate, allows), endpoint(t, admission.Validate, allows)
	stored := admit(t, mutate, "CREATE", pod(bad.Name), nil)
	if got := texts(t, stored)["c0"]; got != bad.Name+"@"+bad.Manifest.Digest {
		t.Errorf("stored %s: what an override allows by digest is pinned to it", got)
	}
	if a := send(t, validate, review(t, "CREATE", stored, nil, nil)).Response; !a.Allowed || len(a.Warnings) == 0 {
		t.Errorf("allowed %t by the second endpoint, warnings %q: %s", a.Allowed, a.Warnings, a.Status.Message)
	}
	if a := send(t, validate, review(t, "CREATE", pod(bad.Name), nil, nil)).Response; a.Allowed {
		t.Error("a tag that was not pinned is allowed by a digest")
	}
	other := h.Build("shop/other", "1", "other")
	if a := send(t, mutate, review(t, "CREATE", pod(bad.Name, other.Name), nil, nil)).Response; a.Allowed {
		t.Error("the image beside it is allowed as well")
	}
}
