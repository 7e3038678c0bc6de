package externaldata_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

// TestShadow: whatever comes and whatever is decided, each key has the image that it
// names for its value, and there is no error; the twin without a shadow has one.
func TestShadow(t *testing.T) {
	denied := decide(func(context.Context, gate.Request) gate.Outcome {
		return gate.Outcome{Result: gate.Deny, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no signature"}}}
	})
	silent := decide(func(context.Context, gate.Request) gate.Outcome {
		<-t.Context().Done()
		return gate.Outcome{Result: gate.Allow}
	})
	for _, row := range []struct {
		reason  string
		decider externaldata.Decider
		queue   queue
		body    []byte
		values  []string
	}{
		{"denied", denied, queue{}, request(t, "nginx", "[shop]redis"), []string{"nginx", "redis"}},
		{"a panic", decide(func(context.Context, gate.Request) gate.Outcome { panic("x") }), queue{}, request(t, "nginx"), []string{"nginx"}},
		{"no answer in time", silent, queue{}, request(t, "nginx"), []string{"nginx"}},
		{"no turn", decide(allow), queue{Full: true}, request(t, "nginx"), []string{"nginx"}},
		{"no memory", decide(allow), queue{Dry: true}, request(t, "nginx"), nil},
		{"a key of a namespace alone", decide(allow), queue{}, request(t, "[shop]"), []string{"[shop]"}},
		{"no JSON", decide(allow), queue{}, []byte("{"), nil},
		{"no keys", decide(allow), queue{}, request(t), nil},
		{"too large", decide(allow), queue{}, make([]byte, externaldata.MaxBody+1), nil},
	} {
		for _, shadow := range []bool{false, true} {
			kept := &recorder{}
			options := []setting{withRecorder(kept), withTimeout(50 * time.Millisecond)}
			if shadow {
				options = append(options, withShadow)
			}
			config := configOf(externaldata.Verify, row.decider)
			config.Queue = row.queue
			r := httptest.NewRequest(http.MethodPost, "/externaldata/verify", bytes.NewReader(row.body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			endpointWith(t, config, options...).ServeHTTP(w, r)
			var said response
			if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil {
				t.Fatal(err)
			}
			failed := said.Response.SystemError != ""
			for i, item := range said.Response.Items {
				failed = failed || item.Error != ""
				if shadow && item.Value != row.values[i] {
					t.Errorf("%s: the value of %s is %v", row.reason, item.Key, item.Value)
				}
			}
			if failed == shadow || shadow && (w.Code != http.StatusOK || len(said.Response.Items) != len(row.values)) {
				t.Errorf("%s, in shadow %v: HTTP %d %s", row.reason, shadow, w.Code, w.Body)
			}
			for _, item := range kept.Last(t).Items {
				if item.Allowed {
					t.Errorf("%s, in shadow %v: recorded that %s was allowed", row.reason, shadow, item.Key)
				}
			}
		}
	}
}

// TestShadowOfMutation: a shadow does not change the images that its twin pins.
func TestShadowOfMutation(t *testing.T) {
	h := endpointtest.NewEnv(t)
	image := testkit.Must(h.Signed("app"))(t)
	engine := endpointtest.Gate(t, h)
	if values, errs := send(t, endpoint(t, externaldata.Mutate, engine), image.Name); errs[0] != "" || values[0] == image.Name {
		t.Errorf("the twin: %q %q", values, errs)
	}
	if values, errs := send(t, endpoint(t, externaldata.Mutate, engine, withShadow), image.Name); errs[0] != "" || values[0] != image.Name {
		t.Errorf("in shadow: %q %q", values, errs)
	}
}
