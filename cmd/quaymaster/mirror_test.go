package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// fairway is a source and its mirrors: near serves the signed images, late another image under the
// same tag, and down refuses connections.
type fairway struct {
	*env
	near, late *gatetest.Yard
	down       string
	signed     gatetest.Image
}

func newFairway(t *testing.T) *fairway {
	t.Helper()
	h := newEnv(t, registrytest.Options{})
	f := &fairway{env: h}
	for _, yard := range []**gatetest.Yard{&f.near, &f.late} {
		server := registrytest.Start(registrytest.Options{})
		t.Cleanup(server.Close)
		*yard = gatetest.New(server, h.Sigstore)
	}
	closed := registrytest.Start(registrytest.Options{})
	f.down = closed.Host()
	closed.Close()
	f.signed = h.Build("shop/web", "v1", "web")
	ok(t, h.SignBundle(f.signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	if copied := f.near.Build("hub/shop/web", "v1", "web"); copied.Manifest.Digest != f.signed.Manifest.Digest {
		t.Fatal("the copy is another image")
	}
	f.late.Build("hub/shop/web", "v1", "web of last year")
	h.Build("shop/other", "v1", "other")
	f.file(t, "policy.yaml", strings.ReplaceAll(onlySigned, "KEY", indent(h.key.PublicPEM())))
	return f
}

const onlySigned = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: ["*/shop/web*"]
          attestors:
            - entries:
                - keys:
                    rekor: {ignoreTlog: true}
                    publicKeys: |
KEY
`

func indent(pem []byte) string {
	return "                      " + strings.ReplaceAll(strings.TrimSpace(string(pem)), "\n", "\n                      ")
}

// mapping writes a RegistryMirror from the source to targets, and returns its path.
func (f *fairway) mapping(t *testing.T, name, settings string, targets ...string) string {
	t.Helper()
	text := "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: " + name + "}\nspec:\n  mirrors:\n    - sources: [" + f.Registry.Host() + "]\n      targets:\n"
	for _, target := range targets {
		text += "        - location: " + target + "\n"
	}
	return f.file(t, name+".yaml", text+settings)
}

// named writes stable names for what differs between runs.
func (f *fairway) named(output string) string {
	return strings.NewReplacer(
		f.Registry.Host(), "source.example", f.near.Registry.Host(), "near.example", f.late.Registry.Host(), "late.example",
		f.down, "down.example", f.folder+"/", "",
	).Replace(output)
}

func (f *fairway) targets(names ...string) []string {
	hosts := map[string]string{"near": f.near.Registry.Host(), "late": f.late.Registry.Host(), "down": f.down}
	targets := make([]string, len(names))
	for i, name := range names {
		targets[i] = hosts[name] + "/hub"
	}
	return targets
}

func goldenOutput(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		ok(t, os.MkdirAll(filepath.Dir(path), 0o755))
		ok(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	ok(t, err)
	if got != string(want) {
		t.Errorf("%s differs; look at it, and write it with -update:\n%s", path, got)
	}
}

func TestMirror(t *testing.T) {
	f := newFairway(t)
	for _, c := range []struct {
		name, reason string
		targets      []string
		settings     string
		args         []string // "web", "other" and "copy" are replaced by images
		code         int
	}{
		{"first", "the first target serves the digest", f.targets("near", "late"), "", []string{"web"}, command.ExitAllowed},
		{"failover", "one is down, one has another image, the third serves the digest", f.targets("down", "late", "near"), "", []string{"web"}, command.ExitAllowed},
		{"differs", "the only target has other bytes: the image stays, and both digests are reported", f.targets("late"), "", []string{"web"}, command.ExitAllowed},
		{"differs-denied", "and the mapping denies that", f.targets("late"), "      otherwise: Deny\n", []string{"web"}, command.ExitDenied},
		{"down-denied", "could not be verified, which is no denial", f.targets("down"), "      otherwise: Deny\n", []string{"web"}, command.ExitError},
		{"missing", "no target has the image", f.targets("near"), "", []string{"other"}, command.ExitAllowed},
		{"resolve-target", "the target's answer counts", f.targets("late"), "      resolve: Target\n", []string{"web"}, command.ExitAllowed},
		{"always", "the target is not asked", f.targets("down"), "      when: Always\n", []string{"web"}, command.ExitAllowed},
		{"copy", "inside a target", f.targets("near"), "", []string{"copy"}, command.ExitAllowed},
		{"not-mapped", "no mapping matches it", f.targets("near"), "", []string{"registry.example/app:v1"}, command.ExitAllowed},
		{"no-source", "the source is down, and the digest is unknown", f.targets("near"), "", []string{"none"}, command.ExitError},
		{"offline", "no registry is asked", f.targets("down", "near"), "      pullSecrets: [near-corp]\n      evidence: [Target, Source, {repository: \"" + f.near.Registry.Host() + "/signatures\"}]\n", []string{"--offline", "web"}, command.ExitAllowed},
		{"proved", "the policy proves it", f.targets("late", "near"), "", []string{"--policy", f.path("policy.yaml"), "web"}, command.ExitAllowed},
		{"unproved", "no policy matches it, and the entry requires verification", f.targets("near"), "", []string{"--policy", f.path("policy.yaml"), "other"}, command.ExitAllowed},
		{"denied", "the copy is judged by its source's name, and is not proved", f.targets("late"), "", []string{"--policy", f.path("policy.yaml"), "late"}, command.ExitDenied},
		{"proved-denied", "proved, and no target qualifies", f.targets("late"), "      otherwise: Deny\n", []string{"--policy", f.path("policy.yaml"), "web"}, command.ExitDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"mirror", "--mirrors", f.mapping(t, "hub", c.settings, c.targets...)}
			for _, arg := range c.args {
				switch arg {
				case "web":
					arg = f.signed.Name
				case "other", "none":
					arg = f.Registry.Host() + "/shop/" + arg + ":v1"
				case "copy":
					arg = f.near.Registry.Host() + "/hub/shop/web:v1"
				case "late":
					arg = f.late.Registry.Host() + "/hub/shop/web:v1"
				}
				args = append(args, arg)
			}
			code, out, errs := quaymaster(t, args...)
			if code != c.code || errs != "" {
				t.Errorf("%s: exit status %d, want %d:\n%s%s", c.reason, code, c.code, out, errs)
			}
			goldenOutput(t, "mirror/"+c.name+".txt", scrub(f.named(out)))
			_, out, _ = quaymaster(t, append(args, "-o", "json")...)
			var list report.Redirections
			if err := json.Unmarshal([]byte(out), &list); err != nil || list.Kind != "RedirectionList" || len(list.Items) != 1 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestMirrorCheck(t *testing.T) {
	f := newFairway(t)
	good := f.file(t, "good.yaml", "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: hub}\nspec: {mirrors: [{sources: [docker.io], targets: [{location: near.example/hub}]}]}\n")
	loop := f.file(t, "loop.yaml", "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: loop}\nspec: {mirrors: [{sources: [near.example/hub], targets: [{location: far.example}]}]}\n")
	if code, out, errs := quaymaster(t, "mirror", "--check", "--mirrors", good); code != command.ExitAllowed || out != "0 findings\n" {
		t.Errorf("exit status %d:\n%s%s", code, out, errs)
	}
	code, out, errs := quaymaster(t, "mirror", "--check", "--mirrors", good, "--mirrors", loop)
	if code != command.ExitDenied {
		t.Errorf("exit status %d:\n%s%s", code, out, errs)
	}
	goldenOutput(t, "mirror/check.txt", f.named(out))
	_, out, _ = quaymaster(t, "mirror", "--check", "-o", "json", "--mirrors", good, "--mirrors", loop)
	var found report.Findings
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.Kind != "FindingList" || len(found.Items) == 0 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestMirrorUsage(t *testing.T) {
	f := newFairway(t)
	good := f.mapping(t, "hub", "", f.targets("near")...)
	for _, c := range []struct {
		reason, says string
		args         []string
	}{
		{"no mapping", "--mirrors FILE", []string{"nginx"}},
		{"no image", "nothing to show", []string{"--mirrors", good}},
		{"an image for --check", "takes no image", []string{"--check", "--mirrors", good, "nginx"}},
		{"policies offline", "send no request", []string{"--offline", "--policy", "x", "--mirrors", good, "nginx"}},
		{"an unknown output", "text, json or yaml", []string{"-o", "xml", "--mirrors", good, "nginx"}},
		{"a label without a value", "key=value", []string{"-l", "x", "--mirrors", good, "nginx"}},
		{"a reference that is none", "NGINX", []string{"--mirrors", good, "NGINX"}},
		{"a missing file", "no-such-file", []string{"--mirrors", "no-such-file", "nginx"}},
		{"an unknown field", "spec.mirrors[0].wen", []string{"--mirrors", f.mapping(t, "typo", "      wen: Always\n", f.targets("near")...), "nginx"}},
		{"a mapping that cannot be inverted", "traced", []string{"--mirrors", f.mapping(t, "lost", "", "near.example/fixed\n          path: Template\n          template: app"), "nginx"}},
		{"the same mapping twice", "twice", []string{"--mirrors", good, "--mirrors", good, "nginx"}},
		{"a file without a mapping", "policy.yaml", []string{"--mirrors", f.path("policy.yaml"), "nginx"}},
	} {
		if code, out, errs := quaymaster(t, append([]string{"mirror"}, c.args...)...); code != command.ExitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit status %d; want %q in:\n%s%s", c.reason, code, c.says, out, errs)
		}
	}
}

// TestVerifyWithMirrors: verify and explain report the redirection, and judge a copy by its
// source's name; without the mirrors they report none.
func TestVerifyWithMirrors(t *testing.T) {
	f := newFairway(t)
	ok(t, f.near.SignBundle(gatetest.Image{Repository: "hub/shop/web", Manifest: f.signed.Manifest}, verifytest.Claim{Signer: f.stranger, NoLog: true}, nil))
	mirrors := f.mapping(t, "hub", "", f.targets("down", "near")...)
	key := []string{"--key", f.path("key.pub"), "--insecure-ignore-tlog", "--mirrors", mirrors}
	for verb, part := range map[string]func(string) string{"verify": scrub, "explain": mirrorBranch} {
		code, out, errs := quaymaster(t, append([]string{verb, f.signed.Name}, key...)...)
		if code != command.ExitAllowed {
			t.Errorf("%s: exit status %d:\n%s%s", verb, code, out, errs)
		}
		goldenOutput(t, "mirror/"+verb+".txt", part(f.named(out)))
	}
	copied := f.near.Registry.Host() + "/hub/shop/web:v1"
	for _, c := range []struct {
		reason, mirrors string
		code            int
	}{
		{"the copy is proved by the signature at its source", mirrors, command.ExitAllowed},
		{"of another mapping nothing is known", f.mapping(t, "far", "", f.targets("late")...), command.ExitDenied},
	} {
		args := []string{"verify", "--policy", f.path("policy.yaml"), "--mirrors", c.mirrors, copied}
		if code, out, errs := quaymaster(t, args...); code != c.code {
			t.Errorf("%s: exit status %d, want %d:\n%s%s", c.reason, code, c.code, out, errs)
		}
	}
}

// TestMirrorsOfAList: as kubectl get -o yaml writes them.
func TestMirrorsOfAList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.yaml")
	const empty = "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\n"
	const one = empty + `items:
- apiVersion: quaymaster.dev/v1alpha1
  kind: RegistryMirror
  metadata: {name: hub, uid: a, generation: 1, managedFields: [{manager: kubectl}]}
  spec: {mirrors: [{sources: [docker.io], targets: [{location: near.example/hub}]}]}
  status: {conditions: [], targets: []}
`
	for text, refused := range map[string]bool{one: false, empty + "items: []\n": true} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if set, err := setup.LoadMirrors([]string{path}); (err != nil) != refused || !refused && len(set.Documents()) != 1 {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// mirrorBranch returns the mirrors' branch of a tree; the rest of the tree differs with the keys
// of each run.
func mirrorBranch(output string) string {
	_, rest, _ := strings.Cut(output, "├─ mirror")
	branch, _, _ := strings.Cut(rest, "\n├─ ")
	return "├─ mirror" + branch + "\n"
}

// scrub leaves out what differs with the keys of each run.
func scrub(output string) string {
	var kept []string
	for line := range strings.Lines(output) {
		if !strings.Contains(line, "signed by key") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// TestMirrorsPage: the mappings in docs/mirrors.md load, and its offline commands work.
func TestMirrorsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/mirrors.md")
	ok(t, err)
	folder, mappings := t.TempDir(), 0
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(text, "apiVersion") {
			text = "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: part}\nspec:\n  mirrors:\n    - sources: [docker.io]\n      targets: [{location: near.example/hub}]\n" + text
		}
		path := filepath.Join(folder, "mapping.yaml")
		if mappings == 0 {
			path = filepath.Join(folder, "hub.yaml")
		}
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := setup.LoadMirrors([]string{path}); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
		mappings++
	}
	commands := 0
	for line := range strings.Lines(string(page)) {
		line, isCommand := strings.CutPrefix(strings.TrimSpace(line), "$ quaymaster ")
		if !isCommand || !strings.Contains(line, "--check") && !strings.Contains(line, "--offline") {
			continue
		}
		args := strings.Fields(line)
		for i, arg := range args {
			args[i] = strings.NewReplacer("examples/", "../../examples/", "hub.yaml", filepath.Join(folder, "hub.yaml")).Replace(arg)
		}
		if code, out, errs := quaymaster(t, args...); code != command.ExitAllowed {
			t.Errorf("%s: exit status %d:\n%s%s", line, code, out, errs)
		}
		commands++
	}
	if mappings < 4 || commands < 3 {
		t.Errorf("the page has %d mappings and %d commands: the test reads it wrongly", mappings, commands)
	}
}
