package ci

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/peers"
)

// tryDocumentation runs the commands of docs/ci.md, once with all images signed, and once
// with an unsigned one.
func (p *port) tryDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(p.root, "docs", "ci.md"))
	check(t, err)
	page, err := docs.Parse("docs/ci.md", text)
	check(t, err)
	ran := 0
	for _, block := range page.Blocks {
		if block.RunBy != "TestSystems" {
			continue
		}
		ran++
		commands, err := docs.Commands(block)
		check(t, err)
		var script strings.Builder
		script.WriteString("set -e\n")
		for _, command := range commands {
			script.WriteString(command.Text + "\n")
		}
		for _, row := range []struct {
			image  string
			status int
		}{{p.signed, 0}, {p.bare, 1}} {
			got, said := p.project(t, row.image).run(t, []string{"bash"}, script.String())
			want(t, fmt.Sprintf("docs/ci.md:%d", block.Line), got, row.status, said)
			if row.status != 0 && strings.Contains(said, "helm upgrade") {
				t.Errorf("docs/ci.md:%d: it is released nonetheless:\n%s", block.Line, said)
			}
		}
	}
	if ran < 5 {
		t.Errorf("%d blocks of the page are for this test", ran)
	}
}

// project is a folder as the page takes it for given: manifests, a chart, an overlay,
// and policies that want the signer's key.
func (p *port) project(t *testing.T, image string) *job {
	t.Helper()
	j := newJob(t)
	key, err := os.ReadFile(p.key)
	check(t, err)
	indented := strings.ReplaceAll(strings.TrimSpace(string(key)), "\n", "\n                      ")
	for name, content := range map[string]string{
		"policies/signed.yaml":             fmt.Sprintf(signedPolicy, p.host, indented),
		"deploy/web.yaml":                  pod(image),
		"jobs.yaml":                        pod(p.signed),
		"chart/Chart.yaml":                 "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"chart/templates/web.yaml":         pod("{{ .Values.image }}"),
		"chart/values.yaml":                "image: " + image + "\n",
		"overlays/prod/kustomization.yaml": "resources: [web.yaml]\nnamePrefix: prod-\n",
		"overlays/prod/web.yaml":           pod(image),
	} {
		j.write(t, name, content)
	}
	programs := t.TempDir()
	for name, program := range map[string]string{
		"quaymaster": p.program, "helm": peers.Get(t, peers.Helm).Path, "kustomize": peers.Get(t, peers.Kustomize).Path,
	} {
		check(t, os.Symlink(program, filepath.Join(programs, name)))
	}
	j.env["PATH"] = programs + ":" + j.env["PATH"]
	j.env["GITHUB_STEP_SUMMARY"] = filepath.Join(j.folder, "summary.md")
	return j
}

const signedPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  webhookConfiguration: {timeoutSeconds: 10}
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: ["%s/*"]
          failureAction: Enforce
          attestors:
            - entries:
                - keys:
                    publicKeys: |
                      %s
                    rekor: {ignoreTlog: true}
                    ctlog: {ignoreSCT: true}
`
