package journal_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// TestDeletions: deleted objects have a line of their own, in the order of decisions.
func TestDeletions(t *testing.T) {
	k, keys := key(t)
	config := quiet(t.TempDir())
	j := run(t, config, k)
	d := decisionlog.Deletion{
		Policy: "ClusterCleanupPolicy/old", Hash: "h", Rule: "old", Object: report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "a", UID: "u1"},
		Scheduled: time.Unix(1_900_000_000, 0).UTC(), Propagation: "Foreground", Outcome: "failed", Message: "forbidden",
	}
	j.TakeDeletion(d)
	j.Take(numbered(admitted(t), 1))
	flush(t, j.Journal)
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, config.Folder, keys); got.Decisions != 1 || got.Lost != 0 || !got.Closed {
		t.Errorf("got %+v", got)
	}
	var kinds []decisionlog.Kind
	for line, err := range decisionlog.Read(config.Folder, 1) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, line.Kind)
		if line.Kind == decisionlog.KindDeletion && (!reflect.DeepEqual(*line.Deletion, d) || line.Time.IsZero()) {
			t.Errorf("got %+v", line.Deletion)
		}
	}
	if len(kinds) < 3 || kinds[1] != decisionlog.KindDeletion || kinds[2] != decisionlog.KindDecision {
		t.Errorf("the log has %q", kinds)
	}
	if _, err := decisionlog.ParseLine([]byte(`{"v":2,"kind":"deletion"}`)); err == nil {
		t.Error("a line without its content is read")
	}
}
