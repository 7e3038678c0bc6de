package mirror_test

import (
	"context"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quaymaster/quaymaster/cluster/internal/mirror"
)

// server answers list and watch as the test wants.
type server struct {
	mu      sync.Mutex
	items   map[string]string // name to the label "v"
	err     error
	watcher *watch.RaceFreeFakeWatcher
	watches int
	version int
	old     bool // it does not support a watch with initial events
}

func (s *server) IsWatchListSemanticsUnSupported() bool { return !s.old }

func object(name, value string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"v": value}, ResourceVersion: "1"}}
}

func (s *server) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.version++
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(s.version)}}
	for name, value := range s.items {
		list.Items = append(list.Items, *object(name, value))
	}
	return list, nil
}

func (s *server) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.old && o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", field.ErrorList{field.Forbidden(field.NewPath("sendInitialEvents"), "it is off")})
	}
	if s.err != nil {
		return nil, s.err
	}
	s.watcher = watch.NewRaceFreeFake()
	s.watches++
	return s.watcher, nil
}

func (s *server) source() mirror.Source {
	return mirror.Source{Client: s, List: s.list, Watch: s.watch, Example: &metav1.PartialObjectMetadata{}}
}

func (s *server) set(items map[string]string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items, s.err = items, err
}

// told collects the reports of the mirror.
type told struct {
	mu      sync.Mutex
	batches []string
	failed  []string
}

func (c *told) changed(changes []mirror.Change[string]) {
	var words []string
	for _, change := range changes {
		switch change.Object {
		case nil:
			words = append(words, "-"+change.Key.Name+"="+change.Old)
		default:
			words = append(words, "+"+change.Key.Name+"="+change.Old+">"+change.New)
		}
	}
	slices.Sort(words)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, strings.Join(words, " "))
}

func (c *told) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, err.Error())
}

func (c *told) failures() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.failed)
}

func (c *told) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	batches := c.batches
	c.batches = nil
	return batches
}

func keep(o runtime.Object) (string, error) {
	value := o.(*metav1.PartialObjectMetadata).Labels["v"]
	if value == "broken" {
		return "", errors.New("is broken")
	}
	return value, nil
}

func newMirror(t *testing.T, c *told) *mirror.Mirror[string] {
	t.Helper()
	m, err := mirror.New(mirror.Options[string]{
		What: "things", Keep: keep, Changed: c.changed, Failed: c.fail,
		Same: func(a, b string) bool { return a == b },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func expect(t *testing.T, reason string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: reported %q, want %q", reason, got, want)
	}
}

func TestReportsTheExactDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := &server{items: map[string]string{"a": "1", "b": "1"}}, &told{}
		m := newMirror(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); m.Run(ctx, s.source()) }()
		<-m.Synced()
		synctest.Wait()
		expect(t, "the first list", c.take(), "+a=>1 +b=>1")

		s.watcher.Modify(object("a", "2"))
		synctest.Wait()
		expect(t, "a change", c.take(), "+a=1>2")
		s.watcher.Modify(object("a", "2"))
		synctest.Wait()
		expect(t, "a change of nothing that is kept", c.take())
		s.watcher.Delete(object("b", "1"))
		synctest.Wait()
		expect(t, "a deletion", c.take(), "-b=1")

		// The watch is too old: the reflector lists again.
		s.set(map[string]string{"a": "2", "c": "1"}, nil)
		s.watcher.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's clock: long enough for a back-off
		synctest.Wait()
		expect(t, "a list that is made again", c.take(), "+c=>1")

		s.set(map[string]string{"c": "1"}, nil)
		s.watcher.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's clock: long enough for a back-off
		expect(t, "an object missing from a list is removed", c.take(), "-a=2")
		if _, ok := m.Get("", "a"); ok {
			t.Error("a is still there")
		}
		if value, ok := m.Get("", "c"); !ok || value != "1" {
			t.Errorf("c is %q, %t; want 1", value, ok)
		}
		cancel()
		<-done
		m.Forget()
		expect(t, "a forgotten object is removed", c.take(), "-c=1")
	})
}

// In real time: client-go pauses by the time of the process's last error, which
// a bubble's clock is far from.
func TestFailuresAreReportedAndRetried(t *testing.T) {
	s, c := &server{err: errors.New("connection refused")}, &told{}
	failed := make(chan struct{}, 100)
	m, err := mirror.New(mirror.Options[string]{
		What: "things", Keep: keep, Changed: c.changed,
		Failed: func(err error) { c.fail(err); failed <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx, s.source()) }()
	<-failed
	select {
	case <-m.Synced():
		t.Error("synced without a list")
	default:
	}
	if first := c.failures()[0]; first != "list things: connection refused" {
		t.Errorf("the first failure is %q, want the operation and its object", first)
	}
	s.set(map[string]string{"a": "1", "bad": "broken"}, nil)
	<-m.Synced()
	cancel()
	<-done
	expect(t, "one that is broken does not hold up the others", c.take(), "+a=>1")
	all := c.failures()
	if last := all[len(all)-1]; !strings.Contains(last, "/bad: is broken") {
		t.Errorf("the last failure is %q, want one that names the object", last)
	}
}

// TestAnOldServerIsListed: missing support for a watch with initial events is no failure.
func TestAnOldServerIsListed(t *testing.T) {
	s, c := &server{old: true, items: map[string]string{"a": "1"}}, &told{}
	m, err := mirror.New(mirror.Options[string]{What: "things", Keep: keep, Changed: c.changed, Failed: c.fail})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx, s.source()) }()
	<-m.Synced()
	cancel()
	<-done
	expect(t, "it is listed", c.take(), "+a=>1")
	if all := c.failures(); len(all) > 0 {
		t.Errorf("failures: %v", all)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, row := range []struct {
		reason  string
		options mirror.Options[string]
		ok      bool
	}{
		{"all that is required", mirror.Options[string]{What: "things", Keep: keep}, true},
		{"no name for errors", mirror.Options[string]{Keep: keep}, false},
		{"no function to keep objects", mirror.Options[string]{What: "things"}, false},
	} {
		if _, err := mirror.New(row.options); (err == nil) != row.ok {
			t.Errorf("%s: got %v", row.reason, err)
		}
	}
}
