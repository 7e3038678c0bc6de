package policies

import (
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/policystate"
	"github.com/quaymaster/quaymaster/gateway/native/record"
)

// TestTable has the column for the place of enforcement, and the line on the audit log, only if a policy needs them.
func TestTable(t *testing.T) {
	entry := func(name string, place record.Place, stays string) policystate.Entry {
		return policystate.Entry{
			ID: "ValidatingPolicy/" + name, State: "ours", Mode: "enforce", Ready: "True", Message: "in force", EnforcedBy: place, Stays: stays,
			Rules: []string{"r"}, Kinds: []string{"Pod"},
		}
	}
	for _, row := range []struct {
		reason  string
		entries []policystate.Entry
		want    string
	}{
		{"not known of any", []policystate.Entry{entry("a", "", "")}, `POLICY              MODE     READY  RULES  KINDS
ValidatingPolicy/a  enforce  True   1      Pod
`},
		{"all in the webhook", []policystate.Entry{entry("a", record.InWebhook, "it has\nparameters"), entry("b", "", "")}, `POLICY              MODE     READY  RULES  ENFORCED BY  KINDS
ValidatingPolicy/a  enforce  True   1      webhook      Pod
    it stays in the webhook: it has parameters
ValidatingPolicy/b  enforce  True   1      -            Pod
`},
		{"in the API server", []policystate.Entry{entry("a", record.InServer, ""), entry("b", record.InBoth, "")}, `POLICY              MODE     READY  RULES  ENFORCED BY  KINDS
ValidatingPolicy/a  enforce  True   1      API server   Pod
ValidatingPolicy/b  enforce  True   1      both         Pod
` + inAuditLog},
	} {
		if got := table(row.entries); got != row.want {
			t.Errorf("%s:\n%s\nwant\n%s", row.reason, got, row.want)
		}
	}
}
