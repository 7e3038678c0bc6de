package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// stumbling asks for a label that pods need not have, which is an error where they do not.
const stumbling = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: stumbling}
spec:
  validationActions: [%s]
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: fails-running}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations:
  - expression: object.metadata.labels['team'] == 'shop'
    message: team is shop
`

// TestAPolicyThatFailsAtRunTime: a policy that compiles, and fails on an object at run time,
// does not affect the others: they are evaluated, and their results are in the answer. Where
// they deny, the object is refused for their reason; where they audit, it is not.
func TestAPolicyThatFailsAtRunTime(t *testing.T) {
	s := guard(t, "fails-running", gateway.Configuration{})
	other := s.in(t, "fails-elsewhere")
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	s.enforce(t, env.Policy{Name: "fails-signed", Namespaces: []string{s.namespace, other.namespace}})
	labels := map[string]string{"team": "shop"}
	for _, row := range []struct {
		action string
		denies bool
	}{{"Audit", false}, {"Deny", true}} {
		t.Run(row.action, func(t *testing.T) {
			s.put(t, fmt.Sprintf(stumbling, row.action))
			whole := pod("whole", signed.Name)
			whole.Labels = labels
			_, err := s.dryRun(t.Context(), whole)
			must(t, err) // it can be asked, and agrees
			whole = pod("whole", bare.Name)
			whole.Labels = labels
			_, err = s.dryRun(t.Context(), whole)
			denied(t, "an unsigned image that it has nothing against", err, "unsigned")

			_, err = s.dryRun(t.Context(), pod("web", bare.Name))
			denied(t, "an unsigned image, where it errs", err, "unsigned")
			_, err = s.dryRun(t.Context(), pod("web", signed.Name))
			switch {
			case !row.denies:
				must(t, err)
			case err == nil || !strings.Contains(err.Error(), "stumbling") || strings.Contains(err.Error(), "[unsigned]"):
				t.Errorf("a signed image, where a policy that denies errs: %v", err)
			}
			_, err = other.dryRun(t.Context(), pod("web", signed.Name))
			must(t, err) // it does not apply to that namespace
		})
	}
}
