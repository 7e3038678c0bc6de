// Package enforcing composes the component that lets the API server evaluate policies itself (role native).
package enforcing

import (
	"cmp"
	"log/slog"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/election"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/native"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/gateway/status"
)

// Options are the parts of the gateway that the component uses.
type Options struct {
	Client    *cluster.Client
	Documents *documents.Documents
	Group     *gateway.Group // receives the component
	Metrics   native.Metrics
	Log       *slog.Logger
}

// Add adds the component, if the process has the role. In shadow mode the mode is off: native policies deny, and are
// removed.
func Add(c config.Configuration, o Options) error {
	if !c.Has(config.RoleNative) {
		return nil
	}
	mode := cmp.Or(c.Policies.NativePolicies, record.Off)
	if c.Shadow() {
		mode = record.Off
	}
	servers, err := probe.New(probe.Options{Config: o.Client.Config(), Slices: o.Client.Typed.DiscoveryV1(), Namespace: c.Namespace, Label: native.ProbeLabel})
	if err != nil {
		return err
	}
	made, err := native.New(native.Config{
		Servers: servers, Dynamic: o.Client.Dynamic, Typed: o.Client.Typed,
		Settings: native.Settings{Namespace: c.Namespace, Mode: mode, ExcludedNamespaces: *c.Webhooks.ExcludedNamespaces, BreakGlass: c.Webhooks.BreakGlass},
		Policies: o.Documents.Current(), Withheld: o.Documents.Policies.Reporter.Withheld, Metrics: o.Metrics, Log: o.Log,
	})
	if err != nil {
		return err
	}
	o.Group.Add("native policies", made)
	return nil
}

// Controllers determines whether the component runs in any process; nil where the setting leaves it alone.
func Controllers(c config.Configuration, leases coordination.LeasesGetter) *status.Controllers {
	if c.Policies.NativePolicies == "" {
		return nil
	}
	return &status.Controllers{Leases: leases, Namespace: c.Namespace, Names: []string{election.Native}}
}
