package gateway

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"
)

// The type of a configuration file.
const (
	APIVersion = "quaymaster.dev/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is the gateway's settings. Every field has a safe zero value,
// which is the default that its comment names. docs/configuration.md is made
// from the comments here.
type Configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// The gateway's own namespace: where its Secret and Leases are. Default
	// quaymaster.
	Namespace string `json:"namespace,omitempty"`
	// Run without a cluster: policies come from folders, and nothing is written.
	Standalone bool `json:"standalone,omitempty"`
	// What comes of a verdict: enforce, or shadow, in which everything is evaluated and
	// recorded, and nothing is denied or changed, whatever policies and other settings
	// say, but in namespaces with the label quaymaster.dev/mode: enforce. Default enforce.
	Mode string `json:"mode,omitempty"`
	// What this process does: some of admission, scan, report and background. Settings
	// of the others do nothing here. Default: all of them; --roles wins.
	Roles []string `json:"roles,omitempty"`
	// Try policies against what runs before they deny: enabled or disabled. One that
	// would stop something is refused, or held until it would not or somebody accepts it
	// (docs/policy-guard.md). Default disabled.
	Guard string `json:"guard,omitempty"`

	Kubernetes   Kubernetes   `json:"kubernetes,omitzero"`
	Listen       Listen       `json:"listen,omitzero"`
	Webhooks     Webhooks     `json:"webhooks,omitzero"`
	Certificate  Certificate  `json:"certificate,omitzero"`
	Policies     Policies     `json:"policies,omitzero"`
	Exceptions   Exceptions   `json:"exceptions,omitzero"`
	Mirrors      Mirrors      `json:"mirrors,omitzero"`
	Doors        Doors        `json:"doors,omitzero"`
	Registries   Registries   `json:"registries,omitzero"`
	Trust        Trust        `json:"trust,omitzero"`
	Ages         Ages         `json:"ages,omitzero"`
	Snapshot     Snapshot     `json:"snapshot,omitzero"`
	Limits       Limits       `json:"limits,omitzero"`
	Events       Events       `json:"events,omitzero"`
	Reports      Reports      `json:"reports,omitzero"`
	Scan         Scan         `json:"scan,omitzero"`
	Dashboard    Dashboard    `json:"dashboard,omitzero"`
	DecisionLog  DecisionLog  `json:"decisionLog,omitzero"`
	Peers        Peers        `json:"peers,omitzero"`
	SharedMemory SharedMemory `json:"sharedMemory,omitzero"`
	Log          Log          `json:"log,omitzero"`
	Traces       Traces       `json:"traces,omitzero"`
}

// Kubernetes says how the API server is reached.
type Kubernetes struct {
	// Path of a kubeconfig file. Default: the pod's service account.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// The kubeconfig's context to take. Default: its current one.
	Context string `json:"context,omitempty"`
	// Requests a second to the API server, beside 200 for pull secrets and service accounts. Default 50.
	QPS float32 `json:"qps,omitempty"`
	// Requests at once beyond that. Default 100.
	Burst int `json:"burst,omitempty"`
}

// Listen says where the gateway listens.
type Listen struct {
	// Address of the TLS doors. Default :9443.
	Address string `json:"address,omitempty"`
	// Address of /metrics, /healthz and /readyz. Default :8000.
	Plain string `json:"plain,omitempty"`
	// Loopback address of pprof. Default: none.
	Profiling string `json:"profiling,omitempty"`
	// How long after SIGTERM requests are still taken, so that the endpoints can
	// be updated. Default 5s.
	DrainDelay Duration `json:"drainDelay,omitempty"`
	// File of certificate authorities (PEM): callers of the doors below must show a
	// certificate of one of them. Default: callers need none.
	ClientCA string `json:"clientCA,omitempty"`
	// Common names that a caller's certificate may have. Default: any that the
	// authorities signed.
	ClientNames []string `json:"clientNames,omitempty"`
	// Doors that ask for a client certificate: /mutate, /validate, /policies, /shadow,
	// /shadow/policies, /probe, and those of doors that are turned on. Default: all of them.
	// The door of the replicas asks for their key.
	ClientDoors []string `json:"clientDoors,omitempty"`
	// Path of a unix socket, made with mode 0600, at which /api/v1/verify is
	// answered without a token: who may open the file may ask. Default: none.
	Socket string `json:"socket,omitempty"`
}

