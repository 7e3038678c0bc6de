package workload_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

// storedPod is a Pod of eight containers about as large as an API server sends
// it, with what it fills in.
func storedPod(t testing.TB) []byte {
	t.Helper()
	var containers, managed []any
	fields := map[string]any{}
	for i := range 8 {
		name := fmt.Sprintf("c%d", i)
		containers = append(containers, map[string]any{
			"name": name, "image": "registry.example/team/" + name + ":1.27", "imagePullPolicy": "IfNotPresent",
			"resources":                map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "128Mi"}},
			"env":                      []any{map[string]any{"name": "A", "value": "b"}, map[string]any{"name": "C", "value": "d\ne"}},
			"volumeMounts":             []any{map[string]any{"name": "kube-api-access", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
			"terminationMessagePath":   "/dev/termination-log",
			"terminationMessagePolicy": "File",
		})
		fields[`k:{"name":"`+name+`"}`] = map[string]any{
			".": map[string]any{}, "f:image": map[string]any{}, "f:imagePullPolicy": map[string]any{}, "f:name": map[string]any{},
			"f:resources": map[string]any{}, "f:terminationMessagePath": map[string]any{}, "f:terminationMessagePolicy": map[string]any{},
		}
	}
	managed = append(managed, map[string]any{
		"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1", "time": "2026-11-21T03:30:01Z", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:spec": map[string]any{"f:containers": fields}},
	})
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "labels": map[string]any{"app": "web"}, "managedFields": managed},
		"spec": map[string]any{
			"containers": containers, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
			"serviceAccountName": "default", "securityContext": map[string]any{}, "schedulerName": "default-scheduler",
			"tolerations": []any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}},
		},
		"status": map[string]any{"phase": "Pending", "qosClass": "BestEffort"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func BenchmarkParse(b *testing.B) {
	raw := storedPod(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := workload.Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseValue is Parse for a text whose grammar is known to be right.
func BenchmarkParseValue(b *testing.B) {
	raw := storedPod(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := workload.ParseValue(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkContent is Parse where somebody reads all of the object.
func BenchmarkContent(b *testing.B) {
	raw := storedPod(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		object, err := workload.Parse(raw)
		if err != nil || len(object.Content()) == 0 {
			b.Fatal(err)
		}
	}
}

func BenchmarkExtract(b *testing.B) {
	object, err := workload.Parse(storedPod(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if uses, err := workload.Extract(object); err != nil || len(uses) != 8 {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnmarshal is what it costs when nothing is refused.
func BenchmarkUnmarshal(b *testing.B) {
	raw := storedPod(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			b.Fatal(err)
		}
	}
}
