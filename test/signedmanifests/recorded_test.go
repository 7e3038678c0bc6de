package signedmanifests

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/test/peers"
)

var update = flag.Bool("update", false, "write testdata: go test ./signedmanifests -run TestSignedByTheProgram -update")

// manifest is a document that the program signs.
type manifest struct {
	change
	text string
	// tarball is the program's flag: the message is an archive.
	tarball string
	// keys sign it, in this order.
	keys []string
}

const (
	settings = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: shop\ndata:\n  mode: strict\n  size: \"3\"\n"
	workload = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  replicas: 2\n  selector:\n    matchLabels: {app: web}\n" +
		"  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n      - name: web\n        image: registry.example/shop/web:v1\n" +
		"        env:\n        - name: MODE\n          value: \"on\"\n"
)

func manifests() []manifest {
	return []manifest{
		{change{"configmap", "mode: strict", "mode: loose", `data.mode was signed as "strict" and is "loose"`}, settings, "no", []string{"a"}},
		{change{"configmap-archive", "mode: strict", "mode: loose", `data.mode was signed as "strict" and is "loose"`}, settings, "yes", []string{"a"}},
		{change{"configmap-two-keys", "  mode: strict\n", "", "data.mode was signed and is not there"}, settings, "no", []string{"b", "a"}},
		{change{"deployment", "shop/web:v1", "shop/web:v2", `was signed as "registry.example/shop/web:v1"`}, workload, "no", []string{"a"}},
		{change{"deployment-archive", "name: MODE", "name: MODUS", "MODE"}, workload, "yes", []string{"a"}},
	}
}

// signer signs with the program, with keys of its own.
type signer struct {
	program *peers.Program
	folder  string
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	cosign, s := peers.Get(t, peers.Cosign2), &signer{peers.Get(t, peers.KubectlSigstore), t.TempDir()}
	for _, name := range []string{"a", "b", "other"} {
		cosign.Must(t, "generate-key-pair", "--output-key-prefix", filepath.Join(s.folder, name))
	}
	return s
}

func (s *signer) sign(t *testing.T, m manifest) string {
	t.Helper()
	file := filepath.Join(s.folder, m.name+".yaml")
	if err := os.WriteFile(file, []byte(m.text), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, key := range m.keys {
		args := []string{"sign", "-f", file, "-o", file, "-k", filepath.Join(s.folder, key+".key"), "--tarball", m.tarball, "--no-tlog-upload", "--force"}
		if i > 0 {
			args = append(args, "--append-signature")
		}
		s.program.Must(t, args...)
	}
	return read(t, file)
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile(file))(t))
}

// TestSignedByTheProgram signs with kubectl-sigstore; it takes minutes to build.
func TestSignedByTheProgram(t *testing.T) {
	peers.Long(t)
	l, s := newLab(t), newSigner(t)
	key, other := read(t, filepath.Join(s.folder, "a.pub")), read(t, filepath.Join(s.folder, "other.pub"))
	if *update {
		record(t, "a.pub", key)
		record(t, "other.pub", other)
	}
	for _, m := range manifests() {
		text := s.sign(t, m)
		l.check(t, m.change, text, key, other)
		if *update {
			record(t, m.name+".yaml", text)
		}
	}
}

func record(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("testdata", name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecorded checks the documents that the program has signed; see sign for the command.
func TestRecorded(t *testing.T) {
	l := newLab(t)
	key, other := read(t, filepath.Join("testdata", "a.pub")), read(t, filepath.Join("testdata", "other.pub"))
	for _, m := range manifests() {
		l.check(t, m.change, read(t, filepath.Join("testdata", m.name+".yaml")), key, other)
	}
}
