package gateway

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
)

const (
	// servedInterval is the time between two discovery requests, for the kinds of aggregated
	// APIs, which no watch reports; servedPause is the time after a failed one.
	servedInterval = 30 * time.Second
	servedPause    = time.Second
)

// served returns the resources that the API server serves, for policies that name them.
type served struct {
	ask func() ([]*metav1.APIResourceList, []schema.GroupVersion, error)
	// changed is called, from follow, when the served resources differ from those that policies
	// were compiled with.
	changed func()
	log     *slog.Logger
	known   chan struct{} // closed after the first discovery

	asking  sync.Mutex
	current atomic.Pointer[[]configuration.Resource]
	tell    sync.Once
	missed  atomic.Bool // used before the first discovery
}

// Ready returns a channel that is closed after the first discovery.
func (s *served) Ready() <-chan struct{} { return s.known }

// Named implements constraint.Resources. It makes the first discovery request if necessary, so
// that a policy is not broken only because it came first.
func (s *served) Named(group, name string) []constraint.Resource {
	list := s.current.Load()
	if list == nil {
		_, _ = s.refresh() // follow logs the error
		list = s.current.Load()
		if list == nil {
			s.missed.Store(true)
			return nil
		}
	}
	return resourcesNamed(*list, group, name)
}

// KindOf implements admission.Kinds. A definition since the last discovery is not known yet, and
// requests for its subresources count by the resource.
func (s *served) KindOf(group, version, resource string) (kind string, known bool) {
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

// resourcesNamed picks the resources of a name.
func resourcesNamed(list []configuration.Resource, group, name string) []constraint.Resource {
	var found []constraint.Resource
	for _, r := range list {
		one := constraint.Resource{Name: r.Name, Group: r.Group, Kind: r.Kind, Cluster: !r.Namespaced}
		if r.Name == name && (group == "*" || r.Group == group) && !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	return found
}

// follow makes discovery requests at the start, when a definition changes, and periodically,
// until ctx ends.
func (s *served) follow(ctx context.Context, defined gateway.Changing) {
	for {
		next := defined.Changed()
		pause := servedInterval
		changed, err := s.refresh()
		if err != nil {
			s.log.Warn("what the API server serves cannot be listed; what it served before counts", slog.String("error", err.Error()))
			pause = servedPause
		} else if s.missed.Swap(false) || changed {
			s.changed()
		}
		if s.current.Load() != nil {
			s.tell.Do(func() { close(s.known) })
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

// refresh reports whether the served resources have changed.
func (s *served) refresh() (changed bool, err error) {
	s.asking.Lock()
	defer s.asking.Unlock()
	lists, failed, err := s.ask()
	if err != nil {
		return false, err
	}
	var before []configuration.Resource
	have := s.current.Load()
	if have != nil {
		before = *have
	}
	now := configuration.Served(lists, failed, before)
	if have != nil && slices.EqualFunc(before, now, sameResource) {
		return false, nil
	}
	s.current.Store(&now)
	return have != nil, nil
}

func sameResource(a, b configuration.Resource) bool {
	return a.Group == b.Group && a.Version == b.Version && a.Name == b.Name && a.Kind == b.Kind && a.Namespaced == b.Namespaced
}

// discover lists all resources; some group versions may fail.
func discover(of discovery.DiscoveryInterface) ([]*metav1.APIResourceList, []schema.GroupVersion, error) {
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
