package redis_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/quaymaster/quaymaster/cache/redis"
)

const (
	user, password = "quaymaster", "for-tests-only"
	admin          = "for-tests-only-too"
	// acl lists the rights that the documentation requires.
	acl = "user " + user + " on >" + password + " ~quaymaster:* -@all +getrange +set"
)

// server is a real one, on loopback, that forgets all when it ends.
type server struct {
	t       testing.TB
	address string
	config  string
	process *exec.Cmd
}

// start starts a server, or skips the test where there is none.
func start(t testing.TB, lines ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("skipped: no redis-server in PATH (Debian package redis-server)")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	_ = listener.Close()
	dir := t.TempDir()
	port := "port"
	if len(lines) > 0 && strings.HasPrefix(lines[0], "tls-") {
		port = "port 0\ntls-port"
	}
	lines = append([]string{
		fmt.Sprintf("%s %d", port, address.Port), "bind 127.0.0.1", "dir " + dir, `save ""`, "appendonly no",
		"requirepass " + admin,
	}, lines...)
	s := &server{t: t, address: address.String(), config: filepath.Join(dir, "redis.conf")}
	if err := os.WriteFile(s.config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run()
	t.Cleanup(s.kill)
	return s
}

// run starts the process and waits until it listens.
func (s *server) run() {
	s.t.Helper()
	s.process = exec.Command("redis-server", s.config)
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func (s *server) kill() {
	_ = s.process.Process.Signal(syscall.SIGKILL)
	_ = s.process.Wait()
}

func (s *server) signal(what syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(what); err != nil {
		s.t.Fatal(err)
	}
}

// raw is an unrestricted client, as an attacker with control of the server has.
func (s *server) raw() rueidis.Client {
	s.t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.address}, ForceSingleClient: true, DisableCache: true, Password: admin,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

func (s *server) entries(raw rueidis.Client) map[string]string {
	s.t.Helper()
	ctx := context.Background()
	names, err := raw.Do(ctx, raw.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		text, err := raw.Do(ctx, raw.B().Get().Key(name).Build()).ToString()
		if err != nil {
			s.t.Fatal(err)
		}
		all[name] = text
	}
	return all
}

func set(t testing.TB, raw rueidis.Client, name, value string) {
	t.Helper()
	if err := raw.Do(context.Background(), raw.B().Set().Key(name).Value(value).Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

// eventually asks until it is so; a busy machine has a while.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); !so(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never: %s", what)
		}
	}
}

// counts is an observer.
type counts struct {
	mu                             sync.Mutex
	asked, known, written, dropped int

	rejected map[redis.Reason]int
	failed   map[redis.Op]int
}

func newCounts() *counts {
	return &counts{rejected: map[redis.Reason]int{}, failed: map[redis.Op]int{}}
}

func (c *counts) Requested(asked, known int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.known = c.asked+asked, c.known+known
}

func (c *counts) Rejected(why redis.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rejected[why]++
}

func (c *counts) Kept(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written += n
}

func (c *counts) Dropped(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped += n
}

func (c *counts) Failed(op redis.Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[op]++
}

func (c *counts) read(what func(*counts) int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return what(c)
}

func (c *counts) rejections(why redis.Reason) int {
	return c.read(func(c *counts) int { return c.rejected[why] })
}

func (c *counts) failures(op redis.Op) int {
	return c.read(func(c *counts) int { return c.failed[op] })
}

func (c *counts) writes() int { return c.read(func(c *counts) int { return c.written }) }

func (c *counts) drops() int { return c.read(func(c *counts) int { return c.dropped }) }

func key(letter string) []byte { return []byte(strings.Repeat(letter, 32)) }

func keys(current []byte, former ...[]byte) func() ([]byte, [][]byte) {
	return func() ([]byte, [][]byte) { return current, former }
}

func secret(text string) func() (string, error) {
	return func() (string, error) { return text, nil }
}

func (s *server) configured() redis.Config {
	return redis.Config{Address: s.address, Username: user, Password: secret(password), Keys: keys(key("k"))}
}

// open makes a store that is patient unless options say otherwise.
func open(t testing.TB, config redis.Config, with ...redis.Option) *redis.Store {
	t.Helper()
	store, err := redis.New(config, append([]redis.Option{redis.WithTimeout(2 * time.Second)}, with...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// recall asks for one key.
func recall(t testing.TB, store *redis.Store, key string) (string, bool) {
	t.Helper()
	value, known := store.Get(context.Background(), []string{key})[key]
	return string(value), known
}

// kept waits until the key is known.
func kept(t testing.TB, store *redis.Store, key, want string) {
	t.Helper()
	eventually(t, key+" is known", func() bool {
		got, known := recall(t, store, key)
		if known && got != want {
			t.Fatalf("%s is %q, want %q", key, got, want)
		}
		return known
	})
}
