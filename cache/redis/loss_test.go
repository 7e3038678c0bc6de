package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cache/redis"
)

const (
	// bound is the time of a Get in these tests, and slack what a busy
	// machine adds to it.
	bound = 100 * time.Millisecond
	slack = 2 * time.Second
)

// timed asks once, which must come back in time.
func timed(t *testing.T, store *redis.Store, key string) bool {
	t.Helper()
	began := time.Now()
	_, known := recall(t, store, key)
	if took := time.Since(began); took > bound+slack {
		t.Errorf("a Get took %s", took)
	}
	return known
}

// TestLoss loses the server in several ways during use: only the first request waits for
// the timeout, and the server is used again when it is back.
func TestLoss(t *testing.T) {
	for _, c := range []struct {
		reason     string
		lose, mend func(*server)
		remembers  bool
	}{
		{"killed and started again", (*server).kill, (*server).run, false},
		{"slow beyond measure", func(s *server) { s.signal(syscall.SIGSTOP) }, func(s *server) { s.signal(syscall.SIGCONT) }, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s := start(t, acl)
			seen := newCounts()
			store := open(t, s.configured(), redis.WithTimeout(bound), redis.WithObserver(seen))
			store.Keep("before", []byte("B"), time.Hour)
			kept(t, store, "before", "B")

			c.lose(s)
			if timed(t, store, "before") {
				t.Error("it is known without a server")
			}
			if status := store.Status(); !status.Unavailable || status.LastError == nil || time.Since(status.Since) > time.Minute {
				t.Errorf("%+v", status)
			}
			asked := seen.failures(redis.OpGet)
			for range 100 {
				timed(t, store, "before")
				store.Keep("meanwhile", []byte("M"), time.Hour)
			}
			if again := seen.failures(redis.OpGet); again != asked {
				t.Errorf("%d more Gets waited for an unavailable server", again-asked)
			}
			eventually(t, "it is probed without a request", func() bool { return seen.failures(redis.OpProbe) > 0 })

			c.mend(s)
			eventually(t, "it is asked again", func() bool { return !store.Status().Unavailable })
			kept(t, store, "meanwhile", "M")
			if known := timed(t, store, "before"); known != c.remembers {
				t.Errorf("an entry from before the loss is known: %v", known)
			}
		})
	}
}

// TestRestartBetween restarts the server between requests: the idle connection is
// dead, and the first request does not fail.
func TestRestartBetween(t *testing.T) {
	s := start(t, acl)
	seen := newCounts()
	store := open(t, s.configured(), redis.WithObserver(seen))
	store.Keep("a", []byte("A"), time.Hour)
	kept(t, store, "a", "A")
	eventually(t, "the writer is done with its connection", func() bool { return seen.writes() == 1 })
	s.kill()
	s.run()
	name := s.raw()
	set(t, name, "unrelated", "x")
	if _, known := recall(t, store, "a"); known {
		t.Error("it is known by an empty server")
	}
	if n := seen.failures(redis.OpGet); n != 0 || store.Status().Unavailable {
		t.Errorf("%d failures, %+v", n, store.Status())
	}
	store.Keep("a", []byte("A"), time.Hour)
	kept(t, store, "a", "A")
}

