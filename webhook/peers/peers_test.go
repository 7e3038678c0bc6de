package peers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

var (
	ourKey   = bytes.Repeat([]byte("k"), 32)
	otherKey = bytes.Repeat([]byte("x"), 32)
)

type memory map[string][]byte

func (m memory) Remembered(keys []string) map[string][]byte {
	out := map[string][]byte{}
	for _, key := range keys {
		if fact, ok := m[key]; ok {
			out[key] = fact
		}
	}
	return out
}

type members []string

func (m members) Others() []string { return m }

type roots struct{ pool *x509.CertPool }

func (r roots) Roots() *x509.CertPool { return r.pool }

// replica is an endpoint on loopback, behind TLS.
type replica struct {
	*httptest.Server
	asked atomic.Int64
}

func serve(t testing.TB, handler http.Handler) *replica {
	t.Helper()
	r := &replica{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.asked.Add(1)
		handler.ServeHTTP(w, request)
	}))
	r.Config.ErrorLog = quiet()
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *replica) address() string { return r.Listener.Addr().String() }

func (r *replica) roots() roots {
	pool := x509.NewCertPool()
	pool.AddCert(r.Certificate())
	return roots{pool}
}

func path(t testing.TB, key []byte, facts peers.Memory) *peers.Handler {
	t.Helper()
	return testkit.Must(peers.NewHandler(peers.HandlerConfig{Key: key, Memory: facts}))(t)
}

// client asks replicas that share the first one's certificate.
func client(t testing.TB, key []byte, with []peers.Option, replicas ...*replica) *peers.Client {
	t.Helper()
	var others members
	for _, r := range replicas {
		others = append(others, r.address())
	}
	c := testkit.Must(peers.New(peers.Config{Key: key, Members: others, Roots: replicas[0].roots(), ServerName: "example.com"},
		append([]peers.Option{peers.WithLoopback(), peers.WithTimeout(5 * time.Second)}, with...)...))(t)
	t.Cleanup(c.Close)
	return c
}

func TestReplicasShareEntries(t *testing.T) {
	one := serve(t, path(t, ourKey, memory{"a": []byte("A"), "secret": []byte("not asked for")}))
	two := serve(t, path(t, ourKey, memory{"b": {0, 255, '"'}}))
	got := client(t, ourKey, nil, one, two).Get(t.Context(), []string{"a", "b", "c"})
	want := map[string][]byte{"a": []byte("A"), "b": {0, 255, '"'}}
	if !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// tampering changes an answer on its way.
type tampering struct {
	next   http.Handler
	change func(header http.Header, body []byte) []byte
}

func (p tampering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	recorder := httptest.NewRecorder()
	p.next.ServeHTTP(recorder, r)
	maps.Copy(w.Header(), recorder.Header())
	body := p.change(w.Header(), recorder.Body.Bytes())
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(body)
}

// TestFactsCannotBeForged has an attacker on the network, with answers in place of
// a replica, with its certificate even, and without the key.
func TestFactsCannotBeForged(t *testing.T) {
	var replayed []byte
	var replayedHeader http.Header
	for _, c := range []struct {
		reason string
		key    []byte
		change func(http.Header, []byte) []byte
		known  bool
	}{
		{"nothing is changed", ourKey, func(_ http.Header, b []byte) []byte { return b }, true},
		{"the endpoint has another key", otherKey, func(_ http.Header, b []byte) []byte { return b }, false},
		{"the fact is another", ourKey, func(_ http.Header, b []byte) []byte {
			return bytes.Replace(b, []byte("QQ=="), []byte("Qg=="), 1)
		}, false},
		{"a byte is missing", ourKey, func(_ http.Header, b []byte) []byte { return b[:len(b)-1] }, false},
		{"the MAC is missing", ourKey, func(h http.Header, b []byte) []byte { h.Del("Quaymaster-Mac"); return b }, false},
		{"the MAC is another", ourKey, func(h http.Header, b []byte) []byte {
			h.Set("Quaymaster-Mac", strings.Repeat("0", 64))
			return b
		}, false},
		{"an endless answer", ourKey, func(_ http.Header, b []byte) []byte { return append(b, bytes.Repeat([]byte(" "), 10<<20)...) }, false},
		{"an answer to an earlier question", ourKey, func(h http.Header, b []byte) []byte {
			maps.Copy(h, replayedHeader)
			return replayed
		}, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			handler := tampering{path(t, c.key, memory{"a": []byte("A")}), func(h http.Header, b []byte) []byte {
				body := c.change(h, b)
				if c.known {
					replayed, replayedHeader = bytes.Clone(b), h.Clone()
				}
				return body
			}}
			got := client(t, ourKey, nil, serve(t, handler)).Get(t.Context(), []string{"a"})
			if _, known := got["a"]; known != c.known {
				t.Errorf("known: %t, want %t", known, c.known)
			}
		})
	}
}

