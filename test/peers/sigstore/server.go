package sigstore

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/peers"
)

// startTimeout is how long a server may take until it answers. The timestamp
// authority may have to wait for another run's to end.
const startTimeout = time.Minute

// start runs a server until it is stopped or the test ends, and returns when it
// answers at the URL. If its address is in use it is started again, because the
// timestamp authority has a fixed port for its metrics. If the test fails it
// shows the server's output.
func start(t testing.TB, name, url string, args ...string) (stop func()) {
	t.Helper()
	program := peers.Get(t, name)
	said := &output{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, said)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		command := exec.CommandContext(t.Context(), program.Path, args...)
		command.Dir, command.Env = program.Folder, program.Env
		command.Stdout, command.Stderr = said, said
		check(t, command.Start())
		ended := make(chan struct{})
		go func() {
			_ = command.Wait()
			close(ended)
		}()
		stop = sync.OnceFunc(func() {
			_ = command.Process.Kill()
			<-ended
		})
		t.Cleanup(stop)
		for running := true; running; {
			if answers(ctx, url) {
				return stop
			}
			select {
			case <-tick.C:
			case <-ended:
				if !strings.Contains(said.String(), "address already in use") {
					t.Fatalf("%s ended before it answered", name)
				}
				<-tick.C
				running = false
			case <-ctx.Done():
				t.Fatalf("%s does not answer after %s", name, startTimeout)
			}
		}
	}
}

func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// ask returns the answer of a server of ours, which has to be good.
func ask(t testing.TB, method, url, mediaType string, body []byte) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	check(t, err)
	request.Header.Set("Content-Type", mediaType)
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	check(t, err)
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s: %s", method, url, response.Status, text)
	}
	return text
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

// freePorts returns loopback ports without a listener.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	var ports []string
	for range n {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		check(t, err)
		defer func() { _ = listener.Close() }() // all are held until all are known
		_, port, err := net.SplitHostPort(listener.Addr().String())
		check(t, err)
		ports = append(ports, port)
	}
	return ports
}
