package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/api"
)

// builders knows one token.
type builders struct{}

func (builders) Authenticate(_ context.Context, token string) (policy.User, error) {
	if token == "0123456789abcdef" {
		return policy.User{Name: "ci"}, nil
	}
	return policy.User{}, nil
}

func Example() {
	handler, err := api.New(api.Config{Authenticator: builders{}, Decider: &judge{}, Namespaces: labels{}, Recorder: &recorder{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodPost, "/api/v1/verify", strings.NewReader(`{"images": ["registry.test/bad:v1"], "namespace": "shop"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))

	r = httptest.NewRequest(http.MethodPost, "/api/v1/verify", strings.NewReader(`{"images": ["registry.test/bad:v1"], "namespace": "shop"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer 0123456789abcdef")
	w = httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var list report.List
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Code, list.Kind, list.Items[0].Result, list.Items[0].Images[0].Reasons[0].Code)
	// Output:
	// 401 Bearer realm="quaymaster"
	// 200 VerdictList deny unsigned
}
