package release

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/peers"
)

const version = "v1.2.3"

// yard is where a release is made: programs, keys, a registry and the files.
type yard struct {
	root     string // the checkout
	folder   string
	ours     string // our own program, which verifies
	host     string
	env      []string
	spoiling atomic.Bool // the registry's blobs come with a byte changed
}

func open(t *testing.T) *yard {
	t.Helper()
	if testing.Short() {
		t.Skip("builds cosign, helm and a registry, which takes minutes")
	}
	root, err := peers.Checkout()
	check(t, err)
	y := &yard{root: root, folder: t.TempDir(), ours: peers.Quaymaster(t).Path}
	images := filepath.Join(root, "deploy", "image")
	y.host = y.serve(t, peers.StartRegistry(t, "", ""))
	cosign := peers.Get(t, peers.Cosign3)
	for _, name := range []string{"signer", "stranger"} {
		cosign.Must(t, "generate-key-pair", "--output-key-prefix", y.file(name))
		y.notary(t, name)
	}
	y.env = append(os.Environ(),
		"VERSION="+version, "DIST="+y.file("dist"), "REGISTRY="+y.host+"/quay",
		"COSIGN="+cosign.Path, "CRANE="+peers.Get(t, peers.Crane).Path, "HELM="+peers.Get(t, peers.Helm).Path,
		"QUAYMASTER="+y.ours,
		"IMAGE="+y.build(t, images, ".", "image"), "NOTARIZE="+y.build(t, images, "./notarize", "notarize"),
		"COSIGN_PASSWORD=", "COSIGN_KEY="+y.file("signer.key"), "COSIGN_PUBLIC_KEY="+y.file("signer.pub"),
		"NOTATION_KEY="+y.file("signer.notation.key"), "NOTATION_CHAIN="+y.file("signer.pem"), "NOTATION_ROOT="+y.file("signer.root.pem"),
		"PROVENANCE="+y.file("provenance.json"), "PROGRAMS="+y.file("programs"), "PLATFORMS=linux/"+architecture(),
		"CHARTS="+filepath.Join(root, "test", "release", "testdata", "quaymaster", "Chart.yaml"),
		"DOCKER_CONFIG="+y.folder, "TUF_ROOT="+y.file("tuf"), "SOURCE_DATE_EPOCH="+strconv.Itoa(epoch),
		"GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=quaymaster/quaymaster", "GITHUB_REF=refs/tags/"+version,
		"GITHUB_WORKFLOW_REF=quaymaster/quaymaster/.github/workflows/release.yaml@refs/tags/"+version, "GITHUB_EVENT_NAME=push",
		"GITHUB_REPOSITORY_ID=1", "GITHUB_REPOSITORY_OWNER_ID=2", "GITHUB_SHA=0123456789abcdef0123456789abcdef01234567",
		"GITHUB_RUN_ID=3", "GITHUB_RUN_ATTEMPT=1", "RUNNER_ENVIRONMENT=github-hosted",
	)
	y.programs(t)
	return y
}

// epoch is the time of the sources.
const epoch = 1_760_000_000

// architecture is this machine's; images are for linux.
func architecture() string { return runtime.GOARCH }

// programs builds ones that know their version and nothing else: the real ones take
// minutes, and make images-check builds them. Those of other platforms are only
// archived here, so that their bytes do not matter.
func (y *yard) programs(t *testing.T) {
	t.Helper()
	check(t, os.Mkdir(y.file("programs"), 0o700))
	for _, program := range []string{"quaymaster", "quaymaster-node"} {
		module := t.TempDir()
		check(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte("module quay.test/"+program+"\n\ngo 1.26\n"), 0o600))
		check(t, os.WriteFile(filepath.Join(module, "main.go"), []byte("package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"quaymaster "+version+"\\n\") }\n"), 0o600))
		y.build(t, module, ".", filepath.Join("programs", program+"_linux_"+architecture()))
	}
	for _, other := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		if file := y.file("programs", "quaymaster_"+other); other != "linux_"+architecture() {
			check(t, os.WriteFile(file, []byte(other), 0o600))
		}
	}
}

func (y *yard) file(parts ...string) string {
	return filepath.Join(append([]string{y.folder}, parts...)...)
}

// build builds a program of a module as a file.
func (y *yard) build(t *testing.T, module, path, name string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", y.file(name), path)
	command.Dir, command.Env = module, append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, output)
	}
	return y.file(name)
}

// script runs a script of deploy/release; the environment has more in it.
func (y *yard) script(t *testing.T, name string, args []string, more ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", append([]string{filepath.Join(y.root, "deploy", "release", name)}, args...)...)
	command.Dir, command.Env = y.folder, append(append([]string{}, y.env...), more...)
	output, err := command.CombinedOutput()
	return string(output), err
}

func (y *yard) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	output, err := y.script(t, name, args)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return output
}

// serve is a proxy of the registry that can change its answers.
func (y *yard) serve(t *testing.T, registry string) (host string) {
	t.Helper()
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(&url.URL{Scheme: "http", Host: registry})
			q.Out.Host = q.In.Host // the registry makes addresses of it
		},
		ModifyResponse: func(r *http.Response) error {
			if !y.spoiling.Load() || r.StatusCode != http.StatusOK || r.Request.Method != http.MethodGet || !strings.Contains(r.Request.URL.Path, "/blobs/") {
				return nil
			}
			content, err := io.ReadAll(r.Body)
			if err != nil || len(content) == 0 {
				return err
			}
			content[len(content)/2] ^= 1
			r.Body = io.NopCloser(bytes.NewReader(content))
			return nil
		},
	})
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// notary makes a key for notation, and its certificates.
func (y *yard) notary(t *testing.T, name string) {
	t.Helper()
	now := time.Now()
	subject := pkix.Name{Country: []string{"XX"}, Province: []string{"None"}, Organization: []string{"Quay"}, CommonName: name}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	leaf.Subject.CommonName += " leaf"
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	check(t, err)
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), rootKey)
	check(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	written := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	check(t, os.WriteFile(y.file(name+".notation.key"), written("PRIVATE KEY", keyDER), 0o600))
	check(t, os.WriteFile(y.file(name+".root.pem"), written("CERTIFICATE", rootDER), 0o600))
	check(t, os.WriteFile(y.file(name+".pem"), append(written("CERTIFICATE", leafDER), written("CERTIFICATE", rootDER)...), 0o600))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
