package record_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster/record"
)

// fixture has policies p0, p1 and so on, each with a desired condition.
type fixture struct {
	client *dynamicfake.FakeDynamicClient

	mu      sync.Mutex
	reasons []string // of the condition, by policy
	fail    func(name string) error
	writes  []string // attempts: name=reason
	failed  []string
	remedy  string
}

func newFixture(many int) *fixture {
	f := &fixture{fail: func(string) error { return nil }}
	var list []runtime.Object
	for i := range many {
		p := newPolicy()
		p.SetName(fmt.Sprint("p", i))
		p.SetUID(types.UID(fmt.Sprint("u", i)))
		list = append(list, p)
		f.reasons = append(f.reasons, "First")
	}
	f.client = dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), list...)
	f.client.PrependReactor("patch", "*", func(action kubetesting.Action) (bool, runtime.Object, error) {
		patch, _ := action.(kubetesting.PatchAction)
		f.mu.Lock()
		defer f.mu.Unlock()
		reason := "First"
		for _, r := range f.reasons {
			if strings.Contains(string(patch.GetPatch()), `"reason":"`+r+`"`) {
				reason = r
			}
		}
		f.writes = append(f.writes, patch.GetName()+"="+reason)
		err := f.fail(patch.GetName())
		return err != nil, nil, err
	})
	return f
}

func (f *fixture) desired() []record.Desired {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []record.Desired
	for i, reason := range f.reasons {
		list = append(list, record.Desired{
			Object:    record.Object{Resource: policies, Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("u", i))},
			Condition: metav1.Condition{Type: "Ready", Status: "True", Reason: reason}, Remedy: f.remedy,
		})
	}
	return list
}

func (f *fixture) reporter() (r *record.Reporter, changed func()) {
	return reporting(f.client, f.desired, func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = append(f.failed, err.Error())
	})
}

func (f *fixture) set(policy int, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reasons[policy] = reason
}

func (f *fixture) attempts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.writes)
}

// TestChangeDuringRound: a round of many objects takes minutes, and users wait for the status of the
// policy that they edited.
func TestChangeDuringRound(t *testing.T) {
	for _, row := range []struct {
		reason string
		edited int // -1: none
		next   string
		stale  int // writes of the earlier condition of the edited policy
	}{
		{"without a change the order stays", -1, "", 0},
		{"a policy later in the round", 290, "p290=Edited", 0},
		{"a policy that was written in this round", 3, "p3=Edited", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(300)
			s, changed := f.reporter()
			defer run(t, s.Run)()
			wait(time.Second)
			before := len(f.attempts())
			want := fmt.Sprintf("p%d=First", before)
			if row.edited >= 0 {
				f.set(row.edited, "Edited")
				changed()
				want = row.next
			}
			wait(time.Minute)
			writes := f.attempts()
			if before > 60 || writes[before] != want {
				t.Errorf("%s: after %d writes the next one is %s, want %s", row.reason, before, writes[before], want)
			}
			stale := 0
			for _, w := range writes {
				if w == fmt.Sprintf("p%d=First", row.edited) {
					stale++
				}
			}
			want = fmt.Sprint(300 + row.stale)
			if stale != row.stale || fmt.Sprint(len(writes)) != want {
				t.Errorf("%s: %d writes, %d of the earlier condition; want %s, %d", row.reason, len(writes), stale, want, row.stale)
			}
		})
	}
}

// TestUnstableStatus: a status that changes all the time delays no other one.
func TestUnstableStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(100)
		s, changed := f.reporter()
		defer run(t, s.Run)()
		for i := range 300 {
			f.set(0, fmt.Sprint("Unstable", i))
			changed()
			wait(50 * time.Millisecond)
		}
		f.set(0, "Last")
		changed()
		wait(10 * time.Second)
		unstable, others := 0, map[string]bool{}
		writes := f.attempts()
		for _, w := range writes {
			if name, _, _ := strings.Cut(w, "="); name == "p0" {
				unstable++
			} else {
				others[name] = true
			}
		}
		if len(others) != 99 || unstable > 30 {
			t.Errorf("%d others are written, and the unstable one %d times", len(others), unstable)
		}
		if last := writes[len(writes)-1]; last != "p0=Last" {
			t.Errorf("the last write is %s", last)
		}
	})
}

// TestRefusedWrites: the API server refuses them for minutes, and other objects do not wait for them.
func TestRefusedWrites(t *testing.T) {
	for _, row := range []struct {
		reason  string
		err     error
		after   string // first write after the first round
		remedy  string
		message string
	}{
		{
			"forbidden: last, with the remedy", apierrors.NewForbidden(policies.GroupResource(), "p0", errors.New("no role")), "p1=Second", "",
			"; grant the gateway's service account get of clusterpolicies.kyverno.io and patch of its subresource status",
		},
		{
			"a setting that turns the writes off", apierrors.NewForbidden(policies.GroupResource(), "p0", errors.New("no role")), "p1=Second", "set x: never",
			"patch of its subresource status, or set x: never",
		},
		{
			"invalid: last, and rights do not help", apierrors.NewInvalid(policies.GroupVersion().WithKind("ClusterPolicy").GroupKind(), "p0", nil), "p1=Second", "set x: never",
			"is invalid",
		},
		{"unavailable: in its turn", errors.New("connection refused"), "p0=Second", "set x: never", "connection refused"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(3)
			f.remedy = row.remedy
			f.fail = func(name string) error {
				if name == "p0" {
					return row.err
				}
				return nil
			}
			s, _ := f.reporter()
			s.Round(t.Context())
			for i := range 3 {
				f.set(i, "Second")
			}
			before := len(f.attempts())
			s.Round(t.Context())
			if got := f.attempts()[before]; got != row.after {
				t.Errorf("%s: first is %s, want %s", row.reason, got, row.after)
			}
			if len(f.failed) != 1 || !strings.HasSuffix(f.failed[0], row.message) {
				t.Errorf("%s: reported are %q, want one that ends with %q", row.reason, f.failed, row.message)
			}
		})
	}
}
