package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestProtocols(t *testing.T) {
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, nil)
	for _, c := range []struct {
		reason  string
		http2   bool
		version uint16
		major   int
		refused bool
	}{
		{reason: "HTTP/2 over TLS 1.3", http2: true, version: tls.VersionTLS13, major: 2},
		{reason: "HTTP/2 over TLS 1.2", http2: true, version: tls.VersionTLS12, major: 2},
		{reason: "HTTP/1.1 over TLS 1.3", version: tls.VersionTLS13, major: 1},
		{reason: "HTTP/1.1 over TLS 1.2", version: tls.VersionTLS12, major: 1},
		{reason: "TLS 1.1 is refused", version: tls.VersionTLS11, refused: true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			client := f.client(t, c.http2, func(config *tls.Config) { config.MinVersion, config.MaxVersion = c.version, c.version })
			response, body, err := get(t, client, f.url("/mutate"))
			if c.refused {
				if err == nil {
					t.Fatal("the connection was not refused")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if response.ProtoMajor != c.major || body != "here" || response.Version != c.version {
				t.Errorf("HTTP/%d over %s answered %q", response.ProtoMajor, tls.VersionName(response.Version), body)
			}
		})
	}
}

func TestUnknownAuthorityIsRefusedByTheClient(t *testing.T) {
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, nil)
	other := newAuthority(t, "other")
	if _, _, err := get(t, f.client(t, true, func(c *tls.Config) { c.RootCAs = other.pool() }), f.url("/mutate")); err == nil {
		t.Error("a client that does not trust the authority was served")
	}
	if _, _, err := get(t, f.client(t, true, nil), f.url("/mutate")); err != nil {
		t.Errorf("its twin that does: %v", err)
	}
}

func TestNoCertificateYet(t *testing.T) {
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, func(s *Server) {
		s.endpoints.TLSConfig.GetCertificate = fixed{}.GetCertificate
	})
	if _, _, err := get(t, f.client(t, true, nil), f.url("/mutate")); err == nil {
		t.Error("served without a certificate")
	}
}

func TestCallers(t *testing.T) {
	callers, peers, foreign := newAuthority(t, "callers"), newAuthority(t, "peers"), newAuthority(t, "foreign")
	named, err := NewCallers(callers.pem(), "kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	anyPeer, err := NewCallers(peers.pem())
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, map[string]Endpoint{
		"/mutate": {Handler: saying("here"), Callers: named},
		"/peers":  {Handler: saying("here"), Callers: anyPeer},
		"/open":   {Handler: saying("here")},
	}, nil)
	const client = x509.ExtKeyUsageClientAuth
	for _, c := range []struct {
		reason   string
		shown    *tls.Certificate
		endpoint string
		status   int // 0: the handshake fails
	}{
		{"the API server's certificate", callers.leaf(t, "kube-apiserver", client), "/mutate", 200},
		{"none", nil, "/mutate", 403},
		{"of the authority, but with another name", callers.leaf(t, "intruder", client), "/mutate", 403},
		{"the right name, of another endpoint's authority", peers.leaf(t, "kube-apiserver", client), "/mutate", 403},
		{"the right name, of a foreign authority", foreign.leaf(t, "kube-apiserver", client), "/mutate", 0},
		{"the right name, for servers", callers.leaf(t, "kube-apiserver", x509.ExtKeyUsageServerAuth), "/mutate", 0},
		{"an endpoint without names takes any of its authority", peers.leaf(t, "anybody", client), "/peers", 200},
		{"but none of another's", callers.leaf(t, "kube-apiserver", client), "/peers", 403},
		{"an endpoint that asks for nothing", nil, "/open", 200},
		{"takes one that is known elsewhere", peers.leaf(t, "anybody", client), "/open", 200},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%s/http2=%t", c.reason, c.endpoint, http2), func(t *testing.T) {
				// Sent for any accepted authorities, as an attacker would.
				shown := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if c.shown == nil {
						return &tls.Certificate{}, nil
					}
					return c.shown, nil
				}
				response, body, err := get(t, f.client(t, http2, func(config *tls.Config) { config.GetClientCertificate = shown }), f.url(c.endpoint))
				switch {
				case c.status == 0 && err == nil:
					t.Fatalf("the handshake went well; HTTP %d", response.StatusCode)
				case c.status == 0:
					return
				case err != nil:
					t.Fatal(err)
				case response.StatusCode != c.status:
					t.Errorf("HTTP %d: %s", response.StatusCode, body)
				}
			})
		}
	}
}

