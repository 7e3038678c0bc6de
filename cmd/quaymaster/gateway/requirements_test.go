package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
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

// TestBuildsAtAdmission requires provenance in addition to policies, by known and declared builders.
func TestBuildsAtAdmission(t *testing.T) {
	d := newEnv(t)
	const workflow, chains = "https://github.com/org/app/.github/workflows/release.yml@refs/tags/v1", "https://tekton.dev/chains/v2"
	identity := verifytest.Must(d.Sigstore.Keyless(verifytest.Identity{
		URI: workflow, Issuer: "https://token.actions.githubusercontent.com",
		Extensions: map[verifytest.Extension]string{verifytest.RunnerEnvironment: "github-hosted", verifytest.SourceRepositoryURI: "https://github.com/org/app"},
	}))
	provenance := func(builder, buildType string) map[string]any {
		return map[string]any{
			"buildDefinition": map[string]any{
				"buildType": buildType, "externalParameters": map[string]any{"workflow": map[string]any{"repository": "https://github.com/org/app", "ref": "refs/tags/v1"}},
				"resolvedDependencies": []any{map[string]any{"uri": "git+https://github.com/org/app.git"}},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": builder}},
		}
	}
	attested, tekton, forged, plain := d.Build("github", "v1", "3"), d.Build("tekton", "v1", "4"), d.Build("forged", "v1", "5"), d.Build("plain", "v1", "6")
	for _, err := range []error{
		d.AttestBundle(attested, verifytest.Claim{Signer: identity}, attest.PredicateSLSAv1, provenance(workflow, "https://actions.github.io/buildtypes/workflow/v1")),
		d.AttestBundle(tekton, verifytest.Claim{Signer: d.key, NoLog: true}, attest.PredicateSLSAv1, provenance(chains, chains+"/slsa")),
		d.AttestBundle(forged, verifytest.Claim{Signer: identity}, attest.PredicateSLSAv1, provenance(chains, chains+"/slsa")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.write(t, "root.json", string(d.Sigstore.TrustedRoot()))
	d.write(t, "policies/policy.yaml", strings.ReplaceAll(policyText("signed", "Pod", d.key), `imageReferences: ["*"]`, `imageReferences: ["*/signed*"]`))
	r := d.start(t, `trust:
  trustedRoot: FOLDER/root.json
  builders: [{id: `+chains+`, ignoreTlog: true, key: "`+strings.ReplaceAll(string(d.key.PublicPEM()), "\n", `\n`)+`"}]
requirements:
- {images: ["*"], namespaces: [prod], slsaBuildLevel: 2, source: {uri: github.com/org/app}}
- {images: ["*"], namespaces: [own], builder: [`+chains+`]}
- {images: ["*"], namespaces: [fork], source: {uri: github.com/fork/app}}
- {images: ["*"], namespaces: [three], slsaBuildLevel: 3}
`)
	for _, row := range []struct {
		reason, namespace, image string
		allowed                  bool
		says                     string
	}{
		{"a known builder", "prod", attested.ByDigest(), true, ""},
		{"a declared builder", "prod", tekton.ByDigest(), true, ""},
		{"the declared builder by another signer", "prod", forged.ByDigest(), false, "wrong-builder"},
		{"none", "prod", plain.ByDigest(), false, "no-attestation"},
		{"none, where none is required", "test", plain.ByDigest(), true, ""},
		{"the builder that is required", "own", tekton.ByDigest(), true, ""},
		{"another one", "own", attested.ByDigest(), false, "wrong-"},
		{"another source", "fork", attested.ByDigest(), false, "wrong-source"},
		{"a lower level", "three", attested.ByDigest(), false, "low-build-level"},
	} {
		got := r.mustAsk(t, "/validate", "Pod", row.namespace, row.image)
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
		"[{images: ['*'], slsaBuildLevel: 4}]":                "requirements[0]: build level 4",
		"[{images: ['*'], slsaBuildLevel: -1}]":               "requirements[0]: build level -1",
		"[{images: ['*'], builder: ['']}]":                    "requirements[0]: builder",
		"[{images: ['*'], source: {uri: 'oci://x/y'}}]":       "requirements[0].source: source",
		"[{images: ['*'], source: {uri: 'x.io/y@main'}}]":     "requirements[0].source: uri",
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

// TestBuilderSettings: a declared builder has a signer, and is used.
func TestBuilderSettings(t *testing.T) {
	for text, says := range map[string]string{
		"{id: 'https://ci.example', level: 3}":                                           "any signer can write",
		"{id: '**', issuer: 'https://issuer.example'}":                                   "want a URI",
		"{id: 'https://ci.example', key: none}":                                          "trust.builders[0].key",
		"{id: 'https://ci.example', issuer: 'https://issuer.example', ignoreTlog: true}": "has no effect without a key",
		"{id: 'https://ci.example', issuer: 'https://issuer.example', level: 9}":         "level 9",
		"{id: 'https://ci.example', issuer: 'https://issuer.example'}":                   "",
	} {
		_, err := config.Parse([]byte(head + "trust: {builders: [" + text + "]}\nrequirements: [{images: ['*'], slsaBuildLevel: 1}]\n"))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	if _, err := config.Parse([]byte(head + "trust: {builders: [{id: 'https://ci.example', issuer: 'https://issuer.example'}]}\n")); err == nil || !strings.Contains(err.Error(), "has no effect") {
		t.Errorf("a builder that nothing requires: %v", err)
	}
}
