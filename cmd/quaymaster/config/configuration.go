package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/required"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/internal/fieldname"
	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/internal/yamlline"
)

// Configuration is the gateway's settings. Every field has a safe zero value, the default in its
// comment. docs/configuration.md is generated from the comments here.
type Configuration struct {
	Header `json:",inline"`

	// The gateway's own namespace: where its Secret and Leases are. Default
	// quaymaster.
	Namespace string `json:"namespace,omitempty"`
	// Run without a cluster: policies come from folders, and nothing is written.
	Standalone bool `json:"standalone,omitempty"`
	// What a verdict does: enforce, or shadow, in which everything is evaluated and recorded, and
	// nothing is denied or changed, independently of policies and other settings, except in
	// namespaces with the label quaymaster.dev/mode: enforce. Default enforce.
	Mode string `json:"mode,omitempty"`
	// The roles of this process: some of admission, scan, report, background and cleanup, or native
	// alone. Settings of other roles have no effect. Default: all but native; --roles has precedence.
	Roles []string `json:"roles,omitempty"`
	// Evaluate policies against running workloads before they deny: enabled or disabled. A policy
	// that would deny running workloads is refused, or held until it would not or is accepted by
	// annotation (docs/policy-guard.md). Default disabled.
	Guard string `json:"guard,omitempty"`
	// Requirements of images in addition to those of policies. Default: none.
	Requirements []required.Requirement `json:"requirements,omitempty"`

	Kubernetes   Kubernetes   `json:"kubernetes,omitzero"`
	Listen       Listen       `json:"listen,omitzero"`
	Webhooks     Webhooks     `json:"webhooks,omitzero"`
	Certificate  Certificate  `json:"certificate,omitzero"`
	Policies     Policies     `json:"policies,omitzero"`
	Exceptions   Exceptions   `json:"exceptions,omitzero"`
	Mirrors      Mirrors      `json:"mirrors,omitzero"`
	Endpoints    Endpoints    `json:"endpoints,omitzero"`
	Registries   Registries   `json:"registries,omitzero"`
	Trust        Trust        `json:"trust,omitzero"`
	Ages         Ages         `json:"ages,omitzero"`
	Snapshot     Snapshot     `json:"snapshot,omitzero"`
	Limits       Limits       `json:"limits,omitzero"`
	Events       Events       `json:"events,omitzero"`
	Reports      Reports      `json:"reports,omitzero"`
	Scan         Scan         `json:"scan,omitzero"`
	Cleanup      Cleanup      `json:"cleanup,omitzero"`
	Dashboard    Dashboard    `json:"dashboard,omitzero"`
	DecisionLog  DecisionLog  `json:"decisionLog,omitzero"`
	Peers        Peers        `json:"peers,omitzero"`
	SharedMemory SharedMemory `json:"sharedMemory,omitzero"`
	Log          Log          `json:"log,omitzero"`
	Traces       Traces       `json:"traces,omitzero"`
}

// Kubernetes is the connection to the API server.
type Kubernetes struct {
	// Path of a kubeconfig file. Default: the pod's service account.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// The kubeconfig's context to use. Default: its current one.
	Context string `json:"context,omitempty"`
	// Requests per second to the API server, in addition to 200 for pull secrets and service
	// accounts. Default 50.
	QPS float32 `json:"qps,omitempty"`
	// Requests that may be sent at once after a pause, before qps applies. Default 100.
	Burst int `json:"burst,omitempty"`
}