func TestExpiredCallerOnAnOldConnection(t *testing.T) {
	ca := newAuthority(t, "callers")
	callers, err := NewCallers(ca.pem())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(ca.leaf(t, "kube-apiserver", x509.ExtKeyUsageClientAuth).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	connection := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf, ca.certificate}}}
	if err := callers.admit(connection, leaf.NotAfter); err != nil {
		t.Errorf("in its last second: %v", err)
	}
	if callers.admit(connection, leaf.NotAfter.Add(time.Second)) == nil {
		t.Error("a certificate that expired while the connection stood was let in")
	}
}

func TestPanicsEndNothing(t *testing.T) {
	seen := &counter{}
	f := start(t, map[string]Endpoint{
		"/before": {Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("at once") })},
		"/within": {Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half an ans")
			_ = http.NewResponseController(w).Flush()
			panic("half way")
		})},
		"/abort": {Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		"/fine":  {Handler: saying("here")},
	}, nil, WithObserver(seen))
	for _, http2 := range []bool{false, true} {
		client := f.client(t, http2, nil)
		response, _, err := get(t, client, f.url("/before"))
		if err != nil || response.StatusCode != http.StatusInternalServerError {
			t.Errorf("http2=%t: %v, %v: want 500", http2, response, err)
		}
		for _, path := range []string{"/within", "/abort"} {
			if _, body, err := get(t, client, f.url(path)); err == nil {
				t.Errorf("http2=%t: %s: half of an answer passed for a whole: %q", http2, path, body)
			}
		}
		if _, body, err := get(t, client, f.url("/fine")); err != nil || body != "here" {
			t.Errorf("http2=%t: afterwards: %q, %v", http2, body, err)
		}
	}
	if err := f.wait(); err != nil {
		t.Fatal(err)
	}
	// The client of HTTP/1.1 asks once more where a connection that was used before
	// breaks without an answer.
	if seen.panics["before"] != 2 || seen.panics["within"] < 2 || seen.panics["abort"] != 0 {
		t.Errorf("counted %v: want two and two, and none for a handler that left on purpose", seen.panics)
	}
	if !strings.Contains(f.log.String(), "half way") || !strings.Contains(f.log.String(), "server_test.go") {
		t.Error("the log has no panic with its stack")
	}
}

func TestSlowHeadersAreCut(t *testing.T) {
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, func(s *Server) {
		s.endpoints.ReadHeaderTimeout = 100 * time.Millisecond
	})
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: f.ca.pool(), NextProtos: []string{"http/1.1"}}}
	for _, c := range []struct {
		reason, text, want string
	}{
		{"a header that ends", "GET /mutate HTTP/1.1\r\nHost: gateway\r\n\r\n", "HTTP/1.1 200"},
		{"one that never does", "GET /mutate HTTP/1.1\r\nHost: gateway\r\nX-Slow: ", ""},
		{"one that is too long", "GET /mutate HTTP/1.1\r\nX-Long: " + strings.Repeat("a", maxHeader+8<<10) + "\r\n\r\n", "HTTP/1.1 431"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			connection, err := dialer.DialContext(t.Context(), "tcp", f.server.Address().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			if err := connection.SetReadDeadline(time.Now().Add(4 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(connection, c.text); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len("HTTP/1.1 200"))
			n, err := io.ReadFull(connection, got)
			if string(got[:n]) != c.want {
				t.Errorf("found %q, want %q", got[:n], c.want)
			}
			var slow net.Error
			if errors.As(err, &slow) && slow.Timeout() {
				t.Error("the connection was not cut")
			}
		})
	}
}

