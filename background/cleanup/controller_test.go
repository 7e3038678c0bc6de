package cleanup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
)

// TestRun: at the time of its schedule a policy deletes the objects that it selects, once, and none before the run
// is recorded.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaving := pod("shop", "leaving", "u4", "old")
		metadataOf(leaving)["deletionTimestamp"] = "2000-01-01T00:00:00Z"
		s := newScene(t, []map[string]any{
			pod("shop", "a", "u1", "old"), pod("shop", "b", "u2", "new"), pod("kube-system", "c", "u3", "old"), leaving, pod("shop", "d", "u5", "unknown"),
		}, policyWith("old", rule{propagation: "Foreground"}))
		s.cluster.onDelete = func(string) error {
			if r := s.store.only(t); !r.Open || r.Deletions == 0 {
				t.Errorf("a deletion before its record: %+v", r)
			}
			return nil
		}
		stop := s.start(t)
		time.Sleep(59 * time.Minute) //nolint:forbidigo // the clock of the bubble
		if got := s.cluster.gone(); len(got) > 0 {
			t.Errorf("before the schedule: %q", got)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock of the bubble
		stop()
		if got := s.cluster.gone(); !slices.Equal(got, []string{"u1"}) || s.cluster.how[0] != "Foreground" {
			t.Errorf("deleted %q %q", got, s.cluster.how)
		}
		if got := s.notes.outcomes(); !slices.Equal(got, []string{"protected c", "deleted a", "undecided d"}) {
			t.Errorf("%q", got)
		}
		r := s.store.only(t)
		if r.Open || r.Deletions != 1 || !r.Scheduled.Equal(r.Scheduled.Truncate(time.Hour)) {
			t.Errorf("%+v", r)
		}
		if got := s.notes.runs; len(got) != 1 || got[0].End != cleanup.Errors || got[0].Examined != 5 || got[0].Deleted != 1 || got[0].Undecided != 1 || got[0].Protected != 1 {
			t.Errorf("%+v", got)
		}
		if len(s.notes.errs) > 0 {
			t.Errorf("%q", s.notes.errs)
		}
	})
}

// TestMissedSchedule: a schedule that was missed for at most an hour runs once.
func TestMissedSchedule(t *testing.T) {
	for _, row := range []struct {
		reason string
		last   time.Duration // before now; 0: no record
		at     time.Duration // of the start, after a full hour
		form   string        // of the record; empty: that of the policy
		made   time.Duration // before now; 0: of a file
		open   bool
		want   []cleanup.End // within the next minute
	}{
		{"the last hour was missed", time.Hour + 30*time.Minute, 30 * time.Minute, "", 0, false, []cleanup.End{cleanup.Completed}},
		{"many hours were missed", 100 * time.Hour, 30 * time.Minute, "", 0, false, []cleanup.End{cleanup.Completed}},
		{"none was missed", 20 * time.Minute, 20 * time.Minute, "", 0, false, nil},
		{"a new policy of a file", 0, 30 * time.Minute, "", 0, false, nil},
		{"a policy that was there before the gateway", 0, 30 * time.Minute, "", 48 * time.Hour, false, nil},
		{"a policy that was created before the missed time", 0, 30 * time.Minute, "", 40 * time.Minute, false, []cleanup.End{cleanup.Completed}},
		{"a policy that was created after it", 0, 30 * time.Minute, "", 20 * time.Minute, false, nil},
		{"a policy that was changed", 90 * time.Minute, 30 * time.Minute, "other", 0, false, nil},
		{"an interrupted run", 30 * time.Minute, 30 * time.Minute, "", 0, true, []cleanup.End{cleanup.Completed}},
		{"a run that was interrupted long ago", 90 * time.Minute, 30 * time.Minute, "", 0, true, []cleanup.End{cleanup.Missed, cleanup.Completed}},
		{"an interrupted run of a changed policy", 30 * time.Minute, 30 * time.Minute, "other", 0, true, nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := policyWith("old", rule{})
				time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(101*time.Hour + row.at))) //nolint:forbidigo // the clock of the bubble
				if row.made > 0 {
					p.Created = time.Now().Add(-row.made)
				}
				s := newScene(t, []map[string]any{pod("shop", "a", "u1", "old")}, p)
				if row.last > 0 {
					s.store.records = cleanup.Records{Runs: recorded(t, p, row.form, time.Now().Add(-row.last), row.open)}
				}
				stop := s.start(t)
				time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
				stop()
				if got := s.notes.ends(); !slices.Equal(got, row.want) {
					t.Errorf("%q, want %q", got, row.want)
				}
				if got := s.cluster.gone(); (len(got) == 1) != slices.Contains(row.want, cleanup.Completed) {
					t.Errorf("deleted %q", got)
				}
			})
		})
	}
}

