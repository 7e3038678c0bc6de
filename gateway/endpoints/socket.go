package endpoints

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
)

// Bounds on clients of the socket, which are on this machine; equal to those of the TLS
// endpoints.
const (
	socketHeaderTimeout = 5 * time.Second
	socketReadTimeout   = 30 * time.Second
	socketWriteTimeout  = 35 * time.Second
	socketMaxHeader     = 16 << 10
)

// Socket is a unix socket that only its owner may open.
type Socket struct {
	gateway.OnReplicas
	path     string
	listener net.Listener
	made     os.FileInfo
	active   chan struct{} // closed once serve is set
	serve    func(context.Context) error
}

var _ gateway.Component = (*Socket)(nil)

// Activate has the socket serve a handler at a path.
func (s *Socket) Activate(path string, handler http.Handler) {
	s.serve = func(ctx context.Context) error { return s.serveAt(ctx, path, handler) }
	close(s.active)
}

// Run serves until ctx ends, once the socket is active.
func (s *Socket) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return s.Close()
	case <-s.active:
		return s.serve(ctx)
	}
}

// ListenSocket makes the socket in a private folder, and moves it to its path after setting its
// mode. So it is never accessible to others, and replaces the socket of another process that has
// ended or is about to end.
func ListenSocket(ctx context.Context, path string) (s *Socket, err error) {
	folder, err := os.MkdirTemp(filepath.Dir(path), ".quaymaster")
	if err != nil {
		return nil, fmt.Errorf("listen.socket: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	at := filepath.Join(folder, "s")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", at)
	if err != nil {
		return nil, fmt.Errorf("listen.socket: %w", err)
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // it has another path by then
	}
	s = &Socket{path: path, listener: listener, active: make(chan struct{})}
	if err = os.Chmod(at, 0o600); err == nil {
		s.made, err = os.Stat(at)
		if err == nil {
			err = os.Rename(at, path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen.socket: %w", errors.Join(err, listener.Close()))
	}
	return s, nil
}

// remove removes the socket, unless another process has replaced it.
func (s *Socket) remove() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.made) {
		return os.Remove(s.path)
	}
	return nil
}

// Close removes a socket that was never served.
func (s *Socket) Close() error { return errors.Join(s.listener.Close(), s.remove()) }

// serveAt serves at the socket until ctx ends, and waits for pending requests.
func (s *Socket) serveAt(ctx context.Context, path string, handler http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: socketHeaderTimeout, ReadTimeout: socketReadTimeout, WriteTimeout: socketWriteTimeout, MaxHeaderBytes: socketMaxHeader,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), socketWriteTimeout)
		defer cancel()
		err = server.Shutdown(bounded)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, s.remove())
}
