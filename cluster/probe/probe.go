package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	discovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
)

// Label selects the ConfigMaps that the probe webhooks are called for.
const Label = "quaymaster.dev/probe"

const (
	// ServiceRequests is the number of creates where API servers cannot be reached individually:
	// with three of them, all are reached in more than 94 of 100 rounds.
	ServiceRequests = 10
	// requestTimeout bounds one create, which calls two webhooks of 3 s each at most.
	requestTimeout = 8 * time.Second
	// dialTimeout bounds the connection to one address: a packet filter drops without
	// an answer.
	dialTimeout = 2 * time.Second
	// unreachableTime is the time without attempts for an address that could not be reached.
	unreachableTime = 10 * time.Minute
	// maxAddresses bounds the addresses that are probed individually.
	maxAddresses = 32
)

// The EndpointSlice of the API servers, and a name in the certificate of each of them.
const (
	sliceNamespace, sliceName = metav1.NamespaceDefault, "kubernetes"
	serverName                = "kubernetes.default.svc"
)

// Warning returns the text by which the endpoint reports that it was called for a mark.
func Warning(mark string) string { return WarningOf(Label, mark) }

// WarningOf is the end of the warning for a mark, for ConfigMaps with another label.
func WarningOf(label, mark string) string { return label + " " + mark }

// ForbiddenError means that the creates are not permitted.
type ForbiddenError struct{ Err error }

// Error implements error.
func (e *ForbiddenError) Error() string { return e.Err.Error() }

// Unwrap returns the response of the API server.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// Options are the dependencies of a Prober; all are required but Label and Requested.
type Options struct {
	// Config reaches the API server; Slices reads the addresses of all of them.
	Config *rest.Config
	Slices discovery.EndpointSlicesGetter
	// Namespace is the gateway's own.
	Namespace string
	// Label is on the ConfigMaps; empty means Label.
	Label string
	// Requested is called for each create that is sent. May be nil.
	Requested func()
}

// Prober probes API servers. It is not safe for concurrent use. Create one with New.
type Prober struct {
	options     Options
	marks       []string
	seen        map[string]bool      // addresses that have shown marks
	unreachable map[string]time.Time // the time of the failure
}

// New creates a Prober, and returns an error for a missing required option.
func New(o Options) (*Prober, error) {
	if o.Config == nil || o.Slices == nil || o.Namespace == "" {
		return nil, errors.New("probe of webhook configurations: Config, Slices and Namespace are required")
	}
	o.Label = cmp.Or(o.Label, Label)
	if o.Requested == nil {
		o.Requested = func() {}
	}
	return &Prober{options: o, seen: map[string]bool{}, unreachable: map[string]time.Time{}}, nil
}

// Probe returns nil once every API server that it can reach has called the webhooks of all marks.
// Called again for the same marks, it probes only the remaining API servers. The error is a
// *ForbiddenError where the creates are not permitted.
func (p *Prober) Probe(ctx context.Context, marks ...string) error {
	if !slices.Equal(p.marks, marks) {
		p.marks, p.seen = slices.Clone(marks), map[string]bool{}
	}
	addresses := p.addresses(ctx)
	now := time.Now()
	var pending []string
	through := len(addresses) == 0
	for _, address := range addresses {
		switch since, is := p.unreachable[address]; {
		case is && now.Sub(since) < unreachableTime:
			through = true
		case !p.seen[address]:
			pending = append(pending, address)
		}
	}
	maps.DeleteFunc(p.unreachable, func(_ string, since time.Time) bool { return now.Sub(since) >= unreachableTime })
	results := make([]error, len(pending))
	var all sync.WaitGroup
	for i, address := range pending {
		all.Go(func() { results[i] = p.ask(ctx, "https://"+address) })
	}
	all.Wait()
	var failed []error
	for i, address := range pending {
		_, unreachable := errors.AsType[*unreachableError](results[i])
		switch {
		case results[i] == nil:
			p.seen[address] = true
		case !unreachable:
			failed = append(failed, results[i])
		case ctx.Err() == nil:
			p.unreachable[address], through = now, true
		}
	}
	if err := errors.Join(failed...); err != nil || !through {
		return errors.Join(err, ctx.Err())
	}
	return p.throughService(ctx)
}

// Forget has the next Probe probe all API servers, also for the same marks.
func (p *Prober) Forget() { p.seen = map[string]bool{} }

// throughService sends several creates to the address of the client configuration.
func (p *Prober) throughService(ctx context.Context) error {
	for range ServiceRequests {
		if err := p.ask(ctx, ""); err != nil {
			return err
		}
	}
	return nil
}

// addresses are those of all API servers; none if they cannot be read.
func (p *Prober) addresses(ctx context.Context) []string {
	slice, err := p.options.Slices.EndpointSlices(sliceNamespace).Get(ctx, sliceName, metav1.GetOptions{})
	if err != nil {
		return nil // the Service is used
	}
	return addressesOf(slice)
}

func addressesOf(slice *networking.EndpointSlice) []string {
	var found []string
	for _, port := range slice.Ports {
		if port.Port == nil || port.Name != nil && *port.Name != "https" {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			for _, address := range endpoint.Addresses {
				found = append(found, net.JoinHostPort(address, strconv.Itoa(int(*port.Port))))
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > maxAddresses {
		return nil
	}
	return found
}

// unreachableError means that no API server accepted the client at an address.
type unreachableError struct{ error }

// Unwrap returns the cause.
func (e *unreachableError) Unwrap() error { return e.error }

// ask sends one create to a host, or to that of the client configuration, over a connection of
// its own. The API server returns warnings even with a rejection, which may come from another
// webhook.
func (p *Prober) ask(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, err := p.client(host)
	if err != nil {
		return err
	}
	where := host
	if where == "" {
		where = p.options.Config.Host
	}
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	p.options.Requested()
	result := client.Post().Namespace(p.options.Namespace).Resource("configmaps").MaxRetries(0).
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, scheme.ParameterCodec).
		Body(&core.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "quaymaster-probe-", Labels: map[string]string{p.options.Label: ""}}}).Do(traced)
	err = result.Error()
	var missing []string
	for _, mark := range p.marks {
		if !slices.ContainsFunc(result.Warnings(), func(w utilnet.WarningHeader) bool { return strings.HasSuffix(w.Text, WarningOf(p.options.Label, mark)) }) {
			missing = append(missing, mark)
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case err == nil:
		return fmt.Errorf("the API server %s has not called the probe webhook at %s", where, strings.Join(missing, " and "))
	}
	err = fmt.Errorf("probe of the API server %s: %w", where, err)
	switch {
	case apierrors.IsForbidden(err):
		return &ForbiddenError{err}
	case !connected.Load() || apierrors.IsUnauthorized(err):
		return &unreachableError{err}
	}
	return err
}

// client returns a client with a new connection for each request: a persistent connection always
// ends at the same API server.
func (p *Prober) client(host string) (rest.Interface, error) {
	config := rest.CopyConfig(p.options.Config)
	config.APIPath, config.GroupVersion = "/api", &core.SchemeGroupVersion
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.RateLimiter, config.QPS = nil, -1
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	if host != "" {
		config.Host = host
		if config.ServerName == "" {
			config.ServerName = serverName
		}
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, &http.Transport{
		TLSClientConfig: secure, DisableKeepAlives: true, DialContext: dial, Proxy: proxy, TLSHandshakeTimeout: dialTimeout,
	})
	if err != nil {
		return nil, err
	}
	return rest.RESTClientForConfigAndClient(config, &http.Client{Transport: wrapped})
}
