package registry_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

func clientCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	certificate, pool, err := registrytest.NewClientCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return certificate, pool
}

// TestHosts: each host is reached as its own settings say.
func TestHosts(t *testing.T) {
	mine, pool := clientCertificate(t)
	foreign, _ := clientCertificate(t)
	private := registrytest.Options{TLS: true, Names: []string{"registry.example"}}
	mutual := private
	mutual.ClientCAs = pool
	for _, test := range []struct {
		reason  string
		options registrytest.Options
		host    func(*registrytest.Server) *registry.Host // nil: no settings
		other   bool                                      // the settings are of another host
		says    string                                    // "" means that it is resolved
	}{
		{reason: "a private authority", options: private, host: trusting()},
		{reason: "a private authority, not configured", options: private, says: "certificate"},
		{reason: "a private authority of another host", options: private, host: trusting(), other: true, says: "certificate"},
		{reason: "mutual TLS", options: mutual, host: trusting(mine)},
		{reason: "mutual TLS without certificate", options: mutual, host: trusting(), says: "client certificate"},
		{reason: "mutual TLS with a certificate that is not trusted", options: mutual, host: trusting(foreign), says: "client certificate"},
		{reason: "plain HTTP", options: registrytest.Options{}, host: func(*registrytest.Server) *registry.Host { return &registry.Host{PlainHTTP: true} }},
		{reason: "plain HTTP, not configured", options: registrytest.Options{}, says: "no TLS"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, test.options)
			server.PutImage("app", "v1", "content")
			host := "registry.example:" + server.Port()
			config := named(registry.Config{}, "registry.example")
			if test.host != nil {
				name := host
				if test.other {
					name = "other.example:" + server.Port()
				}
				config.Hosts = map[string]registry.Host{name: *test.host(server)}
			}
			client := newClient(t, config)
			_, err := client.Resolve(t.Context(), image.MustParse(host+"/app:v1"))
			if test.says == "" && err != nil {
				t.Fatal(err)
			}
			if test.says != "" && (image.KindOf(err) != image.Unavailable || !strings.Contains(err.Error(), test.says)) {
				t.Fatalf("%v, want one that contains %q", err, test.says)
			}
		})
	}
}

func trusting(certificates ...tls.Certificate) func(*registrytest.Server) *registry.Host {
	return func(server *registrytest.Server) *registry.Host {
		return &registry.Host{RootCAs: server.CertPool(), Certificates: certificates}
	}
}

