package registry_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/dial/dialtest"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

func start(t *testing.T, options registrytest.Options) *registrytest.Server {
	t.Helper()
	server := registrytest.Start(options)
	t.Cleanup(server.Close)
	return server
}

func newClient(t *testing.T, config registry.Config, options ...registry.Option) *registry.Client {
	t.Helper()
	client, err := registry.New(config, append([]registry.Option{registry.WithBackoff(time.Millisecond)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func repository(t *testing.T, s string) image.Repository {
	t.Helper()
	repository, err := image.ParseRepository(s)
	if err != nil {
		t.Fatal(err)
	}
	return repository
}

// wantKind fails unless err is of the kind.
func wantKind(t *testing.T, err error, kind image.Kind) {
	t.Helper()
	_ = wantFailure(t, err, kind)
}

// wantFailure fails unless err is of the kind, and reads as a message should.
func wantFailure(t *testing.T, err error, kind image.Kind) *registry.Error {
	t.Helper()
	if image.KindOf(err) != kind {
		t.Fatalf("kind %q, want %q: %v", image.KindOf(err), kind, err)
	}
	failure, ok := errors.AsType[*registry.Error](err)
	if !ok {
		t.Fatalf("%T is no *registry.Error: %v", err, err)
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("the message has several lines: %q", err)
	}
	return failure
}

// static is a keychain of one credential for the repositories with a name that
// begins with prefix.
type static struct {
	prefix string
	config authn.AuthConfig
}

func (s static) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if !strings.HasPrefix(r.String(), s.prefix) {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(s.config), nil
}

// named resolves names to this machine.
func named(config registry.Config, names ...string) registry.Config {
	table := map[string][]string{}
	for _, name := range names {
		table[name] = []string{"127.0.0.1"}
	}
	config.Resolver = dialtest.Resolver(table)
	config.Loopback = names
	return config
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		reason  string
		config  registry.Config
		options []registry.Option
	}{
		{reason: "a source without a name", config: registry.Config{Credentials: []registry.Source{{Keychain: static{}}}}},
		{reason: "a source without a keychain", config: registry.Config{Credentials: []registry.Source{{Name: "nothing"}}}},
		{reason: "an address for a host", config: registry.Config{PlainHTTP: []string{"http://reg.example"}}},
		{reason: "an empty host", config: registry.Config{LoopbackTLS: []string{""}}},
		{reason: "a host for TLS and for plain HTTP", config: registry.Config{PlainHTTP: []string{"localhost:5000"}, LoopbackTLS: []string{"localhost:5000"}}},
		{reason: "no concurrency in all", options: []registry.Option{registry.WithConcurrency(1, 0)}},
		{reason: "no book of allowances", options: []registry.Option{registry.WithAllowance(nil, false)}},
		{reason: "a backoff of nothing", options: []registry.Option{registry.WithBackoff(0)}},
		{reason: "no concurrency", options: []registry.Option{registry.WithConcurrency(0, 1)}},
		{reason: "no time", options: []registry.Option{registry.WithTimeout(0)}},
		{reason: "no backoff", options: []registry.Option{registry.WithBackoff(-1)}},
		{reason: "no proxy", options: []registry.Option{registry.WithProxy(nil)}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if _, err := registry.New(test.config, test.options...); err == nil {
				t.Error("accepted")
			}
		})
	}
	client, err := registry.New(registry.Config{})
	if err != nil {
		t.Fatalf("the zero configuration: %v", err)
	}
	for name, good := range map[string]bool{"named": true, "": false} {
		if _, err := client.WithCredentials(registry.Source{Name: name, Keychain: static{}}); (err == nil) != good {
			t.Errorf("a source of the name %q, later: %v", name, err)
		}
	}
	least := []registry.Option{registry.WithConcurrency(1, 1), registry.WithTimeout(1), registry.WithBackoff(1)}
	if _, err := registry.New(registry.Config{PlainHTTP: []string{"localhost:5000"}, LoopbackTLS: []string{"localhost:5001"}}, least...); err != nil {
		t.Errorf("the least that may be: %v", err)
	}
}

func TestResolve(t *testing.T) {
	tests := []struct {
		reason   string
		fault    registrytest.Fault
		requests int
		pulls    int
		kind     image.Kind
	}{
		{reason: "an honest tag by HEAD alone", requests: 1},
		{reason: "HEAD without digest", fault: registrytest.Fault{Method: "HEAD", Do: registrytest.LieDigest("")}, requests: 2, pulls: 1},
		{reason: "HEAD with a digest that is none", fault: registrytest.Fault{Method: "HEAD", Do: registrytest.LieDigest("sha256:../../x")}, requests: 2, pulls: 1},
		{reason: "HEAD is not supported", fault: registrytest.Fault{Method: "HEAD", Do: registrytest.Status(405)}, requests: 2, pulls: 1},
		{reason: "the tag is not there", fault: registrytest.Fault{Do: registrytest.Status(404)}, requests: 1, kind: image.NotFound},
		{reason: "the tag may not be seen", fault: registrytest.Fault{Do: registrytest.Status(403)}, requests: 1, kind: image.Refused},
		{reason: "the registry is down", fault: registrytest.Fault{Do: registrytest.Status(503)}, requests: 3, kind: image.Unavailable},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{})
			pushed := server.PutImage("team/app", "v1", "content")
			if test.fault.Do != nil {
				server.SetFaults(test.fault)
			}
			var meter registry.Meter
			client := newClient(t, registry.Config{}).With(&meter)
			pinned, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/team/app:v1"))
			if got := server.Count(""); got != test.requests || meter.Requests() != int64(got) {
				t.Errorf("%d requests, %d metered, want %d: %v", got, meter.Requests(), test.requests, server.Requests())
			}
			if test.kind != "" {
				wantKind(t, err, test.kind)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d := pinned.Descriptor()
			if d.Digest.String() != pushed.Digest || d.MediaType != pushed.MediaType || d.Size != pushed.Size {
				t.Errorf("%+v, want %+v", d, pushed)
			}
			if server.Pulls() != test.pulls || meter.Pulls() != int64(test.pulls) {
				t.Errorf("%d counted pulls, %d metered, want %d", server.Pulls(), meter.Pulls(), test.pulls)
			}
		})
	}
}