func TestTooManyConnections(t *testing.T) {
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, nil)
	limitedListener, ok := f.server.listening.endpoints.(*limitedListener)
	if !ok {
		t.Fatalf("the endpoints listen by %T", f.server.listening.endpoints)
	}
	inside := f.client(t, true, nil)
	if _, _, err := get(t, inside, f.url("/mutate")); err != nil {
		t.Fatal(err)
	}
	limitedListener.mu.Lock()
	limitedListener.most = 1
	limitedListener.mu.Unlock()
	if _, _, err := get(t, f.client(t, true, nil), f.url("/mutate")); err == nil {
		t.Error("a second connection was let in")
	}
	if _, body, err := get(t, inside, f.url("/mutate")); err != nil || body != "here" {
		t.Errorf("a client that was in: %q, %v", body, err)
	}
}

// TestAddressesShareRequestSlots: while one address has as many requests behind an endpoint as
// it can, one of another address is admitted. A rejected or ended request holds no slot.
func TestAddressesShareRequestSlots(t *testing.T) {
	hold := make(chan struct{})
	server, err := New(Config{
		Address: "127.0.0.1:0", Plain: "127.0.0.1:0", Certificates: fixed{}, Metrics: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler),
		Endpoints: map[string]Endpoint{"/mutate": {Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				<-hold
			}
			writeText(w, http.StatusOK, "here")
		})}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, from string) int {
		r, w := httptest.NewRequestWithContext(t.Context(), method, "/mutate", nil), httptest.NewRecorder()
		r.RemoteAddr = from
		server.endpoints.Handler.ServeHTTP(w, r)
		return w.Code
	}
	statuses := make(chan int, maxRequests)
	for port := range maxRequests {
		go func() { statuses <- ask(http.MethodPost, net.JoinHostPort("10.244.0.9", strconv.Itoa(1+port))) }()
	}
	for range maxRequests / 4 {
		if status := <-statuses; status != http.StatusServiceUnavailable {
			t.Fatalf("HTTP %d for one that is too many", status)
		}
	}
	for range maxRequests {
		if status := ask(http.MethodGet, "10.0.0.1:1"); status != http.StatusOK {
			t.Fatalf("another address: HTTP %d", status)
		}
	}
	if status := ask(http.MethodGet, "10.244.0.9:1"); status != http.StatusServiceUnavailable {
		t.Errorf("the same address: HTTP %d", status)
	}
	close(hold)
	for range maxRequests - maxRequests/4 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("one that was in: HTTP %d", status)
		}
	}
	if status := ask(http.MethodGet, "10.244.0.9:1"); status != http.StatusOK {
		t.Errorf("the same address, once its requests ended: HTTP %d", status)
	}
}

// arrivals are connections from addresses, each accepted once.
type arrivals struct {
	net.Listener
	from   []string
	closed []string
}

func (a *arrivals) Accept() (net.Conn, error) {
	if len(a.from) == 0 {
		return nil, net.ErrClosed
	}
	next := arrival{of: a, address: a.from[0]}
	a.from = a.from[1:]
	return next, nil
}

type arrival struct {
	net.Conn
	of      *arrivals
	address string
}

func (a arrival) RemoteAddr() net.Addr { return at(a.address) }

func (a arrival) Close() error {
	a.of.closed = append(a.of.closed, a.address)
	return nil
}

type at string

func (at) Network() string  { return "tcp" }
func (a at) String() string { return string(a) }

// opening are so many connections of a host.
func opening(host string, n int) []string {
	list := make([]string, n)
	for port := range list {
		list[port] = net.JoinHostPort(host, strconv.Itoa(1+port))
	}
	return list
}

