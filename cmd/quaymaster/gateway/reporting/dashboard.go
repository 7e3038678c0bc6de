package reporting

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// dashboardPath is the path that a user needs permission to get.
const dashboardPath = "/quaymaster/dashboard"

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
	shown := ui.Config{Inventory: known}
	if settings.AsksForTokens() {
		shown.Authenticator, options, err = r.authenticators(settings)
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
	pages, err := ui.New(shown, options...)
	if err != nil {
		return err
	}
	r.Inventory, r.Pages = known, pages
	r.Sinks.Last = append(r.Sinks.Last, known)
	restoration := reporting.NewRestoration(r.DecisionFolder(), r.options.Log)
	r.options.Group.Add("inventory", gateway.Loop(func(ctx context.Context) {
		restoration.Fill(known)
		known.Run(ctx)
	}))
	dashboard := reporting.Dashboard{
		Address: settings.Address, Default: config.DashboardAddress, Pages: pages, Served: r.options.Dashboard, Log: r.options.Log,
	}
	if !settings.OnLoopback() {
		dashboard.Certificate = r.options.Certificates.GetCertificate
	}
	r.options.Group.Add("dashboard", dashboard)
	return nil
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
