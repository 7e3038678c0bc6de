package main

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// keyServer serves the public keys of an environment over TLS, and returns its address with the file of
// its certificate authority.
func keyServer(t *testing.T, h *env) (address, authority string) {
	t.Helper()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(h.key.PublicPEM()) }))
	t.Cleanup(plain.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/key.pub", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Referer(), "pass1word") {
			_, _ = w.Write(h.stranger.PublicPEM()) // the address before is another server's
			return
		}
		_, _ = w.Write(h.key.PublicPEM())
	})
	mux.HandleFunc("/other.pub", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(h.stranger.PublicPEM()) })
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(append(h.key.PublicPEM(), bytes.Repeat([]byte("\n"), 64<<10)...))
	})
	mux.Handle("/moved", http.RedirectHandler("/key.pub", http.StatusFound))
	mux.Handle("/plain", http.RedirectHandler(plain.URL+"/key.pub", http.StatusFound))
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = connection.Write([]byte("HTTP/1.1 404 Not\x1b[31mFound\r\nContent-Length: 0\r\n\r\n"))
			_ = connection.Close()
		}
	})
	mux.Handle("/circle", http.RedirectHandler("/circle", http.StatusFound))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server.URL, h.file(t, "ca.pem", string(ca))
}

// TestKeyByURL: a key is fetched over HTTPS alone, and an answer that is none is no key.
func TestKeyByURL(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "1")
	ok(t, h.SignLegacy(image, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	address, ca := keyServer(t, h)
	insecure := "http://" + strings.TrimPrefix(address, "https://")
	for _, c := range []struct {
		reason, key string
		code        int
		says        string
		more        []string
	}{
		{"the key", address + "/key.pub", command.ExitAllowed, "1 allowed", nil},
		{"another key", address + "/other.pub", command.ExitDenied, "another key", nil},
		{"a redirect to HTTPS", address + "/moved?token=pass1word", command.ExitAllowed, "1 allowed", nil},
		{"another key at a presigned address", address + "/other.pub?token=pass1word", command.ExitDenied, "another key", nil},
		{"no key at a presigned address", address + "/text?token=pass1word", command.ExitUsage, "--key " + address + "/text?token=REDACTED: ", nil},
		{"a status with escape sequences", address + "/status", command.ExitUsage, "answered 404 Not Found", nil},
		{"a redirect to HTTP", address + "/plain", command.ExitUsage, "it redirects to http://127.0.0.1:", nil},
		{"endless redirects", address + "/circle", command.ExitUsage, "it redirects more than 5 times", nil},
		{"HTTP", insecure + "/key.pub", command.ExitUsage, "keys are fetched over https alone", nil},
		{"HTTP in another case", "HTTP" + insecure[4:] + "/key.pub", command.ExitUsage, "keys are fetched over https alone", nil},
		{"not there", address + "/none", command.ExitUsage, "--key " + address + "/none: 127.0.0.1:", nil},
		{"its status", address + "/none", command.ExitUsage, "answered 404 Not Found", nil},
		{"too large", address + "/large", command.ExitUsage, "is larger than 65536 bytes", nil},
		{"no key", address + "/text", command.ExitUsage, "--key " + address + "/text: ", nil},
		{"a password", strings.Replace(address, "https://", "https://a:pass1word@", 1) + "/key.pub?X-Amz-Signature=pass1word", command.ExitUsage, "the URL has a user or a password", nil},
		{"no host", "https:///key.pub", command.ExitUsage, "want a URL such as", nil},
		{"a link-local address", "https://169.254.169.254/key.pub", command.ExitUsage, "which is not connected to", nil},
		{"offline", address + "/key.pub", command.ExitUsage, "--offline opens no connection", []string{"--offline", "--oci-layout", t.TempDir()}},
	} {
		args := append([]string{"verify", "--insecure-ignore-tlog", "--key", c.key}, c.more...)
		if c.more == nil {
			args = append(args, "--registry-ca", ca)
		}
		if code, out, errs := quaymaster(t, append(args, image.Name)...); code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: exit status %d, want %d with %q:\n%s%s", c.reason, code, c.code, c.says, out, errs)
		} else if strings.Contains(out+errs, "pass1word") {
			t.Errorf("%s: a secret is in the output:\n%s%s", c.reason, out, errs)
		}
	}
	args := []string{"verify", "--insecure-ignore-tlog", "--key", address + "/key.pub", image.Name}
	if code, out, errs := quaymaster(t, args...); code != command.ExitUsage || !strings.Contains(errs, "certificate") {
		t.Errorf("a certificate of an unknown authority: exit status %d:\n%s%s", code, out, errs)
	}
	if code, out, _ := quaymaster(t, append(args, "--registry-ca", ca, "-o", "json", h.Build("other", "v1", "2").Name)...); code != command.ExitDenied || !strings.Contains(out, "--key "+address+"/key.pub") {
		t.Errorf("JSON does not name the key's URL: exit status %d:\n%s", code, out)
	}
}

