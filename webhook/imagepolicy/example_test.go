package imagepolicy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

// unsigned is a gate that found no signature.
type unsigned struct{}

func (unsigned) Decide(context.Context, gate.Request) gate.Outcome {
	return gate.Outcome{Result: gate.Deny, Verdicts: []gate.Verdict{{
		Image: policy.Image{Container: "0", Ref: image.MustParse("nginx:1.27")}, Result: gate.Deny,
		Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no signature found", Hint: "sign the image"}},
	}}}
}

func Example() {
	handler, err := imagepolicy.New(imagepolicy.Config{
		Decider: unsigned{}, Namespaces: namespaces{}, Failure: failure(false), Queue: queue{}, Recorder: &recorder{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodPost, "/imagereview", strings.NewReader(`{
	  "apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview",
	  "spec": {"containers": [{"image": "nginx:1.27"}], "namespace": "shop"}
	}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Body)
	// Output:
	// {"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview","status":{"allowed":false,"reason":"1 of 1 image denied: nginx:1.27\n  nginx:1.27: denied\n    no signature found [unsigned]\n      next: sign the image","auditAnnotations":{"codes":"unsigned","result":"deny"}}}
}