// TestAReflectedQuestionIsNoAnswer reflects the question's own MAC and body.
func TestAReflectedQuestionIsNoAnswer(t *testing.T) {
	mirror := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Quaymaster-Mac", r.Header.Get("Quaymaster-Mac"))
		_, _ = w.Write(body)
	}))
	var reported atomic.Int64
	c := client(t, ourKey, []peers.Option{peers.WithFailures(func(string, error) { reported.Add(1) })}, mirror)
	if got := c.Get(t.Context(), []string{"a"}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if reported.Load() != 1 {
		t.Error("a forged answer is not reported")
	}
}

func TestTheEndpointAnswersReplicasOnly(t *testing.T) {
	clock := time.Now()
	now := func() time.Time { return clock }
	sign := func(key []byte, at time.Time, keys ...string) *http.Request { return signed(t, key, at, keys...) }
	many := make([]string, peers.MaxKeys+1)
	for _, c := range []struct {
		reason  string
		request *http.Request
		want    int
	}{
		{"a replica", sign(ourKey, clock, "a"), http.StatusOK},
		{"a replica with a late clock", sign(ourKey, clock.Add(-29*time.Second), "a"), http.StatusOK},
		{"a stale question", sign(ourKey, clock.Add(-31*time.Second), "a"), http.StatusForbidden},
		{"a question from the future", sign(ourKey, clock.Add(31*time.Second), "a"), http.StatusForbidden},
		{"another key", sign(otherKey, clock, "a"), http.StatusForbidden},
		{"no MAC", httptest.NewRequest(http.MethodPost, peers.Path, strings.NewReader(`{"keys":["a"]}`)), http.StatusForbidden},
		{"too many keys", sign(ourKey, clock, many...), http.StatusBadRequest},
		{"too large", forged(ourKey, clock, []string{strings.Repeat("a", 1<<20)}), http.StatusBadRequest},
		{"another body", sealed(ourKey, signedHeader(clock, 12, []byte(`{"keys":[]} `)), strings.NewReader(`{"keys":["a"]}`)), http.StatusForbidden},
		{"another body of that length", sealed(ourKey, signedHeader(clock, 14, []byte(`{"keys":["b"]}`)), strings.NewReader(`{"keys":["a"]}`)), http.StatusForbidden},
		{"the body that was meant", sealed(ourKey, signedHeader(clock, 14, []byte(`{"keys":["a"]}`)), strings.NewReader(`{"keys":["a"]}`)), http.StatusOK},
		{"no JSON", sealed(ourKey, signedHeader(clock, 1, []byte(`{`)), strings.NewReader(`{`)), http.StatusBadRequest},
		{"a broken header", sealed(ourKey, "1 2", strings.NewReader(`{}`)), http.StatusForbidden},
		{"a GET", httptest.NewRequest(http.MethodGet, peers.Path, nil), http.StatusMethodNotAllowed},
	} {
		t.Run(c.reason, func(t *testing.T) {
			d := testkit.Must(peers.NewHandler(peers.HandlerConfig{Key: ourKey, Memory: memory{"a": []byte("A")}, Now: now}))(t)
			recorder := httptest.NewRecorder()
			d.ServeHTTP(recorder, c.request)
			if recorder.Code != c.want {
				t.Fatalf("%d, want %d", recorder.Code, c.want)
			}
			if recorder.Code != http.StatusOK && recorder.Body.Len() > 0 {
				t.Errorf("a refusal contains %q", recorder.Body)
			}
		})
	}
}

