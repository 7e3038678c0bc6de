package reporting

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// dashboardPath is the path that a user needs permission to get.
const dashboardPath = "/quaymaster/dashboard"

const (
	// dashboardConnections bounds the concurrent connections.
	dashboardConnections = 64
	// dashboardTimeout bounds a request and its response.
	dashboardTimeout = 15 * time.Second
	// dashboardHeader bounds a request's header, in bytes: a token has 8 KiB at most.
	dashboardHeader = 16 << 10
)

// openDashboard keeps decisions for the dashboard, and serves it.
func (r *Records) openDashboard() error {
	settings := r.options.Configuration.Dashboard
	if settings.Disabled {
		return nil
	}
	known, err := inventory.New(inventory.Options{Replica: cmp.Or(r.options.Replica, "gateway")})
	if err != nil {
		return err
	}
	var options []ui.Option
	config := ui.Config{Inventory: known}
	if settings.AsksForTokens() {
		config.Authenticator, options, err = r.authenticators(settings)
		if err != nil {
			return err
		}
	} else {
		options = append(options, ui.WithoutTokens())
	}
	if r.options.Cluster != nil && !r.options.Configuration.Peers.Disabled {
		r.Leader = reporting.NewLeaderView(r.options.Cluster.Leader, r.options.Replica, r.options.Log)
		options = append(options, ui.WithLeader(r.Leader))
	}
	pages, err := ui.New(config, options...)
	if err != nil {
		return err
	}
	r.Inventory, r.Pages = known, pages
	r.Sinks.Last = append(r.Sinks.Last, known)
	restore := r.restored(known)
	r.options.Group.Add("inventory", gateway.Loop(func(ctx context.Context) {
		restore()
		known.Run(ctx)
	}))
	r.options.Group.Add("dashboard", gateway.Func(func(ctx context.Context) error { return r.serveDashboard(ctx, pages) }))
	return nil
}

// restored returns a function that loads this replica's decision log into an inventory. The end
// of the log is determined now, because new decisions follow soon.
func (r *Records) restored(known *inventory.Inventory) (restore func()) {
	folder := r.DecisionFolder()
	if folder == "" {
		return func() {}
	}
	failed := gateway.Warn(r.options.Log, "the dashboard does not show all that the decision log knows from before")
	last, err := recall.Last(folder)
	if err != nil || last == 0 {
		return func() { failed(err) }
	}
	return func() {
		records, err := recall.Fill(known, recall.Source{Folder: folder, Through: last})
		failed(err)
		r.options.Log.Info("the dashboard remembers what the decision log knows", slog.Int("decisions", records))
	}
}

// authenticators returns the authenticators of the dashboard: tokens of the file, or the cluster's
// permission to get the dashboard's path.
func (r *Records) authenticators(settings config.Dashboard) (ui.Authenticator, []ui.Option, error) {
	if settings.Tokens != "" {
		file, err := api.NewTokenFile(settings.Tokens, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("dashboard.tokens: %w", err)
		}
		return file, nil, nil
	}
	tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: r.options.Cluster.Client.Typed, Audiences: settings.Audiences})
	if err != nil {
		return nil, nil, err
	}
	r.options.Group.OnClose(tokens.Close)
	access, err := cluster.NewAccess(cluster.AccessOptions{Client: r.options.Cluster.Client.Typed, Path: dashboardPath})
	if err != nil {
		return nil, nil, err
	}
	r.options.Group.OnClose(access.Close)
	return tokens, []ui.Option{ui.WithAuthorizer(access)}, nil
}

// serveDashboard serves until ctx ends. If the default address is in use by another process, the
// gateway continues without a dashboard.
func (r *Records) serveDashboard(ctx context.Context, pages http.Handler) error {
	settings := r.options.Configuration.Dashboard
	opened, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(settings.Address, config.DashboardAddress))
	if err != nil {
		if settings.Address == "" {
			r.options.Log.Warn("the dashboard is not served; say where in dashboard.address", slog.String("error", err.Error()))
			<-ctx.Done()
			return nil
		}
		return err
	}
	server := &http.Server{
		Handler: pages, ReadHeaderTimeout: dashboardTimeout, ReadTimeout: dashboardTimeout, WriteTimeout: dashboardTimeout, IdleTimeout: 4 * dashboardTimeout,
		MaxHeaderBytes: dashboardHeader, ErrorLog: log.New(slogLines{r.options.Log}, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: r.options.Certificates.GetCertificate},
	}
	scheme, serve := "http", func(l net.Listener) error { return server.Serve(l) }
	if !settings.OnLoopback() {
		scheme, serve = "https", func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	address := scheme + "://" + opened.Addr().String() + "/"
	r.options.Log.Info("dashboard", slog.String("address", address))
	if r.options.Dashboard != nil {
		r.options.Dashboard(address)
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
	l.to.Debug("dashboard", slog.String("error", gateway.Shorten(string(line), reporting.MaxLogged)))
	return len(line), nil
}
