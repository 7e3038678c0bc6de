package breakglass_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
)

const label = "quaymaster.dev/break-glass"

var noon = time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)

// open is a namespace that was opened at a time, for a length.
func open(at time.Time, length time.Duration, change ...func(*metav1.ObjectMeta)) *metav1.ObjectMeta {
	m := &metav1.ObjectMeta{
		Name: "shop", UID: "u1", Labels: map[string]string{label: ""},
		Annotations:   map[string]string{label + "-reason": "it burns", label + "-until": at.Add(length).Format(time.RFC3339), label + "-by": "on-call"},
		ManagedFields: []metav1.ManagedFieldsEntry{wrote("kubectl-patch", at, label)},
	}
	for _, c := range change {
		c(m)
	}
	return m
}

func wrote(manager string, at time.Time, key string) metav1.ManagedFieldsEntry {
	stamp := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &stamp,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`),
	}
}

func TestJudge(t *testing.T) {
	note := func(key, value string) func(*metav1.ObjectMeta) {
		return func(m *metav1.ObjectMeta) { m.Annotations[label+key] = value }
	}
	fields := func(entries ...metav1.ManagedFieldsEntry) func(*metav1.ObjectMeta) {
		return func(m *metav1.ObjectMeta) { m.ManagedFields = entries }
	}
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	for _, row := range []struct {
		reason string
		of     *metav1.ObjectMeta
		want   breakglass.Why
	}{
		{"open for two hours, since one", open(ago(time.Hour), 2*time.Hour), ""},
		{"over since a second", open(ago(2*time.Hour), 2*time.Hour-time.Second), breakglass.Expired},
		{"over now", open(ago(2*time.Hour), 2*time.Hour), breakglass.Expired},
		{"the longest", open(noon, breakglass.MaxLength), ""},
		{"a second longer", open(noon, breakglass.MaxLength+time.Second), breakglass.TooLong},
		{"too long, and ends within a day", open(ago(20*time.Hour), 40*time.Hour), breakglass.TooLong},
		{"too long, and over: reported as too long", open(ago(50*time.Hour), 49*time.Hour), breakglass.TooLong},
		{"no reason", open(noon, time.Hour, note("-reason", "")), breakglass.Incomplete},
		{"a blank reason", open(noon, time.Hour, note("-reason", " \n")), breakglass.Incomplete},
		{"no end", open(noon, time.Hour, note("-until", "")), breakglass.Incomplete},
		{"an end that is no time", open(noon, time.Hour, note("-until", "tomorrow")), breakglass.Incomplete},
		{"no annotations", open(noon, time.Hour, func(m *metav1.ObjectMeta) { m.Annotations = nil }), breakglass.Incomplete},
		{"a user name is optional", open(noon, time.Hour, note("-by", "")), ""},
		{"another zone", open(noon, time.Hour, note("-until", "2030-01-31T14:30:00+02:00")), ""},
		{"another zone, and over", open(noon, time.Hour, note("-until", "2030-01-31T13:30:00+02:00")), breakglass.Expired},
		{"the start is unknown", open(ago(20*time.Hour), 40*time.Hour, fields()), ""},
		{"the start is unknown, and too long from now on", open(ago(20*time.Hour), 45*time.Hour, fields()), breakglass.TooLong},
		{"an entry of the future counts as now", open(ago(0), 25*time.Hour, fields(wrote("liar", noon.Add(9*time.Hour), label))), breakglass.TooLong},
		{"the longest, by a clock that is ahead of ours", open(noon.Add(30*time.Second), breakglass.MaxLength), ""},
		{"the longest, by a clock that is too far ahead", open(noon.Add(2*time.Minute), breakglass.MaxLength), breakglass.TooLong},
		{"an entry about something else counts for nothing", open(ago(20*time.Hour), 40*time.Hour, fields(wrote("other", ago(0), label+"-reason"), wrote("kubectl", ago(20*time.Hour), label))), breakglass.TooLong},
		{"extended a moment ago", open(ago(20*time.Hour), 40*time.Hour, fields(wrote("kubectl", ago(20*time.Hour), label), wrote("kubectl-patch", ago(time.Minute), label+"-until"))), ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if _, why := breakglass.Judge(label, row.of, noon); why != row.want {
				t.Errorf("%q, want %q", why, row.want)
			}
		})
	}
}

func TestJudgeReturnsTheOpening(t *testing.T) {
	o, _ := breakglass.Judge(label, open(noon.Add(-time.Hour), 2*time.Hour), noon)
	want := breakglass.Opening{
		Namespace: "shop", UID: "u1", Reason: "it burns", By: "on-call", Manager: "kubectl-patch", Since: noon.Add(-time.Hour), Until: noon.Add(time.Hour),
	}
	if o != want {
		t.Errorf("%+v, want %+v", o, want)
	}
	if o.String() != `until 2030-01-31T13:00:00Z, by on-call: "it burns"` {
		t.Error(o.String())
	}
	o.By = ""
	if o.String() != `until 2030-01-31T13:00:00Z, by an unnamed user, with kubectl-patch: "it burns"` {
		t.Error(o.String())
	}
	if got := (breakglass.Opening{}).String(); got != `no end that can be read, by an unnamed user: ""` {
		t.Error(got)
	}
}

// FuzzJudge: for any annotations, the parsed opening is bounded, and an open one ends
// within a day, by a clock that may be a minute ahead.
func FuzzJudge(f *testing.F) {
	f.Add("it burns", "2030-01-31T14:30:00+02:00", "on-call", int64(0))
	f.Add(strings.Repeat("ä", 400), "9999-12-31T23:59:59Z", strings.Repeat("x", 300), int64(-1<<40))
	f.Add(" ", "2030-01-31T24:00:00Z", "", int64(1<<40))
	f.Fuzz(func(t *testing.T, reason, until, by string, since int64) {
		m := open(noon.Add(time.Duration(since)), 0, func(m *metav1.ObjectMeta) {
			m.Annotations = map[string]string{label + "-reason": reason, label + "-until": until, label + "-by": by}
		})
		o, why := breakglass.Judge(label, m, noon)
		if len(o.Reason) > 500 || len(o.By) > 253 || o.Since.After(noon) {
			t.Errorf("%+v", o)
		}
		if why == "" && (o.Reason == "" || !o.Until.After(noon) || o.Until.After(noon.Add(breakglass.MaxLength+time.Minute))) {
			t.Errorf("%+v is left open", o)
		}
	})
}