// recorded returns the records of a policy, as a controller writes them.
func recorded(t testing.TB, p *policy.Policy, form string, scheduled time.Time, open bool) map[string]cleanup.Record {
	t.Helper()
	s := newScene(t, nil, p)
	stop := s.start(t)
	synctest.Wait()
	stop()
	records := s.store.records.Runs
	for key, r := range records {
		r.Scheduled, r.Open = scheduled, open
		if form != "" {
			r.Form = form
		}
		records[key] = r
	}
	return records
}

// TestLimit: a run deletes as many objects as the limit allows, and the next one continues.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []map[string]any
		for i := range 250 {
			objects = append(objects, pod("shop", fmt.Sprintf("p%03d", i), fmt.Sprintf("u%d", i), "old"))
		}
		s := newScene(t, objects, policyWith("old", rule{}))
		stop := s.start(t)
		defer stop()
		for i, want := range []int{100, 200, 250, 250} {
			time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
			synctest.Wait()
			if got := s.cluster.gone(); len(got) != want {
				t.Errorf("after %d hours %d are deleted, want %d", i+1, len(got), want)
			}
		}
		if got, want := s.notes.ends(), []cleanup.End{cleanup.LimitReached, cleanup.LimitReached, cleanup.Completed, cleanup.Completed}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestFailedDeletions: a deletion may have happened although its answer is an error, so that it counts
// to the limit. One that is refused has not, and does not keep the others from their turn.
func TestFailedDeletions(t *testing.T) {
	for _, row := range []struct {
		reason string
		err    error
		want   []string
		ends   cleanup.End
	}{
		{"no answer", errors.New("timeout"), []string{"failed a", "failed b"}, cleanup.LimitReached},
		{"refused", fmt.Errorf("%w: forbidden", background.ErrRefused), []string{"failed a", "failed b", "deleted c", "deleted d"}, cleanup.LimitReached},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var objects []map[string]any
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					objects = append(objects, pod("shop", name, "u"+name, "old"))
				}
				s := newScene(t, objects, policyWith("old", rule{}))
				s.options.Limit = 2
				s.cluster.onDelete = func(name string) error {
					if name == "a" || name == "b" {
						return row.err
					}
					return nil
				}
				stop := s.start(t)
				time.Sleep(61 * time.Minute) //nolint:forbidigo // the clock of the bubble
				stop()
				if got := s.notes.outcomes(); !slices.Equal(got, row.want) || s.notes.ends()[0] != row.ends {
					t.Errorf("%q %q, want %q %s", got, s.notes.ends(), row.want, row.ends)
				}
			})
		})
	}
}

// TestObjectChanges: between the list and the deletion an object is replaced or changed.
func TestObjectChanges(t *testing.T) {
	version := func(object map[string]any, is string) map[string]any {
		metadataOf(object)["resourceVersion"] = is
		return object
	}
	for _, row := range []struct {
		reason         string
		read, deletion map[string]any // the object from before a request on
		want           []string
	}{
		{"it is unchanged", nil, nil, []string{"u1"}},
		{"it is replaced before it is read again", pod("shop", "a", "u2", "old"), nil, nil},
		{"it is replaced before it is deleted", nil, pod("shop", "a", "u2", "old"), nil},
		{"it is changed, and no longer selected, before it is read again", pod("shop", "a", "u1", "new"), nil, nil},
		{"it is changed, and no longer selected, before it is deleted", nil, version(pod("shop", "a", "u1", "new"), "2"), nil},
		{"it is changed, and still selected", nil, version(pod("shop", "a", "u1", "old"), "2"), []string{"u1"}},
		{"it is changed, and could not be decided", nil, version(pod("shop", "a", "u1", "unknown"), "2"), nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, []map[string]any{pod("shop", "a", "u1", "old")}, policyWith("old", rule{}))
				s.cluster.onGet = func(string) {
					if row.read != nil {
						s.cluster.put(row.read)
					}
				}
				s.cluster.onDelete = func(string) error {
					if row.deletion != nil {
						s.cluster.put(row.deletion)
					}
					return nil
				}
				stop := s.start(t)
				time.Sleep(61 * time.Minute) //nolint:forbidigo // the clock of the bubble
				stop()
				if got := s.cluster.gone(); !slices.Equal(got, row.want) {
					t.Errorf("deleted %q, want %q", got, row.want)
				}
			})
		})
	}
}

