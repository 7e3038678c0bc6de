package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// head begins every configuration file.
const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"

// patience is how long tests wait for what happens beside them.
const patience = 20 * time.Second

// env is a registry with a signed image and one that is not, and a folder for
// policies.
type env struct {
	*gatetest.Yard
	signed, unsigned gatetest.Image
	key, other       *verifytest.Signer
	folder           string
}

func newEnv(t testing.TB) *env {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	d := &env{
		Yard: gatetest.New(server, verifytest.Must(verifytest.New(verifytest.Options{}))), folder: t.TempDir(),
		key:   verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})),
		other: verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})),
	}
	d.signed, d.unsigned = d.Build("signed", "v1", "1"), d.Build("unsigned", "v1", "2")
	if err := d.SignLegacy(d.signed, verifytest.Claim{Signer: d.key, NoLog: true}, nil); err != nil {
		t.Fatal(err)
	}
	d.write(t, "policies/policy.yaml", policyText("signed", "Pod", d.key))
	return d
}

// write replaces a file in one step, as a mounted ConfigMap is replaced.
func (d *env) write(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(d.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".next", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
}

// policyText is a policy that wants a signature by the key on objects of a kind.
func policyText(name, kind string, key *verifytest.Signer) string {
	return policyOfKey(name, "{resources: {kinds: ["+kind+"]}}", "", string(key.PublicPEM()))
}

func policyOfKey(name, match, rule, key string) string {
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %s}
spec:
  validationFailureAction: Enforce
  rules:
    - name: by-key
      match: {any: [%s]}
%s      verifyImages:
        - imageReferences: ["*"]
          attestors: [{entries: [{keys: {publicKeys: %q, rekor: {ignoreTlog: true}}}]}]
`, name, match, rule, key)
}

// running is a gateway that runs standalone on loopback.
type running struct {
	address, plain string
	client         *http.Client
	log            *testkit.Log
	stop           context.CancelFunc
	ended          chan error
}

// start runs a gateway with more settings, and waits until its endpoints are active.
func (d *env) start(t *testing.T, settings string) *running {
	t.Helper()
	if !strings.Contains(settings, "ages:") {
		settings += "ages: {tag: 1ms, none: 1ms}\n"
	}
	if !strings.Contains(settings, "policies:") {
		settings += "policies: {folders: [FOLDER/policies]}\n"
	}
	settings = "standalone: true\ncertificate: {folder: FOLDER/certificate}\n" + settings
	c, err := config.Parse([]byte(head + strings.ReplaceAll(settings, "FOLDER", d.folder)))
	if err != nil {
		t.Fatal(err)
	}
	c.Listen.Address, c.Listen.Plain = "127.0.0.1:0", "127.0.0.1:0"
	if c.Listen.DrainDelay == config.Duration(5*time.Second) {
		c.Listen.DrainDelay = config.Duration(time.Millisecond)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{log: &testkit.Log{}, stop: stop, ended: make(chan error, 1)}
	open, gone := make(chan [2]string, 1), make(chan struct{})
	go func() {
		defer close(gone)
		r.ended <- Run(ctx, c, Options{Log: r.log, Version: "test", Replica: "test", Listening: func(address, plain string) { open <- [2]string{address, plain} }})
	}()
	t.Cleanup(func() {
		stop()
		select { // its folders are removed next
		case <-gone:
		case <-time.After(patience):
			t.Error("the gateway runs still, long after it was stopped")
		}
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	select {
	case at := <-open:
		r.address, r.plain = at[0], at[1]
	case err := <-r.ended:
		t.Fatalf("the gateway ended: %v\n%s", err, r.log)
	case <-time.After(patience):
		t.Fatalf("the endpoints are not active after %s:\n%s", patience, r.log)
	}
	authority, err := os.ReadFile(filepath.Join(d.folder, "certificate", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	r.client = clientOf(authority)
	return r
}

// clientOf believes an authority, and shows a certificate if it has one.
func clientOf(authority []byte, shown ...tls.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: shown, MinVersion: tls.VersionTLS12},
	}}
}

// end stops the gateway and waits for it.
func (r *running) end(t *testing.T) error {
	t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		t.Fatalf("the gateway runs still, %s after it was stopped", patience)
		return nil
	}
}

// answer is what a test reads of an AdmissionReview.
type answer struct {
	UID     string `json:"uid"`
	Allowed bool   `json:"allowed"`
	Patch   []byte `json:"patch"`
	Status  struct {
		Message string `json:"message"`
	} `json:"status"`
}

// ask sends a review for a new object that runs the image.
func (r *running) ask(endpoint, kind, namespace, image string) (answer, error) {
	body, err := json.Marshal(reviewOf(kind, namespace, image))
	if err != nil {
		return answer{}, err
	}
	response, err := r.client.Post("https://"+r.address+endpoint+"?timeout=10s", "application/json", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("HTTP %d: %s: %w", response.StatusCode, text, err)
	}
	var review struct {
		Response answer `json:"response"`
	}
	return review.Response, json.Unmarshal(text, &review)
}

func (r *running) mustAsk(t *testing.T, endpoint, kind, namespace, image string) answer {
	t.Helper()
	got, err := r.ask(endpoint, kind, namespace, image)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// reviewOf is a request as an API server sends it.
func reviewOf(kind, namespace, image string) map[string]any {
	group, resource := "", "pods"
	pod := map[string]any{"containers": []any{map[string]any{"name": "app", "image": image}}}
	object := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "app", "namespace": namespace}, "spec": pod}
	if kind == "Deployment" {
		group, resource = "apps", "deployments"
		object["apiVersion"], object["kind"] = "apps/v1", "Deployment"
		object["spec"] = map[string]any{"template": map[string]any{"spec": pod}}
	}
	gvk := map[string]any{"group": group, "version": "v1", "kind": kind}
	gvr := map[string]any{"group": group, "version": "v1", "resource": resource}
	return map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "4d1c9a55", "kind": gvk, "requestKind": gvk, "resource": gvr, "requestResource": gvr,
		"name": "app", "namespace": namespace, "operation": "CREATE", "userInfo": map[string]any{"username": "developer"}, "object": object,
	}}
}

// get reads a page of the plain server.
func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
