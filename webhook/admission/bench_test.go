package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// stored is a Pod of eight containers with what an API server adds.
func stored() object {
	containers, fields := []any{}, object{}
	for i := range 8 {
		name := fmt.Sprintf("c%d", i)
		containers = append(containers, object{
			"name": name, "image": "registry.example/team/" + name + ":1.27", "imagePullPolicy": "IfNotPresent",
			"resources":              object{"limits": object{"cpu": "500m", "memory": "128Mi"}},
			"volumeMounts":           []any{object{"name": "kube-api-access", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
			"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
		})
		fields[`k:{"name":"`+name+`"}`] = object{".": object{}, "f:image": object{}, "f:imagePullPolicy": object{}, "f:name": object{}, "f:resources": object{}}
	}
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{
			"name": "web", "namespace": "shop", "labels": object{"app": "web"},
			"managedFields": []any{object{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": object{"f:spec": object{"f:containers": fields}}}},
		},
		"spec": object{
			"containers": containers, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
			"serviceAccountName": "default", "securityContext": object{}, "schedulerName": "default-scheduler",
		},
		"status": object{"phase": "Pending", "qosClass": "BestEffort"},
	}
}

// small is a Pod of one container as an API server sends it that a client made.
func small() object {
	nothing := object{}
	return object{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": object{
			"name": "web", "namespace": "shop", "uid": "0b3f2a52-6a51-4c1c-9d3f-2f6a4a0d7c11", "creationTimestamp": "2026-11-21T03:30:01Z",
			"labels": object{"app": "web", "team": "shop"},
			"managedFields": []any{object{
				"manager": "client", "operation": "Update", "apiVersion": "v1", "time": "2026-11-21T03:30:01Z", "fieldsType": "FieldsV1",
				"fieldsV1": object{
					"f:metadata": object{"f:labels": object{".": nothing, "f:app": nothing, "f:team": nothing}},
					"f:spec": object{
						"f:containers": object{`k:{"name":"web"}`: object{
							".": nothing, "f:args": nothing, "f:image": nothing, "f:imagePullPolicy": nothing, "f:name": nothing, "f:resources": nothing,
							"f:env":                    object{".": nothing, `k:{"name":"STAGE"}`: object{".": nothing, "f:name": nothing, "f:value": nothing}},
							"f:ports":                  object{".": nothing, `k:{"containerPort":8080,"protocol":"TCP"}`: object{".": nothing, "f:containerPort": nothing, "f:protocol": nothing}},
							"f:terminationMessagePath": nothing, "f:terminationMessagePolicy": nothing,
						}},
						"f:dnsPolicy": nothing, "f:enableServiceLinks": nothing, "f:restartPolicy": nothing, "f:schedulerName": nothing,
						"f:securityContext": nothing, "f:terminationGracePeriodSeconds": nothing,
					},
				},
			}},
		},
		"spec": object{
			"volumes": []any{object{"name": "kube-api-access-x7k2p", "projected": object{"defaultMode": 420, "sources": []any{
				object{"serviceAccountToken": object{"expirationSeconds": 3607, "path": "token"}},
				object{"configMap": object{"name": "kube-root-ca.crt", "items": []any{object{"key": "ca.crt", "path": "ca.crt"}}}},
				object{"downwardAPI": object{"items": []any{object{"path": "namespace", "fieldRef": object{"apiVersion": "v1", "fieldPath": "metadata.namespace"}}}}},
			}}}},
			"containers": []any{object{
				"name": "web", "image": "registry.example/shop/web:1", "args": []any{"--listen=:8080"},
				"ports": []any{object{"containerPort": 8080, "protocol": "TCP"}}, "env": []any{object{"name": "STAGE", "value": "production"}},
				"resources":              nothing,
				"volumeMounts":           []any{object{"name": "kube-api-access-x7k2p", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
				"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
			}},
			"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "default",
			"serviceAccount": "default", "securityContext": nothing, "schedulerName": "default-scheduler", "enableServiceLinks": true,
			"tolerations": []any{
				object{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
				object{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
			},
			"priority": 0, "preemptionPolicy": "PreemptLowerPriority",
		},
		"status": object{"phase": "Pending", "qosClass": "BestEffort"},
	}
}

// allowing admits everything without a look.
type allowing struct{}

func (allowing) Decide(context.Context, gate.Request) gate.Outcome {
	return gate.Outcome{Result: gate.Allow}
}

// sink is a response that is discarded.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}

// measure reports the percentiles of one call, decode to encode.
func measure(b *testing.B, handler http.Handler, body []byte) {
	b.Helper()
	took := make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	r := httptest.NewRequest(http.MethodPost, "/?timeout=10s", nil)
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = int64(len(body))
	reader := bytes.NewReader(nil)
	r.Body = io.NopCloser(reader)
	for b.Loop() {
		reader.Reset(body)
		w := &sink{header: http.Header{}}
		started := time.Now()
		handler.ServeHTTP(w, r)
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

func BenchmarkEndpoint(b *testing.B) {
	body := review(b, "CREATE", stored(), nil, nil)
	update := review(b, "UPDATE", stored(), with(b, stored(), func(o object) { o["metadata"].(object)["resourceVersion"] = "1" }), nil)
	for name, row := range map[string]struct {
		handler http.Handler
		body    []byte
	}{
		"allowing":  {endpoint(b, admission.Validate, allowing{}), body},
		"pinning":   {endpoint(b, admission.Mutate, &forgetful{}), body},
		"identical": {endpoint(b, admission.Mutate, allowing{}), update},
		"nothing":   {http.HandlerFunc(nothing), body},
	} {
		b.Run(name, func(b *testing.B) { measure(b, row.handler, row.body) })
	}
}

// nothing is what a webhook costs that decodes its review and does no more.
func nothing(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var sent struct {
		Request struct {
			UID       string
			Object    json.RawMessage
			OldObject json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &sent)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": map[string]any{"uid": sent.Request.UID, "allowed": true},
	})
}
