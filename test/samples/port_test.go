package samples

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/test/peers/notary"
	"github.com/quaymaster/quaymaster/test/peers/sigstore"
)

// The keys in files: the one that policies trust, the second that one
// requires next to it, and one that is not trusted.
const (
	signer   = "signer"
	second   = "second"
	stranger = "stranger"
)

// The issuers: the one that policies believe, and another.
const (
	builds   = "/builds"
	machines = "/machines"
)

// fulcioConfig believes the issuers (%[1]s is their address) and writes into a
// certificate whichever name their token has.
const fulcioConfig = `oidc-issuers:
  %[1]s/builds: {issuer-url: "%[1]s/builds", client-id: sigstore, type: ci-provider, ci-provider: forge}
  %[1]s/machines: {issuer-url: "%[1]s/machines", client-id: sigstore, type: ci-provider, ci-provider: forge}
ci-issuer-metadata:
  forge: {subject-alternative-name-template: "{{ .name }}"}
`

// port is a registry, its signers, and the program that judges.
type port struct {
	exchange
	cosign2, cosign3, ours *peers.Program

	folder   string // where the keys are
	issuers  *sigstore.Issuers
	fulcio   *sigstore.Fulcio
	rekor    *sigstore.Rekor
	vault    *vault
	notaries map[string]*notary.Notary

	tsa *sigstore.TSA // runs no more

	mu    sync.Mutex
	cargo map[string]func() (pushed, error) // by repository and proofs
}

func newPort(t *testing.T) *port {
	t.Helper()
	ctlog := sigstore.NewCTLog(t)
	p := &port{
		folder: t.TempDir(), cargo: map[string]func() (pushed, error){}, vault: newVault(t),
		issuers: sigstore.NewIssuers(t, builds, machines), rekor: sigstore.NewRekor(t),
		notaries: map[string]*notary.Notary{signer: notary.New(t, signer), stranger: notary.New(t, stranger)},
	}
	p.fulcio = sigstore.StartFulcio(t, fmt.Sprintf(fulcioConfig, p.issuers.URL), ctlog)
	env := []string{
		"VAULT_ADDR=" + p.vault.url, "VAULT_TOKEN=" + vaultToken,
		"SIGSTORE_CT_LOG_PUBLIC_KEY_FILE=" + p.file(t, "ctlog.pub", ctlog.PublicPEM()),
		"SIGSTORE_REKOR_PUBLIC_KEY=" + p.file(t, "rekor.pub", p.rekor.PublicPEM()),
		"SIGSTORE_ROOT_FILE=" + p.file(t, "fulcio.pem", sigstore.PEM(p.fulcio.Chain)),
	}
	p.cosign2, p.cosign3 = peers.Get(t, peers.Cosign2).With(env...), peers.Get(t, peers.Cosign3).With(env...)
	p.ours = peers.Quaymaster(t).With(env[:2]...)
	for _, name := range []string{signer, second, stranger} {
		p.cosign2.Must(t, "generate-key-pair", "--output-key-prefix", filepath.Join(p.folder, name))
	}
	p.file(t, "trusted_root.json", sigstore.Roots{Fulcio: p.fulcio, CTLog: ctlog, Rekor: p.rekor}.JSON(t))
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	p.exchange = exchange{
		registry: strings.TrimPrefix(server.URL, "http://"), issuer: p.issuers.URL + builds, kms: "hashivault://" + signer,
		publicKey: p.publicPEM(t, signer), certificate: string(p.notaries[signer].Root),
	}
	return p
}

// file writes a file beside the keys.
func (p *port) file(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(p.folder, name)
	check(t, os.WriteFile(path, content, 0o600))
	return path
}

func (p *port) publicPEM(t testing.TB, key string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.folder, key+".pub"))
	check(t, err)
	return string(text)
}

// pushed is an image under both of its names.
type pushed struct{ byTag, byDigest string }

// load returns an image with a tag of its own and the given proofs. An image for
// several trials is made once.
func (p *port) load(t testing.TB, repository string, proofs []proof) pushed {
	t.Helper()
	key := fmt.Sprintf("%s %#v", repository, proofs)
	p.mu.Lock()
	made, ok := p.cargo[key]
	if !ok {
		tag := fmt.Sprintf("v%d", len(p.cargo))
		made = sync.OnceValues(func() (pushed, error) { return p.make(t, p.registry+"/"+repository+":"+tag, proofs) })
		p.cargo[key] = made
	}
	p.mu.Unlock()
	image, err := made()
	check(t, err)
	return image
}

// make pushes an image and attaches all proofs, one after the other.
func (p *port) make(t testing.TB, image string, proofs []proof) (pushed, error) {
	tag, err := name.NewTag(image, name.Insecure)
	if err != nil {
		return pushed{}, err
	}
	content, err := random.Image(64, 1)
	if err != nil {
		return pushed{}, err
	}
	if err := remote.Write(tag, content); err != nil {
		return pushed{}, fmt.Errorf("push %s: %w", image, err)
	}
	digest, err := content.Digest()
	if err != nil {
		return pushed{}, err
	}
	for _, proof := range proofs {
		if err := p.prove(t, tag.RepositoryStr(), digest.String(), proof); err != nil {
			return pushed{}, err
		}
	}
	return pushed{byTag: image, byDigest: tag.Context().Digest(digest.String()).Name()}, nil
}

// item is the record's entry for an object.
type item struct {
	Result            string
	Reasons, Warnings []reason
	Images            []struct {
		Result            string
		Pinned            string
		Pin, Matched      bool
		Reasons, Warnings []reason
	}
}

type reason struct{ Code, Message string }

// judge has objects judged by the policies in a file.
func (p *port) judge(t testing.TB, policy string, objects []map[string]any) (items []item, said string) {
	t.Helper()
	folder := t.TempDir()
	manifests, record := filepath.Join(folder, "objects.yaml"), filepath.Join(folder, "record.json")
	write(t, manifests, objects)
	said, err := p.ours.Run(t.Context(), "verify", "--policy", policy, "--trusted-root", filepath.Join(p.folder, "trusted_root.json"),
		"-f", manifests, "-o", "text", "-o", "json="+record)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) {
		t.Fatalf("quaymaster gave no answer: %v", err)
	}
	text, err := os.ReadFile(record)
	check(t, err)
	var list struct{ Items []item }
	check(t, json.Unmarshal(text, &list))
	if len(list.Items) != len(objects) {
		t.Fatalf("%d items for %d objects:\n%s", len(list.Items), len(objects), said)
	}
	return list.Items, said
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// first returns the code of the first reason; empty if there is none.
func first(reasons []reason) string {
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0].Code
}

// manifest fills an image into an object.
func manifest(t testing.TB, text, image string) map[string]any {
	t.Helper()
	var object map[string]any
	check(t, json.Unmarshal([]byte(strings.ReplaceAll(text, "IMAGE", image)), &object))
	return object
}