// TestTheCallerLeaves: a deadline of the caller does not make the server unavailable.
func TestTheCallerLeaves(t *testing.T) {
	s := start(t, acl)
	seen := newCounts()
	store := open(t, s.configured(), redis.WithObserver(seen))
	store.Keep("a", []byte("A"), time.Hour)
	kept(t, store, "a", "A")
	gone, leave := context.WithCancel(t.Context())
	leave()
	if got := store.Get(gone, []string{"a"}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	s.signal(syscall.SIGSTOP)
	hasty, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if got := store.Get(hasty, []string{"a"}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	s.signal(syscall.SIGCONT)
	if seen.failures(redis.OpGet) != 0 || store.Status().Unavailable {
		t.Errorf("%+v", store.Status())
	}
	kept(t, store, "a", "A")
}

// TestAFullQueue has a server that accepts nothing: Keep does not wait, the oldest
// entries are dropped first, and Close ends.
func TestAFullQueue(t *testing.T) {
	s := start(t, acl)
	seen := newCounts()
	store := open(t, s.configured(), redis.WithTimeout(bound), redis.WithObserver(seen))
	store.Keep("a", []byte("A"), time.Hour)
	kept(t, store, "a", "A")
	s.signal(syscall.SIGSTOP)
	timed(t, store, "a")
	began := time.Now()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				store.Keep("old", []byte("v"), time.Hour)
			}
		})
	}
	all.Wait()
	for range 20 {
		store.Keep("large", make([]byte, redis.MaxValue), time.Hour)
	}
	store.Keep("last", []byte("L"), time.Hour)
	if took := time.Since(began); took > slack {
		t.Errorf("it took %s", took)
	}
	if n := seen.drops(); n < 2013 { // 8 MiB hold 7 of the large ones and the last
		t.Errorf("%d dropped", n)
	}
	s.signal(syscall.SIGCONT)
	kept(t, store, "last", "L")
	if timed(t, store, "old") {
		t.Error("what came first is known")
	}
	s.signal(syscall.SIGSTOP)
	store.Keep("never", []byte("v"), time.Hour)
	began = time.Now()
	store.Close()
	if took := time.Since(began); took > 2*time.Second+slack {
		t.Errorf("Close took %s", took)
	}
	if seen.drops() < 2014 {
		t.Error("unwritten entries are not counted")
	}
}

// TestTheServerIsFull has reads go on while writes are refused.
func TestTheServerIsFull(t *testing.T) {
	s := start(t, acl, "maxmemory-policy noeviction")
	raw := s.raw()
	seen := newCounts()
	store := open(t, s.configured(), redis.WithObserver(seen))
	store.Keep("a", []byte("A"), time.Hour)
	kept(t, store, "a", "A")
	if err := raw.Do(t.Context(), raw.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", "1").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	store.Keep("b", []byte("B"), time.Hour)
	eventually(t, "it is counted", func() bool { return seen.drops() == 1 && seen.failures(redis.OpKeep) == 1 })
	if status := store.Status(); status.Unavailable || !strings.Contains(status.LastError.Error(), "OOM") {
		t.Errorf("%+v", status)
	}
	kept(t, store, "a", "A")
}

// TestServerDownAtStart makes a store long before its server.
func TestServerDownAtStart(t *testing.T) {
	s := start(t, acl)
	s.kill()
	store := open(t, s.configured(), redis.WithTimeout(bound))
	if timed(t, store, "a") || !store.Status().Unavailable {
		t.Errorf("%+v", store.Status())
	}
	s.run()
	store.Keep("a", []byte("A"), time.Hour)
	kept(t, store, "a", "A")
}

// TestTLS has a server known by its certificate, and three that are not.
func TestTLS(t *testing.T) {
	// A build without TLS does not know the directive, any other its value.
	said, _ := exec.Command("redis-server", "--tls-replication", "neither").CombinedOutput()
	if strings.Contains(string(said), "Bad directive") {
		t.Skip("skipped: this redis-server was built without TLS")
	}
	files, roots := certificate(t)
	s := start(t, "tls-cert-file "+files+".crt", "tls-key-file "+files+".key", "tls-ca-cert-file "+files+".crt", "tls-auth-clients no", acl)
	for _, c := range []struct {
		reason string
		tls    *tls.Config
		want   string // part of the error, as a pattern; empty: known
	}{
		{"its certificate", &tls.Config{RootCAs: roots}, ""},
		{"a certificate of an unknown authority", &tls.Config{RootCAs: x509.NewCertPool()}, "certificate"},
		{"another's name", &tls.Config{RootCAs: roots, ServerName: "other.example"}, "other.example"},
		{"no TLS", nil, "EOF|reset"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			config := s.configured()
			config.TLS = c.tls
			store := open(t, config)
			if c.want == "" {
				store.Keep("a", []byte("A"), time.Hour)
				kept(t, store, "a", "A")
				return
			}
			if timed(t, store, "a") {
				t.Error("it is known")
			}
			if status := store.Status(); !status.Unavailable || !regexp.MustCompile(c.want).MatchString(status.LastError.Error()) {
				t.Errorf("%+v", status)
			}
		})
	}
}

// certificate writes one for 127.0.0.1, and its key.
func certificate(t *testing.T) (files string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "shared cache"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	files = filepath.Join(t.TempDir(), "server")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{
		files + ".crt": public, files + ".key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	return files, roots
}
