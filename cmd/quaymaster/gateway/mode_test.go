package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
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

// TestModeOfDoors: what is refused at which path, in which mode.
func TestModeOfDoors(t *testing.T) {
	const shadow, enforce = config.ModeShadow, config.ModeEnforce
	const cluster, disabled, standalone = "", "webhooks: {disabled: true}\n", "standalone: true\npolicies: {folders: [/p]}\n"
	objects := []string{configuration.MutatePath, configuration.ValidatePath}
	for _, row := range []struct {
		reason, mode, more string
		refusing           bool // at /mutate, /validate and /policies
	}{
		{"the default", "", cluster, true},
		{"it is said", enforce, cluster, true},
		{"in shadow, for namespaces that are cut over", shadow, cluster, true},
		{"in shadow, somebody else keeps the configurations", shadow, disabled, false},
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
		doors, err := newDoors(c, admission.Config{
			Decider: refuser{}, Namespaces: refuser{}, Failure: refuser{}, Recorder: nowhere{}, Queue: queue,
			Copies: copies{&gate.Current{}}, Reproduce: func(string, policy.Image) string { return "" }, Rules: failure{&gate.Current{}}, Requesters: requesters{},
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
			doors[path].ServeHTTP(w, r)
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
			t.Errorf("%s: the other doors", row.reason)
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

// TestShadowTellsItself: what a shadow would have said is counted apart, told as such,
// and kept as what was admitted.
func TestShadowTellsItself(t *testing.T) {
	reasons := []policy.Reason{{Code: policy.Unsigned, Message: "no signature"}}
	check := &policy.Check{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}, Rule: "r"}
	review := admission.Review{
		Endpoint: admission.Mutate, Operation: "CREATE", Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web", Cause: admission.Decided,
		Outcome: gate.Outcome{Result: gate.Deny, Verdicts: []gate.Verdict{{Result: gate.Deny, Decisions: []policy.Decision{{Check: check, Result: policy.Fail, Reasons: reasons}}}}},
	}
	for _, shadow := range []bool{false, true} {
		review.Shadow = shadow
		told, kept := &tally{}, &shelf{}
		recorder{log: slog.New(slog.DiscardHandler), metrics: told, events: told, sinks: keepers{last: []report.Sink{kept}}}.Record(t.Context(), review)
		if len(told.events) != 1 || len(kept.all) != 1 {
			t.Fatalf("in shadow %v: %d events, %d kept", shadow, len(told.events), len(kept.all))
		}
		event, on := told.events[0], kept.all[0].Occasion
		if shadow != (told.shadowed == 1 && told.shadowDecided == 1 && told.admitted == 0 && told.decided == 0) {
			t.Errorf("in shadow %v: counted %+v", shadow, told)
		}
		if shadow != strings.HasPrefix(event.Note, "shadow") || shadow != (event.Action == "Admitted") {
			t.Errorf("in shadow %v: the event %+v", shadow, event)
		}
		if on.Shadow != shadow || on.Allowed != shadow {
			t.Errorf("in shadow %v: kept %+v", shadow, on)
		}
	}
}

// shelf keeps what it is handed.
type shelf struct{ all []report.Decided }

// Take implements report.Sink.
func (s *shelf) Take(d report.Decided) { s.all = append(s.all, d) }