// TestAClientCertificateStaysHome: other hosts may ask for it, be redirected to
// or be named as a token service.
func TestAClientCertificateStaysHome(t *testing.T) {
	mine, pool := clientCertificate(t)
	body := strings.Repeat("content", 10)
	names := []string{"home.example", "curious.example"}
	build := func(t *testing.T, auth registrytest.Auth) (home, curious *registrytest.Server, config registry.Config) {
		home = start(t, registrytest.Options{TLS: true, Names: names, ClientCAs: pool, Auth: auth})
		curious = start(t, registrytest.Options{TLS: true, Names: names, AskCertificate: true, Auth: registrytest.Auth{}})
		roots := home.CertPool()
		roots.AppendCertsFromPEM(curious.CertPEM())
		config = named(registry.Config{RootCAs: roots}, names...)
		config.Hosts = map[string]registry.Host{
			"home.example:" + home.Port():       {Certificates: []tls.Certificate{mine}},
			"curious.example:" + curious.Port(): {},
		}
		return home, curious, config
	}
	t.Run("a redirect to another host", func(t *testing.T) {
		home, curious, config := build(t, registrytest.Auth{})
		digest := home.PutBlob("app", "text/plain", []byte(body)).Digest
		curious.PutBlob("app", "text/plain", []byte(body))
		path := "/v2/app/blobs/" + digest
		home.SetFaults(registrytest.Fault{Kind: registrytest.Blob, Do: registrytest.RedirectTo("https://curious.example:" + curious.Port() + path)})
		got, err := newClient(t, config).Blob(t.Context(), repository(t, "home.example:"+home.Port()+"/app"), describe(digest, body), 1<<20)
		if err != nil || string(got) != body {
			t.Fatalf("%q, %v", got, err)
		}
		wantCertificates(t, home, true)
		wantCertificates(t, curious, false)
	})
	t.Run("a redirect by another host to the home of the certificate", func(t *testing.T) {
		home, curious, config := build(t, registrytest.Auth{})
		digest := home.PutBlob("private", "text/plain", []byte(body)).Digest
		curious.SetFaults(registrytest.Fault{Kind: registrytest.Blob, Do: registrytest.RedirectTo("https://home.example:" + home.Port() + "/v2/private/blobs/" + digest)})
		client := newClient(t, config)
		// A connection that showed the certificate is open, and must not be used.
		if _, err := client.Blob(t.Context(), repository(t, "home.example:"+home.Port()+"/private"), describe(digest, body), 1<<20); err != nil {
			t.Fatal(err)
		}
		got, err := client.Blob(t.Context(), repository(t, "curious.example:"+curious.Port()+"/app"), describe(digest, body), 1<<20)
		if image.KindOf(err) != image.Unavailable {
			t.Fatalf("another host got the client certificate: %q, %v", got, err)
		}
	})
	t.Run("a token service on another host", func(t *testing.T) {
		_, curious, config := build(t, registrytest.Auth{})
		home := start(t, registrytest.Options{TLS: true, Names: names, ClientCAs: pool, Auth: registrytest.Auth{
			Scheme: registrytest.Token, AnonymousPull: true, Realm: "https://curious.example:" + curious.Port() + "/token",
		}})
		config.RootCAs.AppendCertsFromPEM(home.CertPEM())
		config.Hosts["home.example:"+home.Port()] = registry.Host{Certificates: []tls.Certificate{mine}}
		home.PutImage("app", "v1", "content")
		_, _ = newClient(t, config).Resolve(t.Context(), image.MustParse("home.example:"+home.Port()+"/app:v1"))
		wantCertificates(t, curious, false)
	})
	t.Run("a token service on another host, which is listed for the registry", func(t *testing.T) {
		const asked = "home.example"
		_, curious, config := build(t, registrytest.Auth{})
		own := config.Hosts["curious.example:"+curious.Port()]
		own.Certificates = []tls.Certificate{mine}
		config.Hosts["curious.example:"+curious.Port()] = own
		for name, lists := range map[string]bool{asked: true, "other.example": false} {
			curious.Reset()
			home := start(t, registrytest.Options{TLS: true, Names: names, Auth: registrytest.Auth{
				Scheme: registrytest.Token, AnonymousPull: true, Realm: "https://curious.example:" + curious.Port() + "/token",
			}})
			config.RootCAs.AppendCertsFromPEM(home.CertPEM())
			config.Realms = map[string][]string{name + ":" + home.Port(): {"curious.example"}}
			_, _ = newClient(t, config).Resolve(t.Context(), image.MustParse(asked+":"+home.Port()+"/app:v1"))
			wantCertificates(t, curious, lists)
		}
	})
	t.Run("an insecure client", func(t *testing.T) {
		home, curious, config := build(t, registrytest.Auth{})
		home.PutImage("app", "v1", "content")
		curious.PutImage("app", "v1", "content")
		lax := newClient(t, config).Insecure()
		for _, host := range []string{"home.example:" + home.Port(), "curious.example:" + curious.Port()} {
			if _, err := lax.Resolve(t.Context(), image.MustParse(host+"/app:v1")); err != nil {
				t.Error(err)
			}
		}
		wantCertificates(t, home, true)
		wantCertificates(t, curious, false)
	})
}

func describe(digest, body string) image.Descriptor {
	return image.Descriptor{Digest: image.MustParseDigest(digest), Size: int64(len(body))}
}

func wantCertificates(t *testing.T, server *registrytest.Server, want bool) {
	t.Helper()
	if len(server.Requests()) == 0 {
		t.Fatal("it was not asked at all")
	}
	for _, q := range server.Requests() {
		if q.HasCertificate != want {
			t.Errorf("%s %s came with a client certificate: %t", q.Method, q.URI, q.HasCertificate)
		}
	}
}

// TestInsecureKeepsConfiguration: a host with settings is not believed
// without proof because a policy allows that.
func TestInsecureKeepsConfiguration(t *testing.T) {
	for _, test := range []struct {
		reason     string
		tls        bool
		configured bool
		want       image.Kind
	}{
		{"a host without settings", true, false, ""},
		{"a host with another authority", true, true, image.Unavailable},
		{"a host without settings and without TLS", false, false, ""},
		{"a host that is to have TLS", false, true, image.Unavailable},
	} {
		server, other := start(t, registrytest.Options{TLS: test.tls}), start(t, registrytest.Options{TLS: true})
		server.PutImage("app", "v1", "content")
		config := registry.Config{LoopbackTLS: []string{server.Host()}}
		if test.configured {
			config.Hosts = map[string]registry.Host{server.Host(): {RootCAs: other.CertPool()}}
		}
		_, err := newClient(t, config).Insecure().Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
		for _, err := range []error{err, newClient(t, config).Insecure().Ping(t.Context(), server.Host())} {
			if image.KindOf(err) != test.want {
				t.Errorf("%s: %q, want %q: %v", test.reason, image.KindOf(err), test.want, err)
			}
		}
	}
}

