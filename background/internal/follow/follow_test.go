package follow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/quaymaster/quaymaster/background/internal/follow"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/source"
)

// watcher has the feeds of a test, and counts the reported triggers.
type watcher struct {
	feeds   map[source.Ref]*follow.Feed
	changed map[string]int
	failed  int
}

func (w *watcher) WatchSource(ctx context.Context, of source.Ref, to *follow.Feed) {
	w.feeds[of] = to
	<-ctx.Done()
	delete(w.feeds, of)
}

func (w *watcher) SourceChanged(trigger record.Trigger, rule queue.RuleID) {
	w.changed[trigger.Name+" "+rule.Rule]++
}

func (w *watcher) SourceFailed(source.Ref, error) { w.failed++ }

func content(name, data string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "resourceVersion": data}, "data": data, "status": "s" + data}
}

// TestFeed: which events of a source are changes.
func TestFeed(t *testing.T) {
	ref := source.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "s"}
	trigger, rule := record.Trigger{APIVersion: "v1", Kind: "Namespace", Name: "team"}, queue.RuleID{Policy: "p", Rule: "r"}
	for name, test := range map[string]struct {
		does func(*follow.Feed)
		want int
	}{
		"nothing":           {func(*follow.Feed) {}, 0},
		"the same list":     {func(f *follow.Feed) { f.Listing(); f.Listed(content("s", "one")); f.Synced() }, 0},
		"another list":      {func(f *follow.Feed) { f.Listing(); f.Listed(content("s", "two")); f.Synced() }, 1},
		"a list without it": {func(f *follow.Feed) { f.Listing(); f.Synced() }, 1},
		"a list with one more": {func(f *follow.Feed) {
			f.Listing()
			f.Listed(content("s", "one"))
			f.Listed(content("t", "one"))
			f.Synced()
		}, 1},
		"a change in a failed list": {func(f *follow.Feed) {
			f.Listing()
			f.Listed(content("s", "two"))
			f.Failed(errors.New("x"))
			f.Listing()
			f.Listed(content("s", "two"))
			f.Synced()
		}, 1},
		"a failed list": {func(f *follow.Feed) {
			f.Listing()
			f.Failed(errors.New("x"))
			f.Listing()
			f.Listed(content("s", "one"))
			f.Synced()
		}, 0},
		"a change":                   {func(f *follow.Feed) { f.Changed(content("s", "two"), false) }, 1},
		"two changes":                {func(f *follow.Feed) { f.Changed(content("s", "two"), false); f.Changed(content("s", "three"), false) }, 2},
		"a change of nothing":        {func(f *follow.Feed) { f.Changed(content("s", "one"), false) }, 0},
		"a change of the status":     {func(f *follow.Feed) { o := content("s", "one"); o["status"] = "other"; f.Changed(o, false) }, 0},
		"a deletion":                 {func(f *follow.Feed) { f.Deleted(content("s", "one")) }, 1},
		"a deletion and another one": {func(f *follow.Feed) { f.Deleted(content("s", "one")); f.Changed(content("s", "one"), true) }, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &watcher{feeds: map[source.Ref]*follow.Feed{}, changed: map[string]int{}}
			f := follow.New(w)
			ctx, cancel := context.WithCancel(t.Context())
			f.Set(ctx, trigger, rule, []source.Ref{ref}, f.Moment())
			synctest.Wait()
			feed := w.feeds[ref]
			feed.Listing()
			feed.Listed(content("s", "one"))
			feed.Synced()
			if w.changed["team r"] != 1 { // it may have changed since it was read
				t.Errorf("%s: at first %v", name, w.changed)
			}
			test.does(feed)
			if got := w.changed["team r"] - 1; got != test.want {
				t.Errorf("%s: %d changes, want %d", name, got, test.want)
			}
			cancel()
			f.Wait()
		})
	}
}

// TestSet: a change between reading and following is reported, and a source without a use is not watched.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{feeds: map[source.Ref]*follow.Feed{}, changed: map[string]int{}}
		f := follow.New(w)
		ctx, cancel := context.WithCancel(t.Context())
		ref := source.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "s"}
		trigger := func(name string) record.Trigger {
			return record.Trigger{APIVersion: "v1", Kind: "Namespace", Name: name}
		}
		rule := queue.RuleID{Policy: "p", Rule: "r"}
		f.Set(ctx, trigger("one"), rule, []source.Ref{ref}, f.Moment())
		synctest.Wait()
		before := f.Moment()
		w.feeds[ref].Changed(content("s", "two"), false)
		f.Set(ctx, trigger("two"), rule, []source.Ref{ref}, before)
		f.Set(ctx, trigger("three"), rule, []source.Ref{ref}, f.Moment())
		if fmt.Sprint(w.changed) != "map[one r:1 two r:1]" || len(w.feeds) != 1 {
			t.Errorf("%v, %d feeds", w.changed, len(w.feeds))
		}
		f.Keep(queue.KeyOf(trigger("one")), func(queue.RuleID) bool { return false })
		f.Set(ctx, trigger("two"), rule, nil, f.Moment())
		synctest.Wait()
		if len(w.feeds) != 1 {
			t.Error("the source of one trigger is not watched any more")
		}
		f.Retain(func(queue.Key, queue.RuleID) bool { return false })
		synctest.Wait()
		if len(w.feeds) != 0 {
			t.Error("an unused source is watched")
		}
		cancel()
		f.Wait()
	})
}
