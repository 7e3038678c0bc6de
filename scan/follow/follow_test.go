package follow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/follow"
	"github.com/quaymaster/quaymaster/workload"
)

var (
	pods        = scan.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	namespaces  = scan.Kind{Version: "v1", Kind: "Namespace", Resource: "namespaces"}
	deployments = scan.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}
)

// message is the next event of a watch: a change, or an end.
type message struct {
	change follow.Change
	end    error // errEnd for an ordinary one
	bound  bool  // this is an end
}

var errEnd = errors.New("an ordinary end")

// stub is a cluster with events that a test sets.
type stub struct {
	events map[scan.Kind]chan message

	mu      sync.Mutex
	watched []string // kind and since, of each watch
	refuse  error    // what a watch is answered, if anything
	got     map[string]int
	fails   map[string][]error // the errors of the next looks at an object
}

func newStub() *stub {
	return &stub{
		events: map[scan.Kind]chan message{pods: make(chan message), namespaces: make(chan message), deployments: make(chan message)},
		got:    map[string]int{}, fails: map[string][]error{},
	}
}

func (s *stub) Watch(ctx context.Context, kind scan.Kind, since string, tell func(follow.Change)) (string, error) {
	s.mu.Lock()
	s.watched = append(s.watched, kind.Resource+"/"+since)
	refuse := s.refuse
	s.mu.Unlock()
	if refuse != nil {
		return since, refuse
	}
	for {
		select {
		case <-ctx.Done():
			return since, ctx.Err()
		case next := <-s.events[kind]:
			switch {
			case next.bound && errors.Is(next.end, errEnd):
				return since + "+", nil
			case next.bound:
				return since, next.end
			}
			tell(next.change)
		}
	}
}

func (s *stub) Get(_ context.Context, _ scan.Kind, namespace, name string) (workload.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := namespace + "/" + name
	s.got[id]++
	if left := s.fails[id]; len(left) > 0 {
		s.fails[id] = left[1:]
		return workload.Object{}, left[0]
	}
	return workload.Parse(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":%q,"name":%q}}`, namespace, name))
}

func (s *stub) watches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.watched)
}

// asked returns how often each object was asked for.
func (s *stub) asked() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.got)
}

// eye is a Looker and an Observer that remembers.
type eye struct {
	// slow is how long a look takes.
	slow time.Duration

	mu         sync.Mutex
	looked     []string
	counts     map[follow.Result]int
	unfollowed []scan.Kind
	failed     int
}

func (e *eye) Look(ctx context.Context, kind scan.Kind, object workload.Object, asked time.Time) error {
	if e.slow > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(e.slow):
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(asked) > e.slow {
		return errors.New("it was asked for before its turn")
	}
	e.looked = append(e.looked, kind.Resource+" "+object.Namespace()+"/"+object.Name())
	return nil
}

func (e *eye) Changed(what follow.Result, count int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.counts == nil {
		e.counts = map[follow.Result]int{}
	}
	e.counts[what] += count
}

func (e *eye) Unfollowed(kind scan.Kind, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unfollowed = append(e.unfollowed, kind)
}

func (e *eye) Failed(error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed++
}

func (e *eye) count(what follow.Result) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts[what]
}

// followed runs a Follower of the pods, from version 7 on, in a bubble until do returns.
func followed(t *testing.T, do func(f *follow.Follower, s *stub, e *eye)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, e := newStub(), &eye{}
		f, err := follow.New(follow.Options{Cluster: s, Observer: e, Excluded: []string{"quiet-*"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.Run(ctx, e); close(done) }()
		f.Kinds([]scan.Kind{pods, namespaces})
		f.Listed(pods, "7")
		f.Listed(namespaces, "7")
		synctest.Wait()
		do(f, s, e)
		stop()
		<-done
	})
}

func (s *stub) say(kind scan.Kind, changes ...follow.Change) {
	for _, c := range changes {
		s.events[kind] <- message{change: c}
		synctest.Wait()
	}
}

