// Package health reads the state of a gateway from its cluster: replicas, leader election, certificate, webhook
// configurations, policies, trust, registries, permissions and clocks. A part that cannot be read is
// unknown, with the reason.
package health

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway/native/record"
)

// State is the state of a gateway. Its JSON is a contract (docs/troubleshooting.md).
type State struct {
	Namespace string `json:"namespace"`
	// Time is that of the API server, and Kubernetes is its version.
	Time        time.Time   `json:"time"`
	Kubernetes  string      `json:"kubernetes,omitempty"`
	Settings    Settings    `json:"settings"`
	Replicas    Replicas    `json:"replicas"`
	Leaders     Leaders     `json:"leaders"`
	Certificate Certificate `json:"certificate"`
	Webhooks    Webhooks    `json:"webhooks"`
	Policies    Policies    `json:"policies"`
	Trust       Trust       `json:"trust"`
	Registries  Registries  `json:"registries"`
	Permissions Permissions `json:"permissions"`
	Clocks      Clocks      `json:"clocks"`
}

// Unread is why a part of the state is unknown, and the fix. It is empty if the part was read.
type Unread struct {
	Unknown string `json:"unknown,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// Settings are the gateway's, in its ConfigMap.
type Settings struct {
	Unread
	Mode string `json:"mode,omitempty"`
	// Value has the defaults where the settings were not read.
	Value config.Configuration `json:"-"`
}

// Replicas are the processes of the gateway, by its Deployments, or else by the Leases of replicas.
type Replicas struct {
	Unread
	Deployments []Deployment `json:"deployments"`
	Items       []Replica    `json:"items"`
}

// Deployment is one of the gateway.
type Deployment struct {
	Name string `json:"name"`
	// Ready and Wanted are numbers of replicas.
	Ready   int      `json:"ready"`
	Wanted  int      `json:"wanted"`
	account string   // of its pods
	roles   []string // nil: those of the settings
}

// The states of a replica.
const (
	Ready        = "ready"
	NotReady     = "not ready"
	UnknownState = "unknown"
)

// Replica is one process.
type Replica struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Version string `json:"version,omitempty"`
	// Reasons are those for which it is not ready.
	Reasons []string `json:"reasons,omitempty"`
	// Metrics is why its metrics are unknown; empty if they were read.
	Metrics Unread `json:"metrics,omitzero"`
	metrics samples
}

// HasMetrics reports whether the metrics of a replica were read.
func (r Replica) HasMetrics() bool { return r.Metrics.Unknown == "" }

// Leaders are the leader elections.
type Leaders struct {
	Unread
	Items []Leader `json:"items"`
}

// Leader is one leader election. A Lease that does not exist has no holder.
type Leader struct {
	Lease  string `json:"lease"`
	Holder string `json:"holder,omitempty"`
	// Renewed is the last renewal, by the clock of the API server; it holds for Duration.
	Renewed  time.Time     `json:"renewed,omitzero"`
	Duration time.Duration `json:"-"`
}

// Certificate is the serving certificate that ends first, and the authorities of the webhook
// configurations.
type Certificate struct {
	Unread
	Expires          time.Time `json:"expires,omitzero"`
	Replica          string    `json:"replica,omitempty"`
	AuthorityExpires time.Time `json:"authorityExpires,omitzero"`
}

// Webhooks are the webhook configurations.
type Webhooks struct {
	Unread
	Items []Webhook `json:"items"`
	// Confirmed is when the leader last found them as the policies require.
	Confirmed time.Time `json:"confirmed,omitzero"`
}

// The states of a webhook configuration.
const (
	Intact  = "intact"
	Changed = "changed"
	Missing = "missing"
)

// Webhook is one webhook configuration.
type Webhook struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	State string `json:"state"`
	// Count is the number of its webhooks.
	Count int `json:"webhooks"`
}

// Policies are counted by kind.
type Policies struct {
	Unread
	Kinds []PolicyKind `json:"kinds"`
	// Items are all of them.
	Items []Policy `json:"-"`
	// Broken are the policies that replicas report as broken, those of folders included.
	Broken []string `json:"broken,omitempty"`
}

// PolicyKind counts the policies of one kind by their condition Ready.
type PolicyKind struct {
	Kind     string `json:"kind"`
	Ready    int    `json:"ready"`
	NotReady int    `json:"notReady"`
	Unknown  int    `json:"unknown"`
}

// Policy is one policy, override or trust root.
type Policy struct {
	Kind, Name string
	// Ready is True, False or Unknown; Reason and Message are those of the condition.
	Ready, Reason, Message string
	// EnforcedBy is where it is evaluated at admission, with policies.nativePolicies.
	EnforcedBy record.Place
}

// Trust is the trust material of the replica with the oldest.
type Trust struct {
	Unread
	AgeSeconds         float64              `json:"ageSeconds,omitempty"`
	RefreshFailed      bool                 `json:"refreshFailed,omitempty"`
	StaleKeys          int                  `json:"staleKeys,omitempty"`
	UnreadRepositories int                  `json:"unreadRepositories,omitempty"`
	Expires            map[string]time.Time `json:"expires,omitempty"` // by part of the trusted root
}

// Registries are those that replicas sent requests to since they started.
type Registries struct {
	Unread
	Items []Registry `json:"items"`
}

// Registry is one registry.
type Registry struct {
	Host     string `json:"host"`
	Requests int    `json:"requests"`
	// Unanswered are the requests without a response, or with a server error (5xx).
	Unanswered int `json:"unanswered"`
	// Resting: requests to it are suspended, because it does not respond.
	Resting bool `json:"resting,omitempty"`
}

// Permissions are those that the gateway's service accounts need.
type Permissions struct {
	Unread
	Accounts []string     `json:"accounts"`
	Checked  int          `json:"checked,omitempty"`
	Missing  []Permission `json:"missing"`
}

// Clocks are compared with the clock of the API server; positive numbers are ahead of it.
type Clocks struct {
	AheadSeconds    float64        `json:"aheadSeconds"` // of this machine
	AccuracySeconds float64        `json:"accuracySeconds"`
	Replicas        []ReplicaClock `json:"replicas"`
}

// ReplicaClock is the clock of a replica, by the time that it wrote to a Lease.
type ReplicaClock struct {
	Name         string  `json:"name"`
	AheadSeconds float64 `json:"aheadSeconds"`
}

// unreadOf describes a failed request of the user of the kubeconfig. Namespace is empty for the cluster.
func unreadOf(err error, verb, resource, namespace string) Unread {
	where := "in the cluster"
	if namespace != "" {
		where = "in the namespace " + namespace
	}
	if apierrors.IsForbidden(err) {
		return Unread{
			Unknown: fmt.Sprintf("your user has no permission to %s %s %s", verb, resource, where),
			Fix:     fmt.Sprintf("grant your user %s on %s %s (docs/troubleshooting.md#permissions-of-status-and-doctor)", verb, resource, where),
		}
	}
	return Unread{
		Unknown: fmt.Sprintf("%s of %s %s failed: %v", verb, resource, where, err),
		Fix:     "check the connection to the API server, and run the command again",
	}
}
