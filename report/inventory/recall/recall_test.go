package recall_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
	"github.com/quaymaster/quaymaster/verify"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// about is a pod with two images, of which one was verified by a key and the other has
// the given result.
func about(t testing.TB, n int, answer gate.Result) report.Decided {
	t.Helper()
	signed := &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "h1"}
	small := &policy.Policy{Kind: "Policy", Namespace: "shop", Name: "small", Hash: "h2"}
	verdict := func(name string, d policy.Decision, answer gate.Result) gate.Verdict {
		ref, err := image.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		pinned, err := ref.Pin(image.Descriptor{Digest: image.DigestOf([]byte(name))})
		if err != nil {
			t.Fatal(err)
		}
		d.Check = &policy.Check{Policy: signed, Rule: "by-key", Action: policy.Enforce}
		return gate.Verdict{Image: policy.Image{Container: "c", Ref: ref}, Pinned: pinned, Result: answer, Reasons: d.Reasons, Decisions: []policy.Decision{d}}
	}
	proved := verdict("registry.example/web:1", policy.Decision{Result: policy.Pass, Reasons: []policy.Reason{{Code: policy.Verified}},
		Facts: []verify.Fact{{Role: "signature", Format: "cosign", Signer: verify.Signer{KeyFingerprint: strings.Repeat("ab", 32)},
			Entries: []verify.LogEntry{{LogID: "c0", Index: 7}}}}}, gate.Allow)
	other := policy.Decision{Result: policy.Pass, Reasons: []policy.Reason{{Code: policy.Verified}}}
	if answer == gate.Deny {
		other = policy.Decision{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no signature was found"}}}
	}
	return report.Decided{
		Occasion: report.Occasion{
			Time: noon.Add(time.Duration(n) * time.Second), Process: report.ProcessAdmission, Endpoint: "validate", UID: strconv.Itoa(n), Operation: "CREATE", User: "jo", Allowed: answer == gate.Allow,
		},
		Outcome: gate.Outcome{
			Subject: &policy.Subject{
				Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web-" + strconv.Itoa(n),
				Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"uid": "u" + strconv.Itoa(n)}}),
			},
			Result: answer, PolicyHash: "p", TrustGeneration: "t",
			Verdicts: []gate.Verdict{proved, verdict("side", other, answer)},
			Rules:    []policy.RuleResult{{Policy: small, Rule: "limits", Kind: policy.ValidateRule, Action: policy.Warn}},
		},
	}
}

