package globalcontext_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// clock is a clock that is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newStore() (*globalcontext.Store, *clock) {
	c := &clock{at: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	return globalcontext.NewStore(c.now), c
}

func object(name string, replicas int64) any {
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"replicas": replicas}}
}

const (
	pods = "kubernetesResource: {version: v1, resource: pods}\n  "
	list = "projections: [{name: names, jmesPath: '[].metadata.name'}, {name: first, jmesPath: '[0].metadata.labels.app'}, {name: none, jmesPath: '[?`false`] | [0]'}]"
)

func put(t testing.TB, s *globalcontext.Store, e *globalcontext.Entry) {
	t.Helper()
	if err := s.Put(e); err != nil {
		t.Fatal(err)
	}
}

// why is the result of a read: a value, or the reason that there is none.
func why(s *globalcontext.Store, name, projection string) any {
	value, err := s.Get(name, projection)
	if err == nil {
		return value
	}
	if wrong, ok := errors.AsType[*globalcontext.Error](err); ok {
		return wrong.Reason
	}
	return err
}

func TestValues(t *testing.T) {
	s, _ := newStore()
	e := entry(t, pods+list)
	put(t, s, e)
	if err := s.Answer("things", e.Hash, []any{object("a", 1), object("b", 2)}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, projection string
		want             any
	}{
		{"things", "names", []any{"a", "b"}},
		{"things", "first", globalcontext.ErrProjection},
		{"things", "none", globalcontext.ErrProjection},
		{"things", "other", globalcontext.ErrAbsent},
		{"others", "", globalcontext.ErrAbsent},
	} {
		if got := why(s, row.name, row.projection); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s.%s: %v, want %v", row.name, row.projection, got, row.want)
		}
	}
	plain, err := s.Get("things", "")
	if err != nil || plain.([]any)[0].(map[string]any)["spec"].(map[string]any)["replicas"] != 1.0 {
		t.Errorf("%v %v: want 1.0", plain, err)
	}
	native, err := s.GetNative("things", "")
	if err != nil || native.([]any)[0].(map[string]any)["spec"].(map[string]any)["replicas"] != int64(1) {
		t.Errorf("%v %v: want 1", native, err)
	}
	if read, err := s.State("things"); read.IsZero() || !errors.Is(err, globalcontext.ErrProjection) || !strings.Contains(err.Error(), "projection first") {
		t.Errorf("%v %v: want the projection that has no value", read, err)
	}
	// An empty list is a value, and not the same as none.
	if err := s.Answer("things", e.Hash, []any{}); err != nil {
		t.Fatal(err)
	}
	if got := why(s, "things", "names"); !reflect.DeepEqual(got, []any{}) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestUnknownValues(t *testing.T) {
	broken := errors.New("connection refused")
	for _, row := range []struct {
		name string
		spec string
		do   func(s *globalcontext.Store, c *clock, hash string)
		want any
	}{
		{"it was not read", pods, func(*globalcontext.Store, *clock, string) {}, globalcontext.ErrNotRead},
		{"it could not be read", pods, func(s *globalcontext.Store, _ *clock, hash string) { s.Fail("things", hash, broken) }, globalcontext.ErrNotRead},
		{"it was read", pods, func(s *globalcontext.Store, _ *clock, hash string) { _ = s.Answer("things", hash, []any{}) }, []any{}},
		{"a watch that works is never old", pods, func(s *globalcontext.Store, c *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			c.pass(time.Hour)
		}, []any{}},
		{"the watch fails for a while", pods, func(s *globalcontext.Store, c *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			c.pass(time.Hour)
			s.Fail("things", hash, broken)
			c.pass(globalcontext.MaxOutage)
			s.Fail("things", hash, broken)
		}, []any{}},
		{"the watch fails for longer", pods, func(s *globalcontext.Store, c *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			s.Fail("things", hash, broken)
			c.pass(globalcontext.MaxOutage + 1)
			s.Fail("things", hash, broken)
		}, globalcontext.ErrStale},
		{"it is mended", pods, func(s *globalcontext.Store, c *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			s.Fail("things", hash, broken)
			c.pass(time.Hour)
			_ = s.Answer("things", hash, []any{"new"})
			c.pass(time.Hour)
		}, []any{"new"}},
		{"a call is not made again, without an error", "apiCall: {urlPath: /api/v1/pods, refreshInterval: 1m}", func(s *globalcontext.Store, c *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			c.pass(globalcontext.MaxOutage + time.Minute + 1)
		}, globalcontext.ErrStale},
		{"a call is late, and not by much", "apiCall: {urlPath: /api/v1/pods, refreshInterval: 1m}", func(s *globalcontext.Store, c *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			c.pass(globalcontext.MaxOutage + time.Minute)
		}, []any{}},
		{"a call fails long after it was due", "apiCall: {urlPath: /api/v1/pods, refreshInterval: 1m}", func(s *globalcontext.Store, c *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			c.pass(5 * time.Minute)
			s.Fail("things", hash, broken)
			c.pass(globalcontext.MaxOutage - 4*time.Minute + 1)
		}, globalcontext.ErrStale},
		{"a call fails long before it is due", "apiCall: {urlPath: /api/v1/pods, refreshInterval: 1h}", func(s *globalcontext.Store, c *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			c.pass(time.Minute)
			s.Fail("things", hash, broken)
			c.pass(globalcontext.MaxOutage + 1)
		}, globalcontext.ErrStale},
		{"its previous version is too large", pods, func(s *globalcontext.Store, _ *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			s.Fail("things", "other", globalcontext.ErrTooLarge)
			s.Fail("others", hash, globalcontext.ErrTooLarge)
			_ = s.Answer("others", hash, []any{})
		}, []any{}},
		{"its value is no JSON", pods, func(s *globalcontext.Store, _ *clock, hash string) {
			if s.Answer("things", hash, func() {}) == nil {
				panic("it is kept")
			}
		}, globalcontext.ErrTooLarge},
		{"its document is broken, and a reader of the previous one goes on", pods, func(s *globalcontext.Store, _ *clock, hash string) {
			s.Break("things", broken)
			_ = s.Answer("things", hash, []any{})
			s.Fail("things", hash, globalcontext.ErrTooLarge)
		}, globalcontext.ErrBroken},
		{"it is too large now", pods, func(s *globalcontext.Store, _ *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			s.Fail("things", hash, fmt.Errorf("more than 2,000: %w", globalcontext.ErrTooLarge))
		}, globalcontext.ErrTooLarge},
		{"its value is too large", pods, func(s *globalcontext.Store, _ *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			if s.Answer("things", hash, strings.Repeat("a", globalcontext.MaxValue)) == nil {
				panic("it is kept")
			}
		}, globalcontext.ErrTooLarge},
		{"its document is broken", pods, func(s *globalcontext.Store, _ *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			s.Break("things", broken)
		}, globalcontext.ErrBroken},
		{"it is gone", pods, func(s *globalcontext.Store, _ *clock, hash string) {
			_ = s.Answer("things", hash, []any{})
			s.Remove("things")
		}, globalcontext.ErrAbsent},
		{"an answer for its previous version", pods, func(s *globalcontext.Store, _ *clock, _ string) {
			_ = s.Answer("things", "other", []any{})
			s.Fail("things", "other", broken)
		}, globalcontext.ErrNotRead},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, c := newStore()
			e := entry(t, row.spec)
			put(t, s, e)
			row.do(s, c, e.Hash)
			put(t, s, e) // again: it changes nothing, unless the entry was gone or broken
			if ended, ok := row.want.(error); ok && (errors.Is(ended, globalcontext.ErrBroken) || errors.Is(ended, globalcontext.ErrAbsent)) {
				s, c = newStore()
				put(t, s, e)
				row.do(s, c, e.Hash)
			}
			if got := why(s, "things", ""); !reflect.DeepEqual(got, row.want) {
				t.Errorf("%v, want %v", got, row.want)
			}
			if _, err := s.Get("things", ""); err != nil && !strings.Contains(err.Error(), "things") {
				t.Errorf("%v does not say of what", err)
			}
		})
	}
}

