package peers

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// startTimeout is how long a server may take until it answers.
const startTimeout = 20 * time.Second

// StartRegistry runs the distribution registry on loopback until the test ends,
// and returns its host. With a user it asks for basic authentication. It has no
// referrers API.
func StartRegistry(t testing.TB, user, password string) string {
	t.Helper()
	path, err := Build(context.Background(), Registry)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	host := freeHost(t)
	config := fmt.Sprintf("version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: %s\n  delete:\n    enabled: true\nhttp:\n  addr: %s\n",
		filepath.Join(folder, "data"), host)
	if user != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		users := filepath.Join(folder, "htpasswd")
		write(t, users, user+":"+string(hash)+"\n")
		config += fmt.Sprintf("auth:\n  htpasswd:\n    realm: test\n    path: %s\n", users)
	}
	file := filepath.Join(folder, "config.yml")
	write(t, file, config)
	command := exec.CommandContext(t.Context(), path, "serve", file)
	command.Dir = folder
	command.Env = []string{"HOME=" + folder, "OTEL_TRACES_EXPORTER=none"}
	start(t, command)
	await(t, "http://"+host+"/v2/")
	return host
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs a server until the test ends, and shows its output if the test
// failed.
func start(t testing.TB, command *exec.Cmd) {
	t.Helper()
	said := &output{}
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(command.Path), said)
		}
	})
}

// output is a bytes.Buffer for two writers.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// await returns when a server answers at all.
func await(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not answer after %s", url, startTimeout)
		}
	}
}

// freeHost returns a loopback address without a listener.
func freeHost(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
