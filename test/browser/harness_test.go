package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/examples/demo"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

var screenshots = flag.String("screenshots", "", "folder that pictures of the pages are left in")

const (
	workflow   = "https://github.com/example/shop/.github/workflows/release.yaml@refs/tags/v1.4.0"
	issuer     = "https://token.actions.githubusercontent.com"
	provenance = "https://slsa.dev/provenance/v1"
	vuln       = "https://cosign.sigstore.dev/attestation/vuln/v1"
	token      = "0123456789abcdef0123"
)

// policies stand beside the demo's.
const policies = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: released-with-provenance}
spec:
  validationFailureAction: Enforce
  rules:
    - name: release
      match: {any: [{resources: {kinds: [Pod]}}]}
      context: [{name: keys, configMap: {name: keys, namespace: quaymaster-demo}}]
      verifyImages:
        - imageReferences: ["*/shop/checkout*"]
          attestors: [{entries: [{keyless: {subject: "https://github.com/example/shop/.github/workflows/release.yaml@refs/tags/*", issuer: "https://token.actions.githubusercontent.com"}}]}]
          attestations:
            - type: https://slsa.dev/provenance/v1
              attestors: [{entries: [{keyless: {subject: "https://github.com/example/shop/*", issuer: "https://token.actions.githubusercontent.com"}}]}]
            - type: https://cosign.sigstore.dev/attestation/vuln/v1
              attestors: [{entries: [{keys: {publicKeys: "{{ keys.data.securityTeam }}", rekor: {ignoreTlog: true}}}]}]
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: tools-are-signed}
spec:
  validationFailureAction: Audit
  rules:
    - name: any-team
      match: {any: [{resources: {kinds: [Pod]}}]}
      context: [{name: keys, configMap: {name: keys, namespace: quaymaster-demo}}]
      verifyImages:
        - imageReferences: ["*/tools/*"]
          attestors: [{entries: [{keys: {publicKeys: "{{ keys.data.webTeam }}", rekor: {ignoreTlog: true}}}]}]
`

// env is a registry with images and a gateway that judges them.
type env struct {
	registry  string
	endpoints string // the API's address
	admission string // the webhooks' address
	dashboard string
	log       *bytes.Buffer
}

// open starts it; it ends with the test.
func open(t testing.TB) *env {
	t.Helper()
	folder := t.TempDir()
	registry := listen(t)
	mirror := listen(t)
	sigstore, err := verifytest.New(verifytest.Options{Name: "browser"})
	check(t, err)
	var web, security, stranger *verifytest.Signer
	for _, key := range []**verifytest.Signer{&web, &security, &stranger} {
		*key, err = verifytest.KeySigner(verifytest.KeyOptions{})
		check(t, err)
	}
	release, err := sigstore.Keyless(verifytest.Identity{URI: workflow, Issuer: issuer})
	check(t, err)
	notary, err := verifytest.NewNotary(verifytest.NotaryOptions{Name: "shop database team"})
	check(t, err)

	yard := gatetest.New(registry, sigstore)
	byWeb, byRelease := verifytest.Claim{Signer: web, NoLog: true}, verifytest.Claim{Signer: release}
	build := func(name string) gatetest.Image { return yard.Build(name, "v1", name) }
	check(t, yard.SignLegacy(build("shop/web"), byWeb, nil))
	check(t, yard.SignBundle(build("shop/api"), byWeb, nil))
	check(t, yard.SignBundle(build("shop/worker"), byRelease, nil))
	check(t, yard.SignNotation(build("shop/db"), notary, verifytest.Notation{}))
	build("shop/cart")
	check(t, yard.SignBundle(build("shop/blog"), byWeb, nil))
	check(t, yard.SignLegacy(build("shop/mail"), verifytest.Claim{Signer: stranger, NoLog: true}, nil))
	scanned := func(critical int) map[string]any {
		return map[string]any{
			"scanner":  map[string]any{"uri": "scanner.example/v2", "result": map[string]any{"critical": critical}},
			"metadata": map[string]any{"scanFinishedOn": time.Now().UTC().Format(time.RFC3339)},
		}
	}
	bySecurity := verifytest.Claim{Signer: security, NoLog: true}
	check(t, yard.AttestBundle(build("shop/search"), bySecurity, vuln, scanned(3)))
	checkout := build("shop/checkout")
	check(t, yard.SignBundle(checkout, byRelease, nil))
	check(t, yard.AttestBundle(checkout, byRelease, provenance, map[string]any{"buildDefinition": map[string]any{"buildType": "https://actions.github.io/buildtypes/workflow/v1"}}))
	check(t, yard.AttestBundle(checkout, bySecurity, vuln, scanned(0)))
	build("tools/debug")
	build("library/redis")
	gatetest.New(mirror, nil).Build("copies/shop/web", "v1", "shop/web")

	h := &env{registry: registry.Host(), log: &bytes.Buffer{}}
	write(t, folder, "policies/own.yaml", policies)
	entries, err := demo.Policies.ReadDir(".")
	check(t, err)
	for _, entry := range entries {
		content, err := demo.Policies.ReadFile(entry.Name())
		check(t, err)
		write(t, folder, "policies/"+entry.Name(), string(content))
	}
	keys, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "keys", "namespace": "quaymaster-demo"},
		"data": map[string]any{"webTeam": string(web.PublicPEM()), "securityTeam": string(security.PublicPEM()), "companyCA": string(notary.RootPEM())},
	})
	check(t, err)
	write(t, folder, "keys.yaml", string(keys))
	write(t, folder, "trusted_root.json", string(sigstore.TrustedRoot()))
	write(t, folder, "tokens", token+",tester\n")
	write(t, folder, "mirrors.yaml", fmt.Sprintf("apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: nearby}\nspec: {mirrors: [{sources: [%q], targets: [{location: %q}]}]}\n",
		h.registry+"/shop/web", mirror.Host()+"/copies"))
	settings, err := config.Parse([]byte(fmt.Sprintf(`apiVersion: quaymaster.dev/v1alpha1
