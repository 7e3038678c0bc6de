package podsecurity

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrNoPod reports that an object of this kind creates no pods that can be read here.
var ErrNoPod = errors.New("it has no pod: the rule should match Pod, or a controller with a template of pods")

// Pod is a pod in its written form, in an object of its own or in a template. It is safe
// for concurrent use; the source object must not be changed.
type Pod struct {
	path     string // before metadata and spec: spec.template. and so on
	metadata map[string]any
	spec     map[string]any
	typed    func() (*decoded, error)
}

// decoded is the checks' input. Checks never change it.
type decoded struct {
	meta meta.ObjectMeta
	spec core.PodSpec
}

// NewPod makes a Pod of decoded JSON. Path, if not empty, ends with a dot and
// stands before metadata and spec in messages. Nothing is read before a Standard
// asks, and then once.
func NewPod(metadata, spec map[string]any, path string) *Pod {
	p := &Pod{path: path, metadata: metadata, spec: spec}
	p.typed = sync.OnceValues(p.decode)
	return p
}

// PodOf returns the pod of a decoded object of a kind: a Pod, or the template of
// a controller of Kubernetes. Errors wrap ErrNoPod.
func PodOf(kind string, content map[string]any) (*Pod, error) {
	path := ""
	switch kind {
	case "Pod":
	case "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet":
		path = "spec.template."
	case "PodTemplate":
		path = "template."
	case "CronJob":
		path = "spec.jobTemplate.spec.template."
	default:
		return nil, fmt.Errorf("%s: %w", kind, ErrNoPod)
	}
	template, err := descend(content, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	metadata, err := object(template, "metadata", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	spec, err := object(template, "spec", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	if spec == nil {
		return nil, fmt.Errorf("%s: %sspec is missing: %w", kind, path, ErrNoPod)
	}
	return NewPod(metadata, spec, path), nil
}

// descend follows a path in which each name ends with a dot.
func descend(content map[string]any, path string) (map[string]any, error) {
	start := 0
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		below, err := object(content, path[start:i], path[:start])
		if err != nil {
			return nil, err
		}
		if below == nil {
			return nil, fmt.Errorf("%s is missing: %w", path[:i], ErrNoPod)
		}
		content, start = below, i+1
	}
	return content, nil
}

// object returns an object in an object; nil if it is not there.
func object(content map[string]any, name, path string) (map[string]any, error) {
	switch below := content[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return below, nil
	default:
		return nil, fmt.Errorf("%s%s: want an object: %w", path, name, ErrNoPod)
	}
}

// decode reads the fields that the checks may read.
func (p *Pod) decode() (*decoded, error) {
	var d decoded
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(lean(p.spec), &d.spec); err != nil {
		return nil, fmt.Errorf("%sspec: not a pod that Kubernetes could run: %w", p.path, err)
	}
	d.spec.HostUsers = nil // without the relaxations for user namespaces, as in Kyverno
	written, err := object(p.metadata, "annotations", p.path+"metadata.")
	if err != nil {
		return nil, err
	}
	d.meta.Annotations = make(map[string]string, len(written))
	for key, value := range written {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("%s%s[%s]: want a string", p.path, annotations, key)
		}
		d.meta.Annotations[key] = text
	}
	return &d, nil
}

// lean removes long fields without effect on security. It lists the removed fields, and
// not the kept ones: a field that a later check reads is then present.
func lean(spec map[string]any) map[string]any {
	spec = without(spec, "affinity", "tolerations", "topologySpreadConstraints", "nodeSelector", "imagePullSecrets", "hostAliases", "dnsConfig", "readinessGates",
		"overhead", "resources") // quantities, of which the exponents may take minutes to be parsed
	if volumes, ok := spec["volumes"].([]any); ok {
		spec["volumes"] = leanVolumes(volumes)
	}
	for _, kind := range kinds() {
		list, ok := spec[kind].([]any)
		if !ok {
			continue
		}
		leaner := make([]any, len(list))
		for i, element := range list {
			leaner[i] = element
			if c, ok := element.(map[string]any); ok {
				leaner[i] = without(c, "env", "envFrom", "resources", "args", "command", "volumeMounts")
			}
		}
		spec[kind] = leaner
	}
	return spec
}

// leanVolumes removes what has quantities from volumes. The checks read of which sort each is.
func leanVolumes(volumes []any) []any {
	leaner := slices.Clone(volumes)
	for i, volume := range volumes {
		v, ok := volume.(map[string]any)
		if !ok {
			continue
		}
		v = maps.Clone(v)
		for sort, names := range map[string][]string{
			"emptyDir": {"sizeLimit"}, "ephemeral": {"volumeClaimTemplate"}, "downwardAPI": {"items"}, "projected": {"sources"},
		} {
			if of, ok := v[sort].(map[string]any); ok {
				v[sort] = without(of, names...)
			}
		}
		leaner[i] = v
	}
	return leaner
}

// without returns a copy that lacks some fields.
func without(object map[string]any, names ...string) map[string]any {
	kept := maps.Clone(object)
	for _, name := range names {
		delete(kept, name)
	}
	return kept
}
