package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/quaymaster/quaymaster/webhook/api"
)

// Bounds of callers at the socket, which are this machine's own; as those of the
// TLS doors.
const (
	socketHeaderTimeout = 5 * time.Second
	socketReadTimeout   = 30 * time.Second
	socketWriteTimeout  = 35 * time.Second
	socketMaxHeader     = 16 << 10
)

// socket is a unix socket that only its owner may open.
type socket struct {
	path     string
	listener net.Listener
	made     os.FileInfo
}

// listenSocket makes the socket in a folder that nobody else may enter, and moves it
// to its place when its mode is right: so it is never open to others, and takes the
// place of one that another process left behind or is about to leave.
func listenSocket(ctx context.Context, path string) (s *socket, err error) {
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
		unix.SetUnlinkOnClose(false) // it is elsewhere by then
	}
	s = &socket{path: path, listener: listener}
	if err = os.Chmod(at, 0o600); err == nil {
		if s.made, err = os.Stat(at); err == nil {
			err = os.Rename(at, path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen.socket: %w", errors.Join(err, listener.Close()))
	}
	return s, nil
}

// remove takes the socket away, unless another process made one in its place.
func (s *socket) remove() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.made) {
		return os.Remove(s.path)
	}
	return nil
}

// serve answers at the socket until ctx ends, and ends what is at work.
func (s *socket) serve(ctx context.Context, door http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle(apiPath, door)
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

// socketUser is who asks at the socket: the permission of the file says who may.
const socketUser = "unix-socket"

// openSocket answers at listen.socket until ctx ends. The doors are open by then.
func (g *gateway) openSocket(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return errors.Join(g.socket.listener.Close(), g.socket.remove())
	case <-g.open:
	}
	door, err := api.New(api.Config{Decider: g.engineMade}, api.WithoutTokens(socketUser),
		api.WithNamespaces(g.around.namespaces), api.WithRecorder(apiRecorder{g.recorder(), "socket"}))
	if err != nil {
		return err
	}
	return g.socket.serve(ctx, g.durable("socket", door))
}