func (s *stub) end(kind scan.Kind, err error) {
	s.events[kind] <- message{end: err, bound: true}
	synctest.Wait()
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func behind(f *follow.Follower) []scan.Kind {
	kinds, _ := f.Behind()
	return kinds
}

// TestChangesLookedAt: changes that policies can see are looked at, and no others.
func TestChangesLookedAt(t *testing.T) {
	a := follow.Change{Namespace: "shop", Name: "a", UID: "1", Mark: 11}
	marked := func(c follow.Change, mark uint64) follow.Change { c.Mark = mark; return c }
	gone := func(c follow.Change) follow.Change { c.Gone = true; return c }
	for _, row := range []struct {
		reason  string
		kind    scan.Kind
		changes []follow.Change
		want    int
	}{
		{"an object that came", pods, []follow.Change{a}, 1},
		{"a status: the mark is the same", pods, []follow.Change{a, a, a}, 1},
		{"another mark each", pods, []follow.Change{a, marked(a, 12), marked(a, 11)}, 3},
		{"no mark: any change is possible", pods, []follow.Change{marked(a, 0), marked(a, 0)}, 2},
		{"it went", pods, []follow.Change{gone(a)}, 0},
		{"it went and came again", pods, []follow.Change{a, gone(a), a}, 2},
		{"another object of the same mark", pods, []follow.Change{a, {Namespace: "shop", Name: "b", UID: "2", Mark: 11}}, 2},
		{"a namespace that is left out", pods, []follow.Change{{Namespace: "quiet-1", Name: "a", UID: "1", Mark: 1}}, 0},
		{"one that is not", pods, []follow.Change{{Namespace: "loud-1", Name: "a", UID: "1", Mark: 1}}, 1},
		{"a Namespace that is left out", namespaces, []follow.Change{{Name: "quiet-1", UID: "1", Mark: 1}}, 0},
		{"one that is not", namespaces, []follow.Change{{Name: "loud-1", UID: "1", Mark: 1}}, 1},
	} {
		followed(t, func(_ *follow.Follower, s *stub, e *eye) {
			s.say(row.kind, row.changes...)
			if len(e.looked) != row.want || e.count(follow.Judged) != row.want {
				t.Errorf("%s: looked at %v, want %d", row.reason, e.looked, row.want)
			}
		})
	}
}

// TestPendingObjectIsLookedAtOnce: changes of a pending object are one.
func TestPendingObjectIsLookedAtOnce(t *testing.T) {
	followed(t, func(f *follow.Follower, s *stub, e *eye) {
		e.slow = time.Minute
		for i := range 4 { // all workers are busy
			s.say(pods, follow.Change{Namespace: "shop", Name: fmt.Sprint("busy", i)})
		}
		for range 5 {
			s.say(pods, follow.Change{Namespace: "shop", Name: "a"})
		}
		if f.Waiting() != 1 {
			t.Errorf("%d wait, want one", f.Waiting())
		}
		pass(3 * time.Minute)
		if got := s.asked()["shop/a"]; got != 1 {
			t.Errorf("it was asked for %d times, want once", got)
		}
	})
}

// TestVersionThatIsTooOld: where the API server knows no more what changed, a round lists
// the kind again, and it is followed from there.
func TestVersionThatIsTooOld(t *testing.T) {
	followed(t, func(f *follow.Follower, s *stub, e *eye) {
		s.end(pods, errEnd)
		if got := s.watches(); !slices.Contains(got, "pods/7+") || len(behind(f)) != 0 {
			t.Fatalf("after an ordinary end it watches %v, and %v are behind: want it to go on", got, behind(f))
		}
		_, fell := f.Behind()
		s.end(pods, &scan.ExpiredError{Err: errors.New("410")})
		select {
		case <-fell:
		default:
			t.Error("a kind that fell behind is not reported")
		}
		if got := behind(f); !slices.Equal(got, []scan.Kind{pods}) {
			t.Errorf("behind are %v, want pods", got)
		}
		before := len(s.watches())
		pass(time.Hour)
		if got := s.watches(); len(got) != before {
			t.Errorf("it is watched before it was listed: %v", got)
		}
		f.Listed(pods, "90")
		synctest.Wait()
		s.say(pods, follow.Change{Namespace: "shop", Name: "a"})
		if got := s.watches(); got[len(got)-1] != "pods/90" || len(behind(f)) != 0 || len(e.looked) != 1 {
			t.Errorf("watches %v, behind %v, looked at %v", got, behind(f), e.looked)
		}
	})
}

// TestTooManyChanges: of a kind of which more changes than may wait, a round finds the
// rest; its twin is one of which just as many do.
func TestTooManyChanges(t *testing.T) {
	for _, row := range []struct {
		reason string
		more   int
		behind bool
	}{{"as many as may wait", 0, false}, {"one more", 1, true}} {
		followed(t, func(f *follow.Follower, s *stub, e *eye) {
			e.slow = time.Hour
			for i := range 4 + follow.MaxWaiting + row.more { // four are looked at
				s.say(pods, follow.Change{Namespace: "shop", Name: fmt.Sprint("p", i)})
			}
			if got := behind(f); (len(got) > 0) != row.behind {
				t.Errorf("%s: behind are %v", row.reason, got)
			}
			if row.behind && (f.Waiting() != 0 || e.count(follow.Listed) != follow.MaxWaiting+1) {
				t.Errorf("%s: %d wait and %d are left to a round, want none and all", row.reason, f.Waiting(), e.count(follow.Listed))
			}
			if !row.behind && f.Waiting() != follow.MaxWaiting {
				t.Errorf("%s: %d wait", row.reason, f.Waiting())
			}
		})
	}
}

// TestRefusedWatch: a watch that is not allowed is reported once, keeps no round busy, and is
// tried again when the kind was listed again.
func TestRefusedWatch(t *testing.T) {
	for _, row := range []struct {
		reason string
		refuse func(s *stub)
	}{
		{"the watch", func(s *stub) { s.end(pods, fmt.Errorf("%w: no watch", scan.ErrRefused)) }},
		{"the object", func(s *stub) {
			s.fails["shop/a"] = []error{fmt.Errorf("%w: no get", scan.ErrRefused)}
			s.say(pods, follow.Change{Namespace: "shop", Name: "a"})
		}},
	} {
		followed(t, func(f *follow.Follower, s *stub, e *eye) {
			row.refuse(s)
			pass(time.Hour)
			if len(e.unfollowed) != 1 || e.unfollowed[0] != pods || len(behind(f)) != 0 || len(s.watches()) != 2 {
				t.Errorf("%s: reported %v, behind %v, watches %v", row.reason, e.unfollowed, behind(f), s.watches())
			}
			f.Listed(pods, "8")
			synctest.Wait()
			if got := s.watches(); got[len(got)-1] != "pods/8" {
				t.Errorf("%s: it is not tried again: %v", row.reason, got)
			}
		})
	}
}

// TestUnreadableObjectDoesNotBlock: a round counts it; trouble in its place is tried
// again.
func TestUnreadableObjectDoesNotBlock(t *testing.T) {
	for reason, test := range map[string]struct {
		err   error
		asked int
	}{
		"unreadable": {fmt.Errorf("%w: nested too deep", follow.ErrUnreadable), 1},
		"trouble":    {errors.New("away"), 2},
	} {
		followed(t, func(_ *follow.Follower, s *stub, e *eye) {
			const some = 40
			for i := range some {
				name := fmt.Sprint("bad", i)
				s.fails["shop/"+name] = []error{test.err}
				s.say(pods, follow.Change{Namespace: "shop", Name: name})
			}
			s.say(pods, follow.Change{Namespace: "shop", Name: "good"})
			if test.asked == 1 {
				pass(time.Second)
			} else {
				pass(time.Hour)
			}
			got := s.asked()
			if got["shop/good"] != 1 || got["shop/bad0"] != test.asked || (e.count(follow.Listed) == some) != (test.asked == 1) {
				t.Errorf("%s: the good one was asked for %d times, a bad one %d, and %d are left to a round", reason, got["shop/good"], got["shop/bad0"], e.count(follow.Listed))
			}
		})
	}
}

// TestTroubleIsTriedAgain: an API server that is away loses no change.
func TestTroubleIsTriedAgain(t *testing.T) {
	followed(t, func(f *follow.Follower, s *stub, e *eye) {
		away := errors.New("away")
		s.fails["shop/a"] = []error{away, away, away}
		s.fails["shop/gone"] = []error{follow.ErrGone}
		s.say(pods, follow.Change{Namespace: "shop", Name: "a"}, follow.Change{Namespace: "shop", Name: "gone"})
		pass(time.Minute)
		if want := map[string]int{"shop/a": 4, "shop/gone": 1}; !maps.Equal(s.asked(), want) || len(e.looked) != 1 || e.failed != 3 {
			t.Errorf("asked %v, want %v; looked at %v, and %d failed", s.asked(), want, e.looked, e.failed)
		}
		s.refuse = away
		s.end(pods, away)
		pass(10 * time.Minute)
		tries := len(s.watches())
		if tries < 15 || tries > 30 {
			t.Errorf("%d watches were tried in ten minutes", tries)
		}
		s.mu.Lock()
		s.refuse = nil
		s.mu.Unlock()
		pass(time.Minute)
		s.say(pods, follow.Change{Namespace: "shop", Name: "late"})
		if s.asked()["shop/late"] != 1 || len(behind(f)) != 0 {
			t.Errorf("after the API server is back: asked %v, behind %v", s.asked(), behind(f))
		}
	})
}

// TestKinds: a kind that no policy matches any more is not watched, one that is newly matched is
// behind until it was listed, and one that cannot be listed is left alone.
func TestKinds(t *testing.T) {
	followed(t, func(f *follow.Follower, s *stub, _ *eye) {
		f.Kinds([]scan.Kind{namespaces, deployments})
		synctest.Wait()
		select {
		case s.events[pods] <- message{}:
			t.Error("pods are watched without a policy")
		default:
		}
		if got := behind(f); !slices.Equal(got, []scan.Kind{deployments}) {
			t.Errorf("behind are %v, want deployments", got)
		}
		f.Refused(deployments)
		if got := behind(f); len(got) != 0 {
			t.Errorf("behind are %v, which cannot be listed", got)
		}
		f.Kinds([]scan.Kind{namespaces, deployments, pods})
		f.Listed(pods, "") // of an API without a version
		synctest.Wait()
		if got := s.watches(); len(got) != 2 || len(behind(f)) != 0 {
			t.Errorf("watches %v, behind %v", got, behind(f))
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for reason, o := range map[string]follow.Options{"nothing": {}, "no observer": {Cluster: newStub()}, "no cluster": {Observer: &eye{}}} {
		if _, err := follow.New(o); err == nil {
			t.Errorf("%s is not refused", reason)
		}
	}
}
