package reporting

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// TestShadowIsReported: a shadow's results are counted apart, reported as such, and kept as
// admitted.
func TestShadowIsReported(t *testing.T) {
	reasons := []policy.Reason{{Code: policy.Unsigned, Message: "no signature"}}
	check := &policy.Check{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}, Rule: "r"}
	review := admission.Review{
		Endpoint: admission.Mutate, Operation: "CREATE", Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web", Cause: admission.Decided,
		Outcome: gate.Outcome{Result: gate.Deny, Verdicts: []gate.Verdict{{Result: gate.Deny, Decisions: []policy.Decision{{Check: check, Result: policy.Fail, Reasons: reasons}}}}},
	}
	for _, shadow := range []bool{false, true} {
		review.Shadow = shadow
		told, kept := &counts{}, &shelf{}
		Recorder{Log: slog.New(slog.DiscardHandler), Metrics: told, Events: told, Sinks: Sinks{Last: []report.Sink{kept}}}.Record(t.Context(), review)
		if len(told.events) != 2 || len(kept.all) != 1 {
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

// shelf keeps the decisions it receives.
type shelf struct{ all []report.Decided }

// Take implements report.Sink.
func (s *shelf) Take(d report.Decided) { s.all = append(s.all, d) }
