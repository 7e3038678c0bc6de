package signedmanifests

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// lab has the tool's documents and our program.
type lab struct {
	documents  string // a folder
	quaymaster *peers.Program
}

func newLab(t *testing.T) *lab {
	t.Helper()
	module := testkit.Must(peers.Module(t.Context(), peers.ManifestSigstore))(t)
	return &lab{documents: filepath.Join(module, "pkg", "k8smanifest", "testdata"), quaymaster: peers.Quaymaster(t)}
}

func (l *lab) read(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile(filepath.Join(l.documents, name)))(t))
}

// denied reports whether a policy with a key denies an object, and why.
func (l *lab) denied(t *testing.T, key, more, object string) (bool, string) {
	t.Helper()
	folder := t.TempDir()
	policy := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: signed}\nspec:\n  validationFailureAction: Enforce\n  background: false\n  rules:\n" +
		"  - name: signed\n    match: {any: [{resources: {kinds: [Deployment, ConfigMap]}}]}\n    validate: {manifests: {attestors: [{entries: [{keys: {rekor: {ignoreTlog: true}, publicKeys: " +
		string(testkit.Must(json.Marshal(key))(t)) + "}}]}]" + more + "}}\n"
	for name, text := range map[string]string{"policy.yaml": policy, "object.yaml": object} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output, err := l.quaymaster.Run(t.Context(), "apply", filepath.Join(folder, "policy.yaml"), "-r", filepath.Join(folder, "object.yaml"))
	if !strings.Contains(output, "signed") {
		t.Fatalf("the rule was not evaluated: %v\n%s", err, output)
	}
	return err != nil, output
}

// change is one of a signed document.
type change struct{ name, from, to, differs string }

// check admits a document with its key, and denies it with another key and after the change.
func (l *lab) check(t *testing.T, c change, text, key, other string) {
	t.Helper()
	changed := strings.Replace(text, c.from, c.to, 1)
	if changed == text {
		t.Fatalf("%s: no %q", c.name, c.from)
	}
	if denied, output := l.denied(t, key, "", text); denied {
		t.Errorf("%s is denied:\n%s", c.name, output)
	}
	if denied, output := l.denied(t, key, "", changed); !denied || !strings.Contains(unwrapped(output), c.differs) {
		t.Errorf("%s and a change: denied: %t, want %q:\n%s", c.name, denied, c.differs, output)
	}
	if denied, output := l.denied(t, other, "", text); !denied || !strings.Contains(output, "signed with another key") {
		t.Errorf("%s and another key: denied: %t\n%s", c.name, denied, output)
	}
}

func TestManifestsOfTheTool(t *testing.T) {
	l := newLab(t)
	key := string(testkit.Must(base64.StdEncoding.DecodeString(strings.TrimSpace(l.read(t, "testpub"))))(t))
	other := string(testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t).PublicPEM())
	for _, c := range []change{
		{"sample-configmap-signed.yaml", "key4: val4", "key4: val5", `data.key4 was signed as "val4" and is "val5"`},
		{"sample-configmap-multi-signed.yaml", "  key4: val4\n", "", "data.key4 was signed and is not there"},
		{"sample-deployment-signed.yaml", "image: nginx:1.14.2", "image: nginx:1.14.1", `was signed as "nginx:1.14.2" and is "nginx:1.14.1"`},
		{"sample-deployment-signed-deployed.yaml", "dnsPolicy: ClusterFirst", "dnsPolicy: ClusterFirst\n      hostNetwork: true", "spec.template.spec.hostNetwork was not signed"},
	} {
		l.check(t, c, l.read(t, c.name), key, other)
	}
	mutated := l.read(t, "sample-deployment-signed-mutating-1.yaml")
	if denied, output := l.denied(t, key, "", mutated); !denied || !strings.Contains(unwrapped(output), `was signed as "nginx:1.14.2" and is "docker.io/nginx:1.14.2"`) {
		t.Errorf("a mutated image: denied: %t\n%s", denied, output)
	}
	if denied, output := l.denied(t, key, ", ignoreFields: [{objects: [{kind: Deployment}], fields: [spec.template.spec.containers.*.image]}]", mutated); denied {
		t.Errorf("a mutated image that is ignored is denied:\n%s", output)
	}
}

// unwrapped joins the lines of an output.
func unwrapped(output string) string { return strings.Join(strings.Fields(output), " ") }
