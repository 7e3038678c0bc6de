package engine

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

const configMaps = "configmaps"

// FileObjects implements resource.Get of expressions, and the look-up of a rule's parameter
// by name, from files, for ConfigMaps alone. Other objects are indeterminate.
type FileObjects struct{ ConfigMaps kyverno.Lookup }

var _ cel.Resources = FileObjects{}

// Get implements cel.Resources.
func (f FileObjects) Get(ctx context.Context, of cel.ResourceRef) (map[string]any, error) {
	if of.Group != "" || of.Version != "v1" || of.Resource != configMaps {
		return nil, unknown("%s cannot be looked up without a cluster: files answer for ConfigMaps alone", of.Resource)
	}
	object, err := f.ConfigMaps.ConfigMap(ctx, of.Namespace, of.Name)
	if err != nil {
		return nil, unknown("ConfigMap %s/%s: %w", of.Namespace, of.Name, err)
	}
	return object, nil
}

// List implements cel.Resources.
func (f FileObjects) List(_ context.Context, of cel.ResourceRef, _ map[string]string) (map[string]any, error) {
	return nil, unknown("%s cannot be listed without a cluster", of.Resource)
}

// Post implements cel.Resources.
func (f FileObjects) Post(_ context.Context, of cel.ResourceRef, _ map[string]any) (map[string]any, error) {
	return nil, unknown("%s cannot be posted without a cluster", of.Resource)
}

// Kind implements cel.Resources.
func (f FileObjects) Kind(_ context.Context, apiVersion, kind string) (group, version, resource string, err error) {
	if apiVersion == "v1" && kind == "ConfigMap" {
		return "", apiVersion, configMaps, nil
	}
	return "", "", "", unknown("the resource of %s %s cannot be looked up without a cluster", apiVersion, kind)
}

// FileSecrets reads whole Secrets from files.
type FileSecrets struct{ Resources *Resources }

// Secret returns the type and content of a Secret.
func (f FileSecrets) Secret(_ context.Context, namespace, name string) (kind string, data map[string][]byte, err error) {
	return f.Resources.SecretOf(namespace, name)
}

func unknown(format string, args ...any) error {
	return &cel.UnknownError{Gaps: []error{fmt.Errorf(format, args...)}}
}