// TestAddressesShareConnections: one client opens as many connections as it can from its
// addresses. Another client is admitted, and is not dropped again.
func TestAddressesShareConnections(t *testing.T) {
	const server = "10.0.0.1"
	for _, c := range []struct {
		reason        string
		before, after []string // addresses that connect before the API server does, and then again
		wants, has    int
	}{
		{"no other client", nil, nil, 12, 8},
		{"another client had all", opening("10.244.0.9", 100), nil, 3, 3},
		{"another IPv6 client had all", opening("fd00::9", 100), nil, 3, 3},
		{"another client comes back, again and again", opening("10.244.0.9", 100), opening("10.244.0.9", 100), 3, 3},
		{"two other clients", slices.Concat(opening("10.244.0.9", 9), opening("10.244.0.8", 9)), opening("10.244.0.8", 9), 2, 2},
		{"a later client has no more than its part", nil, opening("10.244.0.9", 100), 8, 4},
		{"one that wants all has its part", opening("10.244.0.9", 100), nil, 8, 4},
	} {
		a := &arrivals{from: slices.Concat(c.before, opening(server, c.wants), c.after)}
		all := len(a.from)
		l := LimitConnections(a, 8)
		var err error
		for in := 0; err == nil; in++ {
			_, err = l.Accept()
		}
		closed := slices.DeleteFunc(a.closed, func(address string) bool { return !strings.HasPrefix(address, server+":") })
		if got := c.wants - len(closed); got != c.has {
			t.Errorf("%s: %d of %d connections are open, want %d", c.reason, got, c.wants, c.has)
		}
		if limitedListener, ok := l.(*limitedListener); !ok || limitedListener.count != min(all, 8) {
			t.Errorf("%s: %d are in", c.reason, limitedListener.count)
		}
	}
}

// TestClosedConnectionsMakeRoom: a connection counts until it is closed, and closing it twice
// makes room once.
func TestClosedConnectionsMakeRoom(t *testing.T) {
	l := LimitConnections(&arrivals{from: opening("10.0.0.1", 3)}, 1)
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if second, err := l.Accept(); err != nil || second.RemoteAddr().String() != "10.0.0.1:2" {
		t.Errorf("after the first left: %v, %v", second, err)
	}
	if third, err := l.Accept(); err == nil {
		t.Errorf("%s was let in beside the second", third.RemoteAddr())
	}
}

// TestWithoutEndpoints: a process without endpoints listens for probes alone.
func TestWithoutEndpoints(t *testing.T) {
	for _, endpoints := range []map[string]Endpoint{nil, {"/mutate": {Handler: saying("here")}}} {
		f := start(t, endpoints, nil)
		if at := f.server.Address(); (at != nil) != (len(endpoints) > 0) {
			t.Errorf("with %d endpoints they are at %v", len(endpoints), at)
		}
		if response, _, err := get(t, http.DefaultClient, "http://"+f.server.PlainAddress().String()+"/healthz"); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("with %d endpoints: %v, %v", len(endpoints), response, err)
		}
		if err := f.server.Listen(t.Context()); err == nil {
			t.Error("it listens twice")
		}
		f.stop()
		if err := <-f.returned; err != nil {
			t.Errorf("after a drain with %d endpoints: %v", len(endpoints), err)
		}
		close(f.returned)
	}
}

func TestErrorLogIsBounded(t *testing.T) {
	to := &journal{}
	logged := log.New(NewErrorLog(slog.New(slog.NewTextHandler(to, nil))), "", 0)
	for range 1000 {
		logged.Print("http: TLS handshake error from 127.0.0.1:1: " + strings.Repeat("bad ", 1000))
	}
	lines := strings.Count(to.String(), "\n")
	if lines < lineBurst || lines > lineBurst+5 {
		t.Errorf("%d lines of a thousand: want about %d", lines, lineBurst)
	}
	if longest := len(to.String()) / lines; longest > maxLine+200 {
		t.Errorf("a line of %d bytes", longest)
	}
}

