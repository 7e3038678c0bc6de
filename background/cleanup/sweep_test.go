package cleanup_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/ttl"
)

// grants grants the lifetimes of objects with an annotation.
type grants struct{}

func (grants) ReadLifetime(object map[string]any) (string, error) {
	annotations, _ := metadataOf(object)["annotations"].(map[string]any)
	if by := text(annotations, "granted"); by != "" {
		return by, nil
	}
	return "", errors.New("it has no grant")
}

// expiring returns a pod with a lifetime, created at a time.
func expiring(namespace, name, value string, created time.Time) map[string]any {
	o := pod(namespace, name, "uid-"+name, "")
	m := metadataOf(o)
	m["creationTimestamp"] = created.UTC().Format(time.RFC3339)
	m["labels"] = map[string]any{ttl.Label: value}
	m["annotations"] = map[string]any{"granted": "alice"}
	return o
}

func with(o map[string]any, member string, value any) map[string]any {
	metadataOf(o)[member] = value
	return o
}

// TestLifetimes: each object that is deleted has a twin that stays.
func TestLifetimes(t *testing.T) {
	for _, row := range []struct {
		reason  string
		object  func(now time.Time) map[string]any
		options func(*cleanup.Options)
		want    string // of the object: its outcome; empty: none yet
	}{
		{"its time is over", func(now time.Time) map[string]any { return expiring("shop", "a", "1h", now.Add(-2*time.Hour)) }, nil, "deleted a"},
		{"its time is not over", func(now time.Time) map[string]any { return expiring("shop", "a", "1h", now.Add(-30*time.Minute)) }, nil, ""},
		{"a date that has passed", func(now time.Time) map[string]any { return expiring("shop", "a", "1999-12-31", now) }, nil, "deleted a"},
		{"a date to come", func(now time.Time) map[string]any { return expiring("shop", "a", "2030-12-31", now) }, nil, ""},
		{"a label that cannot be read", func(now time.Time) map[string]any { return expiring("shop", "a", "1h-or-so", now.Add(-2*time.Hour)) }, nil, "ignored a"},
		{"no grant", func(now time.Time) map[string]any {
			return with(expiring("shop", "a", "1h", now.Add(-2*time.Hour)), "annotations", map[string]any{})
		}, nil, "ignored a"},
		{"an unknown propagation", func(now time.Time) map[string]any {
			return with(expiring("shop", "a", "1h", now.Add(-2*time.Hour)), "annotations", map[string]any{"granted": "alice", ttl.PropagationAnnotation: "all"})
		}, nil, "ignored a"},
		{"a propagation", func(now time.Time) map[string]any {
			return with(expiring("shop", "a", "1h", now.Add(-2*time.Hour)), "annotations", map[string]any{"granted": "alice", ttl.PropagationAnnotation: "Orphan"})
		}, nil, "deleted a"},
		{"a protected namespace", func(now time.Time) map[string]any { return expiring("kube-system", "a", "1h", now.Add(-2*time.Hour)) }, nil, "protected a"},
		{"one that is being deleted", func(now time.Time) map[string]any {
			return with(expiring("shop", "a", "1h", now.Add(-2*time.Hour)), "deletionTimestamp", "2000-01-01T00:00:00Z")
		}, nil, ""},
		{"lifetimes are off", func(now time.Time) map[string]any { return expiring("shop", "a", "1h", now.Add(-2*time.Hour)) },
			func(o *cleanup.Options) { o.Grants = nil }, ""},
		{"a kind that may not be deleted", func(now time.Time) map[string]any { return expiring("shop", "a", "1h", now.Add(-2*time.Hour)) },
			func(o *cleanup.Options) { o.Access = access{"delete pods": true} }, ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, []map[string]any{row.object(time.Now())})
				s.options.Grants = grants{}
				if row.options != nil {
					row.options(&s.options)
				}
				stop := s.start(t)
				time.Sleep(5*time.Minute + time.Second) //nolint:forbidigo // the clock of the bubble
				stop()
				if got := strings.Join(s.notes.outcomes(), ", "); got != row.want {
					t.Errorf("%q, want %q", got, row.want)
				}
				if got := len(s.cluster.gone()) == 1; got != strings.HasPrefix(row.want, "deleted") {
					t.Errorf("deleted %q", s.cluster.gone())
				}
				if strings.HasPrefix(row.want, "deleted") && s.notes.deletions[0].By != "alice" {
					t.Errorf("%+v", s.notes.deletions[0])
				}
			})
		})
	}
}