func TestResolveOfADigestSendsNoRequest(t *testing.T) {
	server := start(t, registrytest.Options{})
	pushed := server.PutImage("app", "v1", "content")
	client := newClient(t, registry.Config{})
	pinned, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1@"+pushed.Digest))
	if err != nil || pinned.Digest().String() != pushed.Digest {
		t.Fatalf("%v, %v", pinned, err)
	}
	if got := server.Count(""); got != 0 {
		t.Errorf("%d requests", got)
	}
	described, err := client.Describe(t.Context(), pinned)
	if err != nil || described.Descriptor().MediaType != pushed.MediaType || described.Descriptor().Size != pushed.Size {
		t.Fatalf("%+v, %v", described.Descriptor(), err)
	}
	if _, err := client.Describe(t.Context(), described); err != nil || server.Count("") != 1 || server.Pulls() != 0 {
		t.Errorf("%d requests and %d pulls, want one HEAD: %v", server.Count(""), server.Pulls(), err)
	}
	server.SetFaults(registrytest.Fault{Method: "HEAD", Do: registrytest.LieDigest(registrytest.DigestOf([]byte("other")))})
	_, err = client.Describe(t.Context(), pinned)
	wantKind(t, err, image.Corrupt)
}

func TestALyingTagDoesNotPassTheFetch(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	other := registrytest.DigestOf([]byte("other"))
	server.SetFaults(registrytest.Fault{Method: "HEAD", Do: registrytest.LieDigest(other)})
	client := newClient(t, registry.Config{})
	pinned, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
	if err != nil || pinned.Digest().String() != other {
		t.Fatalf("%v, %v", pinned, err)
	}
	_, _, err = client.Manifest(t.Context(), pinned.Repository(), pinned.Digest().String())
	wantKind(t, err, image.NotFound)
}

