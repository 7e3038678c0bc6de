package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// RememberLabel is Kyverno's label, with the value true, for ConfigMaps that may be cached for
// rules.
const RememberLabel = "cache.kyverno.io/enabled"

// Fresh is Lookups for the contexts of rules. It reads a ConfigMap anew each time, since the
// effect of a stale value on a rule may persist; one with RememberLabel is cached as in Lookups.
type Fresh struct{ *Lookups }

// ConfigMap returns a ConfigMap as JSON, which the caller owns.
func (f Fresh) ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error) {
	known, ok := f.configMaps.memory.Get(types.NamespacedName{Namespace: namespace, Name: name})
	if ok && known.err == nil && mayBeRemembered(known.value) {
		return runtime.DeepCopyJSON(known.value), nil
	}
	m, err := f.configMaps.anew(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSON(m), nil
}

func mayBeRemembered(configMap map[string]any) bool {
	label, _, _ := unstructured.NestedString(configMap, "metadata", "labels", RememberLabel)
	return label == "true"
}
