package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/peers"
)

// follows runs the commands of docs/release.md for users of a release: with the key in the
// place of the workflow's identity, and the local registry in that of the public one.
func (y *yard) follows(t *testing.T) {
	script := y.page(t)
	files := t.TempDir()
	check(t, os.CopyFS(files, os.DirFS(y.file("dist", "files"))))
	for name, from := range map[string]string{"notation-root.pem": "signer.root.pem", "stranger-root.pem": "stranger.root.pem"} {
		content, err := os.ReadFile(y.file(from))
		check(t, err)
		check(t, os.WriteFile(filepath.Join(files, name), content, 0o600))
	}
	programs := t.TempDir()
	check(t, os.Symlink(y.ours, filepath.Join(programs, "quaymaster")))
	check(t, os.Symlink(peers.Get(t, peers.Cosign3).Path, filepath.Join(programs, "cosign")))
	helm := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" --plain-http\n", peers.Get(t, peers.Helm).Path)
	check(t, os.WriteFile(filepath.Join(programs, "helm"), []byte(helm), 0o700))

	run := func(script string) (string, error) {
		command := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
		command.Dir = files
		command.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "VERSION=" + version}
		output, err := command.CombinedOutput()
		return string(output), err
	}
	if said, err := run(script); err != nil {
		t.Errorf("the page's commands fail: %v\n%s\n%s", err, script, said)
	}
	for reason, spoilt := range map[string]string{
		"another signer":           strings.ReplaceAll(script, "signer.pub", "stranger.pub"),
		"another notary":           strings.ReplaceAll(script, "--notation-cert notation-root.pem", "--notation-cert stranger-root.pem"),
		"a root with another byte": "echo >>notation-root.pem\n" + script,
		"a checksum that is wrong": "printf x >>quaymaster_v1.2.3_darwin_arm64.tar.gz\n" + script,
	} {
		if said, err := run(spoilt); err == nil {
			t.Errorf("%s: the page's commands pass:\n%s", reason, said)
		}
	}
}

// page is the commands of docs/release.md that are for this test.
func (y *yard) page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(y.root, "docs", "release.md"))
	check(t, err)
	page, err := docs.Parse("docs/release.md", text)
	check(t, err)
	var script strings.Builder
	for _, block := range page.Blocks {
		if block.RunBy != "TestRelease" {
			continue
		}
		commands, err := docs.Commands(block)
		check(t, err)
		for _, command := range commands {
			line := strings.ReplaceAll(command.Text, "ghcr.io/quaymaster", y.host+"/quay")
			if strings.HasPrefix(line, "signer=") {
				line = "signer='--key " + y.file("signer.pub") + " --insecure-ignore-tlog'"
			}
			script.WriteString(line + "\n")
		}
	}
	for _, wanted := range []string{"signer='", "cosign verify ", "cosign verify-blob ", "sha256sum ", "--notation-cert", "helm pull"} {
		if !strings.Contains(script.String(), wanted) {
			t.Fatalf("the page has no %q:\n%s", wanted, script.String())
		}
	}
	return script.String()
}
