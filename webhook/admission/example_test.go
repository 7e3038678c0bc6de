package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/workload"
)

// proved is a gate that found every image to be signed, and knows its digest.
type proved struct{}

func (proved) Decide(_ context.Context, request gate.Request) gate.Outcome {
	uses, err := workload.Extract(request.Object)
	if err != nil {
		return gate.Outcome{Result: gate.Error, Reasons: []policy.Reason{{Code: policy.Malformed, Message: err.Error()}}}
	}
	outcome := gate.Outcome{Result: gate.Allow}
	for _, use := range uses {
		operations, err := workload.Pin(use, use.Image+"@sha256:"+strings.Repeat("5", 64))
		if err != nil {
			return gate.Outcome{Result: gate.Error}
		}
		outcome.Patch = append(outcome.Patch, operations...)
	}
	return outcome
}

type known struct{}

func (known) Labels(context.Context, string) (map[string]string, error) { return nil, nil }

type closed struct{}

func (closed) FailOpen(*policy.Subject) bool { return false }

func Example() {
	queue, err := admission.NewQueue(admission.QueueBounds{})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := admission.New(admission.Config{
		Endpoint: admission.Mutate, Decider: proved{}, Namespaces: known{}, Failure: closed{}, Queue: queue, Recorder: &recorder{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodPost, "/mutate?timeout=10s", strings.NewReader(`{
	  "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
	  "request": {
	    "uid": "5f0c1a52", "operation": "CREATE", "namespace": "shop", "name": "web",
	    "kind": {"group": "", "version": "v1", "kind": "Pod"},
	    "object": {
	      "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
	      "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]}
	    }
	  }
	}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)

	var answer struct {
		Response struct {
			UID     string
			Allowed bool
			Patch   []byte
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Response.UID, answer.Response.Allowed)
	fmt.Println(strings.ReplaceAll(string(answer.Response.Patch), "},{", "},\n {"))
	// Output:
	// 5f0c1a52 true
	// [{"op":"test","path":"/spec/containers/0/image","value":"nginx:1.27"},
	//  {"op":"replace","path":"/spec/containers/0/image","value":"nginx:1.27@sha256:5555555555555555555555555555555555555555555555555555555555555555"},
	//  {"op":"add","path":"/metadata/annotations","value":{}},
	//  {"op":"add","path":"/metadata/annotations/quaymaster.dev~1written","value":"{\"web\":\"nginx:1.27\"}"}]
}
