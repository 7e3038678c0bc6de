package externaldata_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/workload"
)

func patchOf(text string) ([]workload.Operation, error) {
	return workload.Pin(workload.Use{Pointer: "/spec/containers/0/image", Text: "nginx:1", Image: "nginx:1"}, text)
}

func Example() {
	handler, err := externaldata.New(externaldata.Config{
		Endpoint: externaldata.Verify, Namespaces: namespaces{}, Queue: queue{}, Recorder: &recorder{},
		Decider: decide(func(_ context.Context, request gate.Request) gate.Outcome {
			if request.Subject.Namespace == "shop" {
				return gate.Outcome{Result: gate.Allow}
			}
			return gate.Outcome{Result: gate.Deny, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no signature found", Hint: "sign the image"}}}
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodPost, "/externaldata/verify", strings.NewReader(`{
	  "apiVersion": "externaldata.gatekeeper.sh/v1beta1", "kind": "ProviderRequest",
	  "request": {"keys": ["[shop]nginx:1.27", "[test]nginx:1.27"]}
	}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(strings.ReplaceAll(w.Body.String(), `{"key"`, "\n"+`{"key"`))
	// Output:
	// {"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderResponse","response":{"idempotent":true,"items":[
	// {"key":"[shop]nginx:1.27","value":"nginx:1.27"},
	// {"key":"[test]nginx:1.27","error":"denied: no signature found [unsigned]; next: sign the image"}]}}
}
