package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cache/redis"
)

func TestNewRefusesInvalidOptions(t *testing.T) {
	good := redis.Config{Address: "127.0.0.1:6379", Keys: keys(key("k"))}
	for _, c := range []struct {
		reason string
		change func(*redis.Config)
		option redis.Option
		want   string // empty: accepted
	}{
		{"as it should be", func(*redis.Config) {}, nil, ""},
		{"IPv6", func(c *redis.Config) { c.Address = "[::1]:6379" }, nil, ""},
		{"no address", func(c *redis.Config) { c.Address = "" }, nil, "address"},
		{"no port", func(c *redis.Config) { c.Address = "redis" }, nil, "port"},
		{"port 0", func(c *redis.Config) { c.Address = "redis:0" }, nil, "host:port"},
		{"no host", func(c *redis.Config) { c.Address = ":6379" }, nil, "host:port"},
		{"a URL", func(c *redis.Config) { c.Address = "redis://redis:6379" }, nil, "address"},
		{"a user without a password", func(c *redis.Config) { c.Username = "u" }, nil, "without a password"},
		{"a user with one", func(c *redis.Config) { c.Username, c.Password = "u", secret("p") }, nil, ""},
		{"TLS without verification", func(c *redis.Config) { c.TLS = &tls.Config{InsecureSkipVerify: true} }, nil, "without certificate verification"},
		{"TLS", func(c *redis.Config) { c.TLS = &tls.Config{} }, nil, ""},
		{"no keys", func(c *redis.Config) { c.Keys = nil }, nil, "want the replicas' keys"},
		{"a short key", func(c *redis.Config) { c.Keys = keys([]byte("short")) }, nil, "5 bytes"},
		{"a short former key", func(c *redis.Config) { c.Keys = keys(key("k"), []byte("short")) }, nil, "5 bytes"},
		{"two former keys", func(c *redis.Config) { c.Keys = keys(key("k"), key("l"), key("m")) }, nil, ""},
		{"three", func(c *redis.Config) { c.Keys = keys(key("k"), key("l"), key("m"), key("n")) }, nil, "at most 2"},
		{"a prefix", nil, redis.WithPrefix("team-a:"), ""},
		{"no prefix", nil, redis.WithPrefix(""), "prefix"},
		{"a prefix that is a pattern", nil, redis.WithPrefix("a*"), "prefix"},
		{"a long prefix", nil, redis.WithPrefix(strings.Repeat("a", 65)), "prefix"},
		{"no time", nil, redis.WithTimeout(0), "timeout"},
		{"more time than an admission has", nil, redis.WithTimeout(time.Minute), "timeout"},
		{"no life", nil, redis.WithMaxTTL(-1), "maximum life"},
		{"too long a life", nil, redis.WithMaxTTL(10000 * time.Hour), "maximum life"},
		{"no observer", nil, redis.WithObserver(nil), "observer"},
		{"no clock", nil, redis.WithClock(nil), "clock"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			config, options := good, []redis.Option{}
			if c.change != nil {
				c.change(&config)
			}
			if c.option != nil {
				options = append(options, c.option)
			}
			store, err := redis.New(config, options...)
			if err == nil {
				store.Close()
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestReplicasShare: an entry that one replica writes is visible to the other, with only
// the rights that the documentation lists.
func TestReplicasShare(t *testing.T) {
	s := start(t, acl)
	seen := newCounts()
	one, two := open(t, s.configured()), open(t, s.configured(), redis.WithObserver(seen))
	value := []byte("A")
	one.Keep("a", value, time.Hour)
	value[0] = 'X' // it is the caller's
	one.Keep("b", []byte("B"), time.Hour)
	one.Keep("empty", nil, time.Hour)
	one.Keep("largest", make([]byte, redis.MaxValue), time.Hour)
	kept(t, two, "largest", string(make([]byte, redis.MaxValue)))
	got := two.Get(t.Context(), []string{"a", "unknown", "b", "a", "empty"})
	if len(got) != 3 || string(got["a"]) != "A" || string(got["b"]) != "B" || len(got["empty"]) != 0 {
		t.Errorf("got %q", got)
	}
	if _, known := got["empty"]; !known {
		t.Error("nothing is a value too")
	}
	if status := two.Status(); status.Unavailable || status.LastError != nil {
		t.Errorf("%+v", status)
	}
	before := seen.read(func(c *counts) int { return c.asked - c.known })
	two.Get(t.Context(), []string{"unknown"})
	if after := seen.read(func(c *counts) int { return c.asked - c.known }); after != before+1 {
		t.Errorf("%d misses after %d", after, before)
	}
	if got := two.Get(t.Context(), nil); len(got) != 0 {
		t.Errorf("asked for nothing: %q", got)
	}
}

// TestServerSeesNoKeysOrValues has neither keys nor values in the server, and an end to
// each entry.
func TestServerSeesNoKeysOrValues(t *testing.T) {
	s := start(t, acl)
	raw := s.raw()
	store := open(t, s.configured(), redis.WithMaxTTL(time.Hour))
	store.Keep("registry.example/app@sha256:0123", []byte("signed by someone@example.com"), 48*time.Hour)
	store.Keep("registry.example/long"+strings.Repeat("x", 900), []byte("signed"), time.Minute)
	eventually(t, "both are kept", func() bool { return len(s.entries(raw)) == 2 })
	for name, text := range s.entries(raw) {
		for _, leak := range []string{"registry.example", "sha256", "signed", "someone"} {
			if strings.Contains(name, leak) || strings.Contains(text, leak) {
				t.Errorf("%q holds %q", name, leak)
			}
		}
		if !strings.HasPrefix(name, "quaymaster:") || len(name) != len("quaymaster:")+43 {
			t.Errorf("the name %q", name)
		}
		ends, err := raw.Do(t.Context(), raw.B().Pttl().Key(name).Build()).AsInt64()
		if err != nil || ends <= 0 || ends > time.Hour.Milliseconds() {
			t.Errorf("it ends in %d ms, %v", ends, err)
		}
	}
}

func TestEntriesThatAreNotKept(t *testing.T) {
	s := start(t, acl)
	seen := newCounts()
	store := open(t, s.configured(), redis.WithObserver(seen))
	long := strings.Repeat("k", redis.MaxKey+1)
	store.Keep("no time", []byte("v"), 0)
	store.Keep("less than none", []byte("v"), -time.Second)
	store.Keep(long, []byte("v"), time.Hour)
	store.Keep("large", make([]byte, redis.MaxValue+1), time.Hour)
	store.Keep("control", []byte("v"), time.Hour)
	kept(t, store, "control", "v") // facts are written in their order
	if n := len(s.entries(s.raw())); n != 1 {
		t.Errorf("%d entries", n)
	}
	if got := store.Get(t.Context(), []string{"no time", "less than none", long, "large"}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if seen.drops() != 2 {
		t.Errorf("%d dropped, want those that are too long", seen.drops())
	}
}

// TestManyKeys has as many as are asked for at once, and one more.
func TestManyKeys(t *testing.T) {
	s := start(t, acl)
	store := open(t, s.configured())
	var all []string
	for i := range redis.MaxKeys + 1 {
		all = append(all, fmt.Sprint("key ", i))
		store.Keep(all[i], []byte(all[i]), time.Hour)
	}
	kept(t, store, all[redis.MaxKeys], all[redis.MaxKeys])
	got := store.Get(t.Context(), all)
	if len(got) != redis.MaxKeys {
		t.Errorf("%d known", len(got))
	}
	for k, v := range got {
		if string(v) != k {
			t.Errorf("%s is %q", k, v)
		}
	}
}

func TestKeysChange(t *testing.T) {
	s := start(t, acl)
	for _, c := range []struct {
		reason string
		keys   func() ([]byte, [][]byte)
		known  bool
	}{
		{"the same key", keys(key("k")), true},
		{"a new one, and the old one still counts", keys(key("n"), key("x"), key("k")), true},
		{"a new one, and it does not", keys(key("n"), key("x")), false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			writer := open(t, s.configured())
			writer.Keep("a", []byte("A"), time.Hour)
			kept(t, writer, "a", "A")
			config := s.configured()
			config.Keys = c.keys
			if _, known := recall(t, open(t, config), "a"); known != c.known {
				t.Errorf("known: %v", known)
			}
		})
	}
	t.Run("while it is used", func(t *testing.T) {
		var mu sync.Mutex
		current, former := key("k"), [][]byte(nil)
		config := s.configured()
		config.Keys = func() ([]byte, [][]byte) {
			mu.Lock()
			defer mu.Unlock()
			return current, former
		}
		turn := func(to []byte, from ...[]byte) {
			mu.Lock()
			defer mu.Unlock()
			current, former = to, from
		}
		seen := newCounts()
		store := open(t, config, redis.WithObserver(seen))
		kept(t, store, "a", "A")
		turn(key("n"), key("k"))
		kept(t, store, "a", "A")
		store.Keep("b", []byte("B"), time.Hour)
		kept(t, store, "b", "B")
		turn(key("n"))
		if _, known := recall(t, store, "a"); known {
			t.Error("it is known under a key that does not count any more")
		}
		kept(t, store, "b", "B")
		turn(nil)
		if _, known := recall(t, store, "b"); known || seen.failures(redis.OpGet) != 1 || store.Status().Unavailable {
			t.Errorf("without a key: known %v, %+v", known, store.Status())
		}
		store.Keep("c", []byte("C"), time.Hour)
		eventually(t, "it is not written in the open", func() bool { return seen.drops() == 1 })
		turn(key("n"))
		kept(t, store, "b", "B")
	})
}

// TestPasswords has the server refuse us, and take us when it is right again.
func TestPasswords(t *testing.T) {
	for _, c := range []struct {
		reason, rights string
		password       func() (string, error)
		known          bool
		want           string
	}{
		{"the right one", acl, secret(password), true, ""},
		{"a wrong one", acl, secret("wrong"), false, "WRONGPASS"},
		{"none to be had", acl, func() (string, error) { return "", errors.New("no file") }, false, "no file"},
		{"no right to read", strings.Replace(acl, "+getrange", "", 1), secret(password), false, "NOPERM"},
		{"no right to write", strings.Replace(acl, "+set", "", 1), secret(password), false, "NOPERM"},
		{"no right to our names", strings.Replace(acl, "quaymaster:", "other:", 1), secret(password), false, "NOPERM"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := start(t, c.rights)
			config := s.configured()
			config.Password = c.password
			seen := newCounts()
			store := open(t, config, redis.WithObserver(seen))
			store.Keep("a", []byte("A"), time.Hour)
			if c.known {
				kept(t, store, "a", "A")
				return
			}
			eventually(t, "it fails", func() bool {
				if _, known := recall(t, store, "a"); known {
					t.Fatal("it is known")
				}
				return store.Status().LastError != nil
			})
			eventually(t, "it is counted", func() bool {
				return seen.drops()+seen.failures(redis.OpGet)+seen.failures(redis.OpProbe) > 0
			})
			if got := store.Status().LastError.Error(); !strings.Contains(got, c.want) || strings.Contains(got, password) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestCloseWrites: Close loses no pending entry.
func TestCloseWrites(t *testing.T) {
	s := start(t, acl)
	raw := s.raw()
	s.entries(raw)
	before := runtime.NumGoroutine()
	store := open(t, s.configured())
	for i := range 200 {
		store.Keep(fmt.Sprint(i), []byte("v"), time.Hour)
	}
	store.Close()
	store.Close()
	if n := len(s.entries(raw)); n != 200 {
		t.Errorf("%d entries", n)
	}
	eventually(t, "its goroutines are gone", func() bool { return runtime.NumGoroutine() <= before })
	store.Keep("late", []byte("v"), time.Hour)
	if got := store.Get(t.Context(), []string{"1", "late"}); len(got) != 0 {
		t.Errorf("after the end: %q", got)
	}
}

// TestConcurrentUse reads and writes from more goroutines than there are connections.
func TestConcurrentUse(t *testing.T) {
	s := start(t, acl)
	store := open(t, s.configured())
	want := map[string]string{}
	for i := range 20 {
		k := fmt.Sprint("key ", i)
		want[k] = k
		store.Keep(k, []byte(k), time.Hour)
	}
	kept(t, store, "key 19", "key 19")
	asked := slices.Collect(maps.Keys(want))
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for range 20 {
				store.Keep(fmt.Sprint("more ", i), []byte("v"), time.Hour)
				for k, v := range store.Get(context.Background(), asked) {
					if want[k] != string(v) {
						t.Errorf("%s is %q", k, v)
					}
				}
			}
		})
	}
	all.Wait()
	if got := store.Get(t.Context(), asked); len(got) != len(want) {
		t.Errorf("%d known after it: %+v", len(got), store.Status())
	}
	clients, err := s.raw().Do(t.Context(), s.raw().B().ClientList().Build()).ToString()
	if err != nil || strings.Count(clients, "user="+user) > 8 {
		t.Errorf("connections, %v:\n%s", err, clients)
	}
}

// panicking is an observer that is broken.
type panicking struct{}

func (panicking) Requested(int, int)    { panic("requested") }
func (panicking) Rejected(redis.Reason) { panic("rejected") }
func (panicking) Kept(int)              { panic("kept") }
func (panicking) Dropped(int)           { panic("dropped") }
func (panicking) Failed(redis.Op)       { panic("failed") }

func TestAPanicStaysHere(t *testing.T) {
	s := start(t, acl)
	store := open(t, s.configured(), redis.WithObserver(panicking{}))
	store.Keep("large", make([]byte, redis.MaxValue+1), time.Hour)
	store.Keep("a", []byte("A"), time.Hour)
	if got := store.Get(t.Context(), []string{"a"}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if status := store.Status(); !status.Unavailable || status.LastError == nil {
		t.Errorf("%+v", status)
	}
}
