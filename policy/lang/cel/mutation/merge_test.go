package mutation

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	merged := 0
	const rounds = 20_000
	for round := range rounds {
		about := Target{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}
		if round%2 == 1 {
			about.Kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
		}
		about.Object, _ = thinned(from, live).(map[string]any)
		about.Object["apiVersion"], about.Object["kind"] = about.Kind.GroupVersion().String(), about.Kind.Kind
		configuration, _ := thinned(from, patch).(map[string]any)
		of := kinds.of(about.Kind)
		own := merger{of.known}.fits(of.ref, configuration, true)
		err := of.check(about.Kind, configuration, false)
		if _, refused := of.converter.ObjectToTyped(&unstructured.Unstructured{Object: configuration}); (err != nil) != (refused != nil) || own && refused != nil {
			t.Fatalf("%v fits: %v; the library: %v", configuration, err, refused)
		}
		if err != nil {
			continue
		}
		before := thinned(rand.New(zero{}), about.Object)
		got, ok := mergeObject(of, about, configuration)
		if !ok {
			continue
		}
		merged++
		want, err := of.merge(about, configuration)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\nwith %v\nis %v\nwant %v, %v", about.Object, configuration, got, want, err)
		}
		if !reflect.DeepEqual(before, any(about.Object)) {
			t.Fatalf("the object is changed: %v, was %v", about.Object, before)
		}
	}
	t.Logf("%d of %d are merged without the library", merged, rounds)
	if merged < rounds/20 {
		t.Errorf("%d of %d are merged without the library", merged, rounds)
	}
}

// TestOrderAsLibrary: elements with keys, and those of sets, are merged in the order of the library, in which a key that is
// absent has its default, or is a value of its own.
func TestOrderAsLibrary(t *testing.T) {
	of := NewTypes().of(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	from := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // a repeatable choice
	some := func(of int, element func(i int) any) (list []any) {
		for _, i := range from.Perm(of)[:from.IntN(of+1)] {
			list = append(list, element(i))
		}
		return list
	}
	port := func(i int) any {
		one := map[string]any{"containerPort": float64(i / 3), "hostPort": float64(from.IntN(2))}
		if i%3 > 0 {
			one["protocol"] = []string{"", "TCP", "UDP"}[i%3]
		}
		return one
	}
	mount := func(i int) any {
		return map[string]any{"topologyKey": string(rune('a' + i)), "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": float64(from.IntN(2))}
	}
	pod := func() map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"finalizers": some(7, func(i int) any { return string(rune('a' + i)) })},
			"spec": map[string]any{
				"topologySpreadConstraints": some(5, mount),
				"containers": some(6, func(i int) any {
					return map[string]any{"name": string(rune('a' + i)), "image": string(rune('a' + from.IntN(2))), "ports": some(4, port)}
				}),
			},
		}
	}
	merged, refused := 0, 0
	for range 2500 {
		about, configuration := Target{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Object: pod()}, pod()
		if err := of.check(about.Kind, configuration, false); err != nil {
			refused++ // two ports with and without the default
			continue
		}
		got, ok := mergeObject(of, about, configuration)
		if !ok {
			continue
		}
		merged++
		want, err := of.merge(about, configuration)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\nwith %v\nis %v\nwant %v, %v", about.Object, configuration, got, want, err)
		}
	}
	if merged < 500 || refused == 0 {
		t.Errorf("%d are merged, %d refused", merged, refused)
	}
	t.Logf("%d are merged, %d refused", merged, refused)
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
	of := kinds.of(about.Kind)
	if err := of.check(about.Kind, patch, true); err != nil {
		b.Fatal(err)
	}
	b.Run("merger", func(b *testing.B) {
		for b.Loop() {
			if _, ok := mergeObject(of, about, patch); !ok {
				b.Fatal("left to the library")
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			if _, err := of.merge(about, patch); err != nil {
				b.Fatal(err)
			}
		}
	})
}
