package review

import (
	"context"
	"fmt"
	"maps"

	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
)

// Namespaces returns the labels of namespaces. An error means that they could not be read; this
// includes a missing or deleted namespace.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// nameLabel is the label that the API server sets on every namespace.
const nameLabel = "kubernetes.io/metadata.name"

// SetLabels adds the labels of their namespaces to subjects, and returns the errors by namespace.
// Labels that cannot be read stay unknown, and rules that need them cannot be evaluated.
func SetLabels(ctx context.Context, namespaces Namespaces, subjects ...*policy.Subject) map[string]error {
	defer waittime.Begin(ctx)()
	read, failed := map[string]map[string]string{}, map[string]error{}
	for _, s := range subjects {
		if s.Namespace == "" || failed[s.Namespace] != nil {
			continue
		}
		labels, known := read[s.Namespace]
		if !known {
			found, err := namespaces.Labels(ctx, s.Namespace)
			if err != nil {
				failed[s.Namespace] = fmt.Errorf("labels of namespace %s: %w", s.Namespace, err)
				continue
			}
			labels = withName(found, s.Namespace)
			read[s.Namespace] = labels
		}
		s.NamespaceLabels, s.NamespaceKnown = labels, true
	}
	return failed
}

// withName adds the label that the API server sets, if it is missing.
func withName(labels map[string]string, name string) map[string]string {
	if labels[nameLabel] == name {
		return labels
	}
	named := make(map[string]string, len(labels)+1)
	maps.Copy(named, labels)
	named[nameLabel] = name
	return named
}