// TestAnotherDocument: the value of an entry is not kept after the document
// changes.
func TestAnotherDocument(t *testing.T) {
	s, _ := newStore()
	before, after := entry(t, pods), entry(t, "kubernetesResource: {version: v1, resource: nodes}")
	put(t, s, before)
	if err := s.Answer("things", before.Hash, []any{}); err != nil {
		t.Fatal(err)
	}
	put(t, s, after)
	if got, ok := why(s, "things", "").(error); !ok || !errors.Is(got, globalcontext.ErrNotRead) {
		t.Errorf("%v", got)
	}
	if list := s.Entries(); len(list) != 1 || list[0] != after {
		t.Errorf("%v", list)
	}
}

func TestBounds(t *testing.T) {
	s, _ := newStore()
	third := strings.Repeat("a", globalcontext.MaxValue-100)
	kept := 0
	for i := range 6 {
		name := fmt.Sprintf("e%d", i)
		e := named(t, name)
		put(t, s, e)
		if s.Answer(name, e.Hash, third) == nil {
			kept++
		}
	}
	if kept != globalcontext.MaxValues/globalcontext.MaxValue {
		t.Errorf("%d values of %d bytes are kept", kept, len(third))
	}
	// Replaced and removed values free their room.
	e := named(t, "e0")
	if err := s.Answer("e0", e.Hash, third); err != nil {
		t.Error(err)
	}
	if err := s.Answer("e0", e.Hash, "small"); err != nil {
		t.Error(err)
	}
	s.Remove("e1")
	if err := s.Answer("e4", named(t, "e4").Hash, third); err != nil {
		t.Error(err)
	}
	for i := range globalcontext.MaxEntries {
		_ = s.Put(named(t, fmt.Sprintf("n%d", i)))
	}
	if len(s.Entries()) != globalcontext.MaxEntries {
		t.Errorf("%d entries", len(s.Entries()))
	}
	if err := s.Put(named(t, "more")); !errors.Is(err, globalcontext.ErrTooLarge) {
		t.Errorf("one more: %v", err)
	}
	if err := s.Put(named(t, "e0")); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	changed, err := compiler(t).Compile([]byte(strings.Replace(head, "things", "e0", 1) + "kubernetesResource: {version: v1, resource: nodes}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(changed); err != nil {
		t.Errorf("one that is there, and has changed: %v", err)
	}
	s.Break("more", errors.New("unreadable"))
	if got := why(s, "more", ""); !reflect.DeepEqual(got, globalcontext.ErrAbsent) {
		t.Errorf("one more that is broken: %v", got)
	}
	s.Break("e0", errors.New("unreadable"))
	if got := why(s, "e0", ""); !reflect.DeepEqual(got, globalcontext.ErrBroken) {
		t.Errorf("one that is there, and is broken: %v", got)
	}
	s.Remove("e2")
	s.Break("more", errors.New("unreadable"))
	if got := why(s, "more", ""); !reflect.DeepEqual(got, globalcontext.ErrBroken) {
		t.Errorf("a broken one for which there is room: %v", got)
	}
}

// TestLargestValues: a value of the largest size is kept, and not a byte more.
func TestLargestValues(t *testing.T) {
	s, _ := newStore()
	largest := strings.Repeat("a", globalcontext.MaxValue-2)
	for i := range globalcontext.MaxValues / globalcontext.MaxValue {
		e := named(t, fmt.Sprintf("e%d", i))
		put(t, s, e)
		if err := s.Answer(e.Name, e.Hash, largest); err != nil {
			t.Error(err)
		}
	}
	more := named(t, "more")
	put(t, s, more)
	if err := s.Answer("more", more.Hash, ""); !errors.Is(err, globalcontext.ErrTooLarge) {
		t.Errorf("more than all may be: %v", err)
	}
	s, _ = newStore()
	e := entry(t, pods+"projections: [{name: all, jmesPath: '@'}]")
	put(t, s, e)
	half := largest[:globalcontext.MaxValue/2-2]
	if err := s.Answer("things", e.Hash, half); err != nil {
		t.Error(err)
	}
	if err := s.Answer("things", e.Hash, half+"a"); !errors.Is(err, globalcontext.ErrTooLarge) {
		t.Errorf("more than may be with its projection: %v", err)
	}
}

// TestChangedMeanwhile: an answer for an entry that was replaced meanwhile is
// dropped.
func TestChangedMeanwhile(t *testing.T) {
	other := named(t, "things")
	for _, row := range []struct {
		name      string
		meanwhile func(*globalcontext.Store)
		want      any
	}{
		{"nothing happens", func(*globalcontext.Store) {}, []any{}},
		{"it is gone", func(s *globalcontext.Store) { s.Remove("things") }, globalcontext.ErrAbsent},
		{"it is broken", func(s *globalcontext.Store) { s.Break("things", errors.New("unreadable")) }, globalcontext.ErrBroken},
		{"it is another", func(s *globalcontext.Store) { _ = s.Put(other) }, globalcontext.ErrNotRead},
	} {
		s, _ := newStore()
		engine, err := jmespath.New(jmespath.Options{Random: rand.Reader, Now: func() time.Time {
			row.meanwhile(s)
			return time.Time{}
		}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := globalcontext.NewCompiler(engine)
		if err != nil {
			t.Fatal(err)
		}
		e, err := c.Compile([]byte(head + pods + "projections: [{name: when, jmesPath: time_now_utc()}]"))
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, e)
		if err := s.Answer("things", e.Hash, []any{}); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if got := why(s, "things", ""); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// TestStateAndAge: operators get more than rules do.
func TestStateAndAge(t *testing.T) {
	s, c := newStore()
	refused := errors.New("connection refused")
	e := entry(t, pods)
	check := func(reason, name string, age time.Duration, unusable, unreliable error) {
		t.Helper()
		if got, err := s.Age(name); got != age || !errors.Is(err, unusable) || (err == nil) != (unusable == nil) {
			t.Errorf("%s: age %v, %v", reason, got, err)
		}
		if _, err := s.State(name); !errors.Is(err, unreliable) || (err == nil) != (unreliable == nil) {
			t.Errorf("%s: state %v", reason, err)
		}
	}
	check("no entry", "others", -1, globalcontext.ErrAbsent, globalcontext.ErrAbsent)
	put(t, s, e)
	check("not read", "things", -1, globalcontext.ErrNotRead, globalcontext.ErrNotRead)
	if err := s.Answer("things", e.Hash, []any{}); err != nil {
		t.Fatal(err)
	}
	c.pass(5 * time.Minute)
	check("read", "things", 5*time.Minute, nil, nil)
	s.Fail("things", e.Hash, refused)
	check("it cannot be refreshed", "things", 5*time.Minute, nil, refused)
	c.pass(globalcontext.MaxOutage + 1)
	check("for too long", "things", globalcontext.MaxOutage+5*time.Minute+1, globalcontext.ErrStale, refused)
	c.pass(-time.Hour)
	check("a clock that is put back", "things", 0, nil, refused)

	_, err := s.Get("others", "")
	if wrong, ok := errors.AsType[*globalcontext.FieldError](err); ok {
		t.Errorf("%v is about a document: %v", err, wrong)
	}
}

func named(t testing.TB, name string) *globalcontext.Entry {
	t.Helper()
	e, err := compiler(t).Compile([]byte(strings.Replace(head, "things", name, 1) + pods))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestReference(t *testing.T) {
	s, _ := newStore()
	put(t, s, named(t, "a.b"))
	for _, row := range []struct{ text, name, projection string }{
		{"a", "a", ""},
		{"a.b", "a.b", ""},
		{"a.b.c", "a.b", "c"},
		{"a.c", "a", "c"},
		{".c", "", "c"},
	} {
		if name, projection := s.Reference(row.text); name != row.name || projection != row.projection {
			t.Errorf("%s: %s and %s", row.text, name, projection)
		}
	}
}

// TestSize: sizes are near those of JSON, and never far below.
func TestSize(t *testing.T) {
	for _, row := range []struct {
		value any
		json  int
	}{
		{nil, 4}, {"abc", 5}, {[]any{"a", "b"}, 9}, {map[string]any{"a": true}, 10}, {object("name", 3), 50},
	} {
		if got := globalcontext.Size(row.value); got < row.json-2 || got > 2*row.json+8 {
			t.Errorf("%v: %d, and %d as JSON", row.value, got, row.json)
		}
	}
}

// TestTogether: readers and writers do not disturb one another.
func TestTogether(t *testing.T) {
	s, _ := newStore()
	e := entry(t, pods+list)
	put(t, s, e)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				_ = s.Answer("things", e.Hash, []any{object("a", 1)})
				s.Fail("things", e.Hash, errors.New("x"))
			}
		})
		all.Go(func() {
			for range 50 {
				if value, err := s.Get("things", "names"); err == nil && !reflect.DeepEqual(value, []any{"a"}) {
					t.Error(value)
				}
				_, _ = s.State("things")
			}
		})
	}
	all.Wait()
}

func ExampleStore() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := globalcontext.NewCompiler(engine)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := c.Compile([]byte(`{"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": {"name": "deployments"},
		"spec": {"kubernetesResource": {"group": "apps", "version": "v1", "resource": "deployments"}, "projections": [{"name": "names", "jmesPath": "[].metadata.name"}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	s := globalcontext.NewStore(nil)
	if err := s.Put(e); err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Get("deployments", "names")
	fmt.Println(err)
	if err := s.Answer("deployments", e.Hash, []any{map[string]any{"metadata": map[string]any{"name": "web"}}}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Get(s.Reference("deployments.names")))
	// Output:
	// global context entry deployments, projection names, is not read yet
	// [web] <nil>
}

func BenchmarkGet(b *testing.B) {
	s, _ := newStore()
	e := entry(b, pods+list)
	put(b, s, e)
	if err := s.Answer("things", e.Hash, []any{object("a", 1)}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get("things", "names"); err != nil {
			b.Fatal(err)
		}
	}
}
