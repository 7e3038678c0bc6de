package conversions

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/convert/equality"
)

// otherwise are the policies of which a refused object may have another reason in the result, with the reason
// (docs/convert-to-cel.md, "What differs").
func otherwise() map[string]string {
	return map[string]string{
		"enforce-resources-as-ratio":         "a division by zero is an error in the source, and infinity in the result",
		"application-field-validation":       "null in place of a text of a custom kind",
		"disallow-jenkins-pipeline-strategy": "a list in place of an object of a custom kind",
		"validate-cron-schedule":             "a list in place of a text of a custom kind",
	}
}

// refuses reports whether a verdict denies, or would where the policy only audits.
func refuses(v *equality.Verdict) bool { return v.Result != equality.Admitted || len(v.Reported) > 0 }

// bothRefuse reports whether no found difference is one between admitting and refusing.
func bothRefuse(r *equality.Report) bool {
	return len(r.Schedules) == 0 && !slices.ContainsFunc(r.Differences, func(d equality.Difference) bool { return !refuses(&d.Source) || !refuses(&d.Result) })
}

// TestConversions compares every policy that converts with its result: no object differs.
func TestConversions(t *testing.T) {
	all := corpus(t)
	carried := slices.DeleteFunc(slices.Clone(all), func(c converted) bool { return c.pair.Result == nil })
	if len(carried) == 0 {
		t.Fatal("no policy converts")
	}
	objects := number(t, "QUAYMASTER_CONVERT_OBJECTS", 20_000)/len(carried) + 1
	began := time.Now()
	var mutex sync.Mutex
	total, matched := 0, 0
	each(len(carried), func(i int) {
		c := &carried[i]
		report, err := check(t.Context(), c, objects, false)
		mutex.Lock()
		defer mutex.Unlock()
		if err != nil {
			t.Errorf("%s: %v", c.name(), err)
			return
		}
		total, matched = total+report.Objects, matched+report.Matched
		if why, is := otherwise()[c.pair.Name]; is && !report.Equal() && bothRefuse(report) {
			t.Logf("%s: %d of %d objects are refused for another reason: %s", c.name(), report.Differing, report.Objects, why)
			return
		}
		if !report.Equal() {
			t.Errorf("%s: %d of %d objects differ %v", c.name(), report.Differing, report.Objects, report.Schedules)
		}
		for n := range report.Differences {
			t.Log(shown(&report.Differences[n]))
		}
	})
	t.Logf("%d of %d policies convert; %d objects of %d for each, %d matched, in %s", len(carried), len(all), total, objects, matched, time.Since(began).Round(time.Second))
}

// TestShare reports how many policies and exceptions convert, and the constructs of the others, the most frequent first.
func TestShare(t *testing.T) {
	all := corpus(t)
	count := func(name string, of []converted) {
		carried, constructs := 0, map[string]int{}
		for i := range of {
			c := &of[i]
			switch {
			case c.err != nil:
				t.Errorf("%s: %v", c.name(), c.err)
			case len(c.problems) == 0:
				carried++
			}
			refused := map[string]bool{}
			for _, p := range c.problems {
				refused[constructOf(p)] = true
			}
			for construct := range refused {
				constructs[construct]++
			}
		}
		t.Logf("%s: %d of %d policies and exceptions convert (%d %%)", name, carried, len(of), 100*carried/max(1, len(of)))
		for _, construct := range slices.SortedFunc(maps.Keys(constructs), func(a, b string) int {
			if constructs[a] != constructs[b] {
				return constructs[b] - constructs[a]
			}
			return len(a) - len(b)
		}) {
			t.Logf("%5d  %s", constructs[construct], construct)
		}
	}
	count("with a suite", slices.DeleteFunc(slices.Clone(all), func(c converted) bool { return !c.hasSuite }))
	count("all", all)
}