// Webhooks says how the API server is told to ask.
type Webhooks struct {
	// Leave the webhook configurations to somebody else.
	Disabled bool `json:"disabled,omitempty"`
	// Name of the gateway's Service in its namespace. Default quaymaster.
	Service string `json:"service,omitempty"`
	// Port of the Service. Default 443.
	Port int32 `json:"port,omitempty"`
	// Base URL under which the API server finds the gateway, in place of the
	// Service: for a gateway outside of the cluster.
	URL string `json:"url,omitempty"`
	// Namespaces that are never asked about, beside the gateway's own. Default
	// kube-system; an empty list excludes no other. A node's own pods in
	// kube-system must start before the gateway can.
	ExcludedNamespaces *[]string `json:"excludedNamespaces,omitempty"`
	// Kinds of pod controllers that are pinned like Pods: DaemonSet, Deployment,
	// ReplicaSet, StatefulSet, CronJob, Job, PodTemplate, ReplicationController.
	// Default: none; Pods are pinned when they come, and other objects where a policy
	// names their kind itself.
	MutateControllers []string `json:"mutateControllers,omitempty"`
	// Change no image in objects other than Pods. A tag that a policy would pin in them,
	// because it names their kind itself, is then denied (missing-digest).
	OnlyPods bool `json:"onlyPods,omitempty"`
	// The ClusterRole that owns the configurations, so that they go away with the
	// release. Default quaymaster. It must be there, unless url is set.
	Owner string `json:"owner,omitempty"`
	// What the API server does with a request that nobody answers in time, whatever
	// policies and mirrors say: Fail refuses it where a policy enforces, Ignore admits it
	// unchecked. What the gateway does answer is as before. Default: what policies say.
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// Leave out namespaces with the label quaymaster.dev/break-glass, and take the label
	// off when its time is over. Turn it on where ValidatingAdmissionPolicies say who may
	// set it, as those of the Helm chart do: without them, whoever may change a namespace
	// opens it. Default: the label means nothing.
	BreakGlass bool `json:"breakGlass,omitempty"`
}

// Certificate says which certificate the gateway serves.
type Certificate struct {
	// The Secret of the gateway's own certificate authority. Default
	// quaymaster-certificate.
	Secret string `json:"secret,omitempty"`
	// Folder for the own certificate authority when running standalone. Default:
	// a new authority at each start, in memory.
	Folder string `json:"folder,omitempty"`
	// Files of a certificate from elsewhere, such as cert-manager, in place of the
	// own authority; followed when they change.
	CertificateFile string `json:"certificateFile,omitempty"`
	KeyFile         string `json:"keyFile,omitempty"`
	CAFile          string `json:"caFile,omitempty"`
	// Names and addresses in the own certificate beside the Service's, the host of
	// listen.address and that of webhooks.url; standalone beside localhost, too.
	Names []string `json:"names,omitempty"`
}

// Policies says where policies come from.
type Policies struct {
	// Files and folders of policies and exceptions, reloaded when they change. In a
	// cluster they stand beside the cluster's policies, and before one of the same
	// name; running standalone, they may
	// hold the ConfigMaps, Secrets and Namespaces that policies look up.
	Folders []string `json:"folders,omitempty"`
	// Labels that a policy must have to be the gateway's. Default: every policy
	// is.
	Selector string `json:"selector,omitempty"`
	// Where Secrets are that a ClusterPolicy names without a namespace. Default
	// kyverno, as in Kyverno.
	SecretNamespace string `json:"secretNamespace,omitempty"`
	// Whether the condition Ready is written into the status of Kyverno's and
	// policy-controller's kinds: always, never, or auto, which writes it where that engine
	// has neither a Deployment nor a webhook configuration in the cluster. Default auto. Our
	// own kinds always have it.
	WriteStatus StatusWriting `json:"writeStatus,omitempty"`
	// Sources whose policies only audit, whatever they say: cluster, folders, or one of
	// the folders by its path. Default: none.
	Audit []string `json:"audit,omitempty"`

	ClusterImagePolicies ClusterImagePolicies `json:"clusterImagePolicies,omitzero"`
	Expressions          Expressions          `json:"expressions,omitzero"`
}

