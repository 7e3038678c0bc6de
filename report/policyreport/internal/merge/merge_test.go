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

// word is an object's result under a rule, some seconds after the first one.
func word(of report.Resource, seconds int, status result.Status, message string) result.Result {
	return result.Result{
		Policy: result.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "one"}, Rule: "images", Resource: of, Status: status, Message: message,
		Time: time.Date(2026, 5, 1, 12, 0, seconds, 0, time.UTC),
	}
}

// rendered returns the results with an entry, by object; "" is the shared result.
func rendered(w *merge.Content) map[string]string {
	said := map[string]string{}
	for _, each := range w.All() {
		said[each.Resource.Name] = string(each.Status) + " " + each.Message
	}
	return said
}

// TestSharedResult has results of pods of one owner: a pod with the shared result is not
// listed, and another is, until it agrees.
func TestSharedResult(t *testing.T) {
	w := merge.New(owner(), true, merge.Selection{})
	for _, step := range []struct {
		reason  string
		words   []result.Result
		changed bool
		want    map[string]string
	}{
		{"the first result is shared", []result.Result{word(pod("a"), 0, result.Fail, "x")}, true, map[string]string{"": "fail x"}},
		{"another one agrees", []result.Result{word(pod("b"), 1, result.Fail, "x")}, false, map[string]string{"": "fail x"}},
		{"another one does not", []result.Result{word(pod("c"), 2, result.Pass, "")}, true, map[string]string{"": "fail x", "c": "pass "}},
		{"its result is the same again", []result.Result{word(pod("c"), 3, result.Pass, "")}, false, map[string]string{"": "fail x", "c": "pass "}},
		{"an older word of it comes late", []result.Result{word(pod("c"), 1, result.Fail, "x")}, false, map[string]string{"": "fail x", "c": "pass "}},
		{"it agrees", []result.Result{word(pod("c"), 4, result.Fail, "x")}, true, map[string]string{"": "fail x"}},
	} {
		if changed := w.Merge(step.words); changed != step.changed {
			t.Errorf("%s: changed is %v, want %v", step.reason, changed, step.changed)
		}
		if got := rendered(w); !maps.Equal(got, step.want) {
			t.Errorf("%s: the report has %v, want %v", step.reason, got, step.want)
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
	if got, want := rendered(w), map[string]string{"b": "fail x"}; !maps.Equal(got, want) {
		t.Errorf("the report has %v, want %v", got, want)
	}
	if len(w.Tokens()) != 1 || !w.Counts(result.Pass) || w.Counts(result.Fail) {
		t.Fatalf("%d words are kept without an entry", len(w.Tokens()))
	}
	text := merge.FormatTokens(w.Unlisted)
	if read := merge.ParseTokens(text); !maps.Equal(read, w.Unlisted) {
		t.Errorf("%q is read as %v, want %v", text, read, w.Unlisted)
	}
	if read := merge.ParseTokens("pass=.AAA hope=AAABBBBCCCDDDD fail=AAAB!BB"); len(read) != 0 {
		t.Errorf("invalid tokens are read as %v", read)
	}
	if !w.Drop(pod("a"), time.Time{}, nil, merge.Staying{}) || len(w.Tokens()) != 0 || len(w.All()) != 1 {
		t.Errorf("an object that is gone leaves %d words, and %d without an entry", len(w.All()), len(w.Tokens()))
	}
}

// TestSelected drops results of another selection.
func TestSelected(t *testing.T) {
	all := merge.New(owner(), true, merge.Selection{})
	all.Merge([]result.Result{word(pod("a"), 0, result.Fail, "x"), word(pod("b"), 1, result.Pass, "")})
	failures := merge.New(owner(), true, merge.Selection{Statuses: []result.Status{result.Fail}})
	for _, each := range all.All() {
		failures.Include(each)
	}
	failures.ForgetUseless()
	for who, what := range rendered(failures) {
		if who == "" || what != "fail x" {
			t.Errorf("%q has %q: without passes the objects of a shared result are unknown", who, what)
		}
	}
}
