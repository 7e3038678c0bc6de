package ci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// system is a CI system's way to run the same thing.
type system struct {
	name string
	run  func(t *testing.T, j *job, with map[string]string) (int, string)
}

// TestSystems builds the programs once, for that takes a while.
func TestSystems(t *testing.T) {
	p := open(t)
	for _, s := range []system{{"the GitHub Action", p.action}, {"the GitLab template", p.gitlab}} {
		t.Run(s.name, func(t *testing.T) {
			t.Run("verdicts", func(t *testing.T) { p.tryVerdicts(t, s) })
			t.Run("nothing is run", func(t *testing.T) { p.tryInjection(t, s) })
			t.Run("releases", func(t *testing.T) { p.tryReleases(t, s) })
		})
	}
	t.Run("the action's outputs", p.tryOutputs)
	t.Run("the pre-commit hook", p.tryHook)
	t.Run("the documentation", p.tryDocumentation)
}

// tryVerdicts holds the exit status to the one of quaymaster.
func (p *port) tryVerdicts(t *testing.T, s system) {
	for _, row := range []struct {
		reason string
		with   map[string]string
		status int
		says   string
	}{
		{"signed", map[string]string{"images": p.signed, "keys": p.key}, 0, "verified"},
		{"not signed", map[string]string{"images": p.bare, "keys": p.key}, 1, "unsigned"},
		{"signed by another identity", map[string]string{"images": p.signed, "keys": p.stranger}, 1, "wrong-key"},
		{"one of two is not signed", map[string]string{"images": p.signed + "\n" + p.bare, "keys": p.key}, 1, "unsigned"},
		{"lines as Windows ends them, and empty ones", map[string]string{"images": "\r\n" + p.signed + "\r\n\r\n", "keys": p.key}, 0, "verified"},
		{"one of two keys signed", map[string]string{"images": p.signed, "keys": p.stranger + "\n" + p.key}, 0, "verified"},
		{"an image of a manifest with a space in its name", map[string]string{"files": "my manifests/signed.yaml", "keys": p.key}, 0, "verified"},
		{"another one in the same folder", map[string]string{"files": "my manifests", "keys": p.key}, 1, "unsigned"},
		{"nothing to verify", map[string]string{"keys": p.key}, 2, "nothing to verify"},
		{"no registry", map[string]string{"images": "127.0.0.1:1/none@sha256:" + strings.Repeat("a", 64), "keys": p.key}, 3, "registry-unavailable"},
		{"no policy matches it", map[string]string{"images": p.bare, "policies": "policy.yaml"}, 1, ""},
		{"the same, and no match is required", map[string]string{"images": p.bare, "policies": "policy.yaml", "require-match": "false"}, 0, ""},
		{"neither true nor false", map[string]string{"images": p.signed, "keys": p.key, "require-match": "yes"}, 2, "want true or false"},
		{"two lines for one value", map[string]string{"images": p.signed, "keys": p.key, "namespace": "a\nb"}, 2, "one value"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			j := newJob(t)
			j.write(t, "my manifests/signed.yaml", pod(p.signed))
			j.write(t, "my manifests/bare.yaml", pod(p.bare))
			j.write(t, "policy.yaml", elsewhere)
			row.with["binary"] = p.program
			if row.with["keys"] != "" {
				row.with["insecure-ignore-tlog"] = "true"
			}
			status, said := s.run(t, j, row.with)
			want(t, row.reason, status, row.status, said)
			if !strings.Contains(said, row.says) {
				t.Errorf("it does not say %q:\n%s", row.says, said)
			}
		})
	}
}

// elsewhere is a policy for images that no manifest here has.
const elsewhere = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: elsewhere}
spec:
  webhookConfiguration: {timeoutSeconds: 10}
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: ["registry.example/*"]
          failureAction: Enforce
          attestors: [{entries: [{keyless: {subject: "a", issuer: "https://b.example"}}]}]
