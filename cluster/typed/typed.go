// Package typed has the typed clients of the groups of the Kubernetes API (v1) that this program uses, by
// k8s.io/client-go. Its clientset of all groups would add some 8 MB of clients to the program that nothing
// calls.
package typed

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/discovery"
	admission "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	apps "k8s.io/client-go/kubernetes/typed/apps/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	endpoints "k8s.io/client-go/kubernetes/typed/discovery/v1"
	events "k8s.io/client-go/kubernetes/typed/events/v1"
	rbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
)

// Interface is a part of client-go's kubernetes.Interface, under the same names, so that its clientsets and
// their fakes have it too.
type Interface interface {
	Discovery() discovery.DiscoveryInterfaces
	AdmissionregistrationV1() admission.AdmissionregistrationV1Interface
	AppsV1() apps.AppsV1Interface
	AuthenticationV1() authentication.AuthenticationV1Interface
	AuthorizationV1() authorization.AuthorizationV1Interface
	CoreV1() core.CoreV1Interface
	DiscoveryV1() endpoints.DiscoveryV1Interface
	EventsV1() events.EventsV1Interface
	RbacV1() rbac.RbacV1Interface
}

// Clients implement Interface.
type Clients struct {
	discovery      *discovery.DiscoveryClient
	admission      *admission.AdmissionregistrationV1Client
	apps           *apps.AppsV1Client
	authentication *authentication.AuthenticationV1Client
	authorization  *authorization.AuthorizationV1Client
	core           *core.CoreV1Client
	endpoints      *endpoints.DiscoveryV1Client
	events         *events.EventsV1Client
	rbac           *rbac.RbacV1Client
}

// New returns clients that share the connections of h and the configuration's RateLimiter; without one, each
// group has its own limit. It sends no request.
func New(config *rest.Config, h *http.Client) (*Clients, error) {
	var c Clients
	var errs [9]error
	c.discovery, errs[0] = discovery.NewDiscoveryClientForConfigAndClient(config, h)
	c.admission, errs[1] = admission.NewForConfigAndClient(config, h)
	c.apps, errs[2] = apps.NewForConfigAndClient(config, h)
	c.authentication, errs[3] = authentication.NewForConfigAndClient(config, h)
	c.authorization, errs[4] = authorization.NewForConfigAndClient(config, h)
	c.core, errs[5] = core.NewForConfigAndClient(config, h)
	c.endpoints, errs[6] = endpoints.NewForConfigAndClient(config, h)
	c.events, errs[7] = events.NewForConfigAndClient(config, h)
	c.rbac, errs[8] = rbac.NewForConfigAndClient(config, h)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("typed clients: %w", err)
	}
	return &c, nil
}

// Discovery returns the client that lists groups and resources.
func (c *Clients) Discovery() discovery.DiscoveryInterfaces { return c.discovery }

// AdmissionregistrationV1 returns the client of admissionregistration.k8s.io.
func (c *Clients) AdmissionregistrationV1() admission.AdmissionregistrationV1Interface {
	return c.admission
}

// AppsV1 returns the client of apps.
func (c *Clients) AppsV1() apps.AppsV1Interface { return c.apps }

// AuthenticationV1 returns the client of authentication.k8s.io.
func (c *Clients) AuthenticationV1() authentication.AuthenticationV1Interface {
	return c.authentication
}

// AuthorizationV1 returns the client of authorization.k8s.io.
func (c *Clients) AuthorizationV1() authorization.AuthorizationV1Interface { return c.authorization }

// CoreV1 returns the client of the core group.
func (c *Clients) CoreV1() core.CoreV1Interface { return c.core }

// DiscoveryV1 returns the client of discovery.k8s.io.
func (c *Clients) DiscoveryV1() endpoints.DiscoveryV1Interface { return c.endpoints }

// EventsV1 returns the client of events.k8s.io.
func (c *Clients) EventsV1() events.EventsV1Interface { return c.events }

// RbacV1 returns the client of rbac.authorization.k8s.io.
func (c *Clients) RbacV1() rbac.RbacV1Interface { return c.rbac }