// written is a log of decisions; each text is appended as it is.
func written(t testing.TB, decided []report.Decided, more ...string) string {
	t.Helper()
	folder := t.TempDir()
	chain, err := decisionlog.NewChain("a", decisionlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, d := range decided {
		for _, line := range decisionlog.Decisions(d) {
			text, err = chain.Append(text, &decisionlog.Entry{Kind: decisionlog.KindDecision, Time: d.Occasion.Time, Decision: &line})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	text = append(text, strings.Join(more, "")...)
	if err := os.WriteFile(filepath.Join(folder, decisionlog.SegmentName(1)), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func empty(t testing.TB) *inventory.Inventory {
	t.Helper()
	known, err := inventory.New(inventory.Options{Replica: "a", Now: func() time.Time { return noon.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// seen is what a dashboard shows, as text.
func seen(t testing.TB, known *inventory.Inventory) string {
	t.Helper()
	page, err := known.Images(inventory.ImageQuery{Sort: inventory.ByReference})
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := known.Decisions(inventory.DecisionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent([]any{page, decisions, known.Policies()}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFill: an inventory filled from the log equals one that took the decisions.
func TestFill(t *testing.T) {
	first, again := about(t, 1, gate.Allow), about(t, 1, gate.Allow)
	again.Occasion.Endpoint = "mutate" // its last word is the validating webhook's
	scan := about(t, 4, gate.Allow)
	scan.Occasion = report.Occasion{Time: noon.Add(4 * time.Second), Process: report.ProcessScan, Allowed: true}
	nobody := report.Decided{
		Occasion: report.Occasion{Time: noon.Add(3 * time.Second), Process: report.ProcessAdmission, Endpoint: "validate", UID: "3", Undecided: "queue-full"},
		About:    report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "late"},
	}
	decided := []report.Decided{first, about(t, 2, gate.Deny), nobody, scan}
	was := empty(t)
	for _, d := range decided {
		record := report.Record{}
		if d.Occasion.Undecided == "" {
			record = report.NewRecord(d.Outcome)
		}
		was.Add(d.Occasion, record, d.Resource())
	}
	is := empty(t)
	n, err := recall.Fill(is, recall.Source{Folder: written(t, append([]report.Decided{again}, decided...))})
	if err != nil || n != len(decided) {
		t.Fatalf("%d records, %v", n, err)
	}
	if want, got := seen(t, was), seen(t, is); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, each := range []struct {
		reason string
		known  *inventory.Inventory
	}{{"live", was}, {"restored", is}} {
		shown, _ := each.known.Image(image.DigestOf([]byte("registry.example/web:1")).String())
		if text := string(shown.Record); !strings.Contains(text, `"logEntries":[{"index":7,"logID":"c0"}]`) && !strings.Contains(text, `"logEntries":[{"logID":"c0","index":7}]`) {
			t.Errorf("%s: the entry of the transparency log is missing: %s", each.reason, shown.Record)
		}
	}
	if since := is.About().Since; !since.Equal(noon.Add(time.Second)) {
		t.Errorf("it remembers since %s", since)
	}
}

// added counts.
type added struct{ names []string }

func (a *added) Add(_ report.Occasion, _ report.Record, about report.Resource) {
	a.names = append(a.names, about.Name)
}

// TestFillIsBounded: the latest lines, up to the one that is named, and no more.
func TestFillIsBounded(t *testing.T) {
	var all []report.Decided
	for n := range 5 {
		all = append(all, about(t, n, gate.Allow)) // three lines each
	}
	folder := written(t, all)
	for _, row := range []struct {
		reason string
		from   recall.Source
		want   string
	}{
		{"all of it", recall.Source{}, "[web-0 web-1 web-2 web-3 web-4]"},
		{"the latest lines", recall.Source{Lines: 6}, "[web-3 web-4]"},
		{"the lines up to a number", recall.Source{Through: 9}, "[web-0 web-1 web-2]"},
		{"both", recall.Source{Through: 9, Lines: 3}, "[web-2]"},
	} {
		row.from.Folder = folder
		var got added
		if _, err := recall.Fill(&got, row.from); err != nil || fmt.Sprint(got.names) != row.want {
			t.Errorf("%s: %v, %v", row.reason, got.names, err)
		}
	}
	if last, err := recall.Last(folder); err != nil || last != 15 {
		t.Errorf("the last line is %d, %v", last, err)
	}
}

// TestFillOfNothing: no log is no error, a broken one is, and a torn end is neither.
func TestFillOfNothing(t *testing.T) {
	var got added
	for _, folder := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if n, err := recall.Fill(&got, recall.Source{Folder: folder}); n != 0 || err != nil {
			t.Errorf("%d records, %v", n, err)
		}
	}
	one := []report.Decided{about(t, 1, gate.Allow)}
	if n, err := recall.Fill(&got, recall.Source{Folder: written(t, one, `{"v":1,"se`)}); n != 1 || err != nil {
		t.Errorf("a torn end: %d records, %v", n, err)
	}
	if n, err := recall.Fill(&got, recall.Source{Folder: written(t, one, "{\n"), Through: 4}); n != 1 || err == nil {
		t.Errorf("a broken line: %d records, %v", n, err)
	}
	if _, err := recall.Fill(nil, recall.Source{Folder: t.TempDir()}); err == nil {
		t.Error("no inventory is one")
	}
}
