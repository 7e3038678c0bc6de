package endpoints

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const socketPath = "/v1/images"

// socketFile is a path that is short enough for a socket.
func socketFile(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "qm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(folder, "s")
}

func listen(t *testing.T, path string) *Socket {
	t.Helper()
	socket, err := ListenSocket(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return socket
}

// serve runs the socket; the result ends it, and checks its error.
func serve(t *testing.T, socket *Socket) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- socket.Run(ctx) }()
	return func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func post(t *testing.T, file, path string) int {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", file)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://socket"+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.StatusCode
}

func status(code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

func absent(t *testing.T, reason, file string) {
	t.Helper()
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: the socket is still there: %v", reason, err)
	}
}

func TestSocket(t *testing.T) {
	file := socketFile(t)
	socket := listen(t, file)
	end := serve(t, socket)
	if info, err := os.Lstat(file); err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("mode %v, %v; want a socket of its owner alone", info, err)
	}
	socket.Activate(socketPath, status(http.StatusNoContent))
	for path, want := range map[string]int{socketPath: http.StatusNoContent, "/mutate": http.StatusNotFound} {
		if got := post(t, file, path); got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
	end()
	absent(t, "after serving", file)
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestSocketThatIsNotActive(t *testing.T) {
	file := socketFile(t)
	serve(t, listen(t, file))()
	absent(t, "without a handler", file)
}

// TestSocketOfTheNextProcess: it replaced the file before the former process ended.
func TestSocketOfTheNextProcess(t *testing.T) {
	file := socketFile(t)
	former := listen(t, file)
	endFormer := serve(t, former)
	former.Activate(socketPath, status(http.StatusNoContent))
	next := listen(t, file)
	endNext := serve(t, next)
	next.Activate(socketPath, status(http.StatusAccepted))
	endFormer()
	if got := post(t, file, socketPath); got != http.StatusAccepted {
		t.Errorf("status %d, want that of the next process", got)
	}
	endNext()
	absent(t, "after both", file)
}

func TestListenSocketRefuses(t *testing.T) {
	file := socketFile(t)
	for _, row := range []struct{ reason, path string }{
		{"no folder", filepath.Join(file, "s")},
		{"a folder at the path", filepath.Dir(file)},
	} {
		if socket, err := ListenSocket(t.Context(), row.path); err == nil {
			t.Errorf("%s: %v", row.reason, socket.Close())
		} else if !strings.HasPrefix(err.Error(), "listen.socket: ") {
			t.Errorf("%s: the error does not name the setting: %v", row.reason, err)
		}
	}
}
