// Package live lists the objects of a cluster that policies match, and serves the policies'
// look-ups.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/workload"
)

// Bounds of the objects listed from a cluster.
const (
	// pageSize is the number of objects in one response, kubectl's page size.
	pageSize = 500
	// maxObjects bounds the objects of a run: the limit of package workload for one input.
	maxObjects = workload.MaxObjects
)

// Cluster lists the objects that policies match, and serves the policies' look-ups.
type Cluster struct {
	Objects   *cluster.Objects
	client    *cluster.Client
	namespace string // empty means all
	labels    map[string]map[string]string
	served    []served
}

// served is a resource that the cluster serves and that may have objects.
type served struct {
	schema.GroupVersionResource
	kind       schema.GroupVersionKind
	namespaced bool
}

// Open discovers the served kinds. Objects are listed of one namespace; empty means all.
func Open(client *cluster.Client, namespace string) (*Cluster, error) {
	objects, err := cluster.NewObjects(cluster.ObjectOptions{Client: client})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Objects: objects, client: client, namespace: namespace, labels: map[string]map[string]string{}}
	return c, c.discover()
}

// discover lists the resources that support list, each in its preferred version.
func (c *Cluster) discover() error {
	lists, err := c.client.Typed.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("discover the served kinds: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // the API has an invalid name
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				c.served = append(c.served, served{version.WithResource(r.Name), version.WithKind(r.Kind), r.Namespaced})
			}
		}
	}
	return nil
}

// Named implements constraint.Resources.
func (c *Cluster) Named(group, name string) []constraint.Resource {
	var found []constraint.Resource
	for _, r := range c.served {
		if r.Resource == name && (group == "*" || group == r.Group) {
			found = append(found, constraint.Resource{Name: name, Group: r.Group, Kind: r.kind.Kind, Cluster: !r.namespaced})
		}
	}
	return found
}

// KnowsAll reports that discovery lists every resource.
func (*Cluster) KnowsAll() bool { return true }

// NamespaceLabels reads the labels of each namespace once.
func (c *Cluster) NamespaceLabels(name string) (map[string]string, bool) {
	if labels, ok := c.labels[name]; ok {
		return labels, true
	}
	found, err := c.client.Typed.CoreV1().Namespaces().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, false
	}
	c.labels[name] = found.Labels
	return found.Labels, true
}

// ConfigMap implements rulecontext.Lookup.
func (c *Cluster) ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error) {
	found, err := c.client.Call(ctx, "GET", "/api/v1/namespaces/"+namespace+"/configmaps/"+name, nil)
	if err != nil {
		return nil, err
	}
	object, ok := found.(map[string]any)
	if !ok {
		return nil, errors.New("the API server's response is no object")
	}
	return object, nil
}

// API implements rulecontext.Caller.
func (c *Cluster) API(ctx context.Context, call rulecontext.APICall) (any, error) {
	var body []byte
	if call.Body != nil {
		var err error
		body, err = json.Marshal(call.Body)
		if err != nil {
			return nil, err
		}
	}
	return c.client.Call(ctx, call.Method, call.Path, body)
}

// Matching lists the objects of the targets' kinds.
func (c *Cluster) Matching(ctx context.Context, targets []policy.Target) ([]workload.Object, error) {
	var objects []workload.Object
	for _, r := range c.served {
		if !matches(targets, r.kind) || c.namespace != "" && !r.namespaced {
			continue
		}
		found, err := c.list(ctx, r.GroupVersionResource)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", r.Resource, err)
		}
		objects = append(objects, found...)
		if len(objects) > maxObjects {
			return nil, fmt.Errorf("more than %d objects: name a namespace with -n, or fewer policies", maxObjects)
		}
	}
	return objects, nil
}

func matches(targets []policy.Target, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(targets, func(t policy.Target) bool {
		return wildcard.Match(t.Subresource, "") && wildcard.Match(t.Kind, kind.Kind) && wildcard.Match(t.Group, kind.Group)
	})
}

// list reads the objects of a resource, page by page.
func (c *Cluster) list(ctx context.Context, of schema.GroupVersionResource) ([]workload.Object, error) {
	var objects []workload.Object
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.client.Dynamic.Resource(of).Namespace(c.namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			object, err := parse(&page.Items[i])
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" || len(objects) > maxObjects {
			return objects, nil
		}
	}
}

func parse(item *unstructured.Unstructured) (workload.Object, error) {
	text, err := item.MarshalJSON()
	if err != nil {
		return workload.Object{}, err
	}
	return workload.Parse(text)
}
