package gateway

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/sigstore"
)

// Mirrors says where images are redirected to. RegistryMirror resources of the
// cluster (quaymaster.dev/v1alpha1) count wherever their definition is installed.
type Mirrors struct {
	// Files and folders of mirrors, reloaded when they change: RegistryMirror,
	// ImageDigestMirrorSet, ImageTagMirrorSet, and ConfigMaps of pairs
	// "registry: host/prefix". In a cluster they stand beside the cluster's, and
	// before one of the same name.
	Files []string `json:"files,omitempty"`
	// ConfigMaps of the cluster (namespace/name) that hold pairs
	// "registry: host/prefix". They are read by name every 10 seconds; the gateway
	// must be granted get on them.
	ConfigMaps []string `json:"configMaps,omitempty"`
	// Follow OpenShift's ImageDigestMirrorSet and ImageTagMirrorSet in the cluster.
	// Default: they are left to the nodes, which follow them by themselves.
	OpenShift bool `json:"openShift,omitempty"`
}

// ClusterImagePolicies says what holds for policies of Sigstore's policy-controller
// beside what they say: it is in the controller's own settings there.
type ClusterImagePolicies struct {
	// What becomes of an image that no ClusterImagePolicy names: deny, warn or allow.
	// Default: deny in namespaces with the label policy.sigstore.dev/include: "true",
	// as policy-controller does, and allow in all others; and allow everywhere while
	// there is no ClusterImagePolicy at all. With deny, nothing starts before there is
	// one.
	NoMatch string `json:"noMatch,omitempty"`
	// Ask them only about namespaces with the label policy.sigstore.dev/include:
	// "true", as policy-controller's webhooks do: who may label a namespace then
	// decides whether they hold there. Default: about every namespace.
	OptIn bool `json:"optIn,omitempty"`
	// Where Secrets are that they name, and ConfigMaps that they name without a
	// namespace. Default cosign-system, as in policy-controller.
	Namespace string `json:"namespace,omitempty"`
}

// Expressions says what expressions of ImageValidatingPolicies may reach beside the
// request. What they read from the cluster by resource.Get and resource.List is what
// the gateway's service account may read; Secrets never are.
type Expressions struct {
	// Hosts, as host or host:port, that http.Get, http.Post and http.Put may ask; the
	// port is the scheme's usual one unless it is named. Default: none, and a policy
	// that asks one is undecided.
	HTTPHosts []string `json:"httpHosts,omitempty"`
}

// Doors says who else may ask, beside the API server's webhooks. Each door is
// closed (404) unless it is turned on.
type Doors struct {
	// Answer the API server's ImagePolicyWebhook (imagepolicy.k8s.io/v1alpha1) at
	// /imagereview.
	ImageReview bool `json:"imageReview,omitempty"`
	// Answer Gatekeeper's external data providers at /externaldata/verify and
	// /externaldata/mutate.
	ExternalData bool `json:"externalData,omitempty"`

	API API `json:"api,omitzero"`
}

// API says who may ask at /api/v1/verify. It is closed unless tokens or
// tokenReview is set.
type API struct {
	// File of tokens that may ask, followed when it changes: lines of token,name, as
	// in Kubernetes' static token file. Others than its owner and group must not be
	// able to read it.
	Tokens string `json:"tokens,omitempty"`
	// Ask the API server whose a token is (TokenReview). The gateway must be granted
	// that (deploy/tokenreview), and users or groups must say who may ask.
	TokenReview bool `json:"tokenReview,omitempty"`
	// Audiences, of which a token must be for one, for tokenReview. Default:
	// quaymaster, so that who asks hands over nothing that the API server would take.
	Audiences []string `json:"audiences,omitempty"`
	// Users that may ask, by either kind of token. Default: whoever has a token of
	// the file.
	Users []string `json:"users,omitempty"`
	// Groups whose members may ask; system:authenticated is everybody.
	Groups []string `json:"groups,omitempty"`
}

