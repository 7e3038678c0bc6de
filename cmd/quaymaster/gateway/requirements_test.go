package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/carried"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestRequirementsAtAdmission: a requirement is added to the policies, for the images and namespaces that it names.
func TestRequirementsAtAdmission(t *testing.T) {
	d := newEnv(t)
	old, young, copied := d.Build("old", "v1", "3"), d.Build("young", "v1", "4"), d.Build("shop/old", "v1", "5")
	for image, ago := range map[string]time.Duration{"old": 100 * time.Hour, "young": time.Hour} {
		built := old
		if image == "young" {
			built = young
		}
		if err := d.SignLegacy(built, verifytest.Claim{Signer: d.key, Time: time.Now().Add(-ago)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	d.write(t, "root.json", string(d.Sigstore.TrustedRoot()))
	d.write(t, "policies/policy.yaml", strings.ReplaceAll(strings.ReplaceAll(policyText("signed", "Pod", d.key), ", rekor: {ignoreTlog: true}", ""),
		`imageReferences: ["*"]`, `imageReferences: ["*/old*", "*/young*", "*/signed*"]`))
	r := d.start(t, `trust: {trustedRoot: FOLDER/root.json}
requirements:
- {images: ["*/old*", "*/young*"], namespaces: ["prod-*"], minimumAge: 72h}
- {images: ["*/shop/*"], minimumAge: 1h}
- {images: ["*/old*"], namespaces: [fresh], maximumAge: 24h}
`)
	for _, row := range []struct {
		reason, kind, namespace, image string
		allowed                        bool
		says                           string
	}{
		{"old enough", "Pod", "prod-a", old.ByDigest(), true, ""},
		{"too young", "Pod", "prod-a", young.ByDigest(), false, "too-young"},
		{"too young, elsewhere", "Pod", "test", young.ByDigest(), true, ""},
		{"too old", "Pod", "fresh", old.ByDigest(), false, "too-old"},
		{"an image that no policy names, under a requirement", "Pod", "test", copied.ByDigest(), false, "no policy verified"},
		{"in a kind that no policy names, under a requirement", "Deployment", "test", copied.ByDigest(), false, "no policy verified"},
		{"an image that neither names", "Pod", "prod-a", d.Build("other", "v1", "6").ByDigest(), true, ""},
		{"the policy's own requirement remains", "Pod", "test", d.unsignedAs(t, "young2"), false, "unsigned"},
	} {
		got := r.mustAsk(t, "/validate", row.kind, row.namespace, row.image)
		if got.Allowed != row.allowed || !strings.Contains(got.Status.Message, row.says) {
			t.Errorf("%s: allowed %t: %s", row.reason, got.Allowed, got.Status.Message)
		}
	}
}

// unsignedAs builds an image that is not signed, and returns its name.
func (d *env) unsignedAs(t *testing.T, name string) string {
	t.Helper()
	return d.Build(name, "v1", name).ByDigest()
}

// TestRequirementSettings: settings that mean nothing are refused with their path, and all are carried where settings are.
func TestRequirementSettings(t *testing.T) {
	c, err := config.Parse([]byte(head + "requirements: [{images: ['*'], minimumAge: 72h}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Required(); err != nil || p == nil || len(p.Targets) == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if settings, lost := carried.Settings(c, carried.Given{}); len(lost) != 0 || len(settings.Requirements) != 1 {
		t.Errorf("carried elsewhere are %v; reported is %q", settings.Requirements, lost)
	}
	if p, err := (&config.Configuration{}).Required(); p != nil || err != nil {
		t.Errorf("%+v, %v without a requirement", p, err)
	}
	for text, says := range map[string]string{
		"[{minimumAge: 72h}]": "requirements[0].images: is empty",
		"[{images: ['*']}]":   "requirements[0]: requires nothing",
		"[{images: ['*'], minimumAge: 72h}, {images: ['*']}]": "requirements[1]: requires nothing",
		"[{images: ['*'], minimumAge: 3 days}]":               "requirements.minimumAge: want a duration",
		"[{images: ['*'], minimalAge: 72h}]":                  "requirements[0].minimalAge",
		"[{images: ['https://x/y'], minimumAge: 72h}]":        "requirements[0].images[0]",
		"[{images: ['*'], namespaces: [''], minimumAge: 1h}]": "requirements[0].namespaces[0]",
	} {
		if _, err := config.Parse([]byte(head + "requirements: " + text + "\n")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
