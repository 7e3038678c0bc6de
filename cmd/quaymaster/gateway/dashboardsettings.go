package gateway

import (
	"net"
	"net/netip"
	"slices"
)

// dashboardAddress is where the dashboard is unless somebody says otherwise.
const dashboardAddress = "127.0.0.1:8001"

// Dashboard says where the dashboard and its JSON API are, and who may read them. They
// show the images of every namespace.
type Dashboard struct {
	// Serve none, and keep nothing for it in memory.
	Disabled bool `json:"disabled,omitempty"`
	// Where it listens. On a loopback address it is plain HTTP and asks for no token;
	// any other is served by TLS with the gateway's certificate, and needs tokens or
	// tokenReview. Default 127.0.0.1:8001; if somebody else has that, none is served.
	Address string `json:"address,omitempty"`
	// File of tokens that may read it, followed when it changes: lines of token,name, as
	// in Kubernetes' static token file. Others than its owner and group must not be able
	// to read it.
	Tokens string `json:"tokens,omitempty"`
	// Ask the API server whose a token is (TokenReview), and whether its user may get
	// the path /quaymaster/dashboard (SubjectAccessReview). The gateway must be granted
	// both (docs/dashboard.md).
	TokenReview bool `json:"tokenReview,omitempty"`
	// Audiences, of which a token must be for one, for tokenReview. Default: quaymaster,
	// so that who asks hands over nothing that the API server would take.
	Audiences []string `json:"audiences,omitempty"`
}

func (d *Dashboard) fill() {
	if d.TokenReview && len(d.Audiences) == 0 {
		d.Audiences = []string{"quaymaster"}
	}
}

// check refuses what would show everything to everybody.
func (d *Dashboard) check(standalone bool, found *complaints) {
	if d.Disabled {
		found.refuse(d.Address != "" || d.asksForTokens() || len(d.Audiences) > 0, "dashboard: it is disabled; leave out its other settings")
		return
	}
	if d.Address != "" {
		_, _, err := net.SplitHostPort(d.Address)
		found.refuse(err != nil, "dashboard.address: want host:port: %w", err)
		found.refuse(err == nil && !d.onLoopback() && !d.asksForTokens(), "dashboard.address: %q is not on loopback, and the dashboard shows every namespace: say who may read it by dashboard.tokens or dashboard.tokenReview", d.Address)
	}
	found.refuse(d.TokenReview && d.Tokens != "", "dashboard: tokens and tokenReview are two ways to say who may read it: choose one")
	found.refuse(d.TokenReview && standalone, "dashboard.tokenReview: without a cluster nobody can be asked; use dashboard.tokens")
	found.refuse(len(d.Audiences) > 0 && !d.TokenReview, "dashboard.audiences is for dashboard.tokenReview")
	found.refuse(slices.Contains(d.Audiences, ""), "dashboard.audiences: one is empty")
}

func (d *Dashboard) asksForTokens() bool { return d.Tokens != "" || d.TokenReview }

// onLoopback reports whether only this machine reaches it. A name counts for what it is
// everywhere: localhost alone.
func (d *Dashboard) onLoopback() bool {
	host, _, err := net.SplitHostPort(d.Address)
	if d.Address == "" || err == nil && host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
