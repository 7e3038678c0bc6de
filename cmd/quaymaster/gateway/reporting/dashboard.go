package reporting

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/playground"
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
	known, err := inventory.New(inventory.Options{Replica: cmp.Or(r.options.Replica, "gateway"), Restores: r.DecisionFolder() != ""})
	if err != nil {
		return err
	}
	loaded := r.options.Documents.Policies
	explain := Explain(r.options.Configuration, loaded.Resources)
	options := []ui.Option{ui.WithPolicies(reporting.LoadedPolicies{Policies: loaded}), ui.WithExplain(func(namespace, written string, isCopy bool) string {
		return explained(explain, namespace, written, isCopy)
	})}
	shown := ui.Config{Inventory: known}
	if settings.AsksForTokens() {
		var access []ui.Option
		shown.Authenticator, access, err = r.authenticators(settings)
		if err != nil {
			return err
		}
		options = append(options, access...)
	} else {
		options = append(options, ui.WithoutTokens())
	}
	if r.options.Cluster != nil && !r.options.Configuration.Peers.Disabled {
		r.Leader = reporting.NewLeaderView(r.options.Cluster.Leader, r.options.Replica, r.options.Log)
		options = append(options, ui.WithLeader(r.Leader))
	}
	if settings.Playground {
		bench, err := openPlayground()
		if err != nil {
			return err
		}
		options = append(options, ui.WithPlayground(bench))
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

// openPlayground makes a playground that reads nothing of the gateway.
func openPlayground() (*playground.Handler, error) {
	offline, err := trial.NewOffline(playground.DefaultTimeout)
	if err != nil {
		return nil, err
	}
	return playground.New(playground.Config{Evaluator: offline})
}

// Explain returns the command that explains a denial to a user. resources are those of the cluster's
// policies.
func Explain(c config.Configuration, resources func() []string) func(namespace string, image policy.Image) string {
	if c.Standalone {
		return engine.ExplainFromFolders(c.Policies.Folders)
	}
	return engine.ExplainFromCluster(resources)
}

// explained returns the command for an image as it is written; empty if it is no reference.
func explained(explain func(string, policy.Image) string, namespace, written string, isCopy bool) string {
	ref, err := image.Parse(written)
	if err != nil {
		return ""
	}
	about := policy.Image{Ref: ref}
	if isCopy {
		about.Copy = ref
	}
	return explain(namespace, about)
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