// TestEndlessConflicts: an object that changes all the time is left to the next run.
func TestEndlessConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, []map[string]any{pod("shop", "a", "u1", "old")}, policyWith("old", rule{}))
		requests := 0
		s.cluster.onDelete = func(string) error { requests++; return background.ErrConflict }
		stop := s.start(t)
		time.Sleep(61 * time.Minute) //nolint:forbidigo // the clock of the bubble
		stop()
		if requests != 3 || !slices.Equal(s.notes.outcomes(), []string{"failed a"}) {
			t.Errorf("%d requests, %q", requests, s.notes.outcomes())
		}
	})
}

// TestHandover: the process ends in the middle of a run, and the next one continues it. No object is
// deleted twice, and both together keep to the limit.
func TestHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []map[string]any
		for i := range 60 {
			objects = append(objects, pod("shop", fmt.Sprintf("p%03d", i), fmt.Sprintf("u%d", i), "old"))
		}
		s := newScene(t, objects, policyWith("old", rule{}))
		s.options.Limit = 40
		reached, first := make(chan struct{}), s.options
		first.Cluster = &blocking{cluster: s.cluster, at: "p015", reached: reached}
		c, err := cleanup.New(first)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx)
		}()
		<-reached
		end()
		<-done
		if got := s.cluster.gone(); len(got) != 15 {
			t.Fatalf("%d deleted by the first", len(got))
		}
		if r := s.store.only(t); !r.Open || r.Deletions != 20 {
			t.Fatalf("%+v", r)
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the clock of the bubble
		stop := s.start(t)
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
		stop()
		got := s.cluster.gone()
		sorted := slices.Sorted(slices.Values(got))
		if len(slices.Compact(sorted)) != len(got) || len(got) != 35 { // of the 20 that were reserved 15 were made
			t.Errorf("%d deleted: %q", len(got), got)
		}
		if ends := s.notes.ends(); !slices.Equal(ends, []cleanup.End{cleanup.Handover, cleanup.LimitReached}) || !s.notes.runs[1].Continued {
			t.Errorf("%q", ends)
		}
	})
}

// blocking is a cluster in which the deletion of one object waits until its context ends.
type blocking struct {
	*cluster
	at      string
	reached chan struct{}
}

func (b *blocking) Delete(ctx context.Context, kind background.Kind, object map[string]any, how policy.Propagation) error {
	if text(metadataOf(object), "name") == b.at {
		close(b.reached)
		<-ctx.Done()
		return ctx.Err()
	}
	return b.cluster.Delete(ctx, kind, object, how)
}

// TestTwoLeaders: a leader that does not know that another one has taken over makes at most the
// deletions that it has reserved.
func TestTwoLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []map[string]any
		for i := range 60 {
			objects = append(objects, pod("shop", fmt.Sprintf("p%03d", i), fmt.Sprintf("u%d", i), "old"))
		}
		s := newScene(t, objects, policyWith("old", rule{}))
		n := 0
		s.cluster.onDelete = func(string) error {
			n++
			if n == 5 { // another process writes the records
				s.store.mu.Lock()
				s.store.records.Version = "another"
				s.store.mu.Unlock()
			}
			return nil
		}
		stop := s.start(t)
		time.Sleep(61 * time.Minute) //nolint:forbidigo // the clock of the bubble
		stop()
		if ends := s.notes.ends(); !slices.Equal(ends, []cleanup.End{cleanup.Handover, cleanup.Completed}) {
			t.Fatalf("%q", ends)
		}
		if got := s.notes.runs[0].Deleted; got != 10 {
			t.Errorf("%d deleted before the records were read again", got)
		}
		if got := s.notes.runs[1]; !got.Continued || got.Deleted != 50 {
			t.Errorf("%+v", got)
		}
	})
}

