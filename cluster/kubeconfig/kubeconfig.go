// Package kubeconfig reads kubeconfigs, the files of kubectl: the configuration of a client, and the
// contexts.
package kubeconfig

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/internal/yamlline"
)

// Load returns the configuration of a client for a context of a file: empty means its current one, and
// without a file the service account of a pod.
func Load(file, context string) (*rest.Config, error) {
	if file == "" && context != "" {
		return nil, fmt.Errorf("kubernetes client: no kubeconfig for context %s: set --kubeconfig or KUBECONFIG", context)
	}
	if file == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("kubernetes client: no kubeconfig: set --kubeconfig or KUBECONFIG: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		if _, wrong := Resolve(file, context); wrong != nil {
			return nil, wrong
		}
		return nil, fmt.Errorf("kubernetes client: kubeconfig %s: %w", file, err)
	}
	return config, nil
}

// ContextError reports that a kubeconfig has no such context.
type ContextError struct {
	Kubeconfig, Context string
	// Known are the contexts of the file, in the order of their names.
	Known []string
}

// Error implements error.
func (e *ContextError) Error() string {
	text := fmt.Sprintf("context %q does not exist in kubeconfig %s%s", e.Context, e.Kubeconfig, spelling.DidYouMean(spelling.Similar(e.Context, e.Known)))
	if len(e.Known) == 0 {
		return text + ": it has no contexts"
	}
	return text + "; its contexts are " + strings.Join(e.Known, ", ")
}

// Resolve returns the name of a context of a kubeconfig; empty means its current one. The error is a *ContextError
// if there is no such context.
func Resolve(kubeconfig, context string) (string, error) {
	config, err := read(kubeconfig)
	if err != nil {
		return "", err
	}
	if context == "" {
		context = config.CurrentContext
	}
	if context == "" {
		return "", fmt.Errorf("kubeconfig %s has no current context: name one with --context", kubeconfig)
	}
	if _, exists := config.Contexts[context]; !exists {
		return "", &ContextError{Kubeconfig: kubeconfig, Context: context, Known: slices.Sorted(maps.Keys(config.Contexts))}
	}
	return context, nil
}

// Contexts returns the names of the contexts of a kubeconfig, sorted.
func Contexts(kubeconfig string) ([]string, error) {
	config, err := read(kubeconfig)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}

// read reads a kubeconfig. Its errors have no words of a library.
func read(file string) (*api.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: YAML: %w", file, yamlline.Readable(err))
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: want a document of apiVersion v1 and kind Config, as kubectl config view prints", file)
	}
	return config, nil
}