// SharedMemory says where replicas keep what they proved: in a Redis or Valkey
// server. Its entries are sealed with the replicas' key, so that it need not be
// trusted; without it nothing but time is lost.
type SharedMemory struct {
	// The server's host:port. Default: none; nothing is shared.
	Address string `json:"address,omitempty"`
	// User to log in as. Default: the server's own default user.
	Username string `json:"username,omitempty"`
	// File that holds the password, read for each new connection. Default: none is
	// given.
	PasswordFile string `json:"passwordFile,omitempty"`
	// Connect by TLS. Without it a password travels readable.
	TLS bool `json:"tls,omitempty"`
	// File of certificate authorities (PEM) in place of the system's, with tls.
	CAFile string `json:"caFile,omitempty"`
	// What the name of each entry begins with, for a server that others use, too.
	// Default quaymaster:.
	Prefix string `json:"prefix,omitempty"`
	// Longest wait for it in a request, up to 2s. Default 50ms.
	Timeout Duration `json:"timeout,omitempty"`
}

// check refuses what would leave a door open to more than is meant.
func (a API) check(standalone bool, found *complaints) {
	found.refuse(a.TokenReview && standalone, "doors.api.tokenReview: without a cluster nobody can be asked; use doors.api.tokens")
	found.refuse(a.TokenReview && len(a.Users)+len(a.Groups) == 0, "doors.api.tokenReview: name who may ask in doors.api.users or doors.api.groups; the group system:authenticated is everybody")
	found.refuse(len(a.Audiences) > 0 && !a.TokenReview, "doors.api.audiences is for doors.api.tokenReview")
	found.refuse(len(a.Users)+len(a.Groups) > 0 && !a.isOpen(), "doors.api.users and doors.api.groups open nothing: set doors.api.tokens or doors.api.tokenReview")
	found.refuse(slices.Contains(slices.Concat(a.Audiences, a.Users, a.Groups), ""), "doors.api: an audience, a user or a group is empty")
}

func (p ClusterImagePolicies) check(found *complaints) {
	choices := []string{"", string(sigstore.UnmatchedDeny), string(sigstore.UnmatchedWarn), string(sigstore.UnmatchedAllow)}
	found.refuse(!slices.Contains(choices, p.NoMatch), "policies.clusterImagePolicies.noMatch: %q: want deny, warn or allow", p.NoMatch)
}

func (e Expressions) check(found *complaints) {
	for _, host := range e.HTTPHosts {
		address, err := url.Parse("http://" + host)
		found.refuse(err != nil || host == "" || address.Host != host || host != strings.ToLower(host), "policies.expressions.httpHosts: %q: want host or host:port, in lower case", host)
	}
}

func (m Mirrors) check(standalone bool, found *complaints) {
	found.refuse(standalone && len(m.ConfigMaps) > 0, "mirrors.configMaps are a cluster's: put them into mirrors.files")
	found.refuse(standalone && m.OpenShift, "mirrors.openShift is a cluster's: put the sets into mirrors.files")
	for _, name := range m.ConfigMaps {
		namespace, short, ok := strings.Cut(name, "/")
		found.refuse(!ok || namespace == "" || short == "" || strings.Contains(short, "/"), "mirrors.configMaps: %q: want namespace/name", name)
	}
	found.refuse(slices.Contains(m.Files, ""), "mirrors.files: a path is empty")
}

func (s SharedMemory) check(c *Configuration, found *complaints) {
	if s.Address == "" {
		found.refuse(s != (SharedMemory{}), "sharedMemory: without an address nothing is shared")
		return
	}
	host, port, err := net.SplitHostPort(s.Address)
	found.refuse(err != nil, "sharedMemory.address: want host:port: %w", err)
	_, malformed := strconv.ParseUint(port, 10, 16)
	found.refuse(err == nil && (host == "" || malformed != nil), "sharedMemory.address: %q: want host:port", s.Address)
	found.refuse(s.Timeout > Duration(2*time.Second), "sharedMemory.timeout: want at most 2s")
	found.refuse(s.CAFile != "" && !s.TLS, "sharedMemory.caFile is for sharedMemory.tls")
	found.refuse(s.Username != "" && s.PasswordFile == "", "sharedMemory.username without a passwordFile")
	found.refuse(c.Standalone && c.Certificate.Folder == "", "sharedMemory: entries are sealed with the replicas' key; running standalone, set certificate.folder, or nobody could read them after a restart")
}

// isOpen reports whether anybody may ask at the API.
func (a API) isOpen() bool { return a.Tokens != "" || a.TokenReview }
