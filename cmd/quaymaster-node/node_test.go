package main

import (
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster-node/imageverifier"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/api"
)

// TestNode runs the built binary as containerd does.
func TestNode(t *testing.T) {
	binary := build(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, binary string)
	}{
		{"containerd", testContainerd}, {"shadow", testShadow}, {"socket", testSocket}, {"not understood", testWhatIsNotUnderstoodDenies},
		{"gateway away", testAGatewayThatIsAway}, {"foreign certificate", testAForeignCertificate}, {"in time", testItAnswersInTime},
		{"wrong use", testWrongUse}, {"no identity", testNoIdentity}, {"question", testTheQuestion}, {"small and static", testTheBinaryIsSmallAndStatic},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, binary) })
	}
}

func testTheBinaryIsSmallAndStatic(t *testing.T, binary string) {
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	const most = 12 << 20
	if info.Size() >= most {
		t.Errorf("it has %d bytes: want less than %d", info.Size(), most)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.Lines(string(out)) {
		for _, heavy := range []string{"/verify", "/gate", "/report", "/policy", "/registry", "sigstore", "notaryproject", "k8s.io/api", "k8s.io/client-go"} {
			if strings.Contains(path, heavy) {
				t.Errorf("it reaches %s", strings.TrimSpace(path))
			}
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP || program.Type == elf.PT_DYNAMIC {
			t.Errorf("it is not static: %s", program.Type)
		}
	}
}

// testContainerd is the contract with a real endpoint, a real gate and real signatures.
func testContainerd(t *testing.T, binary string) {
	h := newEnv(t)
	signed := h.sign(t, h.Build("shop/signed", "1", "signed"))
	index := h.sign(t, h.BuildIndex("shop/index", "1", h.Build("shop/index", "a", "a"), h.Build("shop/index", "b", "b")))
	unsigned := h.Build("shop/unsigned", "1", "unsigned")
	other := h.Build("other/app", "1", "other")
	plain, _ := serve(t, h.endpoint, "")
	strict, _ := serve(t, h.endpoint, "requireMatch: true\n")
	named, _ := serve(t, h.endpoint, "unverified: [\""+unsigned.ByDigest()+"\"]\n")
	stranger, _ := serve(t, h.endpoint, "")
	if err := os.WriteFile(tokenPath(t, stranger), []byte("stranger-0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	absent := "sha256:" + strings.Repeat("0", 64)
	for _, row := range []struct {
		reason, settings, name, digest string
		ok                             bool
		says                           string
	}{
		{"a signed image", plain, signed.Name, signed.Manifest.Digest, true, "verified"},
		{"by digest", plain, signed.ByDigest(), signed.Manifest.Digest, true, "verified"},
		{"by tag and digest", plain, signed.Name + "@" + signed.Manifest.Digest, signed.Manifest.Digest, true, "verified"},
		{"a signed index", plain, index.Name, index.Manifest.Digest, true, "verified"},
		{"an image that is not signed", plain, unsigned.Name, unsigned.Manifest.Digest, false, "unsigned"},
		{"a signed image's name and another's digest", plain, signed.Name, unsigned.Manifest.Digest, false, ""},
		{"a digest that is not there", plain, signed.Name, absent, false, "could not be verified: image-not-found"},
		{"a name with another digest", plain, signed.ByDigest(), unsigned.Manifest.Digest, false, "contradict"},
		{"no policy matches it", plain, other.Name, other.Manifest.Digest, true, "no-policy"},
		{"no policy matches it, and one must", strict, other.Name, other.Manifest.Digest, false, "requireMatch"},
		{"a signed image where one must", strict, signed.Name, signed.Manifest.Digest, true, "verified"},
		{"an image that the settings name by digest", named, unsigned.Name, unsigned.Manifest.Digest, true, "without proof"},
		{"the same repository with another digest", named, unsigned.Name, absent, false, ""},
		{"an unknown token", stranger, signed.Name, signed.Manifest.Digest, false, "401"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			j := containerd{binary: binary, settings: row.settings}.verify(t, row.name, row.digest)
			if j.err != nil || j.ok != row.ok || !strings.Contains(j.reason, row.says) {
				t.Errorf("allowed %t, %q, %v\n%s", j.ok, j.reason, j.err, j.log)
			}
		})
	}
}

// testShadow: the images that testContainerd denies are pulled where the gateway reports shadow
// mode, also when it cannot evaluate; an unreachable gateway reports no mode.
func testShadow(t *testing.T, binary string) {
	h := newEnv(t)
	unsigned := h.Build("shop/unsigned", "1", "unsigned")
	tokens := testkit.Must(api.NewTokenFile(write(t, "tokens", nodeToken+",node\n"), nil))(t)
	config := h.config(tokens)
	config.Shadow = true
	shadow := testkit.Must(api.New(config))(t)
	settings, server := serve(t, shadow, "")
	stranger, _ := serve(t, shadow, "")
	if err := os.WriteFile(tokenPath(t, stranger), []byte("stranger-0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ reason, settings, says string }{
		{"an image that is not signed", settings, "unsigned"},
		{"a question that is not answered", stranger, "401"},
	} {
		j := containerd{binary: binary, settings: row.settings}.verify(t, unsigned.Name, unsigned.Manifest.Digest)
		if j.err != nil || !j.ok || !strings.Contains(j.reason, "shadow") || !strings.Contains(j.reason, row.says) {
			t.Errorf("%s: allowed %t, %q, %v\n%s", row.reason, j.ok, j.reason, j.err, j.log)
		}
	}
	server.Close()
	if j := (containerd{binary: binary, settings: settings}).verify(t, unsigned.Name, unsigned.Manifest.Digest); j.ok {
		t.Errorf("a gateway that is away: %q", j.reason)
	}
	if modeHeader != api.ModeHeader {
		t.Errorf("the header is %s at the endpoint", api.ModeHeader)
	}
}

// testNoIdentity sends manifests to the endpoint: their pull secrets, and the caller's namespace,
// open nothing.
func testNoIdentity(t *testing.T, _ string) {
	h := newEnv(t)
	signed := h.sign(t, h.Build("shop/signed", "1", "signed"))
	for kind, body := range map[string]string{
		"application/json": string(encode(t, map[string]any{"images": []string{signed.Name}, "namespace": "other-tenant"})),
		"application/yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: other-tenant}\n" +
			"spec: {serviceAccountName: admin, imagePullSecrets: [{name: secret}], containers: [{name: a, image: \"" + signed.ByDigest() + "\"}]}\n",
	} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/verify", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Authorization", "Bearer "+nodeToken)
		w := httptest.NewRecorder()
		h.endpoint.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"allowed": 1`) {
			t.Errorf("%s: HTTP %d: %s", kind, w.Code, w.Body)
		}
	}
	if len(h.opened) == 0 {
		t.Error("no registry was asked")
	}
	for _, access := range h.opened {
		if w := access.Workload; w.Namespace != "" || w.ServiceAccount != "" || len(w.PullSecrets) > 0 {
			t.Errorf("a registry was asked as %+v", w)
		}
	}
}

// tokenPath finds the token file that settings name.
func tokenPath(t testing.TB, settings string) string {
	t.Helper()
	return testkit.Must(imageverifier.ReadSettings(settings))(t).Gateway.TokenFile
}

func testSocket(t *testing.T, binary string) {
	h := newEnv(t)
	signed, unsigned := h.sign(t, h.Build("shop/signed", "1", "signed")), h.Build("shop/unsigned", "1", "unsigned")
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h.endpoint, ReadHeaderTimeout: time.Second}}
	server.Start()
	t.Cleanup(server.Close)
	c := containerd{binary: binary, settings: write(t, "node.yaml", "gateway: {socket: "+socket+", tokenFile: "+write(t, "token", nodeToken)+"}\n")}
	if j := c.verify(t, signed.Name, signed.Manifest.Digest); !j.ok {
		t.Errorf("signed: %+v", j)
	}
	if j := c.verify(t, unsigned.Name, unsigned.Manifest.Digest); j.ok || j.err != nil {
		t.Errorf("unsigned: %+v", j)
	}
}

const (
	askedName   = "registry.test/shop/app:v1"
	askedDigest = "sha256:98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"
	askedImage  = askedName + "@" + askedDigest
)

// testWhatIsNotUnderstoodDenies has a gateway that is hostile, broken or away.
func testWhatIsNotUnderstoodDenies(t *testing.T, binary string) {
	says := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const kind = "application/json"
	good := goodRecord(t, nil)
	elsewhere := httptest.NewTLSServer(says(200, kind, good))
	t.Cleanup(elsewhere.Close)
	for _, row := range []struct {
		reason  string
		handler http.HandlerFunc
		ok      bool
		says    string
	}{
		{"the twin that is right", says(200, kind, good), true, "allowed"},
		{"garbage", says(200, kind, "allow"), false, "no record"},
		{"nothing", says(200, kind, ""), false, "no record"},
		{"half of it", says(200, kind, good[:len(good)/2]), false, "no record"},
		{"another media type", says(200, "text/html", good), false, "text/html"},
		{"an error with a record", says(500, kind, good), false, "HTTP 500"},
		{"another success", says(201, kind, good), false, "HTTP 201"},
		{"an error with its cause", says(503, kind, `{"message": "busy"}`), false, "busy"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, false, "HTTP 307"},
		{"a body without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			for range 10 << 10 {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<10)); err != nil {
					return
				}
			}
		}, false, "larger than"},
		{"a connection that breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "{")
			panic(http.ErrAbortHandler)
		}, false, "could not be verified"},
		{"a reason that would fill a log", says(200, kind, goodRecord(t, func(item map[string]any) {
			item["images"].([]any)[0].(map[string]any)["reasons"] = []any{map[string]any{"code": "verified", "message": strings.Repeat("long\n\x1b[31m", 1<<14)}}
		})), true, "allowed"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			settings, _ := serve(t, row.handler, "")
			j := containerd{binary: binary, settings: settings}.verify(t, askedName, askedDigest)
			if j.err != nil || j.ok != row.ok || !strings.Contains(j.reason, row.says) || strings.Contains(j.reason, "\x1b") || len(j.reason) > 2<<10 {
				t.Errorf("allowed %t, %q, %v\n%s", j.ok, j.reason, j.err, j.log)
			}
		})
	}
}

// goodRecord allows the image that is asked about; change may be nil.
func goodRecord(t testing.TB, change func(item map[string]any)) string {
	t.Helper()
	item := map[string]any{"result": "allow", "images": []any{map[string]any{
		"written": askedImage, "reference": askedImage, "digest": askedDigest, "result": "allow", "matched": true,
		"reasons": []any{map[string]any{"code": "verified", "message": "signed"}},
	}}}
	if change != nil {
		change(item)
	}
	return string(encode(t, map[string]any{"apiVersion": "quaymaster.dev/v1alpha2", "kind": "VerdictList", "items": []any{item}}))
}

func testAGatewayThatIsAway(t *testing.T, binary string) {
	settings, server := serve(t, http.NotFoundHandler(), "")
	if j := (containerd{binary: binary, settings: settings}).verify(t, askedName, askedDigest); j.ok || j.err != nil || !strings.Contains(j.reason, "HTTP 404") {
		t.Errorf("without the endpoint: %+v", j)
	}
	server.Close()
	if j := (containerd{binary: binary, settings: settings}).verify(t, askedName, askedDigest); j.ok || j.err != nil || !strings.Contains(j.reason, "refused") {
		t.Errorf("down: %+v", j)
	}
	other, _ := serve(t, http.NotFoundHandler(), "")
	text := string(testkit.Must(os.ReadFile(settings))(t))
	foreign := write(t, "node.yaml", strings.ReplaceAll(text, server.URL, testkit.Must(imageverifier.ReadSettings(other))(t).Gateway.URL))
	if err := os.WriteFile(testkit.Must(imageverifier.ReadSettings(foreign))(t).Gateway.CAFile, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if j := (containerd{binary: binary, settings: foreign}).verify(t, askedName, askedDigest); j.ok || j.err != nil || !strings.Contains(j.reason, "no certificate") {
		t.Errorf("an authority that is none: %+v", j)
	}
}

func testAForeignCertificate(t *testing.T, binary string) {
	settings, server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, goodRecord(t, nil))
	}), "")
	text := strings.Replace(string(testkit.Must(os.ReadFile(settings))(t)), "https://127.0.0.1", "https://localhost", 1)
	j := containerd{binary: binary, settings: write(t, "node.yaml", text)}.verify(t, askedName, askedDigest)
	if j.ok || j.err != nil || !strings.Contains(j.reason, "certificate") {
		t.Errorf("the certificate of %s for localhost: %+v", server.URL, j)
	}
}

// testItAnswersInTime has whatever is waited for never come.
func testItAnswersInTime(t *testing.T, binary string) {
	release := make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusOK)
	})
	settings, _ := serve(t, slow, "timeout: 500ms\n")
	defer close(release)
	c := containerd{binary: binary, settings: settings, timeout: 5 * time.Second}
	if j := c.verify(t, askedName, askedDigest); j.ok || j.err != nil || !strings.Contains(j.reason, "within 500ms") {
		t.Errorf("a slow gateway: %+v", j)
	}
	never, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	context.AfterFunc(ctx, func() { _ = writer.Close() })
	args := []string{"-name", askedName, "-digest", askedDigest, "-stdin-media-type", "application/vnd.oci.descriptor.v1+json"}
	began := time.Now()
	var out strings.Builder
	env := func(string) string { return settings }
	if status := imageverifier.Run(t.Context(), args, imageverifier.Process{In: never, Out: &out, Err: io.Discard, Env: env}, ask); status != imageverifier.Deny || !strings.Contains(out.String(), "within 500ms") || time.Since(began) > 4*time.Second {
		t.Errorf("a descriptor that does not come: %d, %q, %s", status, out.String(), time.Since(began))
	}
}

func testWrongUse(t *testing.T, binary string) {
	good, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, goodRecord(t, nil))
	}), "")
	descriptor := fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":7}`, askedDigest)
	args := []string{"-name", askedName, "-digest", askedDigest, "-stdin-media-type", "application/vnd.oci.descriptor.v1+json"}
	for _, row := range []struct {
		reason, settings string
		args             []string
		stdin            string
		ok               bool
	}{
		{"the twin that is right", good, args, descriptor, true},
		{"no arguments", good, nil, descriptor, false},
		{"an argument more", good, append(args[:6:6], "-platform", "linux/amd64"), descriptor, false},
		{"no settings", filepath.Join(t.TempDir(), "none.yaml"), args, descriptor, false},
		{"empty settings", write(t, "node.yaml", ""), args, descriptor, false},
		{"settings with a member that is not known", write(t, "node.yaml", "allowAll: true\n"), args, descriptor, false},
		{"no descriptor", good, args, "", false},
	} {
		j := containerd{binary: binary, settings: row.settings}.run(t, row.args, strings.NewReader(row.stdin))
		if j.ok != row.ok || j.err != nil {
			t.Errorf("%s: %+v", row.reason, j)
		}
	}
}

// testTheQuestion is what reaches the gateway.
func testTheQuestion(t *testing.T, binary string) {
	asked := make(chan map[string]any, 1)
	settings, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/v1/verify" || r.Header.Get("Authorization") != "Bearer "+nodeToken {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		asked <- body
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, goodRecord(t, nil))
	}), "namespace: nodes\n")
	if j := (containerd{binary: binary, settings: settings}).verify(t, askedName, askedDigest); !j.ok {
		t.Fatalf("%+v", j)
	}
	if got, want := fmt.Sprint(<-asked), "map[images:["+askedImage+"] namespace:nodes]"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}
