package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/schedule"
)

// TestParseTerms reads the fields, and refuses other values.
func TestParseTerms(t *testing.T) {
	clock := func() time.Time { return at(t, "2026-03-01T00:00:00Z") }
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		reason, schedule string
		propagation      *string
		want             policy.Propagation
		fails            string
	}{
		{"no propagation", "0 3 * * *", nil, "", ""},
		{"a propagation", "0 3 * * *", text("Orphan"), "Orphan", ""},
		{"another", "0 3 * * *", text("Foreground"), "Foreground", ""},
		{"the last", "0 3 * * *", text("Background"), "Background", ""},
		{"in lower case", "0 3 * * *", text("orphan"), "", `spec.deletionPropagationPolicy: unknown value "orphan": want Foreground, Background or Orphan`},
		{"empty", "0 3 * * *", text(""), "", `spec.deletionPropagationPolicy: unknown value ""`},
		{"no schedule", "", nil, "", "spec.schedule: is empty"},
		{"both", "never", text("never"), "", "spec.schedule: \"never\" is no schedule"},
	} {
		terms, err := schedule.ParseTerms(c.schedule, c.propagation, clock)
		switch {
		case c.fails == "" && err != nil, c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v", c.reason, err)
		case err == nil && (terms.Propagation() != c.want || !terms.Next(clock()).Equal(clock().Add(3*time.Hour))):
			t.Errorf("%s: %q at %s", c.reason, terms.Propagation(), terms.Next(clock()))
		}
	}
}