// Exceptions says which policy exceptions count.
type Exceptions struct {
	// Namespaces whose PolicyExceptions are accepted. Default: none are.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Registries says how registries are reached.
type Registries struct {
	// Settings of single registries, by host or host:port.
	Hosts map[string]Host `json:"hosts,omitempty"`
	// File of certificate authorities (PEM) to trust for all registries beside
	// the system's.
	CAFile string `json:"caFile,omitempty"`
	// Secrets of the gateway (namespace/name, of type dockerconfigjson) that are
	// asked after those of the pod, its service account and the policy.
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Cloud keychains that are asked last: amazon, google, azure, github. Default:
	// none.
	Providers []string `json:"providers,omitempty"`
	// Hosts that may resolve to a loopback address beside those that are loopback
	// by name.
	Loopback []string `json:"loopback,omitempty"`
	// Refuse private addresses.
	NoPrivate bool `json:"noPrivate,omitempty"`
	// Requests at once, to one host and in all; both or neither. One namespace, and one
	// host, gets three quarters of all. Default 16 and 64.
	PerHost int `json:"perHost,omitempty"`
	Total   int `json:"total,omitempty"`
}

// Host is how one registry is reached.
type Host struct {
	// Ask without TLS. Who is between sees credentials and may change tags.
	PlainHTTP bool `json:"plainHTTP,omitempty"`
	// File of certificate authorities (PEM) in place of all others.
	CAFile string `json:"caFile,omitempty"`
	// Files of the client certificate to show (mutual TLS).
	CertificateFile string `json:"certificateFile,omitempty"`
	KeyFile         string `json:"keyFile,omitempty"`
}

// Ages says how long is remembered what was found out.
type Ages struct {
	// The digest behind a tag: a tag is asked for at most once in this time.
	// Default 30s.
	Tag Duration `json:"tag,omitempty"`
	// A proved claim. Default 1h.
	Fact Duration `json:"fact,omitempty"`
	// "No evidence found". Default 10s.
	None Duration `json:"none,omitempty"`
	// What was proved of an image that runs already, where its registry does not answer:
	// its tag's last proved digest is pinned, and admission warns. At most 168h; 0s wants
	// an answer always. A policy's annotation quaymaster.dev/stale-if-error has
	// precedence. Default 24h.
	Stale *Duration `json:"stale,omitempty"`
	// Secrets and service accounts; those that registries are asked with serve 10 minutes more while
	// the API server does not answer. Default 30s.
	Secret Duration `json:"secret,omitempty"`
	// That a mirror's target serves a digest. Default 5m.
	Mirror Duration `json:"mirror,omitempty"`
}

// Limits bounds the work.
type Limits struct {
	// Admission requests at work at once; further ones wait for their turn within
	// their own time. One namespace gets three quarters of them. Default 256.
	Requests int `json:"requests,omitempty"`
	// Images of one request at work at once. Default 16.
	Images int `json:"images,omitempty"`
}

// Events says whether Kubernetes Events are written.
type Events struct {
	// Write none.
	Disabled bool `json:"disabled,omitempty"`
}

// Peers says how replicas help one another.
type Peers struct {
	// Ask no other replica for what it proved.
	Disabled bool `json:"disabled,omitempty"`
	// Address (host:port) under which other replicas reach this one. Default: the
	// pod's address (POD_IP) and the TLS port; without one, replicas are not asked.
	Address string `json:"address,omitempty"`
}

// Log says how much is told.
type Log struct {
	// debug, info, warn or error. Default info.
	Level string `json:"level,omitempty"`
	// json or text. Default json.
	Format string `json:"format,omitempty"`
}

// Traces says where OpenTelemetry traces go.
type Traces struct {
	// OTLP endpoint over HTTP, as in http://collector:4318. Default: what
	// OTEL_EXPORTER_OTLP_ENDPOINT says, else none.
	Endpoint string `json:"endpoint,omitempty"`
}

// Duration is a time span, written as in 30s.
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	parsed, err := time.ParseDuration(strings.Trim(string(text), `"`))
	if err != nil || parsed < 0 {
		return fmt.Errorf("%s: want a duration such as 30s", text)
	}
	*d = Duration(parsed)
	return nil
}

