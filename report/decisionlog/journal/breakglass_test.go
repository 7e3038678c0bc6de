package journal_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// TestBreakGlass: what became of a namespace is a link of the chain like any other, in its
// order, and no decision.
func TestBreakGlass(t *testing.T) {
	k, keys := key(t)
	config := quiet(t.TempDir())
	j := run(t, config, k)
	opened := decisionlog.BreakGlass{Event: "opened", Namespace: "shop", UID: "u1", Reason: "it burns", By: "on-call", Since: time.Unix(1_900_000_000, 0).UTC(), Until: time.Unix(1_900_003_600, 0).UTC()}
	closed := opened
	closed.Event = "expired"
	j.TakeBreakGlass(opened)
	j.Take(numbered(admitted(t), 1))
	j.TakeBreakGlass(closed)
	flush(t, j.Journal)
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, config.Folder, keys); got.Decisions != 1 || got.Lost != 0 || !got.Closed {
		t.Errorf("got %+v", got)
	}
	var seen []string
	for line, err := range decisionlog.Read(config.Folder, 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch line.Kind {
		case decisionlog.KindBreakGlass:
			seen = append(seen, line.BreakGlass.Event)
			want := opened
			want.Event = line.BreakGlass.Event
			if *line.BreakGlass != want || line.Time.IsZero() {
				t.Errorf("got %+v", line.BreakGlass)
			}
		case decisionlog.KindDecision:
			seen = append(seen, "decision")
		default:
		}
	}
	if len(seen) != 3 || seen[0] != "opened" || seen[1] != "decision" || seen[2] != "expired" {
		t.Errorf("the log has %v", seen)
	}
	if _, err := decisionlog.ParseLine([]byte(`{"v":1,"kind":"break-glass"}`)); err == nil {
		t.Error("a line without its content is read")
	}
}
