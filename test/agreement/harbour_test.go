package agreement

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// crew is every program that takes part, and the files that they share.
type crew struct {
	cosign map[string]*peers.Program // by name
	crane  *peers.Program
	ours   *peers.Program
	folder string // where the keys are
	root   string // a trusted root for programs that require one
}

// Two key pairs: the signer's and another one.
const (
	signer   = "signer"
	stranger = "stranger"
)

func muster(t *testing.T) *crew {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs cosign, which takes minutes")
	}
	c := &crew{
		cosign: map[string]*peers.Program{peers.Cosign2: peers.Get(t, peers.Cosign2), peers.Cosign3: peers.Get(t, peers.Cosign3)},
		crane:  peers.Get(t, peers.Crane),
		ours:   peers.Quaymaster(t),
		folder: t.TempDir(),
	}
	for _, name := range []string{signer, stranger} {
		c.cosign[peers.Cosign2].Must(t, "generate-key-pair", "--output-key-prefix", filepath.Join(c.folder, name))
	}
	sigstore, err := verifytest.New(verifytest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.root = c.write(t, "trusted_root.json", sigstore.TrustedRoot())
	return c
}

func (c *crew) write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(c.folder, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *crew) public(name string) string  { return filepath.Join(c.folder, name+".pub") }
func (c *crew) private(name string) string { return filepath.Join(c.folder, name+".key") }

// login gives every program the same credentials.
func (c *crew) login(t *testing.T, host, user, password string) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"auths": map[string]any{
		host: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*peers.Program{c.cosign[peers.Cosign2], c.cosign[peers.Cosign3], c.crane, c.ours} {
		if err := os.WriteFile(filepath.Join(p.Folder, "config.json"), config, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ask asks our side. A refusal is exit status 1; anything else but 0 is no
// answer.
func (c *crew) ask(t *testing.T, args ...string) (accepted bool, said string) {
	t.Helper()
	said, err := c.ours.Run(t.Context(), append([]string{"verify"}, args...)...)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Errorf("quaymaster gave no answer: %v", err)
	}
	return err == nil, said
}

// port is a registry with one repository.
type port struct {
	*crew
	repository string
	auth       authn.Authenticator
	// brief: tests that are the same at every registry are run at another.
	brief bool
}

// wholePort is where everything is tried; elsewhere, too, by make long.
const wholePort = "registrytest with the referrers API"

// ports are the kinds of registry.
var ports = map[string]func(t *testing.T, c *crew) *port{
	wholePort: func(t *testing.T, c *crew) *port {
		server := registrytest.Start(registrytest.Options{PageSize: 2})
		t.Cleanup(server.Close)
		return &port{crew: c, repository: server.Host() + "/app", auth: authn.Anonymous}
	},
	"go-containerregistry with the referrers API": func(t *testing.T, c *crew) *port {
		server := httptest.NewServer(ggcr.New(ggcr.WithReferrersSupport(true), ggcr.Logger(log.New(io.Discard, "", 0))))
		t.Cleanup(server.Close)
		return &port{crew: c, repository: strings.TrimPrefix(server.URL, "http://") + "/app", auth: authn.Anonymous}
	},
	"distribution with basic authentication and no referrers API": func(t *testing.T, c *crew) *port {
		const user, password = "sailor", "ahoy"
		host := peers.StartRegistry(t, user, password)
		c.login(t, host, user, password)
		return &port{crew: c, repository: host + "/app", auth: &authn.Basic{Username: user, Password: password}}
	},
}

// push pushes an image of its own under a tag, with crane, and returns it by
// digest.
func (p *port) push(t *testing.T, tag string) string {
	t.Helper()
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := firstLayer(image)
	if err != nil {
		t.Fatal(err)
	}
	reference := p.repository + ":" + tag
	p.crane.Must(t, "append", "--insecure", "-f", p.write(t, "layer-"+tag+".tar", layer), "-t", reference)
	digest := strings.TrimSpace(p.crane.Must(t, "digest", "--insecure", reference))
	return p.repository + "@" + digest
}

func firstLayer(image v1.Image) ([]byte, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	return io.ReadAll(content)
}

// digest parses an image by digest.
func digest(t *testing.T, image string) name.Digest {
	t.Helper()
	d, err := name.NewDigest(image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// move makes all evidence of one image refer to another:
// cosign's tags are copied, referrers get another subject.
func (p *port) move(t *testing.T, from, to string) {
	t.Helper()
	source, target := digest(t, from), digest(t, to)
	auth := remote.WithAuth(p.auth)
	for _, suffix := range []string{".sig", ".att"} {
		tag := func(d name.Digest) name.Tag {
			return d.Context().Tag(strings.Replace(d.DigestStr(), ":", "-", 1) + suffix)
		}
		if found, err := remote.Get(tag(source), auth); err == nil {
			check(t, remote.Put(tag(target), found, auth))
		}
	}
	subject, err := remote.Get(target, auth)
	check(t, err)
	index, err := remote.Referrers(source, auth)
	check(t, err)
	list, err := index.IndexManifest()
	check(t, err)
	for _, d := range list.Manifests {
		found, err := remote.Get(source.Context().Digest(d.Digest.String()), auth)
		check(t, err)
		var manifest map[string]any
		check(t, json.Unmarshal(found.Manifest, &manifest))
		manifest["subject"] = map[string]any{"mediaType": subject.MediaType, "digest": subject.Digest.String(), "size": subject.Size}
		changed, err := json.Marshal(manifest)
		check(t, err)
		hash, size, err := v1.SHA256(strings.NewReader(string(changed)))
		check(t, err)
		moved := *found
		moved.Manifest, moved.Digest, moved.Size = changed, hash, size
		check(t, remote.Put(source.Context().Digest(hash.String()), &moved, auth))
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// verdict writes an answer for messages.
func verdict(accepted bool) string {
	if accepted {
		return "accepts"
	}
	return "refuses"
}
