package patch_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// workingPod is a pod as the API server hands it to an admission webhook.
const workingPod = `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b, labels: {app: web, team: x}, annotations: {a: b}},
  spec: {serviceAccountName: default, restartPolicy: Always, terminationGracePeriodSeconds: 30, dnsPolicy: ClusterFirst,
  tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}],
  containers: [{name: one, image: "reg/one:1", ports: [{containerPort: 80, protocol: TCP}], env: [{name: A, value: b}], resources: {limits: {cpu: "1"}}},
    {name: two, image: "two:latest", imagePullPolicy: Never, volumeMounts: [{name: data, mountPath: /data}]}],
  volumes: [{name: data, emptyDir: {}}, {name: host, hostPath: {path: /data}}]}}`

const sidecar = `{metadata: {labels: {injected: "true", +(owner): nobody}},
  spec: {containers: [{name: sidecar, image: "%s", ports: [{containerPort: 8080, protocol: TCP}], resources: {limits: {cpu: 100m, memory: 64Mi}}}]}}`

func benchmark(b *testing.B, p applier, data variable.Context) {
	object := object(b, workingPod)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Apply(data, object); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	plain := object(b, sidecar)
	templated := object(b, sidecar)
	container := templated["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["image"] = "{{ request.image }}"
	data := variable.Context{"request": map[string]any{"image": "reg/sidecar:1"}}
	b.Run("labels and a container", func(b *testing.B) { benchmark(b, mustMerge(b, plain), nil) })
	b.Run("with a variable", func(b *testing.B) { benchmark(b, mustMerge(b, templated), data) })
	b.Run("each container", func(b *testing.B) {
		benchmark(b, mustMerge(b, read(b, `{spec: {containers: [{(image): "*:latest", imagePullPolicy: Always}]}}`)), nil)
	})
	b.Run("nothing to do", func(b *testing.B) {
		benchmark(b, mustMerge(b, read(b, `{metadata: {labels: {+(app): x}}, spec: {containers: [{(name): "*", +(image): x}]}}`)), nil)
	})
}

func BenchmarkJSON(b *testing.B) {
	data := variable.Context{"elementIndex": 1.0, "image": "reg/two:1"}
	j := mustJSON(b, "- op: replace\n  path: /spec/containers/{{elementIndex}}/image\n  value: '{{ image }}'\n- op: add\n  path: /metadata/labels/patched\n  value: 'true'")
	benchmark(b, j, data)
}

func BenchmarkDiff(b *testing.B) {
	before := object(b, workingPod)
	after, err := mustMerge(b, object(b, sidecar)).Apply(nil, before)
	if err != nil {
		b.Fatal(err)
	}
	decoded := object(b, text(b, after))
	for name, object := range map[string]map[string]any{"shared": after, "decoded": decoded} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(patch.Diff(before, object)) != 3 {
					b.Fatal("want three operations")
				}
			}
		})
	}
}
