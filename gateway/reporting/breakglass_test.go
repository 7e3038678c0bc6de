package reporting

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// written keeps events.
type written struct{ events []record.Event }

func (w *written) Record(e record.Event) { w.events = append(w.events, e) }

func openShop() breakglass.Opening {
	return breakglass.Opening{
		Namespace: "shop", UID: "u1", Reason: "it burns", By: "on-call", Manager: "kubectl",
		Since: time.Unix(1_900_000_000, 0).UTC(), Until: time.Unix(1_900_003_600, 0).UTC(),
	}
}

// TestBreakGlassIsReported: each change of a namespace is an event in it, a record, a line and a
// count. Its admitted objects are scanned when it is closed, and not before.
func TestBreakGlassIsReported(t *testing.T) {
	for _, row := range []struct {
		reason, event, name, note string
		tell                      func(*BreakGlass)
		scans                     bool
	}{
		{"opened", "opened", "BreakGlassOpened", `by on-call: "it burns"`, func(g *BreakGlass) { g.Opened(openShop(), false) }, false},
		{"changed", "changed", "BreakGlassChanged", "until 2030-03-17T", func(g *BreakGlass) { g.Opened(openShop(), true) }, false},
		{"expired", "expired", "BreakGlassClosed", "The time is over", func(g *BreakGlass) { g.Closed(openShop(), breakglass.Expired) }, true},
		{"incomplete", "incomplete", "BreakGlassClosed", "missing", func(g *BreakGlass) { g.Closed(openShop(), breakglass.Incomplete) }, true},
		{"too long", "too-long", "BreakGlassClosed", "longer than 24h", func(g *BreakGlass) { g.Closed(openShop(), breakglass.TooLong) }, true},
		{"by hand", "removed", "BreakGlassClosed", "A user removed", func(g *BreakGlass) { g.Closed(openShop(), breakglass.Removed) }, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var log bytes.Buffer
			var records []decisionlog.BreakGlass
			events, again := &written{}, make(chan struct{}, 1)
			told := &BreakGlass{
				Log: slog.New(slog.NewJSONHandler(&log, nil)), Metrics: metrics.New(metrics.Build{}), Events: events, Again: again,
				Record: func(b decisionlog.BreakGlass) { records = append(records, b) },
			}
			row.tell(told)
			row.tell(told) // does not block while a scan is pending
			if len(events.events) != 2 || len(records) != 2 || !strings.Contains(log.String(), `"event":"`+row.event+`"`) {
				t.Fatalf("%v, %v, %s", events.events, records, &log)
			}
			if e := events.events[0]; e.Reason != row.name || !strings.Contains(e.Note, row.note) || e.Regarding.Namespace != "shop" || e.Regarding.Name != "shop" {
				t.Errorf("got %+v", e)
			}
			if b := records[0]; b.Event != row.event || b.Namespace != "shop" || b.By != "on-call" || !b.Until.Equal(openShop().Until) {
				t.Errorf("got %+v", b)
			}
			if (len(again) == 1) != row.scans {
				t.Errorf("a scan is to begin: %t", len(again) == 1)
			}
		})
	}
}

// TestGlassMemory: the next leader reads the saved namespaces, and broken data counts as none.
func TestGlassMemory(t *testing.T) {
	client := fake.NewClientset()
	of := func(holder string) breakglass.Memory {
		return NewOpenNamespaces(client.CoordinationV1(), "quaymaster", holder)
	}
	if open, err := of("a").Load(t.Context()); err != nil || len(open) != 0 {
		t.Fatalf("%v, %v", open, err)
	}
	for _, want := range [][]breakglass.Opening{{openShop()}, {openShop(), {Namespace: "bank", UID: "u2"}}, {}} {
		if err := of("a").Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if got, err := of("b").Load(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	leases := client.CoordinationV1().Leases("quaymaster")
	broken, err := leases.Get(t.Context(), glassLease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	broken.Annotations[glassOpen] = "{"
	if _, err := leases.Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if open, err := of("b").Load(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("%v, %v", open, err)
	}
}
