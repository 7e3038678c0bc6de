// Package cluster replaces the cluster of a test suite.
//
// It answers the look-ups of policies, their calls and their questions about images from the
// objects and responses that the suite defines, and opens no connection.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// Cluster serves the look-ups of policies from the objects of a suite: objects that no file
// defines do not exist.
type Cluster struct {
	Objects []workload.Object
	Kinds   []constraint.Resource
	Calls   []document.Call
	Globals *globalcontext.Store
	Images  []document.ImageData
}

// New returns a cluster of these kinds without objects.
func New(kinds []constraint.Resource) *Cluster {
	return &Cluster{Kinds: slices.Clip(kinds), Globals: globalcontext.NewStore(nil)}
}

// Add stores an object; a custom resource definition adds its kind.
func (c *Cluster) Add(objects ...workload.Object) {
	for _, object := range objects {
		c.Define(object)
	}
	c.Objects = append(c.Objects, objects...)
}

// Define adds the kind of a custom resource definition; other objects have no effect.
func (c *Cluster) Define(definition workload.Object) {
	if kind, ok := constraint.Defined(definition); ok {
		c.Kinds = slices.Insert(c.Kinds, 0, kind)
	}
}

// ConfigMap implements kyverno.Lookup.
func (c *Cluster) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	for _, o := range c.Objects {
		if o.Kind() == "ConfigMap" && o.Group() == "" && o.Namespace() == namespace && o.Name() == name {
			return o.Content(), nil
		}
	}
	return nil, fmt.Errorf("the suite does not say that there is one: name it under clusterResources, or give the values that the rule reads")
}

// Secret returns the type and content of a Secret.
func (c *Cluster) Secret(_ context.Context, namespace, name string) (kind string, data map[string][]byte, err error) {
	for _, o := range c.Objects {
		if o.Kind() == "Secret" && o.Group() == "" && o.Namespace() == namespace && o.Name() == name {
			return secretOf(o)
		}
	}
	return "", nil, &image.Error{Kind: image.NotFound, Op: "read", On: "Secret " + namespace + "/" + name}
}

// Swap applies a function to the content of objects; Secrets are decoded first.
func (c *Cluster) Swap(by func(any) any) {
	for i, o := range c.Objects {
		content, ok := by(decoded(o)).(map[string]any)
		if !ok {
			continue
		}
		if changed, err := o.With(content); err == nil {
			c.Objects[i] = changed
		}
	}
}

// decoded returns an object's content; a Secret's data is decoded to text.
func decoded(o workload.Object) map[string]any {
	content := o.Content()
	if o.Kind() != "Secret" || o.Group() != "" {
		return content
	}
	_, data, err := secretOf(o)
	if err != nil {
		return content
	}
	content = maps.Clone(content)
	plain := make(map[string]any, len(data))
	for key, value := range data {
		plain[key] = string(value)
	}
	delete(content, "data")
	content["stringData"] = plain
	return content
}

// Keys reads the keys that policies name in Secrets.
type Keys struct{ *Cluster }

// Secret implements trust.Secrets.
func (k Keys) Secret(ctx context.Context, namespace, name, key string) ([]byte, error) {
	_, data, err := k.Cluster.Secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	value, ok := data[key]
	if !ok {
		return nil, fmt.Errorf("Secret %s/%s has no key %s", namespace, name, key)
	}
	return value, nil
}

var _ cel.Resources = (*Cluster)(nil)

// Get implements cel.Resources.
func (c *Cluster) Get(_ context.Context, of cel.ResourceRef) (map[string]any, error) {
	for _, o := range c.Objects {
		if c.is(o, of) && o.Name() == of.Name {
			return o.Content(), nil
		}
	}
	return nil, fmt.Errorf("%s %s: %w among the suite's objects", of.Resource, strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"), cel.ErrNotFound)
}

// List implements cel.Resources.
func (c *Cluster) List(_ context.Context, of cel.ResourceRef, labels map[string]string) (map[string]any, error) {
	items := []any{}
	for _, o := range c.Objects {
		if c.is(o, of) && hasLabels(o, labels) {
			items = append(items, o.Content())
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}, nil
}

// Post implements cel.Resources, with the suite's response for the path.
func (c *Cluster) Post(_ context.Context, of cel.ResourceRef, _ map[string]any) (map[string]any, error) {
	path := "/apis/" + of.Group + "/" + of.Version
	if of.Group == "" {
		path = "/api/" + of.Version
	}
	if of.Namespace != "" {
		path += "/namespaces/" + of.Namespace
	}
	path += "/" + of.Resource
	body, err := c.Answer(http.MethodPost, path)
	object, ok := body.(map[string]any)
	if err == nil && !ok {
		err = errors.New("the response is no object")
	}
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{fmt.Errorf("POST %s: %w", path, err)}}
	}
	return object, nil
}

// Kind implements cel.Resources.
func (c *Cluster) Kind(_ context.Context, apiVersion, kind string) (group, version, resource string, err error) {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	return group, version, c.nameOf(group, kind), nil
}

// Namespaced reports whether a kind is namespaced, by the suite's own definitions.
func (c *Cluster) Namespaced(_ context.Context, apiVersion, kind string) (bool, error) {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = ""
	}
	return !evaluation.InNoNamespace(c.Kinds, group, kind), nil
}

// Named implements constraint.Resources.
func (c *Cluster) Named(group, name string) []constraint.Resource {
	var found []constraint.Resource
	for _, r := range c.Kinds {
		if r.Name == name && (group == "*" || group == r.Group) {
			found = append(found, r)
		}
	}
	for _, o := range c.Objects {
		r := constraint.Resource{
			Name:    c.nameOf(o.Group(), o.Kind()),
			Group:   o.Group(),
			Kind:    o.Kind(),
			Cluster: evaluation.InNoNamespace(c.Kinds, o.Group(), o.Kind()),
		}
		if r.Name == name && (group == "*" || group == r.Group) && !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	return found
}

func (c *Cluster) nameOf(group, kind string) string {
	for _, r := range c.Kinds {
		if r.Group == group && r.Kind == kind {
			return r.Name
		}
	}
	return constraint.NameOf(kind)
}

func (c *Cluster) is(o workload.Object, of cel.ResourceRef) bool {
	return o.Group() == of.Group && (of.Version == "" || o.Version() == of.Version) && c.nameOf(o.Group(), o.Kind()) == of.Resource &&
		(of.Namespace == "" || o.Namespace() == of.Namespace)
}

// Labels returns the labels of a namespace; an undefined namespace has only the label that the
// API server sets.
func (c *Cluster) Labels(namespace string) map[string]string {
	labels := map[string]string{}
	for _, o := range c.Objects {
		if o.Kind() == "Namespace" && o.Group() == "" && o.Name() == namespace {
			maps.Copy(labels, labelsOf(o))
		}
	}
	return labels
}

func labelsOf(o workload.Object) map[string]string {
	labels := map[string]string{}
	meta, _ := o.Content()["metadata"].(map[string]any)
	written, _ := meta["labels"].(map[string]any)
	for key, value := range written {
		labels[key] = fmt.Sprint(value)
	}
	return labels
}

func hasLabels(o workload.Object, wanted map[string]string) bool {
	labels := labelsOf(o)
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// secretOf returns the type and content of a Secret.
func secretOf(o workload.Object) (kind string, data map[string][]byte, err error) {
	kind, _ = o.Content()["type"].(string)
	data, err = engine.SecretData(o.Content())
	return kind, data, err
}