// TestPolicyChanges: a run stops when its policy is changed or deleted.
func TestPolicyChanges(t *testing.T) {
	broken, changed := policyWith("old", rule{}), policyWith("old", rule{})
	broken.Broken, changed.Hash = errors.New("broken"), "another"
	for _, row := range []struct {
		reason string
		to     []*policy.Policy
		want   int
	}{
		{"deleted", nil, 1},
		{"changed", []*policy.Policy{changed}, 1},
		{"broken", []*policy.Policy{broken}, 1},
		{"compiled again", []*policy.Policy{policyWith("old", rule{})}, 3},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, []map[string]any{pod("shop", "a", "u1", "old"), pod("shop", "b", "u2", "old"), pod("shop", "c", "u3", "old")}, policyWith("old", rule{}))
				s.cluster.onDelete = func(name string) error {
					if name == "a" {
						s.policies.replace(t, row.to...)
					}
					return nil
				}
				stop := s.start(t)
				time.Sleep(60*time.Minute + 10*time.Second) //nolint:forbidigo // the clock of the bubble
				stop()
				if got := s.cluster.gone(); len(got) != row.want {
					t.Errorf("deleted %q, want %d", got, row.want)
				}
				if ends := s.notes.ends(); (ends[0] == cleanup.PolicyChanged) != (row.want == 1) {
					t.Errorf("%q", ends)
				}
			})
		})
	}
}

// TestNotRecorded: nothing is deleted while the run cannot be recorded.
func TestNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, []map[string]any{pod("shop", "a", "u1", "old")}, policyWith("old", rule{}))
		stop := s.start(t)
		time.Sleep(59 * time.Minute) //nolint:forbidigo // the clock of the bubble
		s.store.mu.Lock()
		s.store.saveErr = errors.New("the API server does not answer")
		s.store.mu.Unlock()
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if got := s.cluster.gone(); len(got) > 0 || len(s.notes.errs) == 0 {
			t.Errorf("deleted %q, errors %q", got, s.notes.errs)
		}
		s.store.mu.Lock()
		s.store.saveErr = nil
		s.store.mu.Unlock()
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
		stop()
		if got := s.cluster.gone(); len(got) != 1 {
			t.Errorf("deleted %q when it can be recorded again", got)
		}
	})
}

// TestPolicyOfANamespace: it lists and deletes in its namespace alone, and no cluster-scoped objects.
func TestPolicyOfANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := policyWith("old", rule{})
		own.Kind, own.Namespace = "CleanupPolicy", "shop"
		nodes := policyWith("nodes", rule{kind: "Node"})
		nodes.Kind, nodes.Namespace = "CleanupPolicy", "shop"
		node := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n", "uid": "u3", "resourceVersion": "1", "labels": map[string]any{"state": "old"}}}
		s := newScene(t, []map[string]any{pod("shop", "a", "u1", "old"), pod("bank", "b", "u2", "old"), node}, own, nodes)
		s.cluster.kinds = []background.Kind{podKind, nodeKind}
		stop := s.start(t)
		time.Sleep(61 * time.Minute) //nolint:forbidigo // the clock of the bubble
		stop()
		if got := s.cluster.gone(); !slices.Equal(got, []string{"u1"}) || !slices.Equal(s.cluster.listed, []string{"shop"}) {
			t.Errorf("deleted %q, listed %q", got, s.cluster.listed)
		}
	})
}

// TestHostileListing: a list with an object of another namespace deletes nothing of it, and one that
// fails is reported.
func TestHostileListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := policyWith("old", rule{})
		own.Kind, own.Namespace = "CleanupPolicy", "shop"
		s := newScene(t, nil, own)
		foreign := pod("bank", "b", "u2", "old")
		s.cluster.put(foreign)
		s.cluster.objects["shop/x"] = pod("bank", "b", "u2", "old")
		stop := s.start(t)
		time.Sleep(61 * time.Minute) //nolint:forbidigo // the clock of the bubble
		s.cluster.mu.Lock()
		s.cluster.listErr = errors.New("forbidden")
		s.cluster.mu.Unlock()
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		stop()
		if got := s.cluster.gone(); len(got) > 0 {
			t.Errorf("deleted %q", got)
		}
		if ends := s.notes.ends(); !slices.Equal(ends, []cleanup.End{cleanup.Completed, cleanup.Errors}) || !strings.Contains(s.notes.runs[1].Messages[0], "forbidden") {
			t.Errorf("%q", ends)
		}
	})
}

