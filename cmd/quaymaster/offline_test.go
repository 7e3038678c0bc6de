package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// offlineArguments has this test binary run one command line, a word a line.
const offlineArguments = "QUAYMASTER_TEST_ARGUMENTS"

// TestOfflineChild is the command line of TestOffline, in a process of its own.
func TestOfflineChild(t *testing.T) {
	args := os.Getenv(offlineArguments)
	if args == "" {
		t.Skip("it is run by TestOffline")
	}
	os.Exit(run(t.Context(), strings.Split(args, "\n"), command.Terminal{In: strings.NewReader(""), Out: os.Stdout, Err: os.Stderr, Env: func(string) string { return "" }}))
}

// TestOffline: in a network namespace that has no interface that is up, so that no
// connection can be opened, the same is decided as anywhere; what needs a connection
// is not.
func TestOffline(t *testing.T) {
	if err := exec.Command("unshare", "-n", "true").Run(); err != nil {
		t.Skipf("this machine makes no network namespace (unshare -n): %v", err)
	}
	h := newEnv(t, registrytest.Options{})
	signed, unsigned := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	images, file := h.pulled(t, signed, unsigned), h.path("bundle.tar.gz")
	if code, out, errs := quaymaster(t, "bundle", "create", "-o", file, "--key", h.path("key.pub"), "--trusted-root", h.path("trusted_root.json")); code != command.ExitAllowed {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	base := []string{"verify", "--bundle", file, "--insecure-ignore-tlog"}
	offline := slices.Clip(append(base, "--offline", "--oci-layout", images))
	for _, c := range []struct {
		reason string
		args   []string
		code   int
	}{
		{"signed", append(offline, signed.Name), command.ExitAllowed},
		{"unsigned", append(offline, unsigned.Name), command.ExitDenied},
		{"from the registry, which cannot be reached", append(base, signed.Name), command.ExitError},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var out bytes.Buffer
			child := exec.CommandContext(t.Context(), "unshare", "-n", os.Args[0], "-test.run=^TestOfflineChild$")
			child.Env = append(os.Environ(), offlineArguments+"="+strings.Join(c.args, "\n"))
			child.Stdout, child.Stderr = &out, &out
			_ = child.Run() // checked by the exit status below
			if code := child.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit %d, want %d:\n%s", code, c.code, &out)
			}
		})
	}
}

// TestKeyInAnExcludedNamespace: policies do not apply in an excluded namespace, and the keys of
// the command line do.
func TestKeyInAnExcludedNamespace(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	file := h.path("gateway.tar.gz")
	settings := h.file(t, "gateway.yaml", "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n")
	policy := h.file(t, "configmaps.yaml", `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: configmaps}
spec:
  rules:
    - name: named
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: want a name, pattern: {metadata: {name: "?*"}}}
`)
	if code, out, errs := quaymaster(t, "bundle", "create", "-o", file, "--policy", policy, "--gateway-config", settings); code != command.ExitAllowed {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	key := []string{"--key", h.path("key.pub"), "--insecure-ignore-tlog"}
	for _, c := range []struct {
		reason, image, namespace string
		args                     []string
		code                     int
	}{
		{"signed", signed.Name, "kube-system", key, command.ExitAllowed},
		{"unsigned", unsigned.Name, "kube-system", key, command.ExitDenied},
		{"unsigned, elsewhere", unsigned.Name, "shop", key, command.ExitDenied},
		{"unsigned, without a key", unsigned.Name, "kube-system", nil, command.ExitAllowed},
	} {
		t.Run(c.reason, func(t *testing.T) {
			pod := h.file(t, "pod.yaml", fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: %s}\nspec: {containers: [{name: web, image: %q}]}\n", c.namespace, c.image))
			code, out, errs := quaymaster(t, append([]string{"verify", "--bundle", file, "-f", pod}, c.args...)...)
			if code != c.code {
				t.Errorf("exit %d, want %d:\n%s%s", code, c.code, out, errs)
			}
		})
	}
}
