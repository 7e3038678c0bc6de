package evidence_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
)

func pack(t *testing.T, image report.Image) evidence.Evidence {
	t.Helper()
	p, err := evidence.NewPacker()
	if err != nil {
		t.Fatal(err)
	}
	o := report.Occasion{Time: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Process: report.ProcessScan, Endpoint: "webhook"}
	p.Pack(o, report.Record{}, &report.Image{Reference: "earlier"}) // leaves nothing behind for the next one
	return p.Pack(o, report.Record{PolicySetHash: "p", TrustGeneration: "t"}, &image)
}

// TestRecord keeps the decision, cuts long texts, and keeps nothing that does not
// fit.
func TestRecord(t *testing.T) {
	whole := pack(t, report.Image{Reference: "registry.example.com/app:v1", Container: "app"})
	var image report.Image
	if err := json.Unmarshal(whole.Record(), &image); err != nil || image.Reference != "registry.example.com/app:v1" || image.Container != "app" {
		t.Errorf("the record is %s: %v", whole.Record(), err)
	}
	if whole.Policies != "p" || whole.Trust != "t" || whole.Process != report.ProcessScan || whole.Endpoint != "webhook" || whole.Size() == 0 {
		t.Errorf("beside the record stands %+v", whole)
	}

	long := pack(t, report.Image{Reference: strings.Repeat("é", 1000), Warnings: nil})
	image = report.Image{}
	if err := json.Unmarshal(long.Record(), &image); err != nil || len(image.Reference) > 1<<10+len("…")+3 || !strings.HasSuffix(image.Reference, "…") {
		t.Errorf("a text of 2000 bytes is kept with %d: %v", len(image.Reference), err)
	}

	var none evidence.Evidence
	if none.Record() != nil || none.Size() != 0 {
		t.Errorf("of nothing there is the record %s", none.Record())
	}
}

// TestPullSecrets: the names of pull secrets are not shown.
func TestPullSecrets(t *testing.T) {
	mirror := &report.Mirror{PullSecrets: []string{"shop/registry"}}
	kept := pack(t, report.Image{Reference: "app", Mirror: mirror})
	if text := string(kept.Record()); strings.Contains(text, "shop/registry") || !strings.Contains(text, "app") {
		t.Errorf("the record is %s", text)
	}
	if len(mirror.PullSecrets) != 1 {
		t.Error("the record that was handed in was changed")
	}
}

// TestPackObject keeps the images and rules of a decision, without the names of pull secrets, and no
// more images than the bound.
func TestPackObject(t *testing.T) {
	p, err := evidence.NewPacker()
	if err != nil {
		t.Fatal(err)
	}
	mirror := &report.Mirror{PullSecrets: []string{"shop/registry"}}
	text := string(evidence.Unpack(p.PackObject(report.Record{
		Images: []report.Image{{Written: "web", Mirror: mirror}, {Written: "debug"}, {Written: "third"}},
		Rules:  []report.Rule{{Rule: "limits"}}, PolicySetHash: "p",
	}, 2)))
	for _, row := range []struct {
		reason, text string
		has          bool
	}{
		{"the first image", `"written":"web"`, true}, {"the second one", `"written":"debug"`, true}, {"an image above the bound", "third", false},
		{"a rule", `"rule":"limits"`, true}, {"the policies", `"policySetHash":"p"`, true}, {"the name of a pull secret", "shop/registry", false},
	} {
		if strings.Contains(text, row.text) != row.has {
			t.Errorf("%s: %s", row.reason, text)
		}
	}
	if len(mirror.PullSecrets) != 1 || evidence.Unpack(nil) != nil {
		t.Error("the record that was handed in was changed, or there is a record of nothing")
	}
}

// TestStale takes a record in again when something changed, or after a minute.
func TestStale(t *testing.T) {
	kept := pack(t, report.Image{Reference: "app"})
	same := report.Record{PolicySetHash: "p", TrustGeneration: "t"}
	for _, row := range []struct {
		reason string
		after  time.Duration
		record report.Record
		stale  bool
	}{
		{"nothing changed", time.Minute - 1, same, false},
		{"a minute has passed", time.Minute, same, true},
		{"policies changed", 0, report.Record{PolicySetHash: "q", TrustGeneration: "t"}, true},
		{"trust changed", 0, report.Record{PolicySetHash: "p", TrustGeneration: "u"}, true},
	} {
		if got := kept.Stale(kept.Made.Add(row.after), row.record); got != row.stale {
			t.Errorf("%s: stale is %v, want %v", row.reason, got, row.stale)
		}
	}
}

// TestCut bounds texts from clients.
func TestCut(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "longer than it may be": "longer t…", "1234567é": "1234567\uFFFD…", "a\xffb": "a\uFFFDb"} {
		if got := evidence.Cut(text, 8); got != want || !utf8.ValidString(got) {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
