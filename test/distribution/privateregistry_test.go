package distribution

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/test/peers/notary"
)

const (
	user     = "sailor"
	password = "ahoy-there-1893"
)

// crew has every program of the test, and the signers' keys.
type crew struct {
	cosign2, cosign3, crane, registry, ours *peers.Program

	folder           string // where the keys are
	notary, stranger *notary.Notary
}

func muster(t *testing.T) *crew {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs cosign and a registry, which takes minutes")
	}
	c := &crew{
		cosign2: peers.Get(t, peers.Cosign2), cosign3: peers.Get(t, peers.Cosign3), crane: peers.Get(t, peers.Crane),
		registry: peers.Get(t, peers.Registry), ours: peers.Quaymaster(t),
		folder: t.TempDir(), notary: notary.New(t, "notary"), stranger: notary.New(t, "stranger"),
	}
	for _, name := range []string{"signer", "stranger"} {
		c.cosign2.Must(t, "generate-key-pair", "--output-key-prefix", filepath.Join(c.folder, name))
	}
	c.write(t, "notary.pem", c.notary.Root)
	c.write(t, "stranger.pem", c.stranger.Root)
	return c
}

func (c *crew) file(name string) string { return filepath.Join(c.folder, name) }

func (c *crew) write(t *testing.T, name string, content []byte) string {
	t.Helper()
	check(t, os.WriteFile(c.file(name), content, 0o600))
	return c.file(name)
}

// privateRegistry is a private registry, with the gangway that leads to it.
type privateRegistry struct {
	*crew
	gangway *gangway
	office  *office // nil under basic authentication
	host    string
	login   string // the environment that logs a program in
}

// privateRegistries are the kinds of private registries.
var privateRegistries = []struct {
	name string
	open func(t *testing.T, c *crew) *privateRegistry
}{
	{"basic authentication", openBasic},
	{"tokens by ES256", func(t *testing.T, c *crew) *privateRegistry { return openTokens(t, c, jose.ES256) }},
	{"tokens by RS256", func(t *testing.T, c *crew) *privateRegistry { return openTokens(t, c, jose.RS256) }},
}

func openBasic(t *testing.T, c *crew) *privateRegistry {
	t.Helper()
	return moor(t, c, peers.StartRegistry(t, user, password), nil)
}

func openTokens(t *testing.T, c *crew, algorithm jose.SignatureAlgorithm) *privateRegistry {
	t.Helper()
	office := openOffice(t, algorithm)
	return moor(t, c, c.serve(t, office), office)
}

func moor(t *testing.T, c *crew, registry string, office *office) *privateRegistry {
	t.Helper()
	h := &privateRegistry{crew: c, gangway: openGangway(t, registry), office: office}
	h.host = h.gangway.host()
	h.login = h.loggedIn(t, user, password)
	return h
}

// loggedIn has crane log in, and returns the environment that uses it.
func (h *privateRegistry) loggedIn(t *testing.T, user, password string) string {
	t.Helper()
	use := "DOCKER_CONFIG=" + t.TempDir()
	h.crane.With(use).Must(t, "auth", "login", h.host, "-u", user, "-p", password)
	return use
}

// serve runs a registry that wants the office's tokens until the test ends.
func (c *crew) serve(t *testing.T, o *office) (host string) {
	t.Helper()
	folder := t.TempDir()
	host = freeHost(t)
	bundle, file := filepath.Join(folder, "office.pem"), filepath.Join(folder, "config.yml")
	check(t, os.WriteFile(bundle, o.key.pem(), 0o600))
	config := fmt.Sprintf(`version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: %q}, delete: {enabled: true}}
http: {addr: %q}
auth: {token: {realm: %q, service: %q, issuer: %q, rootcertbundle: %q}}
`, filepath.Join(folder, "data"), host, o.realm(), service, issuer, bundle)
	check(t, os.WriteFile(file, []byte(config), 0o600))

	said := new(bytes.Buffer)
	command := exec.CommandContext(t.Context(), c.registry.Path, "serve", file)
	command.Dir, command.Env = folder, []string{"HOME=" + folder, "OTEL_TRACES_EXPORTER=none"}
	command.Stdout, command.Stderr = said, said
	check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // and with it the writers to said
		if t.Failed() {
			t.Logf("output of the registry:\n%s", said)
		}
	})
	await(t, "http://"+host+"/v2/")
	return host
}