// TestRejectionsDoNotFillTheLog: a rejected client is logged, but not each time.
func TestRejectionsDoNotFillTheLog(t *testing.T) {
	callers, err := NewCallers(newAuthority(t, "callers").pem())
	if err != nil {
		t.Fatal(err)
	}
	to := &journal{}
	server, err := New(Config{
		Address: ":0", Plain: ":0", Certificates: fixed{}, Endpoints: map[string]Endpoint{"/mutate": {Handler: saying(""), Callers: callers}},
		Metrics: http.NotFoundHandler(), Log: slog.New(slog.NewTextHandler(to, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		w := httptest.NewRecorder()
		server.endpoints.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/mutate", nil))
		if w.Code != http.StatusForbidden {
			t.Fatalf("a rejected client is answered %d", w.Code)
		}
	}
	if lines := strings.Count(to.String(), "client rejected"); lines < lineBurst || lines > lineBurst+5 {
		t.Errorf("%d lines of a thousand: want about %d", lines, lineBurst)
	}
}

func TestNewRefuses(t *testing.T) {
	good := func() Config {
		return Config{
			Address: ":0", Plain: ":0", Certificates: fixed{}, Endpoints: map[string]Endpoint{"/mutate": {Handler: saying("")}},
			Metrics: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler),
		}
	}
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		change func(*Config)
		with   []Option
	}{
		{"no certificates", func(c *Config) { c.Certificates = nil }, nil},
		{"no metrics", func(c *Config) { c.Metrics = nil }, nil},
		{"no log", func(c *Config) { c.Log = nil }, nil},
		{"an address without a port", func(c *Config) { c.Address = "localhost" }, nil},
		{"a plain address without a port", func(c *Config) { c.Plain = "localhost" }, nil},
		{"a path without a slash", func(c *Config) { c.Endpoints = map[string]Endpoint{"mutate": {Handler: saying("")}} }, nil},
		{"a path that catches all", func(c *Config) { c.Endpoints = map[string]Endpoint{"/": {Handler: saying("")}} }, nil},
		{"a path with a method", func(c *Config) { c.Endpoints = map[string]Endpoint{"/a b": {Handler: saying("")}} }, nil},
		{"an endpoint without a handler", func(c *Config) { c.Endpoints = map[string]Endpoint{"/mutate": {}} }, nil},
		{"a check without a name", func(c *Config) { c.Checks = []Check{{Ready: func() error { return nil }}} }, nil},
		{"a check without a function", func(c *Config) { c.Checks = []Check{{Name: "trust"}} }, nil},
		{"a check by the name of the drain", func(c *Config) { c.Checks = []Check{{Name: drain, Ready: func() error { return nil }}} }, nil},
		{"no observer", func(*Config) {}, []Option{WithObserver(nil)}},
		{"a drain in the past", func(*Config) {}, []Option{WithDrainDelay(-1)}},
		{"a drain of hours", func(*Config) {}, []Option{WithDrainDelay(time.Hour)}},
		{"profiles for everybody", func(*Config) {}, []Option{WithProfiling("0.0.0.0:6060")}},
		{"profiles by a name", func(*Config) {}, []Option{WithProfiling("localhost:6060")}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			config := good()
			c.change(&config)
			if _, err := New(config, c.with...); err == nil {
				t.Error("not refused")
			}
		})
	}
}

func TestNewCallersRefuses(t *testing.T) {
	ca := newAuthority(t, "callers")
	leaf := ca.leaf(t, "leaf", x509.ExtKeyUsageClientAuth)
	for _, c := range []struct {
		reason string
		text   []byte
		names  []string
	}{
		{"nothing", nil, nil},
		{"no PEM", []byte("hello"), nil},
		{"something after the PEM", append(ca.pem(), "hello"...), nil},
		{"a certificate that is no authority's", authority{certificate: &x509.Certificate{Raw: leaf.Certificate[0]}}.pem(), nil},
		{"broken bytes", authority{certificate: &x509.Certificate{Raw: []byte("hello")}}.pem(), nil},
		{"an empty name", ca.pem(), []string{""}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if _, err := NewCallers(c.text, c.names...); err == nil {
				t.Error("not refused")
			}
		})
	}
	if _, err := NewCallers(ca.pem(), "kube-apiserver"); err != nil {
		t.Errorf("the twin that is right: %v", err)
	}
}
