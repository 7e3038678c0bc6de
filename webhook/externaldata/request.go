package externaldata

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// labelled are the labels of a namespace, or the error of reading them.
type labelled struct {
	labels map[string]string
	err    error
}

// requests converts keys to requests, with one object for each image, because the original objects
// are unknown.
func (h *Handler) requests(ctx context.Context, keys []key) ([]gate.Request, map[string]labelled, error) {
	namespaces := map[string]labelled{}
	now := time.Now()
	requests := make([]gate.Request, len(keys))
	for i, k := range keys {
		request, err := gate.ForImages(k.namespace, k.account, []string{k.image})
		if err != nil {
			return nil, nil, err
		}
		request.Pinning, request.Anonymous = h.pinning, h.keys != Qualified
		request.Subject = policy.Subject{Version: "v1", Kind: "Pod", Namespace: k.namespace, Operation: "CREATE", Bare: true, Time: now}
		if k.namespace != "" {
			found, known := namespaces[k.namespace]
			if !known {
				found = h.labels(ctx, k.namespace)
				namespaces[k.namespace] = found
			}
			request.Subject.NamespaceLabels, request.Subject.NamespaceKnown = found.labels, found.err == nil
		}
		requests[i] = request
	}
	return requests, namespaces, nil
}

// namespaceName is the label that the API server sets on every namespace.
const namespaceName = "kubernetes.io/metadata.name"

// labels returns the labels of a namespace, including the one that the API server sets.
func (h *Handler) labels(ctx context.Context, namespace string) labelled {
	found, err := h.config.Namespaces.Labels(ctx, namespace)
	if err != nil {
		return labelled{err: fmt.Errorf("labels of namespace %s: %w", namespace, err)}
	}
	named := make(map[string]string, len(found)+1)
	maps.Copy(named, found)
	named[namespaceName] = namespace
	return labelled{labels: named}
}