// await returns when a server answers at all.
func await(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		check(t, err)
		if response, err := http.DefaultClient.Do(q); err == nil {
			_ = response.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not answer", url)
		}
	}
}

// freeHost returns a loopback address without a listener.
func freeHost(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// push has crane push an image of one file, and returns it by digest.
func (h *privateRegistry) push(t *testing.T, repository, tag string) string {
	t.Helper()
	layer := new(bytes.Buffer)
	w := tar.NewWriter(layer)
	content := repository + ":" + tag
	check(t, w.WriteHeader(&tar.Header{Name: "cargo", Mode: 0o644, Size: int64(len(content))}))
	_, err := w.Write([]byte(content))
	check(t, errors.Join(err, w.Close()))
	path := filepath.Join(t.TempDir(), "layer.tar")
	check(t, os.WriteFile(path, layer.Bytes(), 0o600))
	crane := h.crane.With(h.login)
	reference := h.host + "/" + repository + ":" + tag
	crane.Must(t, "append", "-f", path, "-t", reference)
	return h.host + "/" + repository + "@" + strings.TrimSpace(crane.Must(t, "digest", reference))
}

// referrers returns the artifact types under an image's referrers tag.
func (h *privateRegistry) referrers(t *testing.T, image string) []string {
	t.Helper()
	var index struct {
		MediaType string `json:"mediaType"`
		Manifests []struct {
			ArtifactType string `json:"artifactType"`
		} `json:"manifests"`
	}
	check(t, json.Unmarshal([]byte(h.crane.With(h.login).Must(t, "manifest", tagOf(image, ""))), &index))
	var types []string
	for _, m := range index.Manifests {
		types = append(types, m.ArtifactType)
	}
	return types
}

// tagOf is the tag that is made of an image's digest and a suffix.
func tagOf(image, suffix string) string {
	repository, digest, _ := strings.Cut(image, "@")
	return repository + ":" + strings.Replace(digest, ":", "-", 1) + suffix
}

// verdict is quaymaster's output.
type verdict struct {
	status int
	said   string // on both outputs
	record string
	images []judged
}

// judged is the record's entry for an image.
type judged struct {
	Result  string `json:"result"`
	Reasons []struct {
		Code string `json:"code"`
	} `json:"reasons"`
	Decisions []struct {
		Proofs []struct {
			Format string `json:"format"`
		} `json:"proofs"`
	} `json:"decisions"`
}

// codes of all images' reasons; an image that gives one code for several
// reasons gives it once.
func (v *verdict) codes() []string {
	var codes []string
	for _, image := range v.images {
		var own []string
		for _, reason := range image.Reasons {
			own = append(own, reason.Code)
		}
		codes = append(codes, slices.Compact(own)...)
	}
	return codes
}

// formats of all images' proofs.
func (v *verdict) formats() []string {
	var formats []string
	for _, image := range v.images {
		for _, decision := range image.Decisions {
			for _, proof := range decision.Proofs {
				formats = append(formats, proof.Format)
			}
		}
	}
	return formats
}

// ask asks quaymaster under a login, and holds it to keeping the password for
// itself.
func (h *privateRegistry) ask(t *testing.T, login string, args ...string) *verdict {
	t.Helper()
	record := filepath.Join(t.TempDir(), "record.json")
	v := &verdict{}
	said, err := h.ours.With(login).Run(t.Context(), append([]string{"verify", "-o", "text", "-o", "json=" + record}, args...)...)
	v.said = said
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		v.status = exit.ExitCode()
	} else {
		check(t, err)
	}
	content, err := os.ReadFile(record)
	if err != nil {
		t.Fatalf("no record: %v\n%s", err, said)
	}
	v.record = string(content)
	var list struct {
		Items []struct {
			Images []judged `json:"images"`
		} `json:"items"`
	}
	check(t, json.Unmarshal(content, &list))
	for _, item := range list.Items {
		v.images = append(v.images, item.Images...)
	}
	if strings.Contains(said+v.record, password) {
		t.Errorf("the password is in the output:\n%s%s", said, v.record)
	}
	return v
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
