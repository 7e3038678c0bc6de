package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// TestCharts start at the first decision, and have whole numbers at their axis.
func TestCharts(t *testing.T) {
	b := newTab(t)
	for _, row := range []struct {
		reason      string
		decisions   int // at each moment
		ago         []time.Duration
		most, fewer int // bars' places: at most, and at least
		axis        string
	}{
		{"one decision", 1, []time.Duration{0}, 2, 1, "0 1"},
		{"three, half an hour ago and now", 3, []time.Duration{30 * time.Minute, 0}, 32, 30, "0 1 2 3"},
		{"seven, five hours ago and now", 7, []time.Duration{5 * time.Hour, 0}, 22, 20, "0 2 4 6 8"},
	} {
		known, err := inventory.New(inventory.Options{Replica: "a"})
		check(t, err)
		for _, ago := range row.ago {
			for range row.decisions {
				known.Add(report.Occasion{Time: time.Now().Add(-ago), Process: report.ProcessAdmission, Operation: "CREATE", Allowed: true}, report.Record{Result: "unchecked"},
					report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "a"})
			}
		}
		server := shown(t, known)
		b.see(server.URL+"/", "figure.chart svg")
		if axis := eval[string](b, `[...document.querySelectorAll(".chart svg text[text-anchor=end]")].map((e) => e.textContent).join(" ")`); axis != row.axis {
			t.Errorf("%s: the axis has %q, want %q", row.reason, axis, row.axis)
		}
		if places := eval[int](b, `Number(document.querySelector(".chart svg").dataset.moments)`); places > row.most || places < row.fewer {
			t.Errorf("%s: the chart has %d moments, want %d to %d", row.reason, places, row.fewer, row.most)
		}
		if first := eval[float64](b, `Number(document.querySelector(".chart svg rect").getAttribute("x"))`); first != 40 {
			t.Errorf("%s: the first bar is at %v, and not at the axis", row.reason, first)
		}
		b.clean(strings.TrimPrefix(server.URL, "http://"))
		b.asked = nil
	}
}
