package peers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// slow is a body of which nothing more comes until it is released.
type slow struct {
	began   chan<- struct{} // receives at the first read
	release <-chan struct{}
	rest    io.Reader
	once    sync.Once
	given   *atomic.Int64 // bytes that the endpoint holds, or held
}

func (s *slow) Read(p []byte) (int, error) {
	s.once.Do(func() { s.began <- struct{}{} })
	<-s.release
	n, err := s.rest.Read(p)
	s.given.Add(int64(n))
	return n, err
}

// TestUnauthenticatedBodiesAreNotRead has as many streams as took 384 MiB when bodies
// were read before their MAC was checked.
func TestUnauthenticatedBodiesAreNotRead(t *testing.T) {
	const streams = 665
	clock := time.Now()
	body := []byte(`{"keys":["a"]}`)
	d := testkit.Must(peers.NewHandler(peers.HandlerConfig{Key: ourKey, Memory: memory{"a": []byte("A")}, Now: func() time.Time { return clock }}))(t)
	for _, c := range []struct {
		reason string
		key    []byte
		header string
		want   int
		read   int64
	}{
		{"another key", otherKey, signedHeader(clock, 510<<10, nil), http.StatusForbidden, 0},
		{"a question of yesterday, sent again", ourKey, signedHeader(clock.Add(-24*time.Hour), len(body), body), http.StatusForbidden, 0},
		{"a replica that announces too much", ourKey, signedHeader(clock, 510<<10, nil), http.StatusBadRequest, 0},
		{"a header without an end", otherKey, strings.Repeat("0", 1<<20), http.StatusForbidden, 0},
		{"a replica", ourKey, signedHeader(clock, len(body), body), http.StatusOK, int64(len(body))},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var read atomic.Int64
			open := make(chan struct{})
			close(open)
			began := make(chan struct{}, streams)
			for range streams {
				source := &slow{began: began, release: open, rest: bytes.NewReader(body), given: &read}
				recorder := httptest.NewRecorder()
				d.ServeHTTP(recorder, sealed(c.key, c.header, source))
				if recorder.Code != c.want {
					t.Fatalf("%d, want %d", recorder.Code, c.want)
				}
			}
			if got := read.Load(); got != c.read*streams {
				t.Errorf("%d bytes were read of %d streams, want %d of each", got, streams, c.read)
			}
		})
	}
}

// TestSlowRequestsAreBounded has many clients with one captured header, and bodies that do
// not come, or do not end.
func TestSlowRequestsAreBounded(t *testing.T) {
	const streams, places = 200, 16
	body := []byte(`{"keys":["a"]}`)
	d := path(t, ourKey, memory{"a": []byte("A")})
	var given atomic.Int64
	began, release, codes := make(chan struct{}, streams), make(chan struct{}), make(chan int, streams)
	for range streams {
		source := &slow{began: began, release: release, rest: endless{}, given: &given}
		go func() {
			recorder := httptest.NewRecorder()
			d.ServeHTTP(recorder, sealed(ourKey, signedHeader(time.Now(), len(body), body), source))
			codes <- recorder.Code
		}()
	}
	for range streams - places {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Fatalf("%d, want %d while others are read", code, http.StatusServiceUnavailable)
		}
	}
	for range places {
		<-began
	}
	close(release)
	for range places {
		if code := <-codes; code != http.StatusForbidden {
			t.Errorf("an endless body: %d", code)
		}
	}
	if most := int64(places * (len(body) + 1)); given.Load() > most {
		t.Errorf("%d bytes were read of bodies that announced %d each, want at most %d", given.Load(), len(body), most)
	}
	recorder := httptest.NewRecorder()
	d.ServeHTTP(recorder, sealed(ourKey, signedHeader(time.Now(), len(body), body), bytes.NewReader(body)))
	if recorder.Code != http.StatusOK {
		t.Errorf("when they are gone: %d", recorder.Code)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// clocked is a connection with an observable deadline.
type clocked struct {
	*httptest.ResponseRecorder
	deadline time.Time
	err      error
}

func (c *clocked) SetReadDeadline(at time.Time) error {
	c.deadline = at
	return c.err
}

func TestABodyHasLittleTime(t *testing.T) {
	body := []byte(`{"keys":["a"]}`)
	for _, c := range []struct {
		reason string
		key    []byte
		err    error
		want   int
		set    bool
	}{
		{"a replica's question", ourKey, nil, http.StatusOK, true},
		{"one with another key, which is not read", otherKey, nil, http.StatusForbidden, false},
		{"the connection is gone", ourKey, errors.New("gone"), http.StatusBadRequest, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := &clocked{ResponseRecorder: httptest.NewRecorder(), err: c.err}
			path(t, ourKey, memory{"a": []byte("A")}).ServeHTTP(w, sealed(c.key, signedHeader(time.Now(), len(body), body), bytes.NewReader(body)))
			if w.Code != c.want {
				t.Errorf("%d, want %d", w.Code, c.want)
			}
			if left := time.Until(w.deadline); !w.deadline.IsZero() != c.set || left > 2*time.Second {
				t.Errorf("the body has %s", left)
			}
		})
	}
}

// TestUnauthenticatedBodiesOverHTTP2 sends bodies that never end, over
// HTTP/2: all are refused while they are still being sent.
func TestUnauthenticatedBodiesOverHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(path(t, ourKey, memory{}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = quiet()
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: (&replica{Server: server}).roots().pool}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 50 {
		reader, writer := io.Pipe()
		request := testkit.Must(http.NewRequestWithContext(ctx, http.MethodPost, server.URL+peers.Path, reader))(t)
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusForbidden || response.ProtoMajor != 2 {
			t.Errorf("%s over %s", response.Status, response.Proto)
		}
		_ = response.Body.Close()
		_ = writer.Close()
	}
}

// TestABusyReplicaIsAskedAgain distinguishes it from a broken one.
func TestABusyReplicaIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		reason string
		status int
		asked  int64
	}{
		{"busy", http.StatusServiceUnavailable, 2},
		{"broken", http.StatusInternalServerError, 1},
	} {
		r := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }))
		asker := client(t, ourKey, nil, r)
		for range 2 {
			asker.Get(t.Context(), []string{"a"})
		}
		if got := r.asked.Load(); got != c.asked {
			t.Errorf("%s: asked %d times, want %d", c.reason, got, c.asked)
		}
	}
}

func TestInvalidKeys(t *testing.T) {
	long, just := strings.Repeat("a", peers.MaxKey+1), strings.Repeat("a", peers.MaxKey)
	many := make([]string, peers.MaxKeys)
	for i := range many {
		many[i] = strings.Repeat("\\", peers.MaxKey) // twice as long on the wire
	}
	for _, c := range []struct {
		reason string
		keys   []string
		asked  int64
		known  int
	}{
		{"a key that is too long is not asked for", []string{long}, 0, 0},
		{"another beside it is", []string{long, just}, 1, 1},
		{"more than a request takes", many, 0, 0},
	} {
		r := serve(t, path(t, ourKey, memory{just: []byte("A"), long: []byte("B")}))
		got := client(t, ourKey, nil, r).Get(t.Context(), c.keys)
		if len(got) != c.known || r.asked.Load() != c.asked {
			t.Errorf("%s: %d known after %d questions", c.reason, len(got), r.asked.Load())
		}
	}
}
