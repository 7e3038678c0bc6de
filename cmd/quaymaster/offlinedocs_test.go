package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// saved writes an image and its signature, if it has one, as cosign save --dir does.
func saved(t *testing.T, folder string, image gatetest.Image) {
	t.Helper()
	path, err := layout.Write(folder, empty.Index)
	ok(t, err)
	signature := strings.TrimSuffix(image.Name, ":v1") + ":" + strings.Replace(image.Manifest.Digest, ":", "-", 1) + ".sig"
	for kind, written := range map[string]string{"image": image.Name, "sigs": signature} {
		ref, err := name.ParseReference(written, name.Insecure)
		ok(t, err)
		found, err := remote.Image(ref)
		if err != nil && kind == "sigs" {
			continue // it is not signed
		}
		ok(t, err)
		ok(t, path.AppendImage(found, layout.WithAnnotations(map[string]string{"kind": "dev.cosignproject.cosign/" + kind})))
	}
}

// TestOfflineDocumentation runs the commands of docs/offline.md, about a signed image and about an
// unsigned twin. The folders that the page saves from a registry exist already.
func TestOfflineDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/offline.md")
	ok(t, err)
	h := newEnv(t, registrytest.Options{})
	signed, bare := h.Build("signed", "v1", "1"), h.Build("bare", "v1", "2")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	saved(t, h.path("app"), signed)
	saved(t, h.path("bare"), bare)
	ok(t, os.Mkdir(h.path("policies"), 0o700))
	h.file(t, "policies/signed.yaml", fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
    - name: by-key
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: ["registry.example/team/*"]
          attestors: [{entries: [{keys: {publicKeys: %q, rekor: {ignoreTlog: true}}}]}]
`, h.key.PublicPEM()))
	h.Registry.Close()
	t.Chdir(h.folder)

	var commands []string
	for _, found := range regexp.MustCompile("(?m)^    quaymaster (.+)$|`quaymaster (bundle show [^`]+)`").FindAllSubmatch(page, -1) {
		commands = append(commands, string(found[1])+string(found[2]))
	}
	isCreate := func(c string) bool { return strings.HasPrefix(c, "bundle create") }
	at := slices.IndexFunc(commands, isCreate)
	if at < 0 || len(commands) != 5 {
		t.Fatalf("the page has the commands %q: this test must know them", commands)
	}
	code, out, errs := quaymaster(t, strings.Fields(commands[at])...)
	if code != command.ExitAllowed {
		t.Fatalf("%s: exit %d: %s%s", commands[at], code, out, errs)
	}
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	fill := strings.NewReplacer("sha256:...", digestOf(t, out), "2030-01-31T00:00:00Z", tomorrow)
	for _, written := range slices.Delete(commands, at, at+1) {
		t.Run(written, func(t *testing.T) {
			args := strings.Fields(fill.Replace(written))
			if args[0] == "verify" && !slices.Contains(args, "--offline") {
				args = append(args, "--offline", "--oci-layout", "app/") // there is no registry
			}
			if code, out, errs := quaymaster(t, args...); code != command.ExitAllowed {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
			if args[0] != "verify" {
				return
			}
			args[slices.Index(args, "app/")] = "bare/"
			if code, out, errs := quaymaster(t, args...); code != command.ExitDenied {
				t.Errorf("of an image that is not signed: exit %d: %s%s", code, out, errs)
			}
		})
	}
}
