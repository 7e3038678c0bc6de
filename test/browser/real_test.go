package browser

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// loaded are the policies of a gateway, as its own dashboard has them.
type loaded struct {
	documents   []ui.PolicyDocument
	definitions map[string]string
}

func (l loaded) Documents() []ui.PolicyDocument { return l.documents }

func (l loaded) Definition(id string) (string, bool) {
	text, ok := l.definitions[id]
	return text, ok
}

// read decodes a resource of the gateway's own dashboard.
func (h *env) read(t testing.TB, path string, into any) {
	t.Helper()
	answer, err := http.Get(h.dashboard + "api/v1/" + path)
	check(t, err)
	text, err := io.ReadAll(answer.Body)
	check(t, err)
	check(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", path, answer.Status, text)
	}
	check(t, json.Unmarshal(text, into))
}

// policies returns those of the gateway.
func (h *env) policies(t testing.TB) loaded {
	t.Helper()
	var list ui.PolicyList
	h.read(t, "policies", &list)
	made := loaded{definitions: map[string]string{}}
	for _, p := range list.Items {
		if p.Document == nil {
			continue
		}
		_, file, _ := strings.Cut(p.Document.Source, "/policies/") // pictures are not to show the test's folder
		p.Document.Source = "/etc/quaymaster/policies/" + file
		made.documents = append(made.documents, *p.Document)
		var details ui.PolicyDetails
		h.read(t, "policy?id="+url.QueryEscape(p.ID), &details)
		made.definitions[p.ID] = details.Definition
	}
	return made
}

// request is one of the API server.
type request struct {
	operation, subresource string
	object, old            map[string]any
}

// admit sends requests to the validating webhook, and returns whether it allows each. The gateway's
// dashboard has all of them then.
func (h *env) admit(t testing.TB, requests ...request) []bool {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the certificate is the test's own
	}}
	defer client.CloseIdleConnections()
	var allowed []bool
	for n, r := range requests {
		metadata, _ := r.object["metadata"].(map[string]any)
		kind, resource := map[string]any{"version": "v1", "kind": "Pod"}, map[string]any{"version": "v1", "resource": "pods"}
		body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": fmt.Sprint("request-", n), "kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource, "subResource": r.subresource,
			"requestSubResource": r.subresource, "name": metadata["name"], "namespace": metadata["namespace"], "operation": r.operation,
			"userInfo": map[string]any{"username": "developer@shop.example"}, "object": r.object, "oldObject": r.old,
		}})
		check(t, err)
		answer, err := client.Post("https://"+h.admission+"/validate?timeout=10s", "application/json", bytes.NewReader(body))
		check(t, err)
		var review struct {
			Response struct{ Allowed bool }
		}
		err = json.NewDecoder(answer.Body).Decode(&review)
		check(t, err)
		check(t, answer.Body.Close())
		allowed = append(allowed, review.Response.Allowed)
	}
	testkit.Eventually(t, func() error {
		var list ui.DecisionList
		h.read(t, "decisions", &list)
		if list.Total != len(requests) {
			return fmt.Errorf("%d of %d decisions are there", list.Total, len(requests))
		}
		return nil
	})
	return allowed
}

// pinned returns the name of an image by its digest, as the mutating webhook writes it.
func (h *env) pinned(t testing.TB, name string) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodHead, "http://"+h.registry+"/v2/"+name+"/manifests/v1", http.NoBody)
	check(t, err)
	request.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json")
	answer, err := http.DefaultClient.Do(request)
	check(t, err)
	check(t, answer.Body.Close())
	digest := answer.Header.Get("Docker-Content-Digest")
	if digest == "" {
		t.Fatalf("%s: %s, without a digest", name, answer.Status)
	}
	return h.registry + "/" + name + ":v1@" + digest
}

// debugged is a pod with an ephemeral container, as kubectl debug adds it.
func debugged(pod map[string]any, image string) map[string]any {
	made, spec := map[string]any{}, map[string]any{}
	for name, value := range pod {
		made[name] = value
	}
	for name, value := range pod["spec"].(map[string]any) {
		spec[name] = value
	}
	spec["ephemeralContainers"] = []any{map[string]any{"name": "debugger", "image": image}}
	made["spec"] = spec
	return made
}