// Load reads a configuration file; an empty path is the default configuration.
func Load(path string) (Configuration, error) {
	if path == "" {
		return Parse([]byte("apiVersion: " + APIVersion + "\nkind: " + Kind + "\n"))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Configuration{}, fmt.Errorf("configuration: %w", err)
	}
	c, err := Parse(text)
	if err != nil {
		return c, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// Parse reads a configuration strictly, fills in defaults, and refuses what
// contradicts itself.
func Parse(text []byte) (Configuration, error) {
	var c Configuration
	if err := yaml.UnmarshalStrict(text, &Configuration{}); err != nil { // it tells best what is wrong
		return c, err
	}
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return c, err
	}
	// But it takes a field in any case, so that clientca: "" would undo clientCA.
	if err := json.Unmarshal(text, &c, json.RejectUnknownMembers(true)); err != nil {
		return c, err
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return c, fmt.Errorf("want apiVersion %s and kind %s, found %q and %q", APIVersion, Kind, c.APIVersion, c.Kind)
	}
	c.fill()
	return c, c.check()
}

// fill sets the defaults.
func (c *Configuration) fill() {
	orText(&c.Namespace, "quaymaster")
	orText(&c.Mode, modeEnforce)
	orText(&c.Listen.Address, ":9443")
	orText(&c.Listen.Plain, ":8000")
	orText(&c.Webhooks.Service, "quaymaster")
	orText(&c.Webhooks.Owner, "quaymaster")
	orText(&c.Certificate.Secret, "quaymaster-certificate")
	orText(&c.Log.Level, "info")
	orText(&c.Log.Format, "json")
	if c.Webhooks.Port == 0 {
		c.Webhooks.Port = 443
	}
	if c.Webhooks.ExcludedNamespaces == nil {
		c.Webhooks.ExcludedNamespaces = &[]string{"kube-system"}
	}
	if c.Kubernetes.QPS == 0 {
		c.Kubernetes.QPS = 50
	}
	if c.Kubernetes.Burst == 0 {
		c.Kubernetes.Burst = 100
	}
	if c.Doors.API.TokenReview && len(c.Doors.API.Audiences) == 0 {
		c.Doors.API.Audiences = []string{"quaymaster"}
	}
	c.Snapshot.fill()
	c.DecisionLog.fill()
	c.Reports.fill()
	c.Scan.fill()
	c.Dashboard.fill()
	if c.Ages.Stale == nil {
		day := Duration(24 * time.Hour)
		c.Ages.Stale = &day
	}
	if c.Limits.Requests == 0 {
		c.Limits.Requests = 256
	}
	if c.Limits.Images == 0 {
		c.Limits.Images = 16
	}
	for _, d := range []struct {
		to    *Duration
		usual time.Duration
	}{
		{&c.Listen.DrainDelay, 5 * time.Second}, {&c.Ages.Tag, 30 * time.Second},
		{&c.Ages.Fact, time.Hour}, {&c.Ages.None, 10 * time.Second}, {&c.Ages.Secret, 30 * time.Second},
		{&c.Ages.Mirror, 5 * time.Minute},
	} {
		if *d.to == 0 {
			*d.to = Duration(d.usual)
		}
	}
}

func orText(to *string, usual string) {
	if *to == "" {
		*to = usual
	}
}
