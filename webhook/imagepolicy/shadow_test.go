package imagepolicy_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

// TestShadow: whatever comes and whatever is decided, a shadow allows; the twin without
// it does not.
func TestShadow(t *testing.T) {
	denied := decide(func(context.Context, gate.Request) gate.Outcome {
		return gate.Outcome{Result: gate.Deny, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no signature"}}}
	})
	silent := decide(func(context.Context, gate.Request) gate.Outcome {
		<-t.Context().Done()
		return gate.Outcome{Result: gate.Allow}
	})
	good := review(t, "shop", "a")
	for _, row := range []struct {
		reason  string
		decider imagepolicy.Decider
		queue   imagepolicy.Queue
		method  string
		body    []byte
	}{
		{"denied", denied, queue{}, http.MethodPost, good},
		{"a panic", decide(func(context.Context, gate.Request) gate.Outcome { panic("x") }), queue{}, http.MethodPost, good},
		{"no answer in time", silent, queue{}, http.MethodPost, good},
		{"no turn", decide(allow), queue{Full: true}, http.MethodPost, good},
		{"no memory", decide(allow), queue{Dry: true}, http.MethodPost, good},
		{"a queue that panics", decide(allow), angry{}, http.MethodPost, good},
		{"GET", decide(allow), queue{}, http.MethodGet, good},
		{"no JSON", decide(allow), queue{}, http.MethodPost, []byte("{")},
		{"nothing", decide(allow), queue{}, http.MethodPost, nil},
		{"too large", decide(allow), queue{}, http.MethodPost, make([]byte, imagepolicy.MaxBody+1)},
	} {
		for _, shadow := range []bool{false, true} {
			kept := &recorder{}
			options := []setting{withRecorder(kept), withTimeout(50 * time.Millisecond)}
			if shadow {
				options = append(options, withShadow)
			}
			config := configOf(row.decider)
			config.Queue = row.queue
			r := httptest.NewRequest(row.method, "/imagereview", bytes.NewReader(row.body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			endpointWith(t, config, options...).ServeHTTP(w, r)
			if status := read(t, w); status.Allowed != shadow || shadow && len(status.AuditAnnotations) > 0 {
				t.Errorf("%s, in shadow %v: %+v", row.reason, shadow, status)
			}
			if kept.Last(t).Allowed {
				t.Errorf("%s, in shadow %v: recorded that it was allowed", row.reason, shadow)
			}
		}
	}
}
