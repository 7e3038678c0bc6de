// Package kubeconfig reads kubeconfigs, the files of kubectl: the configuration of a client, and the
// contexts.
package kubeconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quaymaster/quaymaster/internal/spelling"
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
		if missing := Missing(file, context); missing != nil {
			return nil, missing
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

// Missing returns a *ContextError if the kubeconfig can be read and does not have the context.
func Missing(kubeconfig, context string) error {
	names, err := Contexts(kubeconfig)
	if err != nil {
		return nil //nolint:nilerr // who connects reports a kubeconfig that cannot be read
	}
	if context == "" || slices.Contains(names, context) {
		return nil
	}
	return &ContextError{Kubeconfig: kubeconfig, Context: context, Known: names}
}

// Contexts returns the names of the contexts of a kubeconfig, sorted.
func Contexts(kubeconfig string) ([]string, error) {
	read, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return slices.Sorted(maps.Keys(read.Contexts)), nil
}

// Current returns the name of the current context of a kubeconfig.
func Current(kubeconfig string) (string, error) {
	read, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return "", fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	if read.CurrentContext == "" {
		return "", fmt.Errorf("kubeconfig %s has no current context: name one with --context", kubeconfig)
	}
	return read.CurrentContext, nil
}
