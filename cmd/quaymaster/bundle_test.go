package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	showbundle "github.com/quaymaster/quaymaster/cmd/quaymaster/bundle"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// pulled writes images and their signatures, as they are in the registry, into one
// layout, and returns its folder.
func (h *env) pulled(t *testing.T, images ...gatetest.Image) string {
	t.Helper()
	folder := t.TempDir()
	path, err := layout.Write(folder, empty.Index)
	ok(t, err)
	keep := func(written, as string) error {
		ref, err := name.ParseReference(written, name.Insecure)
		ok(t, err)
		found, err := remote.Image(ref)
		if err != nil {
			return err
		}
		ok(t, path.AppendImage(found, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": as})))
		return nil
	}
	for _, i := range images {
		ok(t, keep(i.Name, i.Name))
		digest, err := v1.NewHash(i.Manifest.Digest)
		ok(t, err)
		signature := strings.TrimSuffix(i.Name, ":v1") + ":sha256-" + digest.Hex + ".sig"
		_ = keep(signature, "sha256-"+digest.Hex+".sig") // some have none
	}
	return folder
}

func digestOf(t *testing.T, out string) string {
	t.Helper()
	digest, _, found := strings.Cut(out, "  ")
	if !found || !strings.HasPrefix(digest, "sha256:") {
		t.Fatalf("no digest in %q", out)
	}
	return digest
}

// TestBundle: a decision from files and a registry is the same from one bundle and a layout, when
// the registry is gone.
func TestBundle(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned, foreign := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2"), h.Build("foreign", "v1", "3")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	ok(t, h.SignLegacy(foreign, verifytest.Claim{Signer: h.stranger, NoLog: true}, nil))
	images := h.pulled(t, signed, unsigned, foreign)
	policy := h.file(t, "policy.yaml", fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
    - name: by-key
      match: {any: [{resources: {kinds: [Pod]}}]}
      context: [{name: keys, configMap: {name: keys, namespace: ci}}]
      verifyImages:
        - imageReferences: ["%s/*"]
          attestors: [{entries: [{keys: {publicKeys: "{{keys.data.ours}}", rekor: {ignoreTlog: true}}}]}]
`, h.Registry.Host()))
	keys := h.file(t, "keys.yaml", fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: keys, namespace: ci}
data: {ours: %q}
`, h.key.PublicPEM()))
	file, again := h.path("bundle.tar.gz"), h.path("again.tar.gz")
	create := []string{"bundle", "create", "--policy", policy, "--resource", keys, "--trusted-root", h.path("trusted_root.json"), "-o"}
	code, out, errs := quaymaster(t, append(create, file)...)
	if code != command.ExitAllowed {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	digest := digestOf(t, out)
	if _, out, _ := quaymaster(t, append(create, again)...); digestOf(t, out) != digest {
		t.Error("the same files made another bundle")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	h.Registry.Close()
	offline := func(more ...string) []string {
		return append([]string{"verify", "--bundle", file, "--bundle-digest", digest, "--offline", "--oci-layout", images}, more...)
	}
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		{"signed", offline(signed.Name), command.ExitAllowed, "1 allowed"},
		{"unsigned", offline(unsigned.Name), command.ExitDenied, "no signature found"},
		{"signed by another key", offline(foreign.Name), command.ExitDenied, "another key"},
		{"an image that the layout lacks", offline(h.Registry.Host() + "/other:v1"), command.ExitError, "could not be verified"},
		{"another digest", []string{"verify", "--bundle", file, "--bundle-digest", "sha256:" + strings.Repeat("0", 64), signed.Name}, command.ExitUsage, "is wanted"},
		{"a digest without a bundle", []string{"verify", "--bundle-digest", digest, signed.Name}, command.ExitUsage, "--bundle FILE"},
		{"a policy beside it", offline("--policy", policy, signed.Name), command.ExitUsage, "make another bundle"},
		{"a root beside it", offline("--trusted-root", h.path("trusted_root.json"), signed.Name), command.ExitUsage, "make another bundle"},
		{"a file that is none", []string{"verify", "--bundle", policy, signed.Name}, command.ExitUsage, "no gzip file"},
		{"explain", append([]string{"explain"}, offline(unsigned.Name)[1:]...), command.ExitDenied, "no signature"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			code, out, errs := quaymaster(t, c.args...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
	code, out, errs = quaymaster(t, "bundle", "show", file, "-o", "json")
	var told showbundle.Shown
	ok(t, json.Unmarshal([]byte(out), &told))
	if code != command.ExitAllowed || told.Digest != digest || told.AsAt != "files" || len(told.Files) != 3 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestBundleKeys: keys in a bundle are as those of --key.
func TestBundleKeys(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, foreign := h.Build("signed", "v1", "1"), h.Build("foreign", "v1", "3")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	ok(t, h.SignLegacy(foreign, verifytest.Claim{Signer: h.stranger, NoLog: true}, nil))
	file := h.path("keys.tar.gz")
	if code, out, errs := quaymaster(t, "bundle", "create", "-o", file, "--key", h.path("key.pub")); code != command.ExitAllowed {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	for written, want := range map[string]int{signed.Name: command.ExitAllowed, foreign.Name: command.ExitDenied} {
		if code, out, errs := quaymaster(t, "verify", "--bundle", file, "--insecure-ignore-tlog", written); code != want {
			t.Errorf("%s: exit %d, want %d:\n%s%s", written, code, want, out, errs)
		}
	}
}

// TestBundleKeepsNoSecrets: of a Secret, public keys are carried and nothing else.
func TestBundleKeepsNoSecrets(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	secrets := h.file(t, "secrets.yaml", fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata:
  name: cosign
  namespace: keys
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"cosign.password":"hunter3"}}'}
stringData:
  cosign.pub: %q
  cosign.password: hunter2
  cosign.key: "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----"
  behind: %q
  before: %q
`, h.key.PublicPEM(), string(h.key.PublicPEM())+"\npassword: hunter4", "-----BEGIN PUBLIC KEY-----\nhunter5\n"+string(h.key.PublicPEM())))
	file := h.path("secrets.tar.gz")
	code, out, errs := quaymaster(t, "bundle", "create", "-o", file, "--key", h.path("key.pub"), "--resource", secrets)
	if code != command.ExitAllowed || !strings.Contains(errs, "cosign.password of Secret keys/cosign") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	read, err := bundle.OpenFile(file, image.Digest{})
	ok(t, err)
	text := string(read.Resources[0].Text)
	for name, want := range map[string]bool{"cosign.pub": true, "aHVudGVyMg": false, "LS0tLS1CRUdJTiBFTkNSWVBURUQ": false, "LS0tLS1CRUdJTiBQVUJMSUMg": true, "hunter3": false,
		`"behind":""`: true, `"before":""`: true,
	} {
		if strings.Contains(text, name) != want {
			t.Errorf("%s in it: want %t: %s", name, want, text)
		}
	}
}

// TestUntrustedBundle: a bundle's metadata is displayed without control characters.
func TestUntrustedBundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	_, err := bundle.WriteFile(file, &bundle.Contents{
		Policies: []bundle.Item{{Name: "\x1b[2J", Text: []byte("{}")}}, Notes: []string{"\x1b]0;yours\x07", "a sentence"},
	})
	ok(t, err)
	code, out, errs := quaymaster(t, "bundle", "show", file)
	if code != command.ExitAllowed || strings.Contains(out+errs, "\x1b") || !strings.Contains(out, `not included: \x1b]0;yours`) || !strings.Contains(out, "not included: a sentence\n") {
		t.Errorf("exit %d: %q%q", code, out, errs)
	}
}

// TestEffectiveTime: exceptions and overrides end at the time that is given; the
// signature's proof does not move.
func TestEffectiveTime(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	policy := h.file(t, "policy.yaml", fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
    - name: by-key
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: ["*"]
          attestors: [{entries: [{keys: {publicKeys: %q, rekor: {ignoreTlog: true}}}]}]
`, h.key.PublicPEM()))
	ends := time.Now().Add(time.Hour).UTC()
	override := h.file(t, "override.yaml", fmt.Sprintf(`apiVersion: quaymaster.dev/v1alpha1
kind: ImageOverride
metadata: {name: bad-day}
spec: {effect: Allow, reason: a bad day, expires: %q, match: {digests: ["%s"]}}
`, ends.Format(time.RFC3339), unsigned.Manifest.Digest))
	at := func(d time.Duration) []string {
		return []string{"--effective-time", time.Now().Add(d).Format(time.RFC3339)}
	}
	for _, c := range []struct {
		reason, image string
		args          []string
		code          int
		says          string
	}{
		{"today", unsigned.Name, nil, command.ExitAllowed, "a bad day"},
		{"before it ends", unsigned.Name, at(30 * time.Minute), command.ExitAllowed, "a bad day"},
		{"tomorrow", unsigned.Name, at(24 * time.Hour), command.ExitDenied, "no signature found"},
		{"tomorrow, signed", signed.Name, at(24 * time.Hour), command.ExitAllowed, "1 allowed"},
		{"in ten years, signed", signed.Name, at(87600 * time.Hour), command.ExitAllowed, "1 allowed"},
		{"yesterday", unsigned.Name, at(-24 * time.Hour), command.ExitUsage, "in the past"},
		{"no time", unsigned.Name, []string{"--effective-time", "tomorrow"}, command.ExitUsage, "--effective-time"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			code, out, errs := quaymaster(t, append([]string{"verify", "--policy", policy, "--policy", override, c.image}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}

// TestBundleAsAdmitted: with the gateway's settings, a bundle applies the same exceptions and exclusions.
func TestBundleAsAdmitted(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	unsigned := h.Build("unsigned", "v1", "2")
	policy := h.file(t, "policies.yaml", fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: signed}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchImageReferences: [{glob: "%s/**"}]
  attestors: [{name: ours, cosign: {key: {data: %q}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}}]
  validations: [{expression: "images.containers.map(i, verifyImageSignatures(i, [attestors.ours])).all(n, n > 0)", message: not ours}]
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: legacy, namespace: office}
spec: {policyRefs: [{name: signed, kind: ImageValidatingPolicy}]}
`, h.Registry.Host(), h.key.PublicPEM()))
	config := func(name, settings string) string {
		return h.file(t, name, "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"+settings)
	}
	for _, c := range []struct {
		reason, config string
		args           []string
		code           int
	}{
		{"without settings every exception counts", "", nil, command.ExitAllowed},
		{"by default none does", config("none.yaml", ""), nil, command.ExitDenied},
		{"that of its namespace does", config("office.yaml", "exceptions: {namespaces: [office]}\n"), nil, command.ExitAllowed},
		{"that of another does not", config("other.yaml", "exceptions: {namespaces: [shop]}\n"), nil, command.ExitDenied},
		{"no policy applies in an excluded namespace", config("none.yaml", ""), []string{"-n", "kube-system"}, command.ExitAllowed},
		{"a policy that is not selected", config("selector.yaml", "policies: {selector: team=a}\n"), nil, command.ExitAllowed},
	} {
		t.Run(c.reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "b.tar.gz")
			create := []string{"bundle", "create", "-o", file, "--policy", policy}
			if c.config != "" {
				create = append(create, "--gateway-config", c.config)
			}
			if code, out, errs := quaymaster(t, create...); code != command.ExitAllowed {
				t.Fatalf("exit %d: %s%s", code, out, errs)
			}
			code, out, errs := quaymaster(t, append([]string{"verify", "--bundle", file, unsigned.Name}, c.args...)...)
			if code != c.code {
				t.Errorf("exit %d, want %d:\n%s%s", code, c.code, out, errs)
			}
		})
	}
}

// TestMirrorOfABundle: mirror shows the same for a bundle as for the files.
func TestMirrorOfABundle(t *testing.T) {
	f := newFairway(t)
	policy := f.path("policy.yaml")
	bundled := func(name string, args ...string) string {
		file := f.path(name)
		if code, out, errs := quaymaster(t, append([]string{"bundle", "create", "-o", file, "--policy", policy}, args...)...); code != command.ExitAllowed {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		return file
	}
	mapping := f.mapping(t, "hub", "", f.targets("late", "near")...)
	with, without := bundled("with.tar.gz", "--mirrors", mapping), bundled("without.tar.gz")
	late := f.late.Registry.Host() + "/hub/shop/web:v1"
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		{"proved and redirected", []string{"--bundle", with, f.signed.Name}, command.ExitAllowed, f.near.Registry.Host() + "/hub/shop/web:v1@"},
		{"a copy that is not proved", []string{"--bundle", with, late}, command.ExitDenied, "denied"},
		{"a bundle without a mapping", []string{"--bundle", without, f.signed.Name}, command.ExitUsage, "no mapping"},
		{"a mapping beside it", []string{"--bundle", with, "--mirrors", mapping, f.signed.Name}, command.ExitUsage, "make another bundle"},
		{"offline", []string{"--bundle", with, "--offline", f.signed.Name}, command.ExitUsage, "send no request"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			code, out, errs := quaymaster(t, append([]string{"mirror"}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}

// TestNamespaceAsAdmitted: -n is not applied to cluster-scoped objects, as at admission.
func TestNamespaceAsAdmitted(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	policy := h.file(t, "policies.yaml", `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: named}
spec:
  validationFailureAction: Enforce
  rules:
    - name: named
      match: {any: [{resources: {kinds: [ClusterRole, ConfigMap], namespaces: [shop]}}]}
      validate: {message: want a label, pattern: {metadata: {labels: {team: "?*"}}}}
`)
	settings := h.file(t, "gateway.yaml", "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n")
	file := h.path("named.tar.gz")
	if code, out, errs := quaymaster(t, "bundle", "create", "-o", file, "--policy", policy, "--gateway-config", settings); code != command.ExitAllowed {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	for manifest, want := range map[string]int{
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}": command.ExitAllowed,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}":                             command.ExitDenied,
	} {
		code, out, errs := quaymaster(t, "verify", "--bundle", file, "-n", "shop", "-f", h.file(t, "manifest.yaml", manifest))
		if code != want {
			t.Errorf("%s: exit %d, want %d:\n%s%s", manifest, code, want, out, errs)
		}
	}
}
