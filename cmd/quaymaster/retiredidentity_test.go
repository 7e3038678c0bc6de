package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestRetiredIdentity: an identity counts only before or only after a time, in both formats, as the settings of a
// gateway bound it, which a bundle carries.
func TestRetiredIdentity(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	const issuer, subject = "https://issuer.example", "https://git.example/shop/app/release.yaml@refs/tags/v1"
	signer, err := h.Sigstore.Keyless(verifytest.Identity{URI: subject, Issuer: issuer})
	ok(t, err)
	legacy, bundled := h.Build("legacy", "v1", "1"), h.Build("bundled", "v1", "2")
	ok(t, h.SignLegacy(legacy, verifytest.Claim{Signer: signer}, nil))
	ok(t, h.SignBundle(bundled, verifytest.Claim{Signer: signer}, nil))
	policies := h.file(t, "policy.yaml", `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: by-release
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      attestors: [{entries: [{keyless: {issuer: "`+issuer+`", subject: "`+subject+`"}}]}]
`)
	early, late := time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339)
	for _, c := range []struct {
		reason, entry string
		code          int
	}{
		{"signed before", "{issuer: '" + issuer + "', subject: 'https://git.example/shop/*', notAfter: " + late + "}", command.ExitAllowed},
		{"signed after", "{issuer: '" + issuer + "', subject: 'https://git.example/shop/*', notAfter: " + early + "}", command.ExitDenied},
		{"signed after the beginning", "{issuer: '" + issuer + "', subject: '" + subject + "', notBefore: " + early + "}", command.ExitAllowed},
		{"signed before the beginning", "{issuer: '" + issuer + "', subject: '" + subject + "', notBefore: " + late + "}", command.ExitDenied},
		{"another subject", "{issuer: '" + issuer + "', subject: 'https://git.example/other/*', notAfter: " + early + "}", command.ExitAllowed},
		{"another issuer", "{issuer: 'https://other.example', subject: '" + subject + "', notAfter: " + early + "}", command.ExitAllowed},
	} {
		t.Run(c.reason, func(t *testing.T) {
			name := strings.ReplaceAll(c.reason, " ", "-")
			settings := h.file(t, name+".yaml", "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\ntrust: {retiredIdentities: ["+c.entry+"]}\n")
			file := h.path(name + ".tar.gz")
			if code, out, errs := quaymaster(t, "bundle", "create", "-o", file, "--gateway-config", settings, "--trusted-root", h.path("trusted_root.json"), "--policy", policies); code != command.ExitAllowed {
				t.Fatalf("exit %d: %s%s", code, out, errs)
			}
			for _, image := range []gatetest.Image{legacy, bundled} {
				code, out, errs := quaymaster(t, "verify", image.Name, "--bundle", file)
				if code != c.code || c.code == command.ExitDenied && !strings.Contains(out, "outside-validity") {
					t.Errorf("%s: exit %d, want %d:\n%s%s", image.Name, code, c.code, out, errs)
				}
			}
		})
	}
}
