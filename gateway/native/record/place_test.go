package record_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/gateway/native/record"
)

func TestPlaceIn(t *testing.T) {
	for _, row := range []struct {
		name, message string
		place         record.Place
		reason        string
	}{
		{"native", "in force; " + record.InServer.Text(""), record.InServer, ""},
		{"native without a leader", "in force; " + record.InBoth.Text(""), record.InBoth, ""},
		{"in the webhook", "in force; " + record.InWebhook.Text("it has parameters; and more"), record.InWebhook, "it has parameters; and more"},
		{"in the webhook, for a reason that has a text of another place", record.InWebhook.Text(record.InServer.Text("")), record.InWebhook, record.InServer.Text("")},
		{"nothing of it", "in force", "", ""},
		{"none", "", "", ""},
	} {
		if place, reason := record.PlaceIn(row.message); place != row.place || reason != row.reason {
			t.Errorf("%s: %q, %q", row.name, place, reason)
		}
	}
}
