package native

import (
	"context"
	"log/slog"

	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/cluster/typed"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/set"
)

// Policies are the active policies.
type Policies interface {
	gateway.Changing
	// Policies returns them; nil until they are loaded.
	Policies() *set.Set
	// Texts calls do with each policy and the text that it was made of.
	Texts(do func(entry catalog.Entry, text []byte))
}

// Metrics counts policies and repairs.
type Metrics interface {
	NativePolicies(native, webhook int)
	NativeRestored()
}

// Prober probes API servers (package cluster/probe).
type Prober interface {
	// Probe returns nil once every API server has answered a dry run with all marks.
	Probe(ctx context.Context, marks ...string) error
	// Forget has the next Probe probe all API servers again.
	Forget()
}

// Config holds the dependencies of a Runner; all are required but Withheld.
type Config struct {
	// The clients act as the account of the role.
	Dynamic dynamic.Interface
	Typed   typed.Interface
	// Servers probes with ConfigMaps that have ProbeLabel.
	Servers Prober
	Settings
	Policies Policies
	// Withheld returns why a setting keeps a policy from denying; nil means that none does.
	Withheld func(catalog.Entry) string
	Metrics  Metrics
	Log      *slog.Logger
}

// Settings are the settings of a Runner.
type Settings struct {
	// Namespace is the gateway's own.
	Namespace string
	Mode      record.Mode
	// ExcludedNamespaces have no webhooks, and BreakGlass says that a label takes a namespace out of them.
	ExcludedNamespaces []string
	BreakGlass         bool
}