kind: Configuration
standalone: true
listen: {address: "127.0.0.1:0", plain: "127.0.0.1:0", drainDelay: 1ms, socket: %[1]s/socket}
certificate: {folder: %[1]s/certificate}
policies: {folders: [%[1]s/policies, %[1]s/keys.yaml]}
trust: {trustedRoot: %[1]s/trusted_root.json}
mirrors: {files: [%[1]s/mirrors.yaml]}
dashboard: {address: "127.0.0.1:0"}
`, folder)))
	check(t, err)
	h.run(t, settings, filepath.Join(folder, "socket"))
	return h
}

func listen(t testing.TB) *registrytest.Server {
	t.Helper()
	server, err := registrytest.Listen(registrytest.Options{})
	check(t, err)
	t.Cleanup(server.Close)
	return server
}

// run runs the gateway until the test ends.
func (h *env) run(t testing.TB, settings config.Configuration, socket string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	listening, dashboard, ended := make(chan struct{}), make(chan string, 1), make(chan error, 1)
	log := &guarded{to: h.log}
	go func() {
		ended <- gateway.Run(ctx, settings, gateway.Options{
			Log: log, Version: "test", Replica: "quaymaster-7d9c5b6f4-x2x8q",
			Listening: func(endpoints, _ string) { h.admission = endpoints; close(listening) }, Dashboard: func(address string) { dashboard <- address },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("gateway: %v", err)
		}
	})
	select {
	case <-listening:
	case err := <-ended:
		ended <- err
		t.Fatalf("gateway: %v\n%s", err, log.text())
	}
	h.dashboard = <-dashboard
	h.endpoints = socket
}

// guarded is a log of many goroutines.
type guarded struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (g *guarded) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.Write(b)
}

func (g *guarded) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.String()
}

// judge returns the records of objects, as the real gateway writes them.
func (h *env) judge(t testing.TB, objects ...map[string]any) []report.Record {
	t.Helper()
	var body bytes.Buffer
	for _, o := range objects {
		text, err := json.Marshal(o)
		check(t, err)
		body.WriteString("---\n" + string(text) + "\n")
	}
	client := http.Client{Transport: &http.Transport{DialContext: dialSocket(h.endpoints)}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Post("http://socket/api/v1/verify", "application/yaml", &body)
	check(t, err)
	text, err := io.ReadAll(answer.Body)
	check(t, err)
	check(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	var list report.List
	check(t, json.Unmarshal(text, &list))
	return list.Items
}

// pod is an object that runs images, made by a controller.
func pod(namespace, owner, name string, images ...string) map[string]any {
	var containers []any
	for _, image := range images {
		base := image[strings.LastIndexByte(image, '/')+1:]
		containers = append(containers, map[string]any{"name": strings.FieldsFunc(base, func(c rune) bool { return c == ':' || c == '@' })[0], "image": image})
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": containers},
		"metadata": map[string]any{"name": name, "namespace": namespace, "uid": "uid-" + name, "ownerReferences": []any{
			map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "uid-" + owner, "controller": true},
		}},
	}
}

// take puts an object's record into an inventory.
func take(into *inventory.Inventory, object map[string]any, record report.Record, o report.Occasion) {
	metadata, _ := object["metadata"].(map[string]any)
	owner, _ := metadata["ownerReferences"].([]any)[0].(map[string]any)
	about := report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: metadata["namespace"].(string), Name: metadata["name"].(string), UID: metadata["uid"].(string), Owner: &report.Owner{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner["name"].(string), UID: owner["uid"].(string),
	}}
	o.Process, o.Operation, o.Allowed = report.ProcessAdmission, "CREATE", record.Result.Admits()
	into.Add(o, record, about)
}

// week fills an inventory with a week of the shop's life, from records of the real gate.
func week(t testing.TB, h *env) *inventory.Inventory {
	t.Helper()
	into, err := inventory.New(inventory.Options{Replica: "quaymaster-7d9c5b6f4-x2x8q", Restores: true})
	check(t, err)
	at := func(name string) string { return h.registry + "/" + name + ":v1" }
	objects := []map[string]any{
		pod("shop", "web-6f7c9d4b58", "web-6f7c9d4b58-4xk2p", at("shop/web"), at("shop/worker")),
		pod("shop", "web-6f7c9d4b58", "web-6f7c9d4b58-9qm7z", at("shop/web"), at("shop/worker")),
		pod("shop", "api-5d9f86c7b4", "api-5d9f86c7b4-tb6lv", at("shop/api")),
		pod("shop", "checkout-7c5ddbdf54", "checkout-7c5ddbdf54-m8s2k", at("shop/checkout")),
		pod("data", "db-54b6b8c9f7", "db-54b6b8c9f7-zz4cd", at("shop/db")),
		pod("data", "cache-66f54dd8c9", "cache-66f54dd8c9-p7tnx", at("library/redis")),
		pod("ops", "debug-79c6f7d8bd", "debug-79c6f7d8bd-x5hwl", at("tools/debug")),
		pod("shop", "cart-59d6c8449", "cart-59d6c8449-bqx8r", at("shop/cart")),
		pod("shop", "mail-84cf6d9c5", "mail-84cf6d9c5-2jvgt", at("shop/mail"), at("shop/web")),
		pod("staging", "search-6b8d7f5c9d", "search-6b8d7f5c9d-n4r9s", at("shop/search")),
		pod("staging", "far-7b9f5c6d8", "far-7b9f5c6d8-w6kzd", "127.0.0.1:1/shop/web-far:v1"),
		pod("staging", "front-5c9d7f6b8", "front-5c9d7f6b8-k2m4s", at("shop/blog"), at("shop/cart")),
	}
	records := h.judge(t, objects...)
	users := []string{"system:serviceaccount:kube-system:replicaset-controller", "developer@shop.example", "system:serviceaccount:ci:deployer"}
	now := time.Now()
	for ago := 6 * 24 * time.Hour; ago >= 0; ago -= 7 * time.Minute {
		n := int(ago / (7 * time.Minute))
		hour := now.Add(-ago).UTC().Hour()
		for k := range objects {
			// Fewer in the small hours, and refusals now and then.
			if (k >= 7 && (n*7+k*3)%31 != 0 && ago > 0) || ((n*5+k*7)%24 > 3+hour%12) && ago > time.Hour {
				continue
			}
			take(into, objects[k], records[k], report.Occasion{
				Time: now.Add(-ago), Endpoint: "validate", UID: fmt.Sprintf("5b2b6d0e-%04d-4d1c-9a55-%012d", n, k), Operation: "CREATE", User: users[(n+k)%3],
			})
		}
	}
	return into
}

// shown serves an inventory, without tokens.
func shown(t testing.TB, known *inventory.Inventory, options ...ui.Option) *httptest.Server {
	t.Helper()
	pages, err := ui.New(ui.Config{Inventory: known}, append(options, ui.WithoutTokens())...)
	check(t, err)
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	return server
}

func write(t testing.TB, folder, name, content string) {
	t.Helper()
	path := filepath.Join(folder, name)
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, []byte(content), 0o600))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