// Listen is the set of addresses that the gateway listens on.
type Listen struct {
	// Address of the TLS endpoints. Default :9443.
	Address string `json:"address,omitempty"`
	// Address of /metrics, /healthz and /readyz. Default :8000.
	Plain string `json:"plain,omitempty"`
	// Loopback address of pprof. Default: none.
	Profiling string `json:"profiling,omitempty"`
	// How long requests are still accepted after SIGTERM, so that the endpoints can be updated.
	// Default 5s.
	DrainDelay Duration `json:"drainDelay,omitempty"`
	// File of certificate authorities (PEM): clients of the endpoints below must present a
	// certificate from one of them. Default: clients need none.
	ClientCA string `json:"clientCA,omitempty"`
	// Common names of accepted client certificates. Default: any that the authorities signed.
	ClientNames []string `json:"clientNames,omitempty"`
	// Endpoints that require a client certificate: /mutate, /validate, /policies, /shadow,
	// /shadow/policies, /probe, and the enabled additional endpoints. Default: all of them. The
	// endpoint of the replicas requires their key.
	ClientEndpoints []string `json:"clientEndpoints,omitempty"`
	// Path of a unix socket, made with mode 0600, for /api/v1/verify without a token: the file's
	// permissions control access. Default: none.
	Socket string `json:"socket,omitempty"`
}

// Webhooks is the registration of the gateway at the API server.
type Webhooks struct {
	// Do not manage the webhook configurations.
	Disabled bool `json:"disabled,omitempty"`
	// Name of the gateway's Service in its namespace. Default quaymaster.
	Service string `json:"service,omitempty"`
	// Port of the Service. Default 443.
	Port int32 `json:"port,omitempty"`
	// Base URL of the gateway for the API server, in place of the Service: for a gateway outside
	// of the cluster.
	URL string `json:"url,omitempty"`
	// Namespaces that are excluded from the webhooks, in addition to the gateway's own. Default
	// kube-system; an empty list excludes no other. A node's own pods in kube-system must start
	// before the gateway can.
	ExcludedNamespaces *[]string `json:"excludedNamespaces,omitempty"`
	// Kinds of pod controllers that are pinned like Pods: DaemonSet, Deployment, ReplicaSet,
	// StatefulSet, CronJob, Job, PodTemplate, ReplicationController. Default: none; Pods are
	// pinned at admission, and other objects where a policy names their kind itself.
	MutateControllers []string `json:"mutateControllers,omitempty"`
	// Change no image in objects other than Pods. A tag that a policy would pin in them,
	// because it names their kind itself, is then denied (missing-digest).
	OnlyPods bool `json:"onlyPods,omitempty"`
	// Repeat what denies in Kyverno's words (resource ... was blocked due to the following
	// policies) in each denial, for scripts that search for them.
	KyvernoDenials bool `json:"kyvernoDenials,omitempty"`
	// The ClusterRole that owns the configurations, so that they are deleted with the release.
	// Default quaymaster. It must exist, unless url is set.
	Owner string `json:"owner,omitempty"`
	// The API server's reaction to a request without a timely response, independently of
	// policies and mirrors: Fail refuses it where a policy enforces, Ignore admits it unchecked.
	// The gateway's own responses do not change. Default: as the policies define.
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// Exclude namespaces with the label quaymaster.dev/break-glass, and remove the label when it
	// expires. Enable it only with ValidatingAdmissionPolicies that restrict the label, as those
	// of the Helm chart do: without them, every user with write access to a namespace can open
	// it. Default: the label has no effect.
	BreakGlass bool `json:"breakGlass,omitempty"`
}

// Certificate is the source of the serving certificate.
type Certificate struct {
	// The Secret of the gateway's own certificate authority. Default
	// quaymaster-certificate.
	Secret string `json:"secret,omitempty"`
	// Folder of the own certificate authority when running standalone. Default: a new authority
	// at each start, in memory.
	Folder string `json:"folder,omitempty"`
	// Files of a certificate from another source, such as cert-manager, in place of the own
	// authority; reloaded when they change.
	CertificateFile string `json:"certificateFile,omitempty"`
	KeyFile         string `json:"keyFile,omitempty"`
	CAFile          string `json:"caFile,omitempty"`
	// Names and addresses in the own certificate in addition to the Service's, the host of
	// listen.address and that of webhooks.url; standalone also in addition to localhost.
	Names []string `json:"names,omitempty"`
}

