package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/tree"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	spdxType   = "https://spdx.dev/Document"
	reviewType = "https://example.com/review/v1"
)

// treePolicy requires a signature and an SBOM by a key.
const treePolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: ["*/shop/*"]
          attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]
          attestations: [{type: "https://spdx.dev/Document", attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]}]
`

// forest is an index with a claim in each format, by several signers.
func forest(t *testing.T, h *env) gatetest.Image {
	t.Helper()
	image := h.BuildIndex("shop/web", "v1", h.Build("shop/web", "amd64", "1"))
	workflow := verifytest.Must(h.Sigstore.Keyless(verifytest.Identity{URI: "https://git.example/org/app/release.yaml@refs/heads/main", Issuer: "https://token.example"}))
	notary := verifytest.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: "release"}))
	by := func(s *verifytest.Signer) verifytest.Claim { return verifytest.Claim{Signer: s, NoLog: true} }
	ok(t, h.SignLegacy(image, by(h.key), nil))
	ok(t, h.SignBundle(image, verifytest.Claim{Signer: workflow}, nil))
	ok(t, h.SignNotation(image, notary, verifytest.Notation{}))
	ok(t, h.AttestLegacy(image, by(h.key), spdxType, map[string]any{"name": "web"}))
	ok(t, h.AttestBundle(image, by(h.stranger), reviewType, map[string]any{"by": "ann"}))
	key, err := json.Marshal(string(h.key.PublicPEM()))
	ok(t, err)
	h.file(t, "tree.yaml", strings.ReplaceAll(treePolicy, "KEY", string(key)))
	return image
}

// scrubbed writes stable names for what differs between runs, and keeps the lengths of digests.
func (h *env) scrubbed(text string) string {
	text = strings.ReplaceAll(text, h.Registry.Host(), "registry.example")
	text = regexp.MustCompile(`[A-Za-z0-9+/]{43}=`).ReplaceAllString(text, "<hint>")
	text = regexp.MustCompile(`sha256:[0-9a-f]{64}\b`).ReplaceAllString(text, "sha256:<64>")
	text = regexp.MustCompile(`\b[0-9a-f]{64}\b`).ReplaceAllString(text, "<64>")
	return regexp.MustCompile(`\b[0-9a-f]{16}\b`).ReplaceAllString(text, "<16>")
}

// TestTree: the claims of a digest, as they are claimed and as policies trust them.
func TestTree(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := forest(t, h)
	for file, args := range map[string][]string{
		"claimed.txt":  {"tree", image.Name},
		"trusted.txt":  {"tree", "--policy", h.path("tree.yaml"), image.Name},
		"trusted.json": {"tree", "--policy", h.path("tree.yaml"), "-o", "json", image.Name},
	} {
		code, out, errs := quaymaster(t, args...)
		if code != command.ExitAllowed || !strings.Contains(out, image.Manifest.Digest) {
			t.Errorf("%v: exit status %d, want %s in:\n%s%s", args, code, image.Manifest.Digest, out, errs)
		}
		goldenOutput(t, "tree/"+file, h.scrubbed(out))
	}
	// A claim is never shown as a verdict without policies.
	_, claimed, _ := quaymaster(t, "tree", image.Name)
	if strings.Contains(claimed, "trusted") || strings.Count(claimed, "claimed, not verified") != 5 {
		t.Errorf("without policies:\n%s", claimed)
	}
	_, text, _ := quaymaster(t, "tree", "--policy", h.path("tree.yaml"), "-o", "yaml", image.Name)
	var read tree.Tree
	if err := yaml.UnmarshalStrict([]byte(text), &read); err != nil || read.Digest != image.Manifest.Digest || len(read.Claims) != 5 || len(read.Platforms) != 1 {
		t.Errorf("%v: %+v", err, read)
	}
	for _, c := range read.Claims {
		trusted := c.Format == "cosign" // by the key of the policy
		if (len(c.VerifiesFor) > 0) != trusted || (len(c.Unverified) > 0) == trusted {
			t.Errorf("%s %s (%s): trusted for %v, not for %v", c.Type, c.PredicateType, c.Format, c.VerifiesFor, c.Unverified)
		}
	}
}

// TestTreeStatus: what cannot be read is exit status 3, and wrong use 2.
func TestTreeStatus(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	bare := h.Build("shop/bare", "v1", "1")
	closed := registrytest.Start(registrytest.Options{})
	nowhere := closed.Host() + "/app:v1"
	closed.Close()
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		{"no claims", []string{bare.Name}, command.ExitAllowed, "no signature or attestation found"},
		{"no such image", []string{h.Registry.Host() + "/none:v1"}, command.ExitError, "could not be read"},
		{"registry down", []string{nowhere}, command.ExitError, "could not be read"},
		{"no image", nil, command.ExitUsage, "want one image"},
		{"two images", []string{bare.Name, bare.Name}, command.ExitUsage, "want one image, found 2"},
		{"a malformed reference", []string{"registry.test/app@sha256:../../x"}, command.ExitUsage, "sha256"},
		{"an unknown format", []string{"-o", "jsno", bare.Name}, command.ExitUsage, "did you mean json?"},
		{"no time", []string{"--timeout", "0s", bare.Name}, command.ExitUsage, "--timeout"},
		{"a missing policy", []string{"--policy", "no-such-file", bare.Name}, command.ExitUsage, "no-such-file"},
		{"offline without a layout", []string{"--offline", bare.Name}, command.ExitUsage, "--oci-layout"},
	} {
		code, out, errs := quaymaster(t, append([]string{"tree"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: exit status %d, want %d; want %q in:\n%s%s", c.reason, code, c.code, c.says, out, errs)
		}
	}
	h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Status(503)})
	if code, out, _ := quaymaster(t, "tree", bare.Name); code != command.ExitError || !strings.Contains(out, "could not be read or verified: ") || strings.Contains(out, "no signature") {
		t.Errorf("without its referrers: exit status %d:\n%s", code, out)
	}
}

// TestTreeForgesNoLine: text of a registry makes no line, and no control sequence.
func TestTreeForgesNoLine(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("shop/web", "v1", "1")
	const forged = "\n└─ verifies for: policy ClusterPolicy/signed, attestor release\x1b[2K"
	eve := verifytest.Must(h.Sigstore.Keyless(verifytest.Identity{Email: "eve@example.com" + strings.ReplaceAll(forged, "└─", "--"), Issuer: "https://token.example" + forged}))
	ok(t, h.AttestBundle(image, verifytest.Claim{Signer: eve}, "https://example.com/"+forged, map[string]any{}))
	ok(t, h.SignLegacy(image, verifytest.Claim{Signer: eve, NoLog: true}, nil))
	code, out, errs := quaymaster(t, "tree", image.Name)
	if code != command.ExitAllowed || !strings.Contains(out, "eve@example.com") || strings.ContainsAny(out, "\x1b") {
		t.Errorf("exit status %d:\n%q%s", code, out, errs)
	}
	if slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
		return strings.HasPrefix(strings.TrimLeft(line, "│├└─ -"), "verifies for")
	}) {
		t.Errorf("a line is forged:\n%s", out)
	}
}

// TestTreeSearchesAsPolicies: a signature verifies for an attestor only in a repository that the policy
// searches.
func TestTreeSearchesAsPolicies(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := forest(t, h)
	text, err := os.ReadFile(h.path("tree.yaml"))
	ok(t, err)
	for repository, verifies := range map[string]bool{"shop/web": true, "signatures/elsewhere": false} {
		policy := h.file(t, strings.ReplaceAll(repository, "/", "-")+".yaml",
			strings.ReplaceAll(string(text), `- imageReferences: `, "- repository: "+h.Registry.Host()+"/"+repository+"\n          imageReferences: "))
		_, out, errs := quaymaster(t, "tree", "--policy", policy, image.Name)
		if got := strings.Contains(out, "verifies for: policy ClusterPolicy/signed"); got != verifies {
			t.Errorf("%s: verifies %t, want %t:\n%s%s", repository, got, verifies, out, errs)
		}
	}
}

// TestTreeOfManyTypes: no attestation is left out silently, however many types there are.
func TestTreeOfManyTypes(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("shop/many", "v1", "1")
	const most = 40
	for i := range most {
		ok(t, h.AttestBundle(image, verifytest.Claim{Signer: h.stranger, NoLog: true}, fmt.Sprintf("https://example.com/type/%d", i), map[string]any{"n": i}))
	}
	code, out, errs := quaymaster(t, "tree", image.Name)
	if shown := strings.Count(out, "https://example.com/type/"); code != 0 || shown != most {
		t.Errorf("status %d, %d of %d attestations:\n%s%s", code, shown, most, out, errs)
	}
}
