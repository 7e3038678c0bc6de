package apply

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
	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/suite/bench"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/workload"
)

// Bounds of the objects listed from a cluster.
const (
	// listPage is the number of objects in one response, kubectl's page size.
	listPage = 500
	// maxListed bounds the objects of a run: the limit of package workload for one input.
	maxListed = workload.MaxObjects
)

// liveCluster lists the objects that policies match, and serves the policies' look-ups.
type liveCluster struct {
	client    *cluster.Client
	looked    *cluster.Objects
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

// openCluster makes a client and discovers the served kinds.
func openCluster(t command.Terminal, f *applyFlags) (*liveCluster, error) {
	kubeconfig := t.Kubeconfig(f.kubeconfig)
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: kubeconfig, Context: f.context, Version: t.Version(),
	})
	if err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	l := &liveCluster{client: client, namespace: f.namespace, labels: map[string]map[string]string{}}
	l.looked, err = cluster.NewObjects(cluster.ObjectOptions{Client: client})
	if err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	return l, l.discover()
}

// discover lists the resources that support list, each in its preferred version.
func (l *liveCluster) discover() error {
	lists, err := l.client.Typed.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("--cluster: which kinds there are: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // the API has an invalid name
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				l.served = append(l.served, served{version.WithResource(r.Name), version.WithKind(r.Kind), r.Namespaced})
			}
		}
	}
	return nil
}

// Named implements constraint.Resources.
func (l *liveCluster) Named(group, name string) []constraint.Resource {
	var found []constraint.Resource
	for _, r := range l.served {
		if r.Resource == name && (group == "*" || group == r.Group) {
			found = append(found, constraint.Resource{Name: name, Group: r.Group, Kind: r.kind.Kind, Cluster: !r.namespaced})
		}
	}
	return found
}

// KnowsAll reports that discovery lists every resource.
func (*liveCluster) KnowsAll() bool { return true }

// answer serves the policies' look-ups from the cluster.
func (l *liveCluster) answer(options *engine.CompilerOptions, config *bench.Config) {
	options.ConfigMaps, options.Caller, options.Kinds = l, l, l
	options.Resources = engine.ClusterObjects{Objects: l.looked}
	fromFiles := config.Labels
	config.Labels = func(namespace string) (map[string]string, bool) {
		if labels, ok := fromFiles(namespace); ok {
			return labels, true
		}
		return l.namespaceLabels(namespace)
	}
}

// namespaceLabels reads the labels of each namespace once.
func (l *liveCluster) namespaceLabels(name string) (map[string]string, bool) {
	if labels, ok := l.labels[name]; ok {
		return labels, true
	}
	found, err := l.client.Typed.CoreV1().Namespaces().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, false
	}
	l.labels[name] = found.Labels
	return found.Labels, true
}

// ConfigMap implements rulecontext.Lookup.
func (l *liveCluster) ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error) {
	found, err := l.client.Call(ctx, "GET", "/api/v1/namespaces/"+namespace+"/configmaps/"+name, nil)
	if err != nil {
		return nil, err
	}
	object, ok := found.(map[string]any)
	if !ok {
		return nil, errors.New("the API server's answer is no object")
	}
	return object, nil
}

// API implements rulecontext.Caller.
func (l *liveCluster) API(ctx context.Context, call rulecontext.APICall) (any, error) {
	var body []byte
	if call.Body != nil {
		var err error
		body, err = json.Marshal(call.Body)
		if err != nil {
			return nil, err
		}
	}
	return l.client.Call(ctx, call.Method, call.Path, body)
}

// Service implements rulecontext.Caller.
func (*liveCluster) Service(_ context.Context, call rulecontext.ServiceCall) (any, error) {
	return nil, fmt.Errorf("%s: services are not called from the command line: give the value with --set or --values-file", call.URL)
}

// objects lists the objects of the targets' kinds.
func (l *liveCluster) objects(ctx context.Context, targets []policy.Target) ([]workload.Object, error) {
	var objects []workload.Object
	for _, r := range l.served {
		if !speakOf(targets, r.kind) || l.namespace != "" && !r.namespaced {
			continue
		}
		found, err := l.list(ctx, r.GroupVersionResource)
		if err != nil {
			return nil, fmt.Errorf("--cluster: list %s: %w", r.Resource, err)
		}
		objects = append(objects, found...)
		if len(objects) > maxListed {
			return nil, fmt.Errorf("--cluster: more than %d objects: name a namespace with -n, or fewer policies", maxListed)
		}
	}
	return objects, nil
}

func speakOf(targets []policy.Target, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(targets, func(t policy.Target) bool {
		return wildcard.Match(t.Subresource, "") && wildcard.Match(t.Kind, kind.Kind) && wildcard.Match(t.Group, kind.Group)
	})
}

// list reads the objects of a resource, page by page.
func (l *liveCluster) list(ctx context.Context, of schema.GroupVersionResource) ([]workload.Object, error) {
	var objects []workload.Object
	options := metav1.ListOptions{Limit: listPage}
	for {
		page, err := l.client.Dynamic.Resource(of).Namespace(l.namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			object, err := listed(&page.Items[i])
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" || len(objects) > maxListed {
			return objects, nil
		}
	}
}

func listed(item *unstructured.Unstructured) (workload.Object, error) {
	text, err := item.MarshalJSON()
	if err != nil {
		return workload.Object{}, err
	}
	return workload.Parse(text)
}