// TestPanic: a defect of a rule ends its run alone.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, []map[string]any{pod("shop", "a", "u1", "old"), pod("shop", "b", "u2", "new")}, policyWith("bad", rule{panics: true}), policyWith("old", rule{}))
		stop := s.start(t)
		time.Sleep(61 * time.Minute) //nolint:forbidigo // the clock of the bubble
		stop()
		if got := s.cluster.gone(); len(got) != 1 || len(s.notes.errs) != 1 {
			t.Errorf("deleted %q, errors %q", got, s.notes.errs)
		}
	})
}

// TestManyPolicies: more policies than workers are all run.
func TestManyPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []*policy.Policy
		for i := range 20 {
			list = append(list, policyWith(fmt.Sprintf("p%d", i), rule{}))
		}
		s := newScene(t, []map[string]any{pod("shop", "a", "u1", "old")}, list...)
		stop := s.start(t)
		time.Sleep(60*time.Minute + time.Second) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		stop()
		if got := s.notes.ends(); len(got) != 20 {
			t.Errorf("%d runs", len(got))
		}
	})
}

// TestLacking: permissions that are missing are known before the first run.
func TestLacking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, nil, policyWith("old", rule{}))
		s.access["delete pods"] = true
		stop := s.start(t)
		synctest.Wait()
		stop()
		if got := s.notes.lacking; len(got) != 1 || got[0]["ClusterCleanupPolicy/old"] != "delete on pods" {
			t.Errorf("%v", got)
		}
		delete(s.access, "delete pods")
		stop = s.start(t)
		synctest.Wait()
		stop()
		if got := s.notes.lacking[1]; len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}

// TestRecordsOfOthers: records of policies that are gone are removed, but not at once.
func TestRecordsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, nil, policyWith("old", rule{}), policyWith("young", rule{}))
		stop := s.start(t)
		defer stop()
		synctest.Wait()
		s.policies.replace(t, policyWith("old", rule{}))
		time.Sleep(30 * time.Minute) //nolint:forbidigo // the clock of the bubble
		if kept, err := s.store.Load(t.Context()); err != nil || len(kept.Runs) != 2 {
			t.Errorf("%d records, %v", len(kept.Runs), err)
		}
		time.Sleep(2 * time.Hour) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		s.store.only(t)
	})
}

func TestNew(t *testing.T) {
	if _, err := cleanup.New(cleanup.Options{}); err == nil {
		t.Error("without dependencies")
	}
	s := newScene(t, nil)
	s.options.Limit = -1
	if _, err := cleanup.New(s.options); err == nil {
		t.Error("with a negative limit")
	}
}

// TestProtectedKind: a Namespace stays unless the policy names the kind and a setting allows it.
func TestProtectedKind(t *testing.T) {
	for allowed, want := range map[bool][]string{false: nil, true: {"u1"}} {
		synctest.Test(t, func(t *testing.T) {
			shop := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop", "uid": "u1", "resourceVersion": "1", "labels": map[string]any{"state": "old"}}}
			system := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kube-system", "uid": "u2", "resourceVersion": "1", "labels": map[string]any{"state": "old"}}}
			s := newScene(t, []map[string]any{shop, system}, policyWith("old", rule{kind: "Namespace"}))
			s.cluster.kinds = []background.Kind{namespaceKind}
			if allowed {
				s.options.Protection.AllowedKinds = []deletion.Kind{{Kind: "Namespace"}}
			}
			stop := s.start(t)
			time.Sleep(61 * time.Minute) //nolint:forbidigo // the clock of the bubble
			stop()
			if got := s.cluster.gone(); !slices.Equal(got, want) {
				t.Errorf("allowed %v: deleted %q", allowed, got)
			}
		})
	}
}
