package metrics

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestYesterday: what dashboards and alerts of the version before ask for is still there,
// under the same name, of the same type and with the same labels. testdata/yesterday.txt is
// the beginning of its lines in docs/metrics.md, which TestReference holds to be true.
func TestYesterday(t *testing.T) {
	now, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile("testdata/yesterday.txt")
	if err != nil {
		t.Fatal(err)
	}
	if gone := missing(string(before), string(now)); len(gone) > 0 {
		t.Errorf("these are gone or have other labels; existing alerts use them:\n%s", strings.Join(gone, "\n"))
	}
	for _, c := range []struct{ before, after, reason string }{
		{"quaymaster_decisions_total", "quaymaster_decided_total", "another name"},
		{"`quaymaster_decisions_total` | counter", "`quaymaster_decisions_total` | gauge", "another type"},
		{"| `outcome`, `policy` |", "| `policy` |", "a label less"},
	} {
		if gone := missing(string(before), strings.ReplaceAll(string(now), c.before, c.after)); len(gone) == 0 {
			t.Errorf("%s is not seen", c.reason)
		}
	}
	if more := missing(string(before), strings.ReplaceAll(string(now), "| `outcome`, `policy` |", "| `more`, `outcome`, `policy` |")); len(more) > 0 {
		t.Errorf("a label more is a loss: %v", more)
	}
}

// missing returns the lines of before of which now lacks the name, the type or a label.
func missing(before, now string) []string {
	has := map[string][]string{}
	for line := range strings.Lines(now) {
		if name, kind, labels, ok := columns(line); ok {
			has[name+" "+kind] = labels
		}
	}
	var gone []string
	for line := range strings.Lines(before) {
		name, kind, labels, ok := columns(line)
		there, is := has[name+" "+kind]
		if !ok || !is || slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(there, l) }) {
			gone = append(gone, strings.TrimSpace(line))
		}
	}
	return gone
}

// columns reads a line of the table.
func columns(line string) (name, kind string, labels []string, ok bool) {
	parts := strings.Split(line, "|")
	if len(parts) < 4 || !strings.HasPrefix(strings.TrimSpace(parts[1]), "`quaymaster_") {
		return "", "", nil, false
	}
	for label := range strings.SplitSeq(parts[3], ",") {
		label = strings.Trim(label, " `")
		if label != "" {
			labels = append(labels, label)
		}
	}
	return strings.Trim(parts[1], " `"), strings.TrimSpace(parts[2]), labels, true
}
