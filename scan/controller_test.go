package scan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/scan"
)

// lease is a Memory that can be away.
type lease struct {
	mu    sync.Mutex
	text  string
	saves int
	away  bool
}

func (l *lease) Load(context.Context) (scan.Position, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var p scan.Position
	if l.away {
		return p, errors.New("away")
	}
	if l.text == "" {
		return p, nil
	}
	return p, json.Unmarshal([]byte(l.text), &p)
}

func (l *lease) Save(_ context.Context, p scan.Position) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := json.Marshal(p)
	if l.away {
		return errors.New("away")
	}
	l.text = string(text)
	l.saves++
	return err
}

func (l *lease) saved() scan.Position {
	p, _ := l.Load(context.Background())
	return p
}

// changes reports changes of policies.
type changes struct {
	mu   sync.Mutex
	next chan struct{}
}

func (c *changes) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// replace has other policies in force.
func (w *world) replace(t *testing.T, told *changes, set *set.Set) {
	t.Helper()
	w.state.ReplacePolicies(set)
	told.tell()
}

// led runs a Controller in a bubble until do returns.
func led(t *testing.T, w *world, o scan.ControllerOptions, do func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := testkit.Must(scan.NewController(w.scanner(t), o))(t)
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	synctest.Wait()
	do()
	stop()
	<-done
}

