package patch_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
)

// kustomized merges with the library that Kyverno uses, as Kyverno does.
func kustomized(t *testing.T, patch, object any) string {
	t.Helper()
	merged, err := merge2.Merge(yaml.MustParse(text(t, patch)), yaml.MustParse(text(t, object)),
		yaml.MergeOptions{ListIncreaseDirection: yaml.MergeOptionsListPrepend})
	if err != nil {
		t.Fatalf("%s: %v", text(t, patch), err)
	}
	written, err := merged.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(written, &value); err != nil {
		t.Fatal(err)
	}
	return text(t, value)
}

// maker makes random parts of objects and of patches for them.
type maker struct {
	*rand.Rand
	patch bool // null deletes
}

type making map[string]func() any

// some makes a random part of the members.
func (m maker) some(members making) map[string]any {
	result := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		switch n := m.IntN(8); {
		case n < 4:
			result[key] = members[key]()
		case n == 4 && m.patch:
			result[key] = nil
		}
	}
	return result
}

// list makes elements with different keys. Where Kubernetes has a second key,
// Kyverno's library loses patches that leave it out, so they do not.
func (m maker) list(key string, values []any, members making, second ...string) any {
	result := []any{}
	for _, i := range m.Perm(len(values))[:1+m.IntN(len(values)-1)] {
		element := m.some(members)
		element[key] = values[i]
		for _, key := range second {
			element[key] = "TCP"
		}
		result = append(result, element)
	}
	return result
}

func (m maker) word() any { return []any{"x", "y z", "1", 2.0, true, "", "a: b"}[m.IntN(7)] }

func (m maker) labels() any {
	return m.some(making{"a": m.word, "b": m.word, "example.com/c": m.word})
}

func (m maker) metadata() any {
	return m.some(making{
		"labels": m.labels, "annotations": m.labels,
		"finalizers": func() any { return [][]any{{"a"}, {"b", "a"}, {"c", "d"}}[m.IntN(3)] },
		"ownerReferences": func() any {
			return m.list("uid", []any{"u1", "u2", "u3"}, making{"name": m.word, "controller": m.word})
		},
	})
}

func (m maker) containers() any {
	names := []any{"one", "two", "three"}
	return m.list("name", names, making{
		"image": m.word, "tty": m.word,
		"command": func() any { return []any{m.word(), m.word()} },
		"env":     func() any { return m.list("name", names, making{"value": m.word}) },
		"ports": func() any {
			return m.list("containerPort", []any{80.0, 81.0, 82.0}, making{"name": m.word, "hostPort": m.word}, "protocol")
		},
		"volumeMounts": func() any { return m.list("mountPath", names, making{"name": m.word, "readOnly": m.word}) },
		"resources":    func() any { return map[string]any{"limits": m.labels(), "requests": m.labels()} },
		"livenessProbe": func() any {
			return map[string]any{"httpGet": map[string]any{"path": m.word(), "port": m.word()}}
		},
	})
}

func (m maker) podSpec() any {
	names := []any{"one", "two", "three"}
	return m.some(making{
		"containers": m.containers, "initContainers": m.containers, "nodeSelector": m.labels, "hostNetwork": m.word,
		"tolerations": func() any { return []any{m.labels(), m.labels()} },
		"volumes": func() any {
			return m.list("name", names, making{"emptyDir": func() any { return map[string]any{"medium": m.word()} }, "hostPath": func() any { return map[string]any{"path": m.word()} }})
		},
		"imagePullSecrets": func() any { return m.list("name", names, making{}) },
		"hostAliases":      func() any { return m.list("ip", names, making{"hostnames": func() any { return []any{m.word()} }}) },
		"topologySpreadConstraints": func() any {
			return m.list("topologyKey", names, making{"maxSkew": m.word}, "whenUnsatisfiable")
		},
		"affinity": func() any { return map[string]any{"nodeAffinity": map[string]any{"required": []any{m.labels()}}} },
	})
}

func (m maker) object(kind int) map[string]any {
	template := func() any { return map[string]any{"metadata": m.metadata(), "spec": m.podSpec()} }
	spec := func(members making) func() any { return func() any { return m.some(members) } }
	switch kind {
	case 0:
		return m.of("v1", "Pod", making{"metadata": m.metadata, "spec": m.podSpec})
	case 1:
		return m.of("apps/v1", "StatefulSet", making{"metadata": m.metadata, "spec": spec(making{"template": template, "replicas": m.word})})
	case 2:
		return m.of("v1", "Service", making{"metadata": m.metadata, "spec": spec(making{"selector": m.labels, "ports": func() any {
			return m.list("port", []any{80.0, 81.0, 82.0}, making{"name": m.word, "targetPort": m.word}, "protocol")
		}})})
	case 3:
		return m.of("example.com/v1", "Deployment", making{"spec": spec(making{"template": template, "items": m.containers})})
	}
	return m.of("rbac.authorization.k8s.io/v1", "RoleBinding", making{"metadata": m.metadata, "subjects": func() any { return m.list("name", []any{"a", "b", "c"}, making{"kind": m.word}) }})
}

func (m maker) of(version, kind string, members making) map[string]any {
	result := m.some(members)
	if !m.patch {
		result["apiVersion"], result["kind"] = version, kind
	}
	return result
}

// TestMergeLikeKyaml compares patches without anchors, for which Kyverno's library
// alone decides. What this package means to do differently is left out: an object
// that only deletes is not made, nor are empty elements thrown away.
func TestMergeLikeKyaml(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	merged := 0
	for i := range 1000 {
		kind := i % 5
		object := maker{Rand: r}.object(kind)
		change := maker{Rand: r, patch: i%3 == 0}.object(kind)
		if nullsIn(change) > 0 && i%3 != 0 {
			t.Fatal("a patch deletes")
		}
		got, err := apply(t, mustMerge(t, change), nil, object)
		if err != nil {
			t.Fatalf("%s on %s: %v", text(t, change), text(t, object), err)
		}
		want := kustomized(t, change, object)
		if was := text(t, withoutEmpty(got)); was != text(t, withoutEmpty(read(t, want))) {
			t.Fatalf("%d: %s\non %s\n got %s\nwant %s", i, text(t, change), text(t, object), was, want)
		}
		if !isSame(got, object) {
			merged++
		}
	}
	if merged < 600 {
		t.Errorf("only %d patches did anything", merged)
	}
}

func nullsIn(value any) int {
	n := 0
	switch v := value.(type) {
	case nil:
		return 1
	case map[string]any:
		for _, item := range v {
			n += nullsIn(item)
		}
	case []any:
		for _, item := range v {
			n += nullsIn(item)
		}
	}
	return n
}

// withoutEmpty leaves out empty objects, and null in lists.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, item := range v {
			item = withoutEmpty(item)
			if members, ok := item.(map[string]any); !ok || len(members) > 0 {
				result[key] = item
			}
		}
		return result
	case []any:
		result := make([]any, len(v))
		for i, item := range v {
			result[i] = withoutEmpty(item)
		}
		return result
	}
	return value
}

// TestMergeIsIdempotent applies patches with named elements twice.
func TestMergeIsIdempotent(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 3000 {
		kind := i % 5
		object := maker{Rand: r}.object(kind)
		change := maker{Rand: r, patch: i%2 == 0}.object(kind)
		merge := mustMerge(t, change)
		once, err := apply(t, merge, nil, object)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := apply(t, merge, nil, once); err != nil || !isSame(once, twice) {
			t.Fatalf("%s\non %s\nonce %s\ntwice %s, %v", text(t, change), text(t, object), text(t, once), text(t, twice), err)
		}
	}
}