// signed takes the request that a client makes.
func signed(t testing.TB, key []byte, at time.Time, keys ...string) *http.Request {
	t.Helper()
	var request *http.Request
	catcher := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request = httptest.NewRequest(http.MethodPost, peers.Path, bytes.NewReader(body))
		request.Header = r.Header.Clone()
	}))
	if len(keys) > peers.MaxKeys { // a client does not send them
		return forged(key, at, keys)
	}
	client(t, key, []peers.Option{peers.WithClock(func() time.Time { return at })}, catcher).Get(t.Context(), keys)
	return request
}

func TestADeadPeerIsLeftAlone(t *testing.T) {
	var ahead atomic.Int64 // nanoseconds
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	var down atomic.Bool
	down.Store(true)
	live := path(t, ourKey, memory{"a": []byte("A")})
	flaky := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		live.ServeHTTP(w, r)
	}))
	c := client(t, ourKey, []peers.Option{peers.WithClock(now)}, flaky)
	for range 3 {
		c.Get(t.Context(), []string{"a"})
	}
	if n := flaky.asked.Load(); n != 1 {
		t.Errorf("asked %d times while it rests, want once", n)
	}
	down.Store(false)
	ahead.Store(int64(5 * time.Second))
	if got := c.Get(t.Context(), []string{"a"}); len(got) != 1 {
		t.Error("it is up again and not asked")
	}
}

// TestASilentPeerIsLeftAlone: also where each caller leaves as soon as it has an answer,
// as where many share one request.
func TestASilentPeerIsLeftAlone(t *testing.T) {
	release := make(chan struct{})
	silent := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() { close(release) })
	told := make(chan error, 10)
	c := client(t, ourKey, []peers.Option{
		peers.WithTimeout(50 * time.Millisecond), peers.WithFailures(func(_ string, err error) { told <- err }),
	}, silent)
	request := func() {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		c.Get(ctx, []string{"a"})
	}
	request()
	select {
	case err := <-told:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("reported %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a silent replica is not reported")
	}
	for range 5 {
		request()
	}
	if n := silent.asked.Load(); n != 1 {
		t.Errorf("asked %d times while it rests, want once", n)
	}
}

func TestASlowPeerCostsNoMoreThanTheTime(t *testing.T) {
	release := make(chan struct{})
	slow := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() { close(release) })
	fast := serve(t, path(t, ourKey, memory{"a": []byte("A")}))
	c := client(t, ourKey, []peers.Option{peers.WithTimeout(300 * time.Millisecond)}, fast, slow)
	started := time.Now()
	if got := c.Get(t.Context(), []string{"a"}); len(got) != 1 {
		t.Error("the fast peer's answer is lost")
	}
	if got := c.Get(t.Context(), []string{"a", "b"}); len(got) != 1 { // b: only the slow one could have it
		t.Error("the fast peer's answer is lost for the slow one's")
	}
	if took := time.Since(started); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := c.Get(ctx, []string{"b"}); len(got) != 0 {
		t.Error("an answer from nowhere")
	}
}

