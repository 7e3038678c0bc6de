package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	// writeTimeout bounds one request for a rule: an API server gives webhooks 30 s at most.
	writeTimeout = 35 * time.Second
	// pageSize is the number of objects in one list request. An object has some 1.5 MiB at most,
	// and a page is in memory as JSON and in decoded form. Authors control the size of objects.
	pageSize = 16
	// fieldManager is the field manager of written objects.
	fieldManager = "quaymaster"
)

// apiServer implements background.Cluster.
type apiServer struct {
	client dynamic.Interface
	kinds  Kinds
	own    string // the gateway's own namespace
}

// Served returns the kinds that match a target, each in the newest of its versions.
func (c *apiServer) Served(_ context.Context, target policy.Target) ([]background.Kind, error) {
	list, err := c.list()
	if err != nil {
		return nil, err
	}
	var found []background.Kind
	for _, r := range list {
		if !wildcard.Match(target.Group, r.Group) || !wildcard.Match(target.Version, r.Version) || !wildcard.Match(target.Kind, r.Kind) {
			continue
		}
		kind := kindOf(r)
		same := func(k background.Kind) bool { return k.Group == kind.Group && k.Resource == kind.Resource }
		switch i := slices.IndexFunc(found, same); {
		case i < 0:
			found = append(found, kind)
		case version.CompareKubeAwareVersionStrings(kind.Version, found[i].Version) > 0:
			found[i] = kind
		}
	}
	return found, nil
}

// Kind returns the kind of an object.
func (c *apiServer) Kind(_ context.Context, of policy.ObjectKind) (background.Kind, error) {
	list, err := c.list()
	if err != nil {
		return background.Kind{}, err
	}
	for _, r := range list {
		if kind := kindOf(r); kind.Kind == of.Kind && kind.APIVersion() == of.APIVersion {
			return kind, nil
		}
	}
	return background.Kind{}, fmt.Errorf("%s %s: %w", of.APIVersion, of.Kind, background.ErrNotServed)
}

func (c *apiServer) list() ([]configuration.Resource, error) {
	list := c.kinds.Resources()
	if list == nil {
		return nil, errors.New("it is not known yet which kinds the API server serves")
	}
	return list, nil
}

func kindOf(r configuration.Resource) background.Kind {
	return background.Kind{Group: r.Group, Version: r.Version, Kind: r.Kind, Resource: r.Name, Namespaced: r.Namespaced}
}

func (c *apiServer) resource(kind background.Kind, namespace string) dynamic.ResourceInterface {
	all := c.client.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource})
	if namespace == "" {
		return all
	}
	return all.Namespace(namespace)
}

func named(object map[string]any) (namespace, name string) {
	at := unstructured.Unstructured{Object: object}
	return at.GetNamespace(), at.GetName()
}

// translated translates an error of the API server into one of package background.
func translated(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", background.ErrNotFound, err)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%w: %w", background.ErrExists, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", background.ErrConflict, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; grant it to the gateway's service account by RBAC: see docs/generate.md", err)
	}
	return err
}

func read(object *unstructured.Unstructured, err error) (map[string]any, error) {
	if err != nil {
		return nil, translated(err)
	}
	return floats(object.Object), nil
}

// floats converts integers, which client-go distinguishes, to the float64 of rules. It changes
// object in place.
func floats(object map[string]any) map[string]any {
	for name, value := range object {
		object[name] = float(value)
	}
	return object
}

func float(value any) any {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case map[string]any:
		return floats(v)
	case []any:
		for i := range v {
			v[i] = float(v[i])
		}
	}
	return value
}

// Get returns one object.
func (c *apiServer) Get(ctx context.Context, kind background.Kind, namespace, name string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return read(c.resource(kind, namespace).Get(ctx, name, metav1.GetOptions{}))
}

// Each lists objects in pages.
func (c *apiServer) Each(ctx context.Context, kind background.Kind, namespace, query string, do func(object map[string]any) error) error {
	_, err := c.pages(ctx, kind, scope{namespace: namespace, labels: query}, do)
	return err
}

// scope confines a list or a watch; each empty field means all.
type scope struct{ namespace, name, labels string }

// options select the objects of a scope in its namespace. A role may name the object of a field selector.
func (s scope) options() metav1.ListOptions {
	options := metav1.ListOptions{LabelSelector: s.labels}
	if s.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String()
	}
	return options
}

// pages returns the version of the list.
func (c *apiServer) pages(ctx context.Context, kind background.Kind, in scope, do func(object map[string]any) error) (string, error) {
	options := in.options()
	options.Limit = pageSize
	for {
		page, err := c.page(ctx, kind, in.namespace, options)
		if err != nil {
			return "", translated(err)
		}
		for i := range page.Items {
			if err := do(floats(page.Items[i].Object)); err != nil {
				return "", err
			}
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return page.GetResourceVersion(), nil
		}
	}
}

func (c *apiServer) page(ctx context.Context, kind background.Kind, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.resource(kind, namespace).List(ctx, options)
}

// Create makes an object.
func (c *apiServer) Create(ctx context.Context, kind background.Kind, object map[string]any) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	namespace, _ := named(object)
	return read(c.resource(kind, namespace).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldManager: fieldManager}))
}

// Update writes an object.
func (c *apiServer) Update(ctx context.Context, kind background.Kind, object map[string]any, how background.Writing) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var dryRun []string
	if how.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	namespace, name := named(object)
	to, body := c.resource(kind, namespace), &unstructured.Unstructured{Object: object}
	if how.Apply {
		return read(to.Apply(ctx, name, body, metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: dryRun}))
	}
	return read(to.Update(ctx, body, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dryRun}))
}

// Patch applies operations.
func (c *apiServer) Patch(ctx context.Context, kind background.Kind, namespace, name string, operations []patch.Operation) error {
	body, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = c.resource(kind, namespace).Patch(ctx, name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	return translated(err)
}

// Delete deletes an object as it was read.
func (c *apiServer) Delete(ctx context.Context, kind background.Kind, object map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	at := unstructured.Unstructured{Object: object}
	uid, version, way := at.GetUID(), at.GetResourceVersion(), metav1.DeletePropagationBackground
	return translated(c.resource(kind, at.GetNamespace()).Delete(ctx, at.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &way,
	}))
}

func parseContent(object map[string]any) (workload.Object, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return workload.Object{}, err
	}
	return workload.Parse(text)
}
