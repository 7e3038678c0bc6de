package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// fieldManager is the field manager of applied manifests.
const fieldManager = "e2e"

// servedTimeout is how long a new kind may take until it is served.
const servedTimeout = 30 * time.Second

// yamlBuffer is how many bytes the decoder reads to distinguish YAML from JSON.
const yamlBuffer = 4 << 10

// ReadManifests returns the objects of all .yaml files under a folder, in the
// order of the files' names.
func ReadManifests(folder string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		more, err := ParseManifests(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, more...)
		return nil
	})
	return objects, err
}

// ParseManifests returns the objects of YAML documents; empty ones are left out.
func ParseManifests(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), yamlBuffer)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("parse manifests: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// Apply applies objects on the server's side, namespaces and definitions of new
// kinds first, and returns when the new kinds are served.
func (c *ControlPlane) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(c.admin)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int { return turn(a) - turn(b) })
	for _, object := range ordered {
		if err := apply(ctx, client, mapper, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// ApplyYAML applies YAML documents.
func (c *ControlPlane) ApplyYAML(ctx context.Context, content string) error {
	objects, err := ParseManifests([]byte(content))
	if err != nil {
		return err
	}
	return c.Apply(ctx, objects...)
}

// turn is which objects come first.
func turn(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	default:
		return 2
	}
}

func apply(ctx context.Context, client dynamic.Interface, mapper *restmapper.DeferredDiscoveryRESTMapper, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	if _, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return err
	}
	if object.GetKind() == "CustomResourceDefinition" {
		return awaitServed(ctx, client, mapper, object)
	}
	return nil
}

// awaitServed waits until a definition's kinds can be listed and discovery names them: the
// condition Established comes a moment before the first, and the second later still.
func awaitServed(ctx context.Context, client dynamic.Interface, mapper *restmapper.DeferredDiscoveryRESTMapper, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		name, _ := version["name"].(string)
		resource := schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
		if err := process.Eventually(ctx, func(ctx context.Context) error {
			if _, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return err
			}
			mapper.Reset()
			_, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, name)
			return err
		}); err != nil {
			return fmt.Errorf("%s is not served: %w", resource, err)
		}
	}
	return nil
}