// TestLifetimeEnds: the object is deleted within a pass after its time.
func TestLifetimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, []map[string]any{expiring("shop", "a", "10m", time.Now())})
		s.options.Grants = grants{}
		stop := s.start(t)
		defer stop()
		time.Sleep(9*time.Minute + 59*time.Second) //nolint:forbidigo // the clock of the bubble
		if got := s.cluster.gone(); len(got) > 0 {
			t.Errorf("deleted %q before its time", got)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock of the bubble
		if got := s.cluster.gone(); len(got) != 1 {
			t.Errorf("deleted %q", got)
		}
	})
}

// TestLifetimeChanges: between the list and the deletion the object is replaced, or its label is changed.
func TestLifetimeChanges(t *testing.T) {
	for _, row := range []struct {
		reason string
		now    func(now time.Time) map[string]any
	}{
		{"replaced", func(now time.Time) map[string]any {
			return with(expiring("shop", "a", "1h", now.Add(-2*time.Hour)), "uid", "another")
		}},
		{"prolonged", func(now time.Time) map[string]any { return expiring("shop", "a", "1000h", now.Add(-2*time.Hour)) }},
		{"without a label", func(now time.Time) map[string]any {
			return with(expiring("shop", "a", "1h", now.Add(-2*time.Hour)), "labels", map[string]any{})
		}},
		{"without a grant", func(now time.Time) map[string]any {
			return with(expiring("shop", "a", "1h", now.Add(-2*time.Hour)), "annotations", map[string]any{})
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, []map[string]any{expiring("shop", "a", "1h", time.Now().Add(-2*time.Hour))})
			s.options.Grants = grants{}
			s.cluster.onGet = func(string) { s.cluster.put(row.now(time.Now())) }
			stop := s.start(t)
			time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
			stop()
			if got := s.cluster.gone(); len(got) > 0 {
				t.Errorf("%s: deleted %q", row.reason, got)
			}
		})
	}
}

// TestLifetimesOfMany: a pass keeps to the limit, reports that, and the next one continues. Labels
// without effect are reported once.
func TestLifetimesOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []map[string]any
		for i := range 150 {
			objects = append(objects, expiring("shop", fmt.Sprintf("p%03d", i), "1h", time.Now().Add(-2*time.Hour)))
		}
		objects = append(objects, expiring("shop", "a", "never", time.Now()))
		s := newScene(t, objects)
		s.options.Grants = grants{}
		stop := s.start(t)
		synctest.Wait()
		if got := s.cluster.gone(); len(got) != 100 {
			t.Errorf("%d deleted", len(got))
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the clock of the bubble
		stop()
		if got := s.cluster.gone(); len(got) != 150 {
			t.Errorf("%d deleted", len(got))
		}
		if s.notes.runs[0].End != cleanup.LimitReached || s.notes.runs[1].End != cleanup.Completed || s.notes.runs[0].Policy != nil {
			t.Errorf("%+v", s.notes.runs[:2])
		}
		ignored := slices.DeleteFunc(s.notes.outcomes(), func(o string) bool { return strings.HasPrefix(o, "deleted") })
		if !slices.Equal(ignored, []string{"ignored a"}) {
			t.Errorf("%q", ignored)
		}
	})
}

// TestRefusedLifetimes: objects whose deletion is always refused do not use up a pass.
func TestRefusedLifetimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []map[string]any
		for _, name := range []string{"a", "b", "c"} {
			objects = append(objects, expiring("shop", name, "1h", time.Now().Add(-2*time.Hour)))
		}
		s := newScene(t, objects)
		s.options.Grants, s.options.Limit = grants{}, 2
		s.cluster.onDelete = func(name string) error {
			if name == "c" {
				return nil
			}
			return background.ErrRefused
		}
		stop := s.start(t)
		synctest.Wait()
		stop()
		if got := s.notes.outcomes(); !slices.Equal(got, []string{"failed a", "failed b", "deleted c"}) {
			t.Errorf("%q", got)
		}
	})
}

// TestLifetimeOfANamespace: a setting allows the kind, as for a policy that names it.
func TestLifetimeOfANamespace(t *testing.T) {
	for allowed, want := range map[bool]string{false: "protected shop", true: "deleted shop"} {
		synctest.Test(t, func(t *testing.T) {
			shop := expiring("", "shop", "1h", time.Now().Add(-2*time.Hour))
			shop["kind"] = "Namespace"
			s := newScene(t, []map[string]any{shop})
			s.cluster.kinds = []background.Kind{namespaceKind}
			s.options.Grants = grants{}
			if allowed {
				s.options.Protection.AllowedKinds = []deletion.Kind{{Kind: "Namespace"}}
			}
			stop := s.start(t)
			time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
			stop()
			if got := s.notes.outcomes(); !slices.Equal(got, []string{want}) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
