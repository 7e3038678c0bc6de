package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// refuser refuses everything.
type refuser struct{}

func (refuser) Decide(context.Context, gate.Request) gate.Outcome {
	return gate.Outcome{Result: gate.Deny}
}
func (refuser) Labels(context.Context, string) (map[string]string, error) { return nil, nil }
func (refuser) FailOpen(*policy.Subject) bool                             { return false }
func (refuser) Check([]byte) error                                        { return context.Canceled }
func (refuser) Warnings([]byte) []string                                  { return nil }

// TestModeOfEndpoints: the refused objects by path and mode.
func TestModeOfEndpoints(t *testing.T) {
	const shadow, enforce = config.ModeShadow, config.ModeEnforce
	const cluster, disabled, standalone = "", "webhooks: {disabled: true}\n", "standalone: true\npolicies: {folders: [/p]}\n"
	objects := []string{configuration.MutatePath, configuration.ValidatePath}
	for _, row := range []struct {
		reason, mode, more string
		refusing           bool // at /mutate, /validate and /policies
	}{
		{"the default", "", cluster, true},
		{"explicit", enforce, cluster, true},
		{"in shadow, for namespaces that are cut over", shadow, cluster, true},
		{"in shadow, the configurations are kept elsewhere", shadow, disabled, false},
		{"in shadow without a cluster", shadow, standalone, false},
		{"without a cluster", enforce, standalone, true},
	} {
		text := "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n" + row.more
		if row.mode != "" {
			text += "mode: " + row.mode + "\n"
		}
		c, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		queue := mustQueue(t)
		handlers, err := admissionHandlers(c, admission.Config{
			Decider: refuser{}, Namespaces: refuser{}, Failure: refuser{}, Recorder: nowhere{}, Queue: queue,
			Copies: endpoints.Copies{State: &gate.Current{}}, Reproduce: func(string, policy.Image) string { return "" }, Rules: endpoints.Failure{State: &gate.Current{}}, Requesters: endpoints.Requesters{},
		}, admission.PolicyConfig{Checker: refuser{}, Recorder: nowhere{}, Queue: queue})
		if err != nil {
			t.Fatal(err)
		}
		asked := func(path string) bool {
			body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"shop","name":"web","kind":{"version":"v1","kind":"Pod"},` +
				`"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"},"spec":{"containers":[{"name":"c","image":"a"}]}}}}`
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handlers[path].ServeHTTP(w, r)
			return strings.Contains(w.Body.String(), `"allowed":false`)
		}
		for _, path := range append(objects, configuration.DocumentsPath) {
			if refused := asked(path); refused != row.refusing {
				t.Errorf("%s: %s refuses: %v", row.reason, path, refused)
			}
			if c.Shadows(path) == row.refusing {
				t.Errorf("%s: %s waits for the decision log: %v", row.reason, path, row.refusing)
			}
		}
		for _, path := range []string{configuration.ShadowPath, configuration.ShadowDocumentsPath} {
			if asked(path) || !c.Shadows(path) {
				t.Errorf("%s: %s refuses", row.reason, path)
			}
		}
		if c.Shadows(config.APIPath) || c.Shadows("socket") || c.Shadows(config.ImageReviewPath) != (row.mode == shadow) {
			t.Errorf("%s: the other endpoints", row.reason)
		}
	}
	for _, wrong := range []string{"Shadow", "audit", "\"shadow \""} {
		if _, err := config.Parse([]byte("apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\nmode: " + wrong + "\n")); err == nil || !strings.Contains(err.Error(), "want enforce or shadow") {
			t.Errorf("mode %s: %v", wrong, err)
		}
	}
}

// nowhere is a Recorder.
type nowhere struct{}

func (nowhere) Record(context.Context, admission.Review) {}

func mustQueue(t *testing.T) *admission.Queue {
	t.Helper()
	queue, err := admission.NewQueue(admission.QueueBounds{})
	if err != nil {
		t.Fatal(err)
	}
	return queue
}
