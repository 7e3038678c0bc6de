package admission_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/webhook/admission"
)

// analysis returns a result by the policy's name.
type analysis struct{ asked int }

func (tr *analysis) Analyze(_ context.Context, raw []byte) ([]string, error) {
	tr.asked++
	switch {
	case strings.Contains(string(raw), "stops"):
		return nil, errors.New("it would stop 1 of 2 workloads\nDeployment shop/web")
	case strings.Contains(string(raw), "long"):
		return []string{"it is held"}, nil
	}
	return nil, nil
}

// TestImpactAnalysis: what compiles is tried, and what would stop something is refused with the list.
func TestImpactAnalysis(t *testing.T) {
	for _, c := range []struct {
		reason, op, name string
		allowed          bool
		asked            int
		says             string
	}{
		{"it stops nothing", "CREATE", "good", true, 1, ""},
		{"it stops something", "CREATE", "stops", false, 1, "Deployment shop/web"},
		{"it takes long", "CREATE", "long", true, 1, "it is held"},
		{"it is broken: it is not tried", "CREATE", "broken", false, 0, "is broken"},
		{"it is held by a finalizer, and made stop something", "UPDATE", "stops", false, 1, "Deployment shop/web"},
		{"it goes", "DELETE", "stops", true, 0, ""},
	} {
		analysis := &analysis{}
		handler, err := newPolicies(checker{}, func(c *admission.PolicyConfig) { c.ImpactAnalysis = analysis })
		if err != nil {
			t.Fatal(err)
		}
		now, old := clusterPolicy(c.name), object(nil)
		switch c.op {
		case "DELETE":
			now, old = nil, clusterPolicy(c.name)
		case "UPDATE":
			now["metadata"].(object)["deletionTimestamp"] = "2026-11-21T03:30:01Z"
			old = clusterPolicy("good")
		}
		r := send(t, handler, review(t, c.op, now, old, nil)).Response
		message := strings.Join(r.Warnings, "")
		if !r.Allowed {
			message = r.Status.Message
		}
		if r.Allowed != c.allowed || analysis.asked != c.asked || !strings.Contains(message, c.says) || (message == "") != (c.says == "") {
			t.Errorf("%s: allowed %t, asked %d times, message %q", c.reason, r.Allowed, analysis.asked, message)
		}
	}
}
