package status

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/policy/catalog"
)

// TestConditionOfAbsentKinds: the condition of a policy is active, with the kinds that are not
// served.
func TestConditionOfAbsentKinds(t *testing.T) {
	for _, c := range []struct {
		reason  string
		entry   catalog.Entry
		message string
	}{
		{"all is there", catalog.Entry{State: catalog.Ours}, "True Active: it is active"},
		{"tasks are not", catalog.Entry{State: catalog.Ours, Why: "tasks are not there"}, "True Active: it is active, but tasks are not there"},
		{"it is broken", catalog.Entry{State: catalog.Broken, Why: "no field"}, "False Broken: no field"},
	} {
		got, _ := Reporter{}.condition(c.entry, Object{})
		if text := fmt.Sprintf("%s %s: %s", got.Status, got.Reason, got.Message); text != c.message {
			t.Errorf("%s: %s", c.reason, text)
		}
	}
}