func TestPeersThatAreNotQueried(t *testing.T) {
	r := serve(t, path(t, ourKey, memory{"a": []byte("A")}))
	foreign := serve(t, path(t, ourKey, memory{"a": []byte("A")}))
	for _, c := range []struct {
		reason string
		name   string
		pool   *x509.CertPool
		with   []peers.Option
		known  bool
	}{
		{"all as it should be", "example.com", r.roots().pool, []peers.Option{peers.WithLoopback()}, true},
		{"loopback was not asked for", "example.com", r.roots().pool, nil, false},
		{"its certificate is for another name", "other.test", r.roots().pool, []peers.Option{peers.WithLoopback()}, false},
		{"its certificate leads to no root", "example.com", x509.NewCertPool(), []peers.Option{peers.WithLoopback()}, false},
		{"there are no roots yet", "example.com", nil, []peers.Option{peers.WithLoopback()}, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			config := peers.Config{Key: ourKey, Members: members{foreign.address(), "nonsense", "169.254.169.254:443"}, Roots: roots{c.pool}, ServerName: c.name}
			asker := testkit.Must(peers.New(config, append(c.with, peers.WithTimeout(5*time.Second))...))(t)
			defer asker.Close()
			if _, known := asker.Get(t.Context(), []string{"a"})["a"]; known != c.known {
				t.Errorf("known: %t, want %t", known, c.known)
			}
		})
	}
}

func TestConnectionsAreReused(t *testing.T) {
	var opened atomic.Int64
	r := httptest.NewUnstartedServer(path(t, ourKey, memory{"a": []byte("A")}))
	r.Config.ConnState = func(_ netConn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	r.StartTLS()
	t.Cleanup(r.Close)
	c := client(t, ourKey, nil, &replica{Server: r})
	for range 5 {
		c.Get(t.Context(), []string{"a"})
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for five questions in a row", n)
	}
}

func TestMeaninglessConfigurationIsRefused(t *testing.T) {
	whole := peers.Config{Key: ourKey, Members: members{}, Roots: roots{}, ServerName: "x"}
	testkit.Must(peers.New(whole))(t)
	for _, change := range []func(*peers.Config){
		func(c *peers.Config) { c.Key = c.Key[:31] },
		func(c *peers.Config) { c.Members = nil },
		func(c *peers.Config) { c.Roots = nil },
		func(c *peers.Config) { c.ServerName = "" },
	} {
		broken := whole
		change(&broken)
		if _, err := peers.New(broken); err == nil {
			t.Errorf("%+v is accepted", broken)
		}
	}
	if _, err := peers.New(whole, peers.WithTimeout(0)); err == nil {
		t.Error("no time is accepted")
	}
	if _, err := peers.NewHandler(peers.HandlerConfig{Key: ourKey}); err == nil {
		t.Error("no memory is accepted")
	}
}

// FuzzEndpoint throws bytes with a good MAC at the endpoint: the key may leak, and the
// process must stand.
func FuzzEndpoint(f *testing.F) {
	f.Add("1767225600000 "+strings.Repeat("0", 32)+" 14 x", []byte(`{"keys":["a"]}`))
	f.Add("", []byte(`{`))
	d := testkit.Must(peers.NewHandler(peers.HandlerConfig{Key: ourKey, Memory: memory{"a": []byte("A")}}))(f)
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		for _, header := range []string{header, signedHeader(time.Now(), len(body), body)} {
			recorder := httptest.NewRecorder()
			d.ServeHTTP(recorder, sealed(ourKey, header, bytes.NewReader(body)))
			if recorder.Code == http.StatusOK && !strings.HasSuffix(header, fmt.Sprintf(" %x", sha256.Sum256(body))) {
				t.Fatalf("a body that was not announced was answered: %q %s", header, body)
			}
		}
	})
}

func ExampleNew() {
	path, _ := peers.NewHandler(peers.HandlerConfig{Key: ourKey, Memory: memory{"a": []byte("a fact")}})
	other := httptest.NewTLSServer(path)
	defer other.Close()
	pool := x509.NewCertPool()
	pool.AddCert(other.Certificate())

	client, _ := peers.New(peers.Config{
		Key: ourKey, Members: members{other.Listener.Addr().String()}, Roots: roots{pool}, ServerName: "example.com",
	}, peers.WithLoopback(), peers.WithTimeout(5*time.Second))
	defer client.Close()
	fmt.Printf("%s\n", client.Get(context.Background(), []string{"a", "b"}))
	// Output: map[a:a fact]
}