// Policies is the set of policy sources.
type Policies struct {
	// Files and folders of policies and exceptions, reloaded when they change. In a cluster they
	// are added to the cluster's policies, and precede one of the same name. Running standalone,
	// they may contain the ConfigMaps, Secrets and Namespaces that policies look up.
	Folders []string `json:"folders,omitempty"`
	// Labels of the gateway's policies. Default: all policies are the gateway's.
	Selector string `json:"selector,omitempty"`
	// Namespace of Secrets that a ClusterPolicy names without a namespace. Default kyverno, as in
	// Kyverno.
	SecretNamespace string `json:"secretNamespace,omitempty"`
	// Whether the condition Ready is written into the status of Kyverno's and policy-controller's
	// kinds: always, never, or auto, which writes it where that engine has neither a Deployment
	// nor a webhook configuration in the cluster. Default auto. The gateway's own kinds always
	// have it.
	WriteStatus StatusWriting `json:"writeStatus,omitempty"`
	// Sources of policies that only audit, independently of their own settings: cluster, folders,
	// or one of the folders by its path. Default: none.
	Audit []string `json:"audit,omitempty"`
	// Which policies the API server evaluates itself: off, requested (those that ask for it by a field
	// of their own) or auto (all that can be converted). A process with the role native writes them
	// (docs/native-policies.md). Default: none are written, and none removed; off removes them.
	NativePolicies record.Mode `json:"nativePolicies,omitempty"`

	ClusterImagePolicies ClusterImagePolicies `json:"clusterImagePolicies,omitzero"`
	Expressions          Expressions          `json:"expressions,omitzero"`
}

// Exceptions is the set of accepted policy exceptions.
type Exceptions struct {
	// Namespaces with accepted PolicyExceptions; "*" accepts those of all namespaces, so that every
	// user with write access to PolicyExceptions exempts objects from policies. Default: none.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Registries is the connection to registries.
type Registries struct {
	// Settings of single registries, by host or host:port.
	Hosts map[string]Host `json:"hosts,omitempty"`
	// File of certificate authorities (PEM) to trust for all registries in addition to the
	// system's.
	CAFile string `json:"caFile,omitempty"`
	// Secrets of the gateway (namespace/name, of type dockerconfigjson) that are used after those
	// of the pod, its service account and the policy.
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Cloud keychains that are used last: amazon, google, azure, github. Default: none.
	Providers []string `json:"providers,omitempty"`
	// Hosts that may resolve to a loopback address, in addition to those that are loopback by
	// name.
	Loopback []string `json:"loopback,omitempty"`
	// Refuse private addresses.
	NoPrivate bool `json:"noPrivate,omitempty"`
	// Concurrent requests, to one host and in total; both or neither. One namespace, and one
	// host, gets three quarters of the total. Default 16 and 64.
	PerHost int `json:"perHost,omitempty"`
	Total   int `json:"total,omitempty"`
}

// Host is the connection to one registry.
type Host struct {
	// Use plain HTTP. An on-path attacker can read credentials and rewrite tags.
	PlainHTTP bool `json:"plainHTTP,omitempty"`
	// File of certificate authorities (PEM) in place of all others.
	CAFile string `json:"caFile,omitempty"`
	// Files of the client certificate (mutual TLS).
	CertificateFile string `json:"certificateFile,omitempty"`
	KeyFile         string `json:"keyFile,omitempty"`
}

// Ages is the lifetime of cached results.
type Ages struct {
	// The digest behind a tag: a tag is resolved at most once in this time. Default 30s.
	Tag Duration `json:"tag,omitempty"`
	// A verified claim. Default 1h.
	Fact Duration `json:"fact,omitempty"`
	// "No evidence found". Default 10s.
	None Duration `json:"none,omitempty"`
	// The last verification of an image that runs already, if its registry is unavailable: the
	// tag's last verified digest is pinned, and admission warns. At most 168h; 0s always requires
	// a response. A policy's annotation quaymaster.dev/stale-if-error has precedence. Default
	// 24h.
	Stale *Duration `json:"stale,omitempty"`
	// Secrets and service accounts; those with registry credentials are used 10 minutes longer
	// while the API server is unavailable. Default 30s.
	Secret Duration `json:"secret,omitempty"`
	// A mirror's target serves a digest. Default 5m.
	Mirror Duration `json:"mirror,omitempty"`
}

// Limits bounds the work.
type Limits struct {
	// Concurrent admission requests; further ones wait within their own timeout. One namespace
	// gets three quarters of them. Default 256.
	Requests int `json:"requests,omitempty"`
	// Concurrent images of one request. Default 16.
	Images int `json:"images,omitempty"`
}

// Events is the writing of Kubernetes Events.
type Events struct {
	// Write none.
	Disabled bool `json:"disabled,omitempty"`
}

// Peers is the sharing of results among replicas.
type Peers struct {
	// Do not request verified claims from other replicas.
	Disabled bool `json:"disabled,omitempty"`
	// Address (host:port) of this replica for the others. Default: the pod's address (POD_IP) and
	// the TLS port; without one, other replicas are not used.
	Address string `json:"address,omitempty"`
}

// Log is the gateway's log.
type Log struct {
	// debug, info, warn or error. Default info.
	Level string `json:"level,omitempty"`
	// json or text. Default json.
	Format string `json:"format,omitempty"`
}

// Traces is the export of OpenTelemetry traces.
type Traces struct {
	// OTLP endpoint over HTTP, as in http://collector:4318. Default: the value of
	// OTEL_EXPORTER_OTLP_ENDPOINT, else none.
	Endpoint string `json:"endpoint,omitempty"`
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
		return c, fmt.Errorf("configuration %s: %w", path, yamlline.Locate(text, err))
	}
	return c, nil
}