// TestKeyFromInput: a key is read from standard input, once.
func TestKeyFromInput(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "1")
	ok(t, h.SignLegacy(image, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	manifest := h.file(t, "pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: '"+image.Name+"'}]}\n")
	for _, c := range []struct {
		reason, input string
		args          []string
		code          int
		says          string
	}{
		{"the key", string(h.key.PublicPEM()), []string{"--key", "-", image.Name}, command.ExitAllowed, "1 allowed"},
		{"the key, for a manifest", string(h.key.PublicPEM()), []string{"--key", "-", "-f", manifest}, command.ExitAllowed, "1 allowed"},
		{"another key", string(h.stranger.PublicPEM()), []string{"--key", "-", image.Name}, command.ExitDenied, "another key"},
		{"another key, in the suggested command", string(h.stranger.PublicPEM()), []string{"--key", "-", image.Name}, command.ExitDenied, "--key KEY_FILE"},
		{"nothing", "", []string{"--key", "-", image.Name}, command.ExitUsage, "--key -: standard input is empty"},
		{"no key", "x", []string{"--key", "-", image.Name}, command.ExitUsage, "--key -: "},
		{"too much", strings.Repeat("x", 64<<10+1), []string{"--key", "-", image.Name}, command.ExitUsage, "is larger than 65536 bytes"},
		{"for two flags", string(h.key.PublicPEM()), []string{"--key", "-", "-f", "-"}, command.ExitUsage, "give - to one of -f, --payload and --key"},
		{"twice", string(h.key.PublicPEM()), []string{"--key", "-", "--key", "-", image.Name}, command.ExitUsage, "standard input can be read once"},
	} {
		var out, errs bytes.Buffer
		terminal := command.Terminal{In: strings.NewReader(c.input), Out: &out, Err: &errs, Env: func(string) string { return "" }}
		code := run(t.Context(), append([]string{"verify", "--insecure-ignore-tlog"}, c.args...), terminal)
		if code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
			t.Errorf("%s: exit status %d, want %d with %q:\n%s%s", c.reason, code, c.code, c.says, &out, &errs)
		}
	}
	device, err := os.Open(os.DevNull) // a character device, as a terminal is
	ok(t, err)
	defer func() { ok(t, device.Close()) }()
	var errs bytes.Buffer
	terminal := command.Terminal{In: device, Out: &bytes.Buffer{}, Err: &errs, Env: func(string) string { return "" }}
	if code := run(t.Context(), []string{"verify", "--insecure-ignore-tlog", "--key", "-", image.Name}, terminal); code != command.ExitUsage || !strings.Contains(errs.String(), "standard input is a terminal: pipe the key") {
		t.Errorf("a terminal: exit status %d: %s", code, &errs)
	}
	if code, _, text := sourced(t, map[string]string{"QUAYMASTER_KEY": "https://keys.example/key.pub"}, "verify", image.Name); code != command.ExitUsage || !strings.Contains(text, "--key can weaken a result") {
		t.Errorf("a URL in a variable: exit status %d: %s", code, text)
	}
}