`

// tryInjection puts into every input what a shell would run, were it read as shell.
func (p *port) tryInjection(t *testing.T, s system) {
	spec, _ := p.template(t)
	names := make([]string, 0, len(spec.Spec.Inputs))
	for name := range spec.Spec.Inputs {
		if !slices.Contains([]string{"job", "stage", "image", "binary", "version", "sha256", "downloads"}, name) {
			names = append(names, name)
		}
	}
	if len(names) < 15 {
		t.Fatalf("inputs %q", names)
	}
	slices.Sort(names)
	for _, attack := range []string{
		"$(touch run)", "`touch run`", "x; touch run", "x && touch run #", `"; touch run; "`, `'; touch run; '`,
		"x\ntouch run", "ARGUMENTS\ntouch run", "IMAGES\ntouch run\n", "${IFS}$(touch${IFS}run)", "x | touch run", "\\\ntouch run",
		"%s%n$(touch run)", "-o\ntext=run", "--output=text=run", "*",
	} {
		j := newJob(t)
		with := map[string]string{"binary": p.program}
		for _, name := range names {
			with[name] = attack
		}
		// Those that are checked before quaymaster runs would keep the others from it.
		with["require-match"], with["insecure-ignore-tlog"] = "false", "false"
		for _, single := range []string{"namespace", "timeout", "certificate-identity", "certificate-identity-regexp", "certificate-oidc-issuer", "certificate-oidc-issuer-regexp", "notation-cert", "trusted-root", "registry-ca"} {
			with[single] = strings.ReplaceAll(attack, "\n", " ")
		}
		for _, given := range []map[string]string{with, {"binary": p.program, "images": attack, "keys": p.key}, {"binary": p.program, "images": p.signed, "namespace": attack, "keys": p.key}} {
			status, said := s.run(t, j, given)
			if status != 2 && status != 3 && given["namespace"] != attack {
				t.Errorf("%q: exit status %d:\n%s", attack, status, said)
			}
			if _, err := os.Stat(filepath.Join(j.folder, "run")); err == nil {
				t.Fatalf("%q was run, or made a file:\n%s", attack, said)
			}
		}
	}
}

// tryReleases serves an archive as a release has it, and spoils it.
func (p *port) tryReleases(t *testing.T, s system) {
	name := "quaymaster_v1.2.3_linux_" + runtime.GOARCH + ".tar.gz"
	folder := t.TempDir()
	check(t, os.Mkdir(filepath.Join(folder, "v1.2.3"), 0o755))
	archive := filepath.Join(folder, "v1.2.3", name)
	// A release has the program itself; packing that takes long.
	check(t, os.WriteFile(filepath.Join(folder, "quaymaster"), []byte("#!/bin/sh\nexec "+p.program+" \"$@\"\n"), 0o755))
	if output, err := exec.CommandContext(t.Context(), "tar", "-C", folder, "-czf", archive, "quaymaster").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	content, err := os.ReadFile(archive)
	check(t, err)
	hash := sha256.Sum256(content)
	sum := hex.EncodeToString(hash[:])
	check(t, os.WriteFile(filepath.Join(folder, "v1.2.3", "SHA256SUMS"), []byte(sum+"  "+name+"\n"), 0o600))
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	ask := func(version, sha256 string) map[string]string {
		return map[string]string{"version": version, "sha256": sha256, "downloads": server.URL, "images": p.signed, "keys": p.key, "insecure-ignore-tlog": "true"}
	}
	for _, row := range []struct {
		reason string
		with   map[string]string
		status int
		says   string
	}{
		{"the checksum is the one", ask("v1.2.3", sum), 0, "verified"},
		{"the checksum is another", ask("v1.2.3", strings.Repeat("0", 64)), 2, "it is not run"},
		{"no checksum, and no https", ask("v1.2.3", ""), 2, "is not https"},
		{"no such release", ask("v9.9.9", sum), 3, "cannot get"},
		{"no version", ask("", sum), 2, "which release?"},
		{"a branch", ask("main", sum), 2, "which release?"},
		{"a version that leads elsewhere", ask("v1.2.3/../../other", sum), 2, "which release?"},
		{"a version that would be run", ask("v1.2.3$(touch run)", sum), 2, "which release?"},
	} {
		status, said := s.run(t, newJob(t), row.with)
		want(t, row.reason, status, row.status, said)
		if !strings.Contains(said, row.says) {
			t.Errorf("%s: it does not say %q:\n%s", row.reason, row.says, said)
		}
	}
	files := http.FileServer(http.Dir(folder))
	p.trySecure(t, s, ask("v1.2.3", ""), files, 0, "verified")
	p.trySecure(t, s, ask("v1.2.3", ""), http.RedirectHandler(server.URL+"/v1.2.3/"+name, http.StatusFound), 3, "cannot get")
}

// trySecure gets a release by https, which needs no checksum, from a server that has it or
// sends the job elsewhere.
func (p *port) trySecure(t *testing.T, s system, with map[string]string, handler http.Handler, status int, says string) {
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	j := newJob(t)
	with["downloads"] = server.URL
	j.env["CURL_CA_BUNDLE"] = filepath.Join(j.folder, j.write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))))
	got, said := s.run(t, j, with)
	want(t, "by https", got, status, said)
	if !strings.Contains(said, says) {
		t.Errorf("by https: it does not say %q:\n%s", says, said)
	}
}

// tryOutputs checks the outputs that the action leaves for later steps.
func (p *port) tryOutputs(t *testing.T) {
	j := newJob(t)
	j.write(t, "deploy/web.yaml", pod(p.bare))
	status, said := p.action(t, j, map[string]string{
		"binary": p.program, "files": "deploy/", "keys": p.key, "insecure-ignore-tlog": "true", "sarif": "the findings.sarif", "junit": "report.xml", "json": "record.json",
	})
	want(t, "not signed", status, 1, said)
	if got := j.read(t, "output"); got != "status="+strconv.Itoa(status)+"\n" {
		t.Errorf("outputs %q", got)
	}
	var sarif struct {
		Runs []struct {
			Results []struct {
				RuleID string `json:"ruleId"`
			} `json:"results"`
		} `json:"runs"`
	}
	check(t, json.Unmarshal([]byte(j.read(t, "the findings.sarif")), &sarif))
	if len(sarif.Runs) != 1 || len(sarif.Runs[0].Results) == 0 {
		t.Errorf("SARIF %+v", sarif)
	}
	for file, says := range map[string]string{"summary.md": "unsigned", "report.xml": "<failure", "record.json": `"unsigned"`} {
		if content := j.read(t, file); !strings.Contains(content, says) {
			t.Errorf("%s does not say %q:\n%s", file, says, content)
		}
	}
	if !strings.Contains(said, "::error file=deploy/web.yaml,line=7") {
		t.Errorf("no annotation:\n%s", said)
	}
	quiet := newJob(t)
	status, said = p.action(t, quiet, map[string]string{"binary": p.program, "images": p.bare, "keys": p.key, "insecure-ignore-tlog": "true", "annotations": "false", "summary": "false"})
	want(t, "without annotations and summary", status, 1, said)
	if _, err := os.Stat(filepath.Join(quiet.folder, "summary.md")); err == nil || strings.Contains(said, "::error") {
		t.Errorf("they are there nonetheless:\n%s", said)
	}
}

// TestTemplateHasTheScript keeps the GitLab template's text equal to the file that the
// action runs: an included template finds no files beside it.
func TestTemplateHasTheScript(t *testing.T) {
	p := &port{root: filepath.Join("..", "..")}
	script, err := os.ReadFile(filepath.Join(p.root, "deploy", "ci", "verify.sh"))
	check(t, err)
	_, job := p.template(t)
	if len(job.Script) != 1 || job.Script[0] != string(script) {
		t.Error("deploy/ci/gitlab/verify.yml has another script than deploy/ci/verify.sh: put the file's text there")
	}
}

// tryHook runs the hook as pre-commit does: its entry and the user's arguments, in the
// root of the user's repository.
func (p *port) tryHook(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(p.root, ".pre-commit-hooks.yaml"))
	check(t, err)
	var hooks []struct {
		ID, Entry, Language, Files string
		PassFilenames              *bool `json:"pass_filenames"`
	}
	check(t, yaml.Unmarshal(content, &hooks))
	if len(hooks) != 2 {
		t.Fatalf("hooks %+v", hooks)
	}
	for _, hook := range hooks {
		if hook.PassFilenames == nil || *hook.PassFilenames {
			t.Errorf("%s: names of files would be taken for images", hook.ID)
		}
		for image, status := range map[string]int{p.signed: 0, p.bare: 1} {
			j := newJob(t)
			j.write(t, "deploy/web.yaml", pod(image))
			check(t, os.Symlink(p.program, filepath.Join(j.folder, "quaymaster")))
			j.env["PATH"] = j.folder + ":" + j.env["PATH"]
			got, said := j.run(t, []string{"sh"}, "exec "+hook.Entry+" --key="+p.key+" --insecure-ignore-tlog --filename=deploy/")
			want(t, hook.ID, got, status, said)
		}
	}
}
