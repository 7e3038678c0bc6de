package reporting

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/webhook"
)

const (
	// dashboardConnections bounds the concurrent connections.
	dashboardConnections = 64
	// dashboardTimeout bounds a request and its response.
	dashboardTimeout = 15 * time.Second
	// dashboardHeader bounds a request's header, in bytes: a token has 8 KiB at most.
	dashboardHeader = 16 << 10
)

// Dashboard is the component that serves the dashboard.
type Dashboard struct {
	gateway.OnReplicas
	// Address is that of the settings; empty means Default, which need not be free.
	Address, Default string
	// Certificate serves TLS; nil means plain HTTP.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Pages       http.Handler
	// Served is called with the address once it is served. May be nil.
	Served func(address string)
	Log    *slog.Logger
}

var _ gateway.Component = Dashboard{}

// Run serves until ctx ends. If the default address is in use by another process, the gateway
// continues without a dashboard.
func (d Dashboard) Run(ctx context.Context) error {
	opened, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(d.Address, d.Default))
	if err != nil {
		if d.Address == "" {
			d.Log.Warn("the dashboard is not served; say where in dashboard.address", slog.String("error", err.Error()))
			<-ctx.Done()
			return nil
		}
		return err
	}
	server := &http.Server{
		Handler: d.Pages, ReadHeaderTimeout: dashboardTimeout, ReadTimeout: dashboardTimeout, WriteTimeout: dashboardTimeout, IdleTimeout: 4 * dashboardTimeout,
		MaxHeaderBytes: dashboardHeader, ErrorLog: log.New(slogLines{d.Log}, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: d.Certificate},
	}
	scheme, serve := "http", func(l net.Listener) error { return server.Serve(l) }
	if d.Certificate != nil {
		scheme, serve = "https", func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	address := scheme + "://" + opened.Addr().String() + "/"
	d.Log.Info("dashboard", slog.String("address", address))
	if d.Served != nil {
		d.Served(address)
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // viewers lose nothing
	if err := serve(webhook.LimitConnections(opened, dashboardConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// slogLines writes net/http's errors to the debug log, because untrusted clients can cause them.
type slogLines struct{ to *slog.Logger }

// Write implements io.Writer, with one line a call.
func (l slogLines) Write(line []byte) (int, error) {
	l.to.Debug("dashboard", slog.String("error", gateway.Shorten(string(line), MaxLogged)))
	return len(line), nil
}