func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// TestRounds: a round runs at the start, at the interval, and when policies or trust change: for
// the affected kinds, where they are known.
func TestRounds(t *testing.T) {
	w := newWorld(t, labelPolicy("of-pods", "Pod", ""))
	w.add(t, pods, pod("shop", "a", "nginx"))
	w.add(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"a"}}`)
	both := w.set(t, labelPolicy("of-pods", "Pod", ""), labelPolicy("of-maps", "ConfigMap", ""))
	one := w.set(t, labelPolicy("of-maps", "ConfigMap", ""))
	excepted := testkit.Must(one.With(&policy.Exception{Namespace: "shop", Name: "e", Hash: "1", Rules: []policy.ExceptedRule{{Policy: "of-maps", Rules: []string{"*"}}}}))(t)
	synctest.Test(t, func(t *testing.T) {
		told, again := &changes{}, make(chan struct{}, 1)
		led(t, w, scan.ControllerOptions{Policies: told, Memory: &lease{}, Again: again, Interval: 10 * time.Minute}, func() {
			expect := func(reason string, listed ...string) {
				t.Helper()
				if got := w.pages(); !slices.Equal(got, listed) {
					t.Errorf("%s: listed %v, want %v", reason, got, listed)
				}
				w.stub.mu.Lock()
				w.listed = nil
				w.stub.mu.Unlock()
			}
			expect("at the start", "pods/")
			w.replace(t, told, both)
			pass(time.Second)
			expect("policies may still be changing")
			pass(10 * time.Second)
			expect("a policy came: its kinds", "configmaps/")
			w.replace(t, told, one)
			pass(10 * time.Second)
			expect("a policy went: its results are to go, and no other policy matches pods")
			w.replace(t, told, excepted)
			pass(10 * time.Second)
			expect("an exception may concern everything", "configmaps/")
			w.state.ReplaceProver(other{w.env.Prover})
			pass(time.Minute)
			expect("the trust changed, without a notification", "configmaps/")
			pass(5 * time.Minute)
			expect("nothing changes")
			pass(5 * time.Minute)
			expect("the interval", "configmaps/")
			again <- struct{}{}
			pass(time.Second)
			expect("a request for one", "configmaps/")
			pass(9 * time.Minute)
			expect("once")
			pass(2 * time.Minute)
			expect("the interval after that", "configmaps/")
		})
	})
}

// other is another trust.
type other struct{ gate.Prover }

func (other) Generation() string { return "another" }

// TestPartialRoundsDoNotDelayFullOnes: policies that change again and again do not keep
// everything from being looked at.
func TestPartialRoundsDoNotDelayFullOnes(t *testing.T) {
	w := newWorld(t, labelPolicy("of-pods", "Pod", ""))
	w.add(t, pods, pod("shop", "a", "nginx"))
	w.add(t, configMaps)
	var sets []*set.Set
	for i := range 8 {
		sets = append(sets, w.set(t, labelPolicy("of-pods", "Pod", ""), labelPolicy(fmt.Sprintf("of-maps-%d", i), "ConfigMap", "")))
	}
	synctest.Test(t, func(t *testing.T) {
		told := &changes{}
		led(t, w, scan.ControllerOptions{Policies: told, Memory: &lease{}, Interval: 10 * time.Minute}, func() {
			for _, set := range sets {
				w.replace(t, told, set)
				pass(2 * time.Minute)
			}
		})
	})
	listed := 0
	for _, page := range w.pages() {
		if page == "pods/" {
			listed++
		}
	}
	if listed != 2 {
		t.Errorf("pods were listed %d times in 16 minutes, want twice", listed)
	}
}

// TestResume: the next leader continues at the last kept results, loses none, and does not start
// over.
func TestResume(t *testing.T) {
	const all = 40
	w := newWorld(t, labelPolicy("of-pods", "Pod", ""))
	w.most = 1
	for i := range all {
		w.add(t, pods, pod("shop", fmt.Sprintf("p%02d", i), "nginx"))
	}
	synctest.Test(t, func(t *testing.T) {
		memory, told := &lease{}, &changes{}
		w.before = func(scan.Kind, string) error { <-time.After(5 * time.Second); return nil }
		o := scan.ControllerOptions{Policies: told, Memory: memory, Settled: 30 * time.Second}
		led(t, w, o, func() { pass(102 * time.Second) }) // and is killed in the middle
		p := memory.saved()
		if p.Kind != pods || p.Continue == "" || !p.Ended.IsZero() {
			t.Fatalf("saved %+v", p)
		}
		looked := w.count()
		at := 0
		if _, err := fmt.Sscan(p.Continue, &at); err != nil || at > looked-30/5 || at < looked-40/5-2 {
			t.Errorf("after %d objects the position is %s: results of the last 30 s may be lost", looked, p.Continue)
		}
		w.listed = nil
		led(t, w, o, func() { pass(5 * time.Minute) })
		if first := w.pages()[0]; first != "pods/"+p.Continue {
			t.Errorf("went on at %s, want %s", first, p.Continue)
		}
		if got := len(w.answers()); got != all {
			t.Errorf("%d of %d objects were handed over", got, all)
		}
		if p := memory.saved(); p.Ended.IsZero() || p.Kind != (scan.Kind{}) {
			t.Errorf("at the end %+v", p)
		}
		if len(w.passed) != 0 {
			t.Error("a partial list reports objects as gone")
		}
		w.listed = nil
		led(t, w, o, func() { pass(time.Minute) })
		if got := w.pages(); len(got) != 0 {
			t.Errorf("after a round that was done, another leader listed %v", got)
		}
	})
}

// TestNewLeaderNoticesChanges: a change without a leader starts a round.
func TestNewLeaderNoticesChanges(t *testing.T) {
	w := newWorld(t, labelPolicy("of-pods", "Pod", ""))
	w.add(t, pods, pod("shop", "a", "nginx"))
	synctest.Test(t, func(t *testing.T) {
		memory, told := &lease{}, &changes{}
		led(t, w, scan.ControllerOptions{Policies: told, Memory: memory}, func() { pass(time.Minute) })
		w.state.ReplacePolicies(w.set(t, labelPolicy("of-pods", "Pod", "\n  failurePolicy: Ignore")))
		led(t, w, scan.ControllerOptions{Policies: told, Memory: memory}, func() { pass(time.Minute) })
		if got := w.pages(); !slices.Equal(got, []string{"pods/", "pods/"}) {
			t.Errorf("listed %v", got)
		}
	})
}

// TestTroubles: a memory and an API server that are away for a while lose nothing.
func TestTroubles(t *testing.T) {
	w := newWorld(t, labelPolicy("of-pods", "Pod", ""))
	w.add(t, pods, pod("shop", "a", "nginx"))
	synctest.Test(t, func(t *testing.T) {
		memory, told := &lease{away: true}, &changes{}
		down := true
		w.before = func(scan.Kind, string) error {
			if down {
				return errors.New("the API server is away")
			}
			return nil
		}
		led(t, w, scan.ControllerOptions{Policies: told, Memory: memory}, func() {
			pass(time.Minute)
			if len(w.pages()) != 0 {
				t.Error("began without knowing how far it had come")
			}
			memory.mu.Lock()
			memory.away = false
			memory.mu.Unlock()
			pass(5 * time.Minute)
			w.stub.mu.Lock()
			down = false
			w.stub.mu.Unlock()
			pass(5 * time.Minute)
			if len(w.answers()) != 1 || memory.saved().Ended.IsZero() {
				t.Errorf("%v, saved %+v", w.answers(), memory.saved())
			}
		})
		if len(w.failed) == 0 {
			t.Error("no failure is reported")
		}
	})
}

// TestOneKindDoesNotStopOthers: a list that never works is given up, and the round counts
// as incomplete.
func TestOneKindDoesNotStopOthers(t *testing.T) {
	w := newWorld(t, labelPolicy("of-all", "*", ""))
	w.add(t, pods, pod("shop", "a", "nginx"))
	w.add(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"a"}}`)
	w.before = func(kind scan.Kind, _ string) error {
		if kind == pods {
			return errors.New("it is larger than a page may be")
		}
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		led(t, w, scan.ControllerOptions{Policies: &changes{}, Memory: &lease{}}, func() { pass(50 * time.Minute) })
	})
	if got := w.answers(); len(got) != 1 || got["ConfigMap shop/a"] != gate.Deny {
		t.Errorf("looked at %v", got)
	}
	rounds := w.rounds()
	if last := rounds[len(rounds)-1]; last.Complete() || len(w.refused) != 1 {
		t.Errorf("%+v, refused %v", last, w.refused)
	}
}

// TestControllerOptions: an interval that would ask for everything all the time is refused.
func TestControllerOptions(t *testing.T) {
	s := newWorld(t).scanner(t)
	for _, row := range []struct {
		reason string
		o      scan.ControllerOptions
		ok     bool
	}{
		{"the least", scan.ControllerOptions{Policies: &changes{}, Memory: &lease{}, Interval: time.Minute}, true},
		{"too often", scan.ControllerOptions{Policies: &changes{}, Memory: &lease{}, Interval: time.Second}, false},
		{"no source of changes", scan.ControllerOptions{Memory: &lease{}}, false},
		{"no memory", scan.ControllerOptions{Policies: &changes{}}, false},
		{"settles before it began", scan.ControllerOptions{Policies: &changes{}, Memory: &lease{}, Settled: -1}, false},
	} {
		if _, err := scan.NewController(s, row.o); (err == nil) != row.ok {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}
