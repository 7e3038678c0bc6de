package sigstore_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/peers"
)

// startTimeout is how long a server may take until it answers.
const startTimeout = 30 * time.Second

// start runs a server until the test ends and returns when it answers at the
// URL. If the test fails it shows what the server said.
func start(t testing.TB, name, url string, args ...string) {
	t.Helper()
	program := peers.Get(t, name)
	said := &output{}
	command := exec.Command(program.Path, args...)
	command.Dir, command.Env = program.Folder, program.Env
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", name, said)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatalf("%s ended before it answered", name)
		case <-ctx.Done():
			t.Fatalf("%s does not answer after %s", name, startTimeout)
		}
	}
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

// freePorts returns loopback ports that nobody listens at.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	var ports []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		defer listener.Close() // all are held until all are known
		_, port, err := net.SplitHostPort(listener.Addr().String())
		check(t, err)
		ports = append(ports, port)
	}
	return ports
}

func write(t testing.TB, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	check(t, os.WriteFile(path, content, 0o600))
	return path
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
