package merge_test

import (
	"maps"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport/internal/merge"
	"github.com/quaymaster/quaymaster/report/result"
)

func owner() report.Resource {
	return report.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart", UID: "d-1"}
}

func pod(name string) report.Resource {
	return report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: name, UID: "p-" + name}
}

// word is what an object says under a rule, so many seconds after the first one.
func word(of report.Resource, seconds int, status result.Status, message string) result.Result {
	return result.Result{
		Policy: result.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "one"}, Rule: "images", Resource: of, Status: status, Message: message,
		Time: time.Date(2026, 5, 1, 12, 0, seconds, 0, time.UTC),
	}
}

// says is what has an entry, by the name of who says it; "" is the shared word.
func says(w *merge.Content) map[string]string {
	said := map[string]string{}
	for _, each := range w.All() {
		said[each.Resource.Name] = string(each.Status) + " " + each.Message
	}
	return said
}

// TestSharedWord has what pods of one owner say: who agrees is not listed, and who does
// not is, until it agrees.
func TestSharedWord(t *testing.T) {
	w := merge.New(owner(), true, merge.Selection{})
	for _, step := range []struct {
		reason  string
		words   []result.Result
		changed bool
		want    map[string]string
	}{
		{"the first one speaks for all", []result.Result{word(pod("a"), 0, result.Fail, "x")}, true, map[string]string{"": "fail x"}},
		{"another one agrees", []result.Result{word(pod("b"), 1, result.Fail, "x")}, false, map[string]string{"": "fail x"}},
		{"another one does not", []result.Result{word(pod("c"), 2, result.Pass, "")}, true, map[string]string{"": "fail x", "c": "pass "}},
		{"it says the same again", []result.Result{word(pod("c"), 3, result.Pass, "")}, false, map[string]string{"": "fail x", "c": "pass "}},
		{"an older word of it comes late", []result.Result{word(pod("c"), 1, result.Fail, "x")}, false, map[string]string{"": "fail x", "c": "pass "}},
		{"it agrees", []result.Result{word(pod("c"), 4, result.Fail, "x")}, true, map[string]string{"": "fail x"}},
	} {
		if changed := w.Merge(step.words); changed != step.changed {
			t.Errorf("%s: changed is %v, want %v", step.reason, changed, step.changed)
		}
		if got := says(w); !maps.Equal(got, step.want) {
			t.Errorf("%s: the report says %v, want %v", step.reason, got, step.want)
		}
	}
	if w.IsEmpty() || !w.Keep(nil) || !w.IsEmpty() {
		t.Error("a policy that is gone leaves words behind")
	}
}

// TestCounted keeps a few characters of a pass that is counted and not shown, and reads
// them back; a failure has an entry.
func TestCounted(t *testing.T) {
	w := merge.New(report.Resource{}, false, merge.Selection{CountPasses: true})
	if !w.Merge([]result.Result{word(pod("a"), 0, result.Pass, ""), word(pod("b"), 0, result.Fail, "x")}) {
		t.Error("nothing changed")
	}
	if got, want := says(w), map[string]string{"b": "fail x"}; !maps.Equal(got, want) {
		t.Errorf("the report says %v, want %v", got, want)
	}
	if len(w.Tokens()) != 1 || !w.Counts(result.Pass) || w.Counts(result.Fail) {
		t.Fatalf("%d words are kept without an entry", len(w.Tokens()))
	}
	text := merge.FormatTokens(w.Unlisted)
	if read := merge.ParseTokens(text); !maps.Equal(read, w.Unlisted) {
		t.Errorf("%q is read as %v, want %v", text, read, w.Unlisted)
	}
	if read := merge.ParseTokens("pass=.AAA hope=AAABBBBCCCDDDD fail=AAAB!BB"); len(read) != 0 {
		t.Errorf("what is no token is read as %v", read)
	}
	if !w.Drop(pod("a"), time.Time{}, nil) || len(w.Tokens()) != 0 || len(w.All()) != 1 {
		t.Errorf("an object that is gone leaves %d words, and %d without an entry", len(w.All()), len(w.Tokens()))
	}
}

// TestSelected forgets what a report was told under another selection.
func TestSelected(t *testing.T) {
	all := merge.New(owner(), true, merge.Selection{})
	all.Merge([]result.Result{word(pod("a"), 0, result.Fail, "x"), word(pod("b"), 1, result.Pass, "")})
	failures := merge.New(owner(), true, merge.Selection{Statuses: []result.Status{result.Fail}})
	for _, each := range all.All() {
		failures.Include(each)
	}
	failures.ForgetUseless()
	for who, what := range says(failures) {
		if who == "" || what != "fail x" {
			t.Errorf("%q says %q: without passes nobody tells whom a shared word speaks for", who, what)
		}
	}
}
