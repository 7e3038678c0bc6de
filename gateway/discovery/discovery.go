package discovery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/configuration/served"
)

const (
	// servedInterval is the time between two discovery requests, for the kinds of aggregated
	// APIs, which no watch reports; servedPause is the time after a failed one.
	servedInterval = 30 * time.Second
	servedPause    = time.Second
)

// Discovery returns the resources that the API server serves, for policies that name them.
type Discovery struct {
	discover Discoverer
	// changed is called, from follow, when the served resources differ from those that policies
	// were compiled with.
	changed func()
	log     *slog.Logger
	known   chan struct{} // closed after the first discovery

	listing    sync.Mutex
	current    atomic.Pointer[[]configuration.Resource]
	reportOnce sync.Once
	missed     atomic.Bool // used before the first discovery
}

// New makes the discovery. changed is called, from run, when the served resources differ from
// those that policies were compiled with.
func New(ask Discoverer, changed func(), log *slog.Logger) *Discovery {
	return &Discovery{discover: ask, changed: changed, log: log, known: make(chan struct{})}
}

// Resources are the served resources; nil before the first discovery.
func (s *Discovery) Resources() []configuration.Resource {
	if list := s.current.Load(); list != nil {
		return *list
	}
	return nil
}

// Ready returns a channel that is closed after the first discovery.
func (s *Discovery) Ready() <-chan struct{} { return s.known }

// Named implements constraint.Resources. It makes the first discovery request if necessary, so
// that a policy is not broken only because it came first.
func (s *Discovery) Named(group, name string) []constraint.Resource {
	list := s.current.Load()
	if list == nil {
		_, _ = s.Refresh() // follow logs the error
		list = s.current.Load()
		if list == nil {
			s.missed.Store(true)
			return nil
		}
	}
	return Named(*list, group, name)
}

// KindOf implements admission.Kinds. A definition since the last discovery is not known yet, and
// requests for its subresources count by the resource.
func (s *Discovery) KindOf(group, version, resource string) (kind string, known bool) {
	list := s.current.Load()
	if list == nil {
		return "", false
	}
	for _, r := range *list {
		if r.Group == group && r.Version == version && r.Name == resource {
			return r.Kind, true
		}
	}
	return "", false
}

// Named picks the resources of a name.
func Named(list []configuration.Resource, group, name string) []constraint.Resource {
	var found []constraint.Resource
	for _, r := range list {
		one := constraint.Resource{Name: r.Name, Group: r.Group, Kind: r.Kind, Cluster: !r.Namespaced}
		if r.Name == name && (group == "*" || r.Group == group) && !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	return found
}

// Run makes discovery requests at the start, when a definition changes, and periodically,
// until ctx ends.
func (s *Discovery) Run(ctx context.Context, defined gateway.Changing) {
	for {
		next := defined.Changed()
		pause := servedInterval
		changed, err := s.Refresh()
		if err != nil {
			s.log.Warn("the API server's resources cannot be listed; the previous list stays in use", slog.String("error", err.Error()))
			pause = servedPause
		} else if s.missed.Swap(false) || changed {
			s.changed()
		}
		if s.current.Load() != nil {
			s.reportOnce.Do(func() { close(s.known) })
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			continue
		case <-next:
		}
		select { // discovery contains it a moment later
		case <-ctx.Done():
			return
		case <-time.After(discoveryLag):
		}
	}
}

// Refresh reports whether the served resources have changed.
func (s *Discovery) Refresh() (changed bool, err error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	lists, failed, err := s.discover()
	if err != nil {
		return false, err
	}
	var before []configuration.Resource
	have := s.current.Load()
	if have != nil {
		before = *have
	}
	now := served.Resources(lists, failed, before)
	if have != nil && slices.EqualFunc(before, now, sameResource) {
		return false, nil
	}
	s.current.Store(&now)
	return have != nil, nil
}

func sameResource(a, b configuration.Resource) bool {
	return a.Group == b.Group && a.Version == b.Version && a.Name == b.Name && a.Kind == b.Kind && a.Namespaced == b.Namespaced
}

// Discoverer lists all resources of the API server; some group versions may fail.
type Discoverer func() ([]*metav1.APIResourceList, []schema.GroupVersion, error)

// DiscovererOf makes a Discoverer of a client.
func DiscovererOf(of discovery.DiscoveryInterface) Discoverer {
	return func() ([]*metav1.APIResourceList, []schema.GroupVersion, error) {
		_, lists, err := of.ServerGroupsAndResources()
		var partial *discovery.ErrGroupDiscoveryFailed
		if errors.As(err, &partial) {
			var failed []schema.GroupVersion
			for version := range partial.Groups {
				failed = append(failed, version)
			}
			return lists, failed, nil
		}
		return lists, nil, err
	}
}
