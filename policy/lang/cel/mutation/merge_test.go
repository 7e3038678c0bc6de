package mutation

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const (
	livePod = `
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {a: "1", b: "2"}, annotations: {}, finalizers: [a, b], ownerReferences: [{uid: u, name: o, kind: K, apiVersion: v1}]}
spec:
  nodeName: one
  hostNetwork: true
  priority: 1.0
  nodeSelector: {zone: a}
  tolerations: [{key: k}]
  securityContext: {runAsNonRoot: true, supplementalGroups: [1, 2], seLinuxOptions: {level: l}}
  containers:
  - {name: c, image: i, args: [a], env: [{name: A, value: b}, {name: A, value: c}], ports: [{containerPort: 80, protocol: TCP}, {containerPort: 81}], resources: {limits: {cpu: "1", memory: 1Gi}}}
  - {name: d, image: j, securityContext: {capabilities: {drop: [ALL]}}}
  volumes: [{name: v, emptyDir: {}}, {name: w, configMap: {name: m}}]
status: {}`
	patchOfPod = `
metadata: {labels: {b: "3", c: "4"}, annotations: {x: z}, finalizers: [c, a]}
spec:
  nodeName: two
  priority: 2
  nodeSelector: {zone: b}
  tolerations: [{key: l}]
  securityContext: {runAsNonRoot: false, fsGroup: 3, supplementalGroups: [3], seLinuxOptions: {role: r}}
  containers:
  - {name: e, image: k}
  - {name: c, args: [b], env: [{name: B, value: c}], ports: [{containerPort: 80, protocol: TCP, name: http}], resources: {limits: {cpu: "2"}}}
  volumes: [{name: w, configMap: {optional: true}}]`
)

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// thinned returns a value without some of its parts, or with empty ones and null in their place.
func thinned(from *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch turn := from.IntN(60); {
			case turn < 8 && key != "apiVersion" && key != "kind":
			case turn == 8:
				out[key] = map[string]any{}
			case turn == 9:
				out[key] = []any{}
			case turn == 10:
				out[key] = nil
			case turn == 11:
				out[key] = "x"
			default:
				out[key] = thinned(from, v[key])
			}
		}
		return out
	case []any:
		out := []any{}
		for _, one := range v {
			if from.IntN(6) > 0 {
				out = append(out, thinned(from, one))
			}
		}
		return out
	}
	return v
}

// TestMergeAsLibrary: a merge without the library has the library's result, for objects and configurations with and
// without each part, and for a kind whose type is not known.
func TestMergeAsLibrary(t *testing.T) {
	kinds := NewTypes()
	live, patch := decoded(t, livePod), decoded(t, patchOfPod)
	from := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a repeatable choice
	own := 0
	const rounds = 20_000
	for round := range rounds {
		about := Target{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}
		if round%2 == 1 {
			about.Kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
		}
		about.Object, _ = thinned(from, live).(map[string]any)
		about.Object["apiVersion"], about.Object["kind"] = about.Kind.GroupVersion().String(), about.Kind.Kind
		configuration, _ := thinned(from, patch).(map[string]any)
		converter, _ := kinds.of(about.Kind)
		changes, err := fit(converter, about.Kind, configuration)
		if err != nil {
			continue
		}
		before := thinned(rand.New(zero{}), about.Object)
		got, ok := mergeObject(changes, about, configuration)
		if !ok {
			continue
		}
		own++
		want, err := merge(converter, changes, about)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\nwith %v\nis %v\nwant %v, %v", about.Object, configuration, got, want, err)
		}
		if !reflect.DeepEqual(before, any(about.Object)) {
			t.Fatalf("the object is changed: %v, was %v", about.Object, before)
		}
	}
	t.Logf("%d of %d are merged without the library", own, rounds)
	if own < rounds/20 {
		t.Errorf("%d of %d are merged without the library", own, rounds)
	}
}

// zero has thinned copy a value: it draws the greatest number.
type zero struct{}

// Uint64 implements rand.Source.
func (zero) Uint64() uint64 { return ^uint64(0) }

func BenchmarkApply(b *testing.B) {
	kinds := NewTypes()
	var live, patch map[string]any
	if yaml.Unmarshal([]byte(livePod), &live) != nil || yaml.Unmarshal([]byte("metadata: {annotations: {x: z}}"), &patch) != nil {
		b.Fatal("not YAML")
	}
	about := Target{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Object: live}
	converter, _ := kinds.of(about.Kind)
	changes, err := fit(converter, about.Kind, patch)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("merger", func(b *testing.B) {
		for b.Loop() {
			if _, ok := mergeObject(changes, about, patch); !ok {
				b.Fatal("left to the library")
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			if _, err := merge(converter, changes, about); err != nil {
				b.Fatal(err)
			}
		}
	})
}