func TestManifest(t *testing.T) {
	other := registrytest.DigestOf([]byte("other"))
	mixed := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{},"layers":[],"manifests":[]}`)
	index := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)
	tests := []struct {
		reason string
		do     registrytest.Action
		tag    image.Kind // by tag; "" succeeds
		digest image.Kind // by digest
	}{
		{reason: "honest"},
		{reason: "a header that lies", do: registrytest.LieDigest(other), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "a header that is no digest", do: registrytest.LieDigest("md5:00"), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "no header", do: registrytest.LieDigest("")},
		{reason: "another body", do: registrytest.Body([]byte(`{}`)), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "a page", do: registrytest.HTML(), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "a media type of something else", do: registrytest.MediaType("application/pdf"), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "a media type without meaning", do: registrytest.MediaType("application/json")},
		{reason: "an index by its header, an image by its body", do: registrytest.MediaType(image.MediaTypeIndex), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "too large", do: registrytest.Oversize(image.MediaTypeManifest, 4<<20), tag: image.Bound, digest: image.Bound},
		{reason: "without end", do: registrytest.Endless(), tag: image.Bound, digest: image.Bound},
		{reason: "a bomb", do: registrytest.GzipBomb(64 << 20), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "half of it, each time", do: registrytest.Half(), tag: image.Unavailable, digest: image.Unavailable},
		{reason: "not there", do: registrytest.Status(404), tag: image.NotFound, digest: image.NotFound},
		{reason: "not for us", do: registrytest.Status(401), tag: image.Refused, digest: image.Refused},
		{reason: "forbidden", do: registrytest.Status(403), tag: image.Refused, digest: image.Refused},
		{reason: "too many requests", do: registrytest.Status(429), tag: image.Unavailable, digest: image.Unavailable},
		{reason: "broken", do: registrytest.Status(500), tag: image.Unavailable, digest: image.Unavailable},
		{reason: "a bad request", do: registrytest.Status(400), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "an image and an index at once", do: registrytest.Body(mixed), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "an index under the headers of an image", do: registrytest.Body(index), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "a redirect to itself", do: registrytest.RedirectLoop(), tag: image.Corrupt, digest: image.Corrupt},
		{reason: "a redirect to a file", do: registrytest.RedirectTo("file:///etc/passwd"), tag: image.Unavailable, digest: image.Unavailable},
		{reason: "a redirect to the metadata service", do: registrytest.RedirectTo("http://169.254.169.254/latest"), tag: image.Unavailable, digest: image.Unavailable},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{})
			pushed := server.PutImage("app", "v1", "content")
			if test.do != nil {
				server.SetFaults(registrytest.Fault{Method: "GET", Kind: registrytest.Manifest, Do: test.do})
			}
			client := newClient(t, registry.Config{})
			for reference, kind := range map[string]image.Kind{"v1": test.tag, pushed.Digest: test.digest} {
				descriptor, body, err := client.Manifest(t.Context(), repository(t, server.Host()+"/app"), reference)
				if kind != "" {
					wantKind(t, err, kind)
					if body != nil {
						t.Error("a body came with the error")
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if descriptor.Digest.String() != pushed.Digest || descriptor.MediaType != pushed.MediaType || descriptor.Size != pushed.Size {
					t.Errorf("%+v, want %+v", descriptor, pushed)
				}
			}
		})
	}
}

// TestAnotherManifestIsNotTaken: the answer is consistent in itself, but it is
// not the requested manifest.
func TestAnotherManifestIsNotTaken(t *testing.T) {
	server := start(t, registrytest.Options{})
	pushed := server.PutImage("app", "v1", "content")
	server.PutImage("app", "other", "other content")
	server.SetFaults(registrytest.Fault{Reference: pushed.Digest, Do: registrytest.Flip("other")})
	_, _, err := newClient(t, registry.Config{}).Manifest(t.Context(), repository(t, server.Host()+"/app"), pushed.Digest)
	wantKind(t, err, image.Corrupt)
}

func TestManifestRefusesInvalidReference(t *testing.T) {
	server := start(t, registrytest.Options{})
	client := newClient(t, registry.Config{})
	for _, reference := range []string{"", "../../x", "sha256:../../x", "a/b", "v1?x=y", "v1#x", "-v1", strings.Repeat("a", 129)} {
		_, _, err := client.Manifest(t.Context(), repository(t, server.Host()+"/app"), reference)
		wantKind(t, err, image.Corrupt)
	}
	if _, _, err := client.Manifest(t.Context(), image.Repository{}, "v1"); err == nil {
		t.Error("the empty repository was asked")
	}
	if got := server.Count(""); got != 0 {
		t.Errorf("%d requests", got)
	}
}

// encoded sets the Content-Encoding of a body, and leaves the body as it is.
func encoded(how string) registrytest.Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Encoding", how)
			next.ServeHTTP(w, q)
		})
	}
}

// TestUserAgent: requests have the client's User-Agent.
func TestUserAgent(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	for given, want := range map[string]string{"": "quaymaster", "mine/1.0": "mine/1.0"} {
		server.Reset()
		client := newClient(t, registry.Config{UserAgent: given})
		if _, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1")); err != nil {
			t.Fatal(err)
		}
		for _, request := range server.Requests() {
			if got := request.Header.Get("User-Agent"); got != want {
				t.Errorf("asked as %q, want %q", got, want)
			}
		}
	}
}

// TestRequestHeaders: manifests by all their types in one header, since some registries
// read the first only, and blobs by none.
func TestRequestHeaders(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	blob := server.PutBlob("app", "a/b", []byte("content"))
	client, where := newClient(t, registry.Config{}), repository(t, server.Host()+"/app")
	if _, _, err := client.Manifest(t.Context(), where, "v1"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Blob(t.Context(), where, describe(blob.Digest, "content"), 100); err != nil {
		t.Fatal(err)
	}
	for _, request := range server.Requests() {
		accept, said := request.Header["Accept"]
		switch request.Kind {
		case registrytest.Manifest:
			if len(accept) != 1 || !strings.Contains(accept[0], image.MediaTypeManifest) || !strings.Contains(accept[0], image.MediaTypeIndex) {
				t.Errorf("a manifest is asked for as %q", accept)
			}
		case registrytest.Blob:
			if said {
				t.Errorf("a blob is asked for as %q", accept)
			}
		default:
			t.Errorf("%s %s was asked, too", request.Method, request.URI)
		}
	}
}

func TestBlob(t *testing.T) {
	const most = 1 << 20
	content := []byte(strings.Repeat("content", 100))
	tests := []struct {
		reason   string
		do       registrytest.Action
		change   func(*image.Descriptor)
		most     int64
		kind     image.Kind
		requests int
		byOthers bool // the failure is not due to the content
	}{
		{reason: "honest", most: most, requests: 1},
		{reason: "without a size", most: most, change: func(d *image.Descriptor) { d.Size = 0 }, requests: 1},
		{reason: "exactly the allowed size", most: int64(len(content)), requests: 1},
		{reason: "its size is too much", most: int64(len(content)) - 1, kind: image.Bound},
		{reason: "more than is allowed, without a size", most: int64(len(content)) - 1, change: func(d *image.Descriptor) { d.Size = 0 }, kind: image.Bound, requests: 1},
		{reason: "another size than promised", most: most, change: func(d *image.Descriptor) { d.Size++ }, kind: image.Corrupt, requests: 1},
		{reason: "more than promised", most: most, change: func(d *image.Descriptor) { d.Size-- }, kind: image.Corrupt, requests: 1},
		{reason: "a negative size", most: most, change: func(d *image.Descriptor) { d.Size = -1 }, kind: image.Corrupt},
		{reason: "no digest", most: most, change: func(d *image.Descriptor) { d.Digest = image.Digest{} }, kind: image.Corrupt},
		{reason: "other bytes", most: most, do: registrytest.Body([]byte(strings.Repeat("CONTENT", 100))), kind: image.Corrupt, requests: 1, byOthers: true},
		{reason: "fewer bytes", most: most, do: registrytest.Body(content[1:]), kind: image.Corrupt, requests: 1, byOthers: true},
		{reason: "a redirect to itself", most: most, do: registrytest.RedirectLoop(), kind: image.Corrupt, requests: 6, byOthers: true},
		{reason: "without end", most: most, do: registrytest.Endless(), change: func(d *image.Descriptor) { d.Size = 0 }, kind: image.Bound, requests: 1},
		{reason: "a bomb", most: most, do: registrytest.GzipBomb(64 << 20), kind: image.Corrupt, requests: 1, byOthers: true},
		{reason: "unencoded, and declared so", most: most, do: encoded("identity"), requests: 1},
		{reason: "unencoded, and declared as gzip", most: most, do: encoded("gzip"), kind: image.Corrupt, requests: 1, byOthers: true},
		{reason: "not there", most: most, do: registrytest.Status(404), kind: image.NotFound, requests: 1, byOthers: true},
		{reason: "a rejected digest", most: most, do: registrytest.Status(400), kind: image.Corrupt, requests: 1},
		{reason: "too many requests", most: most, do: registrytest.Status(429), kind: image.Unavailable, requests: 3, byOthers: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{})
			pushed := server.PutBlob("app", "a/b", content)
			if test.do != nil {
				server.SetFaults(registrytest.Fault{Kind: registrytest.Blob, Do: test.do})
			}
			descriptor := image.Descriptor{Digest: image.MustParseDigest(pushed.Digest), Size: pushed.Size}
			if test.change != nil {
				test.change(&descriptor)
			}
			body, err := newClient(t, registry.Config{}).Blob(t.Context(), repository(t, server.Host()+"/app"), descriptor, test.most)
			if got := server.Count(""); got != test.requests {
				t.Errorf("%d requests, want %d", got, test.requests)
			}
			if test.kind != "" {
				wantKind(t, err, test.kind)
				if image.IsByContent(err) == test.byOthers {
					t.Errorf("due to the content: %t: %v", !test.byOthers, err)
				}
				return
			}
			if err != nil || string(body) != string(content) {
				t.Errorf("%d bytes, %v", len(body), err)
			}
		})
	}
}

func TestMeter(t *testing.T) {
	server := start(t, registrytest.Options{PullLimit: 5})
	pushed := server.PutImage("app", "v1", "content")
	var meter, other registry.Meter
	client := newClient(t, registry.Config{})
	repo := repository(t, server.Host()+"/app")
	if _, said := meter.Remaining(); said {
		t.Error("a limit before any request")
	}
	if _, _, err := client.With(&meter).Manifest(t.Context(), repo, "v1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.With(&other).Manifest(t.Context(), repo, "none"); err == nil {
		t.Fatal("found a blob that does not exist")
	}
	if n, said := meter.Remaining(); !said || n != 4 {
		t.Errorf("%d remain, %v", n, said)
	}
	if meter.Requests() != 1 || meter.Pulls() != 1 || meter.Bytes() != pushed.Size {
		t.Errorf("%d requests, %d pulls, %d bytes", meter.Requests(), meter.Pulls(), meter.Bytes())
	}
	if other.Requests() != 1 || other.Pulls() != 0 {
		t.Errorf("a missing manifest: %d requests, %d pulls", other.Requests(), other.Pulls())
	}
}

func TestErrorText(t *testing.T) {
	server := start(t, registrytest.Options{})
	client := newClient(t, registry.Config{})
	_, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
	want := "resolve " + server.Host() + "/app:v1: not found (HTTP 404); check the name and that it was pushed"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	server.SetFaults(registrytest.Fault{Do: registrytest.Status(http.StatusForbidden)})
	_, _, err = client.Manifest(t.Context(), repository(t, server.Host()+"/app"), "v1")
	for _, part := range []string{"refused (HTTP 403)", "anonymously", "docker login"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// TestRejectedDigest: a digest that the registry rejects is due to the content that names it; a tag, a
// rejected credential and a failure that may pass are not.
func TestRejectedDigest(t *testing.T) {
	coded := func(status int, code string) registrytest.Action {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q}]}`, code)
			})
		}
	}
	for _, test := range []struct {
		reason string
		do     registrytest.Action
		login  bool
		digest image.Kind // "": due to the content
		tag    image.Kind
	}{
		{"a digest of another algorithm", coded(400, "DIGEST_INVALID"), false, "", image.Corrupt},
		{"with a credential", coded(400, "DIGEST_INVALID"), true, "", image.Refused},
		{"without a code", registrytest.Status(422), false, "", image.Corrupt},
		{"without a code about content, with a credential", registrytest.Status(400), true, image.Refused, image.Refused},
		{"a refusal", coded(403, "DIGEST_INVALID"), false, image.Refused, image.Refused},
		{"a limit of requests", coded(429, "DIGEST_INVALID"), false, image.Unavailable, image.Unavailable},
		{"a failure of the registry", coded(500, "DIGEST_INVALID"), false, image.Unavailable, image.Unavailable},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var options registrytest.Options
			var config registry.Config
			if test.login {
				options.Auth = registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: password}
			}
			server := start(t, options)
			if test.login {
				config.Credentials = credentials(server.Host(), user)
			}
			pushed := server.PutImage("app", "v1", "content")
			client, repo := newClient(t, config), repository(t, server.Host()+"/app")
			digest := image.MustParseDigest(pushed.Digest)
			if _, _, err := client.Manifest(t.Context(), repo, pushed.Digest); err != nil {
				t.Fatal(err)
			}
			server.SetFaults(registrytest.Fault{Do: test.do})
			_, _, byDigest := client.Manifest(t.Context(), repo, pushed.Digest)
			_, ofBlob := client.Blob(t.Context(), repo, image.Descriptor{Digest: digest, Size: 2}, 2)
			for _, err := range []error{byDigest, ofBlob} {
				wantKind(t, err, cmp.Or(test.digest, image.Corrupt))
				if image.IsByContent(err) != (test.digest == "") {
					t.Errorf("due to the content: %t: %v", image.IsByContent(err), err)
				}
				if strings.Contains(err.Error(), "longer") {
					t.Errorf("no body was too long: %v", err)
				}
			}
			_, _, byTag := client.Manifest(t.Context(), repo, "v1")
			wantKind(t, byTag, test.tag)
			if image.IsByContent(byTag) {
				t.Errorf("a tag is due to the content: %v", byTag)
			}
		})
	}
}