// Parse parses a configuration strictly, sets defaults, and refuses contradictions.
func Parse(text []byte) (Configuration, error) {
	var c Configuration
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return c, fmt.Errorf("YAML: %w", yamlline.Readable(err))
	}
	if err := strictjson.CheckKind(text, APIVersion, Kind); err != nil {
		return c, err
	}
	if err := c.decode(text); err != nil {
		return c, err
	}
	c.fill()
	return c, c.check()
}

// decode reads JSON. An unknown field has the most similar one beside it.
func (c *Configuration) decode(text []byte) error {
	problems, err := strictjson.Decode(text, c)
	for _, problem := range problems {
		if strings.HasPrefix(problem.What, "unknown") {
			problem.What += spelling.DidYouMean(fieldname.Nearest(problem.Path, reflect.TypeFor[Configuration]()))
		}
		err = errors.Join(err, problem)
	}
	return err
}

// fill sets the defaults.
func (c *Configuration) fill() {
	orText(&c.Namespace, "quaymaster")
	orText(&c.Mode, ModeEnforce)
	orText(&c.Listen.Address, ":9443")
	orText(&c.Listen.Plain, ":8000")
	orText(&c.Webhooks.Service, "quaymaster")
	orText(&c.Webhooks.Owner, "quaymaster")
	orText(&c.Certificate.Secret, "quaymaster-certificate")
	orText(&c.Log.Level, "info")
	orText(&c.Log.Format, "json")
	c.Webhooks.Port = cmp.Or(c.Webhooks.Port, 443)
	if c.Webhooks.ExcludedNamespaces == nil {
		c.Webhooks.ExcludedNamespaces = &[]string{"kube-system"}
	}
	c.Kubernetes.QPS = cmp.Or(c.Kubernetes.QPS, 50)
	c.Kubernetes.Burst = cmp.Or(c.Kubernetes.Burst, 100)
	if c.Endpoints.API.TokenReview && len(c.Endpoints.API.Audiences) == 0 {
		c.Endpoints.API.Audiences = []string{"quaymaster"}
	}
	c.Snapshot.fill()
	c.DecisionLog.fill()
	c.Reports.fill()
	c.Scan.fill()
	c.Cleanup.fill()
	c.Dashboard.fill()
	if c.Ages.Stale == nil {
		day := Duration(24 * time.Hour)
		c.Ages.Stale = &day
	}
	c.Limits.Requests = cmp.Or(c.Limits.Requests, 256)
	c.Limits.Images = cmp.Or(c.Limits.Images, 16)
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
