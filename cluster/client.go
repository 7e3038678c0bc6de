package cluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/quaymaster/quaymaster/cluster/kubeconfig"
	"github.com/quaymaster/quaymaster/cluster/typed"
	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// DefaultQPS and DefaultBurst bound the requests of a Client to the API server, except for
	// watches.
	DefaultQPS = 50
	// DefaultBurst bounds a burst of these requests.
	DefaultBurst = 100
	// CredentialQPS is for pull secrets and service accounts, which workloads name: untrusted
	// users can cause many such requests.
	CredentialQPS = 200
	// CredentialBurst bounds a burst of these requests.
	CredentialBurst = 400
	// leaseQPS and leaseBurst are for leases alone, which must not be queued after lookups: a
	// lease that is renewed late is lost.
	leaseQPS   = 5
	leaseBurst = 10
	// maxDefinition bounds a CustomResourceDefinition; etcd's default limit is 1.5 MiB.
	maxDefinition = 8 << 20
)

// ClientOptions configure the connection to the API server.
type ClientOptions struct {
	// Kubeconfig is the path of a kubeconfig file; empty means the service account of the current
	// pod.
	Kubeconfig string
	// Context is the context of Kubeconfig; empty means its current one. It is an error without
	// Kubeconfig, since a service account has no contexts.
	Context string
	// QPS and Burst bound requests per second; 0 means the defaults, and negative values are an
	// error.
	QPS   float64
	Burst int
	// Version is the version of this program, for the user agent; required.
	Version string
}

// Client is the bundle of clients for one API server. They share connections and one rate limit,
// except for Credentials and Leases.
type Client struct {
	// Typed uses protobuf.
	Typed typed.Interface
	// Dynamic uses JSON, for custom resources.
	Dynamic dynamic.Interface
	// Metadata reads only the metadata of objects.
	Metadata metadata.Interface
	// Credentials is Typed with a rate limit of its own, CredentialQPS.
	Credentials typed.Interface
	// Leases has a rate limit of its own.
	Leases coordination.LeasesGetter
	// Mapper maps kinds to resources. It performs discovery on first use and caches the result;
	// Reset clears the cache.
	Mapper meta.ResettableRESTMapper

	raw    rest.Interface
	config *rest.Config
}

// Config returns the configuration of the clients, without their rate limits.
func (c *Client) Config() *rest.Config {
	config := rest.CopyConfig(c.config)
	config.RateLimiter, config.QPS, config.Burst = nil, 0, 0
	return config
}

// NewClient creates a Client. It sends no request.
func NewClient(o ClientOptions) (*Client, error) {
	if o.Version == "" || o.QPS < 0 || o.Burst < 0 {
		return nil, errors.New("kubernetes client: Version is required, and QPS and Burst must not be below 0")
	}
	config, err := kubeconfig.Load(o.Kubeconfig, o.Context)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "quaymaster/" + o.Version
	config.RateLimiter = nil
	config.QPS, config.Burst = leaseQPS, leaseBurst
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	c := &Client{config: config}
	c.Leases, err = coordination.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	if o.QPS == 0 {
		o.QPS = DefaultQPS
	}
	if o.Burst == 0 {
		o.Burst = DefaultBurst
	}
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(o.QPS), o.Burst)
	if err := c.connect(config); err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	return c, nil
}

func (c *Client) connect(config *rest.Config) error {
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	c.Typed, err = typed.New(config, h)
	if err != nil {
		return err
	}
	named := rest.CopyConfig(config)
	named.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(CredentialQPS, CredentialBurst)
	c.Credentials, err = typed.New(named, h)
	if err != nil {
		return err
	}
	plain := rest.CopyConfig(config)
	plain.ContentType, plain.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.Dynamic, err = dynamic.NewForConfigAndClient(plain, h)
	if err != nil {
		return err
	}
	c.Metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), h)
	if err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(plain, h)
	if err != nil {
		return err
	}
	c.raw = d.RESTClient()
	c.Mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return nil
}

// Definition returns a CustomResourceDefinition as JSON; at most 8 MiB.
func (c *Client) Definition(ctx context.Context, name string) ([]byte, error) {
	body, err := c.raw.Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Name(name).Stream(ctx)
	if err != nil {
		return nil, classify("customresourcedefinition", "", name, err)
	}
	raw, err := limit.ReadAll(body, maxDefinition, "customresourcedefinition "+name)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, classify("customresourcedefinition", "", name, err)
	}
	return raw, nil
}
