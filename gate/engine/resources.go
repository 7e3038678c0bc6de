package engine

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/workload"
)

// Resources are the cluster objects that policies look up, read from files.
type Resources struct {
	configMaps map[string]map[string]any // by namespace/name
	secrets    map[string]secret
	namespaces map[string]map[string]string // labels by name
	kinds      []constraint.Resource        // of custom resource definitions
	Evaluated  []constraint.Resource        // of definitions among the evaluated objects: hints
	advice     string                       // the fix for a missing resource
}

type secret struct {
	kind string
	data map[string][]byte
}

// NewResources returns an empty set.
func NewResources() *Resources {
	return &Resources{
		configMaps: map[string]map[string]any{}, secrets: map[string]secret{},
		namespaces: map[string]map[string]string{}, advice: "give it with --resource FILE",
	}
}

// Advising adds the fix to errors about a missing resource.
func (r *Resources) Advising(what string) *Resources {
	r.advice = what
	return r
}

// Add stores a ConfigMap, Secret or Namespace, and the kind of a CustomResourceDefinition. It ignores objects of other kinds, so that a
// folder of manifests is valid input.
func (r *Resources) Add(object workload.Object) error {
	key := namespaced(object.Namespace(), object.Name())
	content := object.Content()
	if kind, is := constraint.Defined(object); is {
		r.kinds = append(r.kinds, kind)
	}
	switch {
	case object.Group() != "":
	case object.Kind() == "ConfigMap":
		r.configMaps[key] = content
	case object.Kind() == "Namespace":
		labels := map[string]string{}
		metadata, _ := content["metadata"].(map[string]any)
		written, _ := metadata["labels"].(map[string]any)
		for name, value := range written {
			labels[name] = fmt.Sprint(value)
		}
		r.namespaces[object.Name()] = labels
	case object.Kind() == "Secret":
		data, err := SecretData(content)
		if err != nil {
			return fmt.Errorf("Secret %s: %w", key, err)
		}
		kind, _ := content["type"].(string)
		r.secrets[key] = secret{kind: kind, data: data}
	}
	return nil
}

// Named implements constraint.Resources by the custom resource definitions.
func (r *Resources) Named(group, name string) []constraint.Resource {
	return constraint.In(r.kinds, group, name)
}

// Hints returns the kinds of Evaluated.
func (r *Resources) Hints(group, name string) []constraint.Resource {
	return constraint.In(r.Evaluated, group, name)
}

// IsResource reports whether policies can look up an object of the kind.
func IsResource(object workload.Object) bool {
	switch object.Kind() {
	case "ConfigMap", "Secret", "Namespace":
		return object.Group() == ""
	}
	return false
}

func namespaced(namespace, name string) string {
	return cmp.Or(namespace, "default") + "/" + name
}

// SecretData returns the content of a Secret, decoded.
func SecretData(content map[string]any) (map[string][]byte, error) {
	data := map[string][]byte{}
	encoded, _ := content["data"].(map[string]any)
	for key, value := range encoded {
		decoded, err := base64.StdEncoding.DecodeString(fmt.Sprint(value))
		if err != nil {
			return nil, fmt.Errorf("data.%s: %w", key, err)
		}
		data[key] = decoded
	}
	plain, _ := content["stringData"].(map[string]any)
	for key, value := range plain {
		data[key] = []byte(fmt.Sprint(value))
	}
	return data, nil
}

// DescribeNamespaces adds the known metadata of the objects' namespaces. Labels that no input
// provides are unknown, not empty: a policy that selects by them is indeterminate.
func (r *Resources) DescribeNamespaces(requests []gate.Request) {
	for i := range requests {
		subject := &requests[i].Subject
		name := subject.Namespace
		if name == "" {
			name = requests[i].Object.Namespace()
		}
		if labels, ok := r.Labels(name); ok {
			subject.NamespaceKnown, subject.NamespaceLabels = true, labels
		}
	}
}

// Labels returns the labels of a namespace, if they are known.
func (r *Resources) Labels(namespace string) (map[string]string, bool) {
	known, ok := r.namespaces[namespace]
	if !ok {
		return nil, false
	}
	labels := maps.Clone(known)
	labels["kubernetes.io/metadata.name"] = namespace // as the API server sets it
	return labels, true
}

// Secret implements trust.Secrets.
func (r *Resources) Secret(_ context.Context, namespace, name, key string) ([]byte, error) {
	found, ok := r.secrets[namespaced(namespace, name)]
	if !ok {
		return nil, fmt.Errorf("Secret %s/%s is not among the resources: %s", namespace, name, r.advice)
	}
	value, ok := found.data[key]
	if !ok {
		return nil, fmt.Errorf("Secret %s/%s has no key %s", namespace, name, key)
	}
	return value, nil
}

// ConfigMap returns a ConfigMap, as policies see it.
func (r *Resources) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	content, ok := r.configMaps[namespaced(namespace, name)]
	if !ok {
		return nil, errors.New("it is not among the resources: " + r.advice)
	}
	return content, nil
}

// PullSecret reads a Secret with a docker configuration: a source for each entry that applies to
// one repository.
func (r *Resources) PullSecret(name string) ([]registry.Source, error) {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		namespace, short = "", name
	}
	kind, data, err := r.SecretOf(namespace, short)
	if err != nil {
		return nil, fmt.Errorf("pull secret %s is not among the resources: %s", name, r.advice)
	}
	if kind == "" {
		kind = "kubernetes.io/dockerconfigjson" // a file may omit a field that the API server requires
	}
	file, err := keychain.ParseSecret(kind, data)
	if err != nil {
		return nil, fmt.Errorf("pull secret %s: %w", name, err)
	}
	return file.Sources("the pull secret " + name), nil
}

// SecretOf returns the type and content of a Secret; one that is not among the
// resources is image.NotFound.
func (r *Resources) SecretOf(namespace, name string) (kind string, data map[string][]byte, err error) {
	found, ok := r.secrets[namespaced(namespace, name)]
	if !ok {
		return "", nil, &image.Error{Kind: image.NotFound, Op: "read", On: "Secret " + namespaced(namespace, name)}
	}
	return found.kind, found.data, nil
}
