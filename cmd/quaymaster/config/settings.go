package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
)

// Mirrors is the set of mirrors. RegistryMirror resources of the cluster
// (quaymaster.dev/v1alpha1) are used wherever their definition is installed.
type Mirrors struct {
	// Files and folders of mirrors, reloaded when they change: RegistryMirror,
	// ImageDigestMirrorSet, ImageTagMirrorSet, and ConfigMaps of pairs "registry: host/prefix".
	// In a cluster they are added to the cluster's, and precede one of the same name.
	Files []string `json:"files,omitempty"`
	// ConfigMaps of the cluster (namespace/name) with pairs "registry: host/prefix". They are
	// read by name every 10 seconds; the gateway must be granted get on them.
	ConfigMaps []string `json:"configMaps,omitempty"`
	// Use OpenShift's ImageDigestMirrorSet and ImageTagMirrorSet in the cluster. Default: only
	// the nodes use them.
	OpenShift bool `json:"openShift,omitempty"`
}

// ClusterImagePolicies is the configuration of Sigstore's policy-controller that is not part of
// its policies.
type ClusterImagePolicies struct {
	// Result for an image that no ClusterImagePolicy matches: deny, warn or allow. Default: deny
	// in namespaces with the label policy.sigstore.dev/include: "true", as policy-controller
	// does, and allow in all others; and allow everywhere while there is no ClusterImagePolicy at
	// all. With deny, no image is admitted before there is one.
	NoMatch string `json:"noMatch,omitempty"`
	// Apply them only in namespaces with the label policy.sigstore.dev/include: "true", as
	// policy-controller's webhooks do: a user with permission to label a namespace then decides
	// whether they apply there. Default: in every namespace.
	OptIn bool `json:"optIn,omitempty"`
	// Namespace of the Secrets that they name, and of ConfigMaps that they name without a
	// namespace. Default cosign-system, as in policy-controller.
	Namespace string `json:"namespace,omitempty"`
}

// Expressions is the access of expressions in ImageValidatingPolicies beyond the request.
// resource.Get and resource.List read with the permissions of the gateway's service account, but
// never Secrets.
type Expressions struct {
	// Hosts, as host or host:port, that http.Get, http.Post and http.Put may contact; without a
	// port, it is the scheme's default one. Default: none, and a policy that contacts one is
	// undecided.
	HTTPHosts []string `json:"httpHosts,omitempty"`
}

// Endpoints is the set of optional endpoints, in addition to the API server's webhooks. Each is
// disabled (404) by default.
type Endpoints struct {
	// Serve the API server's ImagePolicyWebhook (imagepolicy.k8s.io/v1alpha1) at /imagereview.
	ImageReview bool `json:"imageReview,omitempty"`
	// Serve Gatekeeper's external data providers at /externaldata/verify and
	// /externaldata/mutate.
	ExternalData bool `json:"externalData,omitempty"`

	API API `json:"api,omitzero"`
}

// API is the endpoint /api/v1/verify and its authentication. It is disabled unless tokens or
// tokenReview is set.
type API struct {
	// File of accepted tokens, reloaded when it changes: lines of token,name, as in Kubernetes'
	// static token file. Only its owner and group may be able to read it.
	Tokens string `json:"tokens,omitempty"`
	// Authenticate tokens at the API server (TokenReview). The gateway must be granted that
	// (deploy/tokenreview), and users or groups must be set.
	TokenReview bool `json:"tokenReview,omitempty"`
	// Audiences, of which a token must have one, for tokenReview. Default: quaymaster, so that
	// clients do not send tokens that the API server would accept.
	Audiences []string `json:"audiences,omitempty"`
	// Permitted users, by either kind of token. Default: all tokens of the file.
	Users []string `json:"users,omitempty"`
	// Permitted groups; system:authenticated is every authenticated user.
	Groups []string `json:"groups,omitempty"`
}

// SharedMemory is the shared cache: verified claims in a Redis or Valkey server, for all replicas.
// Its entries are sealed with the replicas' key, so the server need not be trusted. Without it,
// only time is lost.
type SharedMemory struct {
	// The server's host:port. Default: none; nothing is shared.
	Address string `json:"address,omitempty"`
	// User name at the server. Default: the server's own default user.
	Username string `json:"username,omitempty"`
	// File with the password, read for each new connection. Default: none is sent.
	PasswordFile string `json:"passwordFile,omitempty"`
	// Connect by TLS. Without it a password is sent unencrypted.
	TLS bool `json:"tls,omitempty"`
	// File of certificate authorities (PEM) in place of the system's, with tls.
	CAFile string `json:"caFile,omitempty"`
	// Prefix of each entry's name, for a server with other users. Default quaymaster:.
	Prefix string `json:"prefix,omitempty"`
	// Timeout of one look-up in a request, up to 2s. Default 50ms.
	Timeout Duration `json:"timeout,omitempty"`
}

// check refuses settings that would permit more clients than intended.
func (a API) check(standalone bool, found *complaints) {
	found.refuse(a.TokenReview && standalone, "endpoints.api.tokenReview: it requires a cluster; set endpoints.api.tokens")
	found.refuse(a.TokenReview && len(a.Users)+len(a.Groups) == 0, "endpoints.api.tokenReview: name the allowed callers in endpoints.api.users or endpoints.api.groups; the group system:authenticated includes every authenticated user")
	found.refuse(len(a.Audiences) > 0 && !a.TokenReview, "endpoints.api.audiences is for endpoints.api.tokenReview")
	found.refuse(len(a.Users)+len(a.Groups) > 0 && !a.IsOpen(), "endpoints.api.users and endpoints.api.groups open nothing: set endpoints.api.tokens or endpoints.api.tokenReview")
	found.refuse(slices.Contains(slices.Concat(a.Audiences, a.Users, a.Groups), ""), "endpoints.api: an audience, a user or a group is empty")
}

func (p ClusterImagePolicies) check(found *complaints) {
	choices := []string{"", string(sigstore.UnmatchedDeny), string(sigstore.UnmatchedWarn), string(sigstore.UnmatchedAllow)}
	found.refuse(!slices.Contains(choices, p.NoMatch), "policies.clusterImagePolicies.noMatch: %q: want deny, warn or allow", p.NoMatch)
}

func (e Expressions) check(found *complaints) {
	for _, host := range e.HTTPHosts {
		address, err := url.Parse("http://" + host)
		found.refuse(err != nil || host == "" || address.Host != host || host != strings.ToLower(host),
			"policies.expressions.httpHosts: %q: want host or host:port, in lower case", host)
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
		found.refuse(s != (SharedMemory{}), "sharedMemory.address is required")
		return
	}
	host, port, err := net.SplitHostPort(s.Address)
	found.refuse(err != nil, "sharedMemory.address: want host:port: %w", err)
	_, malformed := strconv.ParseUint(port, 10, 16)
	found.refuse(err == nil && (host == "" || malformed != nil), "sharedMemory.address: %q: want host:port", s.Address)
	found.refuse(s.Timeout > Duration(2*time.Second), "sharedMemory.timeout: want at most 2s")
	found.refuse(s.CAFile != "" && !s.TLS, "sharedMemory.caFile is for sharedMemory.tls")
	found.refuse(s.Username != "" && s.PasswordFile == "", "sharedMemory.username without a passwordFile")
	found.refuse(c.Standalone && c.Certificate.Folder == "", "sharedMemory: entries are sealed with the replicas' key; running standalone, set certificate.folder, or they would be unreadable after a restart")
}

// IsOpen reports whether the API is enabled.
func (a API) IsOpen() bool { return a.Tokens != "" || a.TokenReview }
