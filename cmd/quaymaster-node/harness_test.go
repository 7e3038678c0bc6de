package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/webhook/api"
)

const nodeToken = "node-0123456789abcdef"

// build makes the binary as a release does.
func build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quaymaster-node")
	c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// containerd runs an image verifier as containerd does: pkg/imageverifier/bindir.
type containerd struct {
	binary   string
	settings string // the path of the node's settings
	timeout  time.Duration
}

const (
	// outputLimit is containerd's for standard output and error.
	outputLimit = 32 << 10
	// perVerifierTimeout is its default.
	perVerifierTimeout = 10 * time.Second
)

// judgement is what containerd makes of a run: allowed only by status 0. An error
// is a verifier that was killed or could not be run, which blocks, too.
type judgement struct {
	ok     bool
	reason string
	log    string
	err    error
}

// verify asks about an image.
func (c containerd) verify(t testing.TB, name, digest string) judgement {
	t.Helper()
	descriptor := encode(t, map[string]any{
		"mediaType": "application/vnd.oci.image.index.v1+json", "digest": digest, "size": 2048,
		"annotations": map[string]string{"containerd.io/distribution.source.registry.test": "app"},
	})
	return c.run(t, []string{"-name", name, "-digest", digest, "-stdin-media-type", "application/vnd.oci.descriptor.v1+json"}, bytes.NewReader(descriptor))
}

func (c containerd) run(t testing.TB, args []string, stdin io.Reader) judgement {
	t.Helper()
	if c.timeout == 0 {
		c.timeout = perVerifierTimeout
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.Env = []string{"QUAYMASTER_NODE_CONFIG=" + c.settings, "HTTPS_PROXY=http://127.0.0.1:1"}
	cmd.Stdin = stdin
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if stdout.Len() > outputLimit || stderr.Len() > outputLimit {
		t.Errorf("%d bytes of output and %d of log would be cut", stdout.Len(), stderr.Len())
	}
	j := judgement{ok: err == nil, reason: strings.TrimSpace(stdout.String()), log: stderr.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || !exit.Exited() || exit.ExitCode() != 1) {
		j.err = err
	}
	if j.reason == "" || strings.Contains(j.reason, "\n") {
		t.Errorf("the reason is %q: want one line", j.reason)
	}
	if strings.Contains(j.reason+j.log, nodeToken) {
		t.Errorf("the output contains the token: %s\n%s", j.reason, j.log)
	}
	return j
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	return testkit.Must(json.Marshal(value))(t)
}

// write makes a file of settings or of anything else, and returns its path.
func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve starts a gateway over TLS, and writes a node's settings for it.
func serve(t testing.TB, handler http.Handler, more string) (settings string, server *httptest.Server) {
	t.Helper()
	server = httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	token := write(t, "token", nodeToken+"\n")
	return write(t, "node.yaml", "gateway: {url: \""+server.URL+"\", caFile: "+ca+", tokenFile: "+token+"}\n"+more), server
}

// env is a gate with real parts behind the real endpoint. It is also the gate's only rule.
type env struct {
	*gatetest.Env
	endpoint http.Handler
	judge    *gate.Gate

	mu     sync.Mutex
	opened []gate.Access
}

func newEnv(t testing.TB) *env {
	t.Helper()
	h := &env{Env: testkit.Must(gatetest.NewEnv())(t)}
	t.Cleanup(h.Close)
	set := testkit.Must(set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "1", Rules: []policy.Rule{h}}))(t)
	h.judge = testkit.Must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: h.Prover}}))(t)
	tokens := testkit.Must(api.NewTokenFile(write(t, "tokens", nodeToken+",node\n"), nil))(t)
	h.endpoint = testkit.Must(api.New(h.config(tokens)))(t)
	return h
}

// config is that of an endpoint which records nothing and knows no labels.
func (h *env) config(tokens api.Authenticator) api.Config {
	return api.Config{Authenticator: tokens, Decider: h.judge, Namespaces: unlabelled{}, Recorder: unrecorded{}}
}

type unlabelled struct{}

func (unlabelled) Labels(context.Context, string) (map[string]string, error) {
	return nil, errors.New("not known")
}

type unrecorded struct{}

func (unrecorded) Record(context.Context, api.Call) {}

// Open implements gate.Registries, and records the accesses.
func (h *env) Open(ctx context.Context, access gate.Access, repository image.Repository) (gate.Session, error) {
	h.mu.Lock()
	h.opened = append(h.opened, access)
	h.mu.Unlock()
	return h.Env.Open(ctx, access, repository)
}

// Name, Extractors and Plan make the env a rule: it requires its signer's signature on images in
// shop/ and does not match others.
func (h *env) Name() string                                  { return "check" }
func (h *env) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (h *env) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	for _, found := range images {
		if !strings.HasPrefix(found.Ref.Repository().Path(), "shop/") {
			continue
		}
		plan.Checks = append(plan.Checks, policy.Check{
			Entry: "verifyImages[0]", Image: found, Action: policy.Enforce, Claims: policy.Claims{Required: true, Requirements: []policy.Requirement{{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: h.Authority}}}}},
		})
	}
	return plan, nil
}

// sign signs an image as cosign does.
func (h *env) sign(t testing.TB, built gatetest.Image) gatetest.Image {
	t.Helper()
	if err := h.SignLegacy(built, verifytest.Claim{Signer: h.Signer, NoLog: true}, nil); err != nil {
		t.Fatal(err)
	}
	return built
}
