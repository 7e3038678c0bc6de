package suite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy/suite"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// layoutSuite is a suite about images of OCI layouts: two policies that want one key,
// of two dialects. %[1]s is the key as a block of YAML.
const layoutSuite = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: older}
spec:
  validationFailureAction: Enforce
  webhookConfiguration: {timeoutSeconds: 10}
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["registry.example/*"]
      attestors: [{entries: [{keys: {publicKeys: %[1]q}}]}]
---
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: newer}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchImageReferences: [{glob: "registry.example/*"}]
  attestors: [{name: release, cosign: {key: {data: %[1]q}}}]
  validations:
  - {expression: "images.containers.all(i, verifyImageSignatures(i, [attestors.release]) > 0)", message: not signed}
`

const layoutTest = `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: layouts}
policies: [policies.yaml]
resources: [pods.yaml]
trustedRoot: trusted_root.json
images:
- {layout: ours}
- {layout: theirs}
results:
- {policy: older, rule: signed, kind: Pod, resources: [cosign2, cosign3], result: pass}
- {policy: older, rule: signed, kind: Pod, resources: [unsigned, by-a-stranger], result: fail}
- {policy: older, rule: signed, kind: Pod, resources: [not-there], result: error}
- {policy: newer, kind: Pod, resources: [cosign2, cosign3], result: pass}
- {policy: newer, kind: Pod, resources: [unsigned, by-a-stranger], result: fail}
- {policy: newer, kind: Pod, resources: [not-there], result: error}
`

// TestLayouts judges images that lie in layouts with the signatures that they have:
// keys and trusted root are real ones, and nothing is fetched.
func TestLayouts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	fillLayouts(t, folder)
	expect(t, folder, 1, 10)

	t.Run("every expectation turned round", func(t *testing.T) {
		copied := copyOf(t, folder)
		change(t, copied, func(document map[string]any) {
			for _, row := range document["results"].([]any) {
				row := row.(map[string]any)
				row["result"] = opposite[row["result"].(string)]
			}
		})
		if report := run(t, copied, suite.Options{}); report.Passed+report.Skipped > 0 || report.Failed != 10 {
			t.Errorf("%s", report.Summary())
		}
	})
	t.Run("an image that two layouts have", func(t *testing.T) {
		copied := copyOf(t, folder)
		twice := strings.Replace(layoutTest, "- {layout: theirs}", "- {layout: theirs}\n- {layout: ours}", 1)
		must(t, os.WriteFile(filepath.Join(copied, suite.FileName), []byte(twice), 0o600))
		expect(t, copied, 1, 10)
	})
	for _, c := range []struct{ reason, old, new, want string }{
		{"another trusted root", "trustedRoot: trusted_root.json", "trustedRoot: other_root.json", "want pass, got fail"},
		{"no trusted root", "trustedRoot: trusted_root.json\n", "", "want pass, got fail"},
		{"a trusted root that is not there", "trustedRoot: trusted_root.json", "trustedRoot: none.json", "trustedRoot"},
		{"the layout of the signed images is left out", "- {layout: ours}\n", "", "want pass, got error"},
		{"a layout that is none", "layout: theirs", "layout: pods.yaml", "images[1]: layout"},
		{"a tag of two images", "- {layout: theirs}", "- {layout: theirs}\n- {layout: again}", "another of the layouts has another manifest under this tag"},
		{"a layout and images that are built", "- {layout: theirs}", `- {name: "registry.example/web:v1", unsigned: true}`, "make two suites"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			copied := copyOf(t, folder)
			changed := strings.Replace(layoutTest, c.old, c.new, 1)
			if err := os.WriteFile(filepath.Join(copied, suite.FileName), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			if report := run(t, copied, suite.Options{}); report.Failed == 0 || !strings.Contains(text(t, report), c.want) {
				t.Errorf("%d failed, want some that say %q:\n%s", report.Failed, c.want, text(t, report))
			}
		})
	}
}

// fillLayouts writes the suite, and two layouts: one of images that a key of ours
// signed, in the formats of cosign 2 and cosign 3, and one of the others.
func fillLayouts(t *testing.T, folder string) {
	t.Helper()
	sigstore, err := verifytest.New(verifytest.Options{Name: "layouts"})
	must(t, err)
	other, err := verifytest.New(verifytest.Options{Name: "other"})
	must(t, err)
	key, err := verifytest.KeySigner(verifytest.KeyOptions{})
	must(t, err)
	stranger, err := verifytest.KeySigner(verifytest.KeyOptions{})
	must(t, err)
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	yard := gatetest.New(server, sigstore)

	older, newer, unsigned, strange := yard.Build("cosign2", "v1", "2"), yard.Build("cosign3", "v1", "3"), yard.Build("unsigned", "v1", "u"), yard.Build("strange", "v1", "s")
	must(t, yard.SignLegacy(older, verifytest.Claim{Signer: key}, nil))
	must(t, yard.SignBundle(newer, verifytest.Claim{Signer: key}, nil))
	must(t, yard.SignLegacy(strange, verifytest.Claim{Signer: stranger}, nil))
	save(t, filepath.Join(folder, "ours"), older, newer)
	save(t, filepath.Join(folder, "theirs"), unsigned, strange)
	save(t, filepath.Join(folder, "again"), yard.Build("cosign2", "v1", "another"))

	var pods strings.Builder
	for pod, of := range map[string]string{
		"cosign2": "cosign2", "cosign3": "cosign3", "unsigned": "unsigned", "by-a-stranger": "strange", "not-there": "none",
	} {
		fmt.Fprintf(&pods, "---\n{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: a, image: 'registry.example/%s:v1'}]}}\n", pod, of)
	}
	for file, content := range map[string]string{
		"policies.yaml": fmt.Sprintf(layoutSuite, key.PublicPEM()), "pods.yaml": pods.String(), suite.FileName: layoutTest,
		"trusted_root.json": string(sigstore.TrustedRoot()), "other_root.json": string(other.TrustedRoot()),
	} {
		must(t, os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600))
	}
}

// save writes images into a layout, with whatever refers to them, under the names of
// another registry.
func save(t *testing.T, folder string, images ...gatetest.Image) {
	t.Helper()
	to, err := layout.Write(folder, empty.Index)
	must(t, err)
	keep := func(reference name.Reference, called string) bool {
		image, err := remote.Image(reference)
		if err != nil {
			return false
		}
		var options []layout.Option
		if called != "" {
			options = append(options, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": called}))
		}
		must(t, to.AppendImage(image, options...))
		return true
	}
	for _, one := range images {
		tag, err := name.NewTag(one.Name)
		must(t, err)
		digest, err := v1.NewHash(one.Manifest.Digest)
		must(t, err)
		if !keep(tag, "registry.example/"+one.Repository+":"+tag.TagStr()) {
			t.Fatalf("%s is not in the registry", one.Name)
		}
		signature := "sha256-" + digest.Hex + ".sig"
		keep(tag.Context().Tag(signature), "registry.example/"+one.Repository+":"+signature)
		index, err := remote.Referrers(tag.Context().Digest(one.Manifest.Digest))
		must(t, err)
		manifest, err := index.IndexManifest()
		must(t, err)
		for _, referrer := range manifest.Manifests {
			keep(tag.Context().Digest(referrer.Digest.String()), "")
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
