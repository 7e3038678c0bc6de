package config

import (
	"net"
	"net/netip"
	"slices"
)

// DashboardAddress is the default address of the dashboard.
const DashboardAddress = "127.0.0.1:8001"

// Dashboard is the dashboard and its JSON API, with their authentication. They show the images of
// every namespace.
type Dashboard struct {
	// Serve no dashboard, and keep no data for it in memory.
	Disabled bool `json:"disabled,omitempty"`
	// Address to listen on. On a loopback address it is plain HTTP without a token. Any other is
	// served by TLS with the gateway's certificate, and needs tokens or tokenReview. Default
	// 127.0.0.1:8001; if that is in use by another process, no dashboard is served.
	Address string `json:"address,omitempty"`
	// File of accepted tokens, reloaded when it changes: lines of token,name, as in Kubernetes'
	// static token file. Only its owner and group may be able to read it.
	Tokens string `json:"tokens,omitempty"`
	// Authenticate tokens at the API server (TokenReview), and authorize the user for the path
	// /quaymaster/dashboard (SubjectAccessReview). The gateway must be granted both (docs/dashboard.md).
	TokenReview bool `json:"tokenReview,omitempty"`
	// Audiences, of which a token must have one, for tokenReview. Default: quaymaster, so that
	// clients do not send tokens that the API server would accept.
	Audiences []string `json:"audiences,omitempty"`
	// Serve the playground, too, where readers evaluate policies that they write, on this process (docs/playground.md).
	Playground bool `json:"playground,omitempty"`
}

func (d *Dashboard) fill() {
	if d.TokenReview && len(d.Audiences) == 0 {
		d.Audiences = []string{"quaymaster"}
	}
}

// check refuses settings that would make the dashboard public.
func (d *Dashboard) check(standalone bool, found *complaints) {
	if d.Disabled {
		found.refuse(d.Address != "" || d.AsksForTokens() || len(d.Audiences) > 0 || d.Playground, "dashboard: it is disabled; leave out its other settings")
		return
	}
	if d.Address != "" {
		_, _, err := net.SplitHostPort(d.Address)
		found.refuse(err != nil, "dashboard.address: want host:port: %w", err)
		found.refuse(err == nil && !d.OnLoopback() && !d.AsksForTokens(), "dashboard.address: %q is not on loopback, and the dashboard shows every namespace: restrict access by dashboard.tokens or dashboard.tokenReview", d.Address)
	}
	found.refuse(d.TokenReview && d.Tokens != "", "dashboard: tokens and tokenReview exclude each other: set one of them")
	found.refuse(d.TokenReview && standalone, "dashboard.tokenReview: it requires a cluster; set dashboard.tokens")
	found.refuse(len(d.Audiences) > 0 && !d.TokenReview, "dashboard.audiences is for dashboard.tokenReview")
	found.refuse(slices.Contains(d.Audiences, ""), "dashboard.audiences: one is empty")
}

// AsksForTokens reports whether the dashboard authenticates its users.
func (d *Dashboard) AsksForTokens() bool { return d.Tokens != "" || d.TokenReview }

// OnLoopback reports whether only this machine can connect. Of host names, only localhost counts,
// because others depend on resolution.
func (d *Dashboard) OnLoopback() bool {
	host, _, err := net.SplitHostPort(d.Address)
	if d.Address == "" || err == nil && host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