// TestConnectionsAreShared: HTTP/2 where the host has it, and few
// connections, with settings of the host and with credentials of many.
func TestConnectionsAreShared(t *testing.T) {
	mine, pool := clientCertificate(t)
	for _, test := range []struct {
		reason  string
		options registrytest.Options
		proto   string
		most    int
	}{
		{"HTTP/2 and mutual TLS", registrytest.Options{TLS: true, HTTP2: true, ClientCAs: pool}, "HTTP/2.0", 1},
		{"HTTP/1.1 and mutual TLS", registrytest.Options{TLS: true, ClientCAs: pool}, "HTTP/1.1", 1},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, test.options)
			server.PutImage("app", "v1", "content")
			client := newClient(t, registry.Config{
				LoopbackTLS: []string{server.Host()},
				Hosts:       map[string]registry.Host{server.Host(): {RootCAs: server.CertPool(), Certificates: []tls.Certificate{mine}}},
			})
			for range 5 {
				derived, err := client.WithCredentials(credentials(server.Host(), user)...)
				if err != nil {
					t.Fatal(err)
				}
				for _, each := range []*registry.Client{derived, derived.Insecure()} {
					if _, err := each.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1")); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := server.Connections(); got > test.most {
				t.Errorf("%d connections for ten requests, want %d", got, test.most)
			}
			for _, q := range server.Requests() {
				if q.Proto != test.proto {
					t.Errorf("asked with %s, want %s", q.Proto, test.proto)
				}
			}
		})
	}
}

func TestObserver(t *testing.T) {
	server := start(t, registrytest.Options{Delay: time.Millisecond, Auth: registrytest.Auth{Scheme: registrytest.Token, Username: "user", Password: password}})
	server.PutImage("app", "v1", "content")
	var mu sync.Mutex
	var seen []int
	client := newClient(t, registry.Config{Credentials: credentials(server.Host(), user)},
		registry.WithObserver(func(host string, status int, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if host != server.Host() || took < time.Millisecond && status != 0 {
				t.Errorf("%s took %s", host, took)
			}
			seen = append(seen, status)
		}))
	var meter registry.Meter
	if _, err := client.With(&meter).Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1")); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 3 || seen[0] != 401 || seen[1] != 200 || seen[2] != 200 || meter.Requests() != 3 {
		t.Errorf("seen %v, metered %d; want the challenge, the token and the answer", seen, meter.Requests())
	}
	server.Close()
	seen = nil
	if _, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1")); err == nil {
		t.Fatal("an answer of a registry that is closed")
	}
	if len(seen) == 0 || seen[0] != 0 {
		t.Errorf("without an answer: %v, want zeros", seen)
	}
}

func TestNewRefusesHosts(t *testing.T) {
	mine, pool := clientCertificate(t)
	for _, test := range []struct {
		reason string
		hosts  map[string]registry.Host
		taken  bool
	}{
		{"settings that go together", map[string]registry.Host{"a.example": {RootCAs: pool, Certificates: []tls.Certificate{mine}}}, true},
		{"an address for a host", map[string]registry.Host{"https://a.example": {}}, false},
		{"one host twice", map[string]registry.Host{"docker.io": {}, "index.docker.io": {}}, false},
		{"certificates without TLS", map[string]registry.Host{"a.example": {PlainHTTP: true, RootCAs: pool}}, false},
		{"plain HTTP alone", map[string]registry.Host{"a.example": {PlainHTTP: true}}, true},
		{"a client certificate without TLS", map[string]registry.Host{"a.example": {PlainHTTP: true, Certificates: []tls.Certificate{mine}}}, false},
		{"a key without its certificate", map[string]registry.Host{"a.example": {Certificates: []tls.Certificate{{PrivateKey: mine.PrivateKey}}}}, false},
		{"a certificate without its key", map[string]registry.Host{"a.example": {Certificates: []tls.Certificate{{Certificate: mine.Certificate}}}}, false},
	} {
		client, err := registry.New(registry.Config{Hosts: test.hosts})
		if (err == nil) != test.taken || (client == nil) == test.taken {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
	if _, err := registry.New(registry.Config{}, registry.WithObserver(nil)); err == nil {
		t.Error("an observer that is nil is taken")
	}
}
