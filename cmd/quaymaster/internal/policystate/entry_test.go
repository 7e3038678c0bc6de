package policystate

import (
	"testing"

	"github.com/quaymaster/quaymaster/gateway/native/record"
)

// TestReadCondition: a policy is shown as ready by a current condition of its own alone.
func TestReadCondition(t *testing.T) {
	for _, row := range []struct{ reason, document, want string }{
		{"ready", `{"metadata": {"generation": 2}, "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]}}`, "True"},
		{"in the other place", `{"status": {"conditionStatus": {"conditions": [{"type": "Ready", "status": "True"}]}}}`, "True"},
		{"not ready", `{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Withheld"}]}}`, "False"},
		{"of an earlier generation", `{"metadata": {"generation": 2}, "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}}`, "Unknown"},
		{"another condition", `{"status": {"conditions": [{"type": "Accepted", "status": "True"}]}}`, "Unknown"},
		{"no condition", `{}`, "Unknown"},
		{"a status that is none", `{"status": {"conditions": [{"type": "Ready", "status": "True\n"}]}}`, "Unknown"},
		{"no JSON", `{`, "Unknown"},
	} {
		e := Entry{Ready: "True"}
		e.readCondition([]byte(row.document))
		if e.Ready != row.want {
			t.Errorf("%s: %s, want %s", row.reason, e.Ready, row.want)
		}
	}
	e := Entry{Ready: "True"}
	e.readCondition([]byte(`{"status": {"conditions": [{"type": "Ready", "status": "True", "message": "in force; it stays in the webhook: it has parameters"}]}}`))
	if e.EnforcedBy != record.InWebhook || e.Stays != "it has parameters" {
		t.Errorf("where it is enforced: %+v", e)
	}
}