// TestManifestThatIsNone: a body of the requested digest that is no manifest is due to the content. A
// header of something else, and other bytes, may be the registry's.
func TestManifestThatIsNone(t *testing.T) {
	const one = image.MediaTypeManifest
	for _, test := range []struct {
		reason, body string
		header, sent string // in place of the body
		good         bool
		byContent    bool
	}{
		{reason: "a manifest", body: `{"mediaType":"` + one + `","artifactType":"a/b"}`, good: true},
		{reason: "an artifact type that is a number", body: `{"mediaType":"` + one + `","artifactType":5}`, byContent: true},
		{reason: "an index and an image", body: `{"mediaType":"` + one + `","manifests":[],"layers":[]}`, byContent: true},
		{reason: "no JSON", body: `junk`, byContent: true},
		{reason: "another media type than its header", body: `{"mediaType":"` + image.MediaTypeIndex + `"}`, byContent: true},
		{reason: "the header of something else", body: `{"mediaType":"` + one + `"}`, header: "application/pdf"},
		{reason: "other bytes", body: `{"mediaType":"` + one + `"}`, sent: "junk"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{Faults: []registrytest.Fault{{Kind: registrytest.Manifest, Do: func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", cmp.Or(test.header, one))
					_, _ = w.Write([]byte(cmp.Or(test.sent, test.body)))
				})
			}}}})
			digest := registrytest.DigestOf([]byte(test.body))
			client, repo := newClient(t, registry.Config{}), repository(t, server.Host()+"/app")
			for reference, byContent := range map[string]bool{digest: test.byContent, "v1": false} {
				_, _, err := client.Manifest(t.Context(), repo, reference)
				if (err == nil) != test.good || image.IsByContent(err) != byContent {
					t.Errorf("%s: due to the content %t: %v", reference, image.IsByContent(err), err)
				}
			}
		})
	}
}
