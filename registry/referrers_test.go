package registry_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

const (
	wantedType = "application/vnd.example.wanted+json"
	secondType = "application/vnd.example.second+json"
	otherType  = "application/vnd.example.other+json"
)

func digests(list []image.Descriptor) []string {
	found := make([]string, len(list))
	for i, d := range list {
		found[i] = d.Digest.String()
	}
	slices.Sort(found)
	return found
}

func TestReferrers(t *testing.T) {
	tests := []struct {
		reason   string
		options  registrytest.Options
		types    []string
		want     int // of 3 wanted, 2 second, 2 other
		requests int
	}{
		{"all", registrytest.Options{}, nil, 7, 1},
		{"one type", registrytest.Options{}, []string{wantedType}, 3, 1},
		{"two types", registrytest.Options{}, []string{wantedType, secondType}, 5, 1},
		{"a type without artifacts", registrytest.Options{}, []string{"none/none"}, 0, 1},
		{"one type, in pages", registrytest.Options{PageSize: 2}, []string{wantedType}, 3, 2},
		{"all, in pages", registrytest.Options{PageSize: 2}, nil, 7, 4},
		{"one type of a registry that does not filter", registrytest.Options{NoFilter: true}, []string{wantedType}, 3, 1},
		{"all, without the API", registrytest.Options{NoReferrers: true}, nil, 7, 2},
		{"one type, without the API", registrytest.Options{NoReferrers: true}, []string{wantedType}, 3, 2},
		{"with a token", registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Token, AnonymousPull: true}, PageSize: 4}, nil, 7, 4},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, test.options)
			subject := server.PutImage("app", "v1", "content")
			var pushed []string
			for i, artifactType := range []string{wantedType, wantedType, wantedType, secondType, secondType, otherType, otherType} {
				d := server.PutReferrer("app", subject, artifactType, fmt.Append(nil, i))
				if len(test.types) == 0 || slices.Contains(test.types, artifactType) {
					pushed = append(pushed, d.Digest)
				}
			}
			slices.Sort(pushed)
			client := newClient(t, registry.Config{})
			askOnce(t, client, server.Host()+"/seen") // whether the host has the API is known then
			server.Reset()
			list, err := client.Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), test.types)
			if err != nil {
				t.Fatal(err)
			}
			if got := digests(list); !slices.Equal(got, pushed) || len(got) != test.want {
				t.Errorf("%d referrers, want %d: %v", len(got), test.want, got)
			}
			if got := server.Count(""); got != test.requests {
				t.Errorf("%d requests, want %d: %v", got, test.requests, server.Requests())
			}
		})
	}
}

func TestNoReferrers(t *testing.T) {
	for _, options := range []registrytest.Options{{}, {NoReferrers: true}} {
		server := start(t, options)
		subject := server.PutImage("app", "v1", "content")
		list, err := newClient(t, registry.Config{}).Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), nil)
		if err != nil || len(list) != 0 {
			t.Errorf("%v, %v", list, err)
		}
	}
}

func TestTheMissingAPIIsRememberedForItsRepository(t *testing.T) {
	server := start(t, registrytest.Options{NoReferrers: true})
	client := newClient(t, registry.Config{})
	ask := func(name string) int {
		subject := server.PutImage(name, "v1", "content")
		server.Reset()
		if _, err := client.Referrers(t.Context(), repository(t, server.Host()+"/"+name), image.MustParseDigest(subject.Digest), nil); err != nil {
			t.Fatal(err)
		}
		return server.Count("", registrytest.Referrers)
	}
	if first, second, other := ask("app"), ask("app"), ask("other"); first != 1 || second != 0 || other != 1 {
		t.Errorf("asked %d, %d and, for another repository, %d times", first, second, other)
	}
	// The answer for an unknown repository has no meaning for the API.
	server.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: unknownName})
	for range 2 {
		if n := ask("unknown"); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
	}
}

// TestReferrersOfAnAbsentDigest: a request for a digest that was never pushed, which any user
// can cause, hides no referrers of other digests; only an answer that the path is
// unknown does.
func TestReferrersOfAnAbsentDigest(t *testing.T) {
	absent := image.DigestOf([]byte("never pushed"))
	long := image.MustParseDigest("sha512:" + strings.Repeat("0", 128))
	own := func(c *registry.Client) *registry.Client { return c }
	others := func(c *registry.Client) *registry.Client {
		other, err := c.WithCredentials()
		if err != nil {
			t.Fatal(err)
		}
		return other
	}
	for _, row := range []struct {
		reason string
		first  image.Digest
		do     registrytest.Action
		next   func(*registry.Client) *registry.Client
		found  int
	}{
		{"the answer is manifest unknown", absent, unknownManifest, own, 1},
		{"the path means nothing with that algorithm", long, noPath, own, 1},
		{"the path is unknown without a credential", absent, noPath, others, 1},
		{"the path is unknown to an insecure client", absent, noPath, (*registry.Client).Insecure, 1},
		{"the path means nothing", absent, noPath, own, 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{})
			subject := server.PutImage("app", "v1", "content")
			server.PutReferrer("app", subject, wantedType, []byte("one"))
			server.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Nth: 1, Do: row.do})
			client := newClient(t, registry.Config{})
			if list, err := client.Referrers(t.Context(), repository(t, server.Host()+"/app"), row.first, []string{wantedType}); err != nil || len(list) != 0 {
				t.Fatalf("of a digest that was never pushed: %v, %v", list, err)
			}
			list, err := row.next(client).Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), []string{wantedType})
			if err != nil || len(list) != row.found {
				t.Errorf("%d referrers, want %d: %v", len(list), row.found, err)
			}
		})
	}
}

// crowd is n referrers of one type.
func crowd(n int, artifactType string) []registrytest.Descriptor {
	list := make([]registrytest.Descriptor, 0, n)
	for i := range n {
		list = append(list, registrytest.Descriptor{MediaType: image.MediaTypeManifest, Digest: registrytest.DigestOf(fmt.Append(nil, i)), Size: 10, ArtifactType: artifactType})
	}
	return list
}

func TestHostileReferrers(t *testing.T) {
	good := registrytest.Descriptor{MediaType: image.MediaTypeManifest, Digest: registrytest.DigestOf([]byte("good")), Size: 4, ArtifactType: wantedType}
	bad := registrytest.Descriptor{Digest: "sha256:../../x", ArtifactType: wantedType}
	tests := []struct {
		reason string
		do     registrytest.Action
		kind   image.Kind
		list   int // descriptors that come with it
	}{
		{"thousands of the wanted type", registrytest.ForgeReferrers(crowd(2000, wantedType)...), image.Bound, 1000},
		{"thousands of another type before the good one", registrytest.ForgeReferrers(append(crowd(2000, otherType), good)...), "", 1},
		{"a malformed digest beside the good one", registrytest.ForgeReferrers(bad, good), "", 1},
		{"the good one twice", registrytest.ForgeReferrers(good, good), "", 1},
		{"pages in a circle", registrytest.LinkLoop(), image.Corrupt, 1},
		{"pages without end", registrytest.LinkEndless(), image.Bound, 1},
		{"the next page on another host", registrytest.LinkTo("https://other.example.com/v2/app/referrers/x"), image.Corrupt, 1},
		{"the next page at another path", registrytest.LinkTo("/v2/other/referrers/x"), image.Corrupt, 1},
		{"a page without end", registrytest.Endless(), image.Bound, 0},
		{"too large", registrytest.Oversize(image.MediaTypeIndex, 32<<20), image.Bound, 0},
		{"no JSON", registrytest.Body([]byte("{")), image.Corrupt, 0},
		{"a bomb", registrytest.GzipBomb(64 << 20), image.Corrupt, 0},
		{"the registry is down", registrytest.Status(503), image.Unavailable, 0},
		{"not for us", registrytest.Status(403), image.Refused, 0},
		{"a page of another kind means no API", registrytest.HTML(), "", 0},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{})
			subject := server.PutImage("app", "v1", "content")
			server.PutReferrer("app", subject, wantedType, []byte("one"))
			server.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: test.do})
			client := newClient(t, registry.Config{})
			for _, types := range [][]string{{wantedType}, {wantedType, secondType}} {
				list, err := client.Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), types)
				if test.kind == "" && err != nil {
					t.Fatal(err)
				}
				if test.kind != "" && image.KindOf(err) != test.kind {
					t.Errorf("kind %q, want %q: %v", image.KindOf(err), test.kind, err)
				}
				if len(list) != test.list {
					t.Errorf("%d descriptors, want %d", len(list), test.list)
				}
			}
		})
	}
}

func TestHostileReferrersTag(t *testing.T) {
	server := start(t, registrytest.Options{NoReferrers: true})
	subject := server.PutImage("app", "v1", "content")
	tag := "sha256-" + subject.Digest[len("sha256:"):]
	client := newClient(t, registry.Config{})
	ask := func() ([]image.Descriptor, error) {
		return client.Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), nil)
	}
	server.PutImage("app", tag, "an image")
	_, err := ask()
	wantKind(t, err, image.Corrupt)
	server.PutReferrer("app", subject, wantedType, []byte("one")) // makes the index
	if list, err := ask(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	for n, kind := range map[int]image.Kind{1000: "", 1001: image.Bound} {
		server.SetFaults(registrytest.Fault{Reference: tag, Do: registrytest.ForgeReferrers(crowd(n, wantedType)...)})
		if list, err := ask(); image.KindOf(err) != kind || len(list) != 1000 {
			t.Errorf("%d referrers: %d, %v", n, len(list), err)
		}
	}
	server.SetFaults(registrytest.Fault{Reference: tag, Do: registrytest.Status(500)})
	_, err = ask()
	wantKind(t, err, image.Unavailable)
	server.SetFaults()
	server.PutManifest("app", tag, image.MediaTypeIndex, []byte(`{"mediaType":"`+image.MediaTypeIndex+`","manifests":{}}`))
	_, err = ask()
	wantKind(t, err, image.Corrupt)
}

// TestGoContainerRegistry asks the registry that many projects test with.
func TestGoContainerRegistry(t *testing.T) {
	for _, api := range []bool{true, false} {
		t.Run(fmt.Sprintf("referrers API: %v", api), func(t *testing.T) {
			server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(t.Output(), "", 0)), ggcr.WithReferrersSupport(api)))
			defer server.Close()
			host := server.Listener.Addr().String()
			tag, err := name.NewTag(host + "/team/app:v1")
			if err != nil {
				t.Fatal(err)
			}
			pushed, err := random.Image(1000, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(tag, pushed); err != nil {
				t.Fatal(err)
			}
			subject, err := partial.Descriptor(pushed)
			if err != nil {
				t.Fatal(err)
			}
			claim := mutate.Subject(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), wantedType), *subject).(v1.Image)
			claimed, err := claim.Digest()
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(tag.Context().Digest(claimed.String()), claim); err != nil {
				t.Fatal(err)
			}
			client := newClient(t, registry.Config{})
			pinned, err := client.Resolve(t.Context(), image.MustParse(tag.String()))
			if err != nil || pinned.Digest().String() != subject.Digest.String() {
				t.Fatalf("%v, %v", pinned, err)
			}
			list, err := client.Referrers(t.Context(), pinned.Repository(), pinned.Digest(), []string{wantedType})
			if err != nil || len(list) != 1 || list[0].Digest.String() != claimed.String() {
				t.Fatalf("referrers %v, %v", list, err)
			}
			_, body, err := client.Manifest(t.Context(), pinned.Repository(), list[0].Digest.String())
			if want, _ := claim.RawManifest(); err != nil || string(body) != string(want) {
				t.Errorf("manifest %q, %v", body, err)
			}
			layers, _ := pushed.Layers()
			layer, _ := layers[0].Digest()
			size, _ := layers[0].Size()
			blob := image.Descriptor{Digest: image.MustParseDigest(layer.String()), Size: size}
			if _, err := client.Blob(t.Context(), pinned.Repository(), blob, 1<<20); err != nil {
				t.Error(err)
			}
			_, err = client.Blob(t.Context(), pinned.Repository(), image.Descriptor{Digest: image.DigestOf([]byte("x"))}, 1<<20)
			wantKind(t, err, image.NotFound)
			if list, err := client.Referrers(t.Context(), repository(t, host+"/never/pushed"), pinned.Digest(), nil); err != nil || len(list) != 0 {
				t.Errorf("referrers in a repository that is not there: %v, %v", list, err)
			}
		})
	}
}

// unknownName answers 404 as a registry with the API does for a repository
// that it does not know, and unknownManifest for a digest.
func unknownName(http.Handler) http.Handler { return unknown("NAME_UNKNOWN") }

func unknownManifest(http.Handler) http.Handler { return unknown("MANIFEST_UNKNOWN") }

// noPath answers as a server does to which the path means nothing.
func noPath(http.Handler) http.Handler { return http.NotFoundHandler() }

func unknown(code string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"unknown"}]}`, code)
	})
}

// TestReferrersOfLargeAnnotations: a user with push access chooses the size of the
// entries, and the number of those of other types.
func TestReferrersOfLargeAnnotations(t *testing.T) {
	entry := func(name, artifactType string, pad int) registrytest.Descriptor {
		return registrytest.Descriptor{
			MediaType: image.MediaTypeManifest, Digest: registrytest.DigestOf([]byte(name)), Size: 4, ArtifactType: artifactType,
			Annotations: map[string]string{"pad": strings.Repeat("x", pad), "dev.sigstore.bundle.content": "message-signature"},
		}
	}
	good := entry("good", wantedType, 0)
	many := make([]registrytest.Descriptor, 0, 1001)
	for i := range cap(many) {
		many = append(many, entry(fmt.Sprint(i), secondType, 0))
	}
	const full = 4<<20 - 1024 // what fits into a manifest
	for _, test := range []struct {
		reason string
		list   []registrytest.Descriptor
		kind   image.Kind
		found  int
	}{
		{"two large ones pass the bound of a manifest", []registrytest.Descriptor{entry("a", wantedType, full), entry("b", wantedType, full), good}, "", 3},
		{"large ones of an unwanted type", []registrytest.Descriptor{entry("a", otherType, full), entry("b", otherType, full), good}, "", 1},
		{"past the bound of a list, what came before stays", []registrytest.Descriptor{good, entry("a", otherType, 32<<20)}, image.Bound, 1},
		{"a crowd of one wanted type leaves room for another", append(slices.Clone(many), good), image.Bound, 1001},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{})
			subject := server.PutImage("app", "v1", "content")
			server.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.ForgeReferrers(test.list...)})
			client := newClient(t, registry.Config{})
			list, err := client.Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), []string{wantedType, secondType})
			if image.KindOf(err) != test.kind {
				t.Errorf("kind %q, want %q: %v", image.KindOf(err), test.kind, err)
			}
			found := false
			for _, d := range list {
				found = found || d.Digest.String() == good.Digest
				if len(d.Annotations) != 1 {
					t.Errorf("kept %d annotations, want only the one that has its type", len(d.Annotations))
				}
			}
			if !found || len(list) < test.found {
				t.Errorf("%d referrers, the good one among them: %v; want %d", len(list), found, test.found)
			}
		})
	}
}

// TestReferrersBehindACrowd: where a list has no end, the wanted types are asked for one
// by one.
func TestReferrersBehindACrowd(t *testing.T) {
	good := registrytest.Descriptor{MediaType: image.MediaTypeManifest, Digest: registrytest.DigestOf([]byte("good")), Size: 4, ArtifactType: wantedType}
	huge := registrytest.Descriptor{MediaType: image.MediaTypeManifest, Digest: registrytest.DigestOf([]byte("huge")), Size: 4, Annotations: map[string]string{"pad": strings.Repeat("x", 16<<20)}}
	endless, one, none := registrytest.Oversize(image.MediaTypeIndex, 32<<20), registrytest.ForgeReferrers(good), registrytest.ForgeReferrers()
	ofSecond := good
	ofSecond.ArtifactType = secondType
	other := registrytest.ForgeReferrers(ofSecond)
	const filter = "artifactType"
	for _, test := range []struct {
		reason              string
		types               []string
		all, wanted, second registrytest.Action // by the requested type
		filters             string              // that the answers by type say they come of
		found, requests     int
		kind                image.Kind
	}{
		{"a list that ends", []string{wantedType, secondType}, one, endless, endless, filter, 1, 1, ""},
		{"one that does not, of two types", []string{wantedType, secondType}, endless, one, none, filter, 1, 3, ""},
		{"what came before the crowd is there once", []string{wantedType, secondType}, registrytest.ForgeReferrers(good, huge), one, none, filter, 1, 3, ""},
		{"a crowd of the second type as well", []string{wantedType, secondType}, endless, one, endless, filter, 1, 3, image.Bound},
		{"a crowd of the first alone", []string{wantedType, secondType}, endless, endless, other, filter, 1, 3, image.Bound},
		{"a registry that filters by several things", []string{wantedType, secondType}, endless, endless, other, "mediaType, artifactType", 1, 3, image.Bound},
		{"one that does not filter: the next list is the same again", []string{wantedType, secondType}, endless, endless, other, "", 0, 2, image.Bound},
		{"one that filters by something else", []string{wantedType, secondType}, endless, endless, other, "annotations", 0, 2, image.Bound},
		{"one that does not say that it filters, and does", []string{wantedType, secondType}, endless, none, other, "", 1, 3, ""},
		{"no type, which no list has", []string{wantedType, ""}, endless, one, none, filter, 1, 2, ""},
		{"one type, which was asked for by itself", []string{wantedType}, one, endless, endless, filter, 0, 1, image.Bound},
		{"all types", nil, endless, one, one, filter, 0, 1, image.Bound},
		{"too many of a wanted type", []string{wantedType, secondType}, registrytest.ForgeReferrers(crowd(1001, wantedType)...), one, one, filter, 1000, 1, image.Bound},
	} {
		server := start(t, registrytest.Options{})
		subject := server.PutImage("app", "v1", "content")
		server.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				answer := test.all
				if test.filters != "" {
					w.Header().Set("OCI-Filters-Applied", test.filters)
				}
				if asked := q.URL.Query(); asked.Get("artifactType") == wantedType {
					answer = test.wanted
				} else if asked.Has("artifactType") {
					answer = test.second
				}
				answer(next).ServeHTTP(w, q)
			})
		}})
		list, err := newClient(t, registry.Config{}).Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), test.types)
		if image.KindOf(err) != test.kind || len(list) != test.found {
			t.Errorf("%s: %d referrers, want %d, of kind %q: %v", test.reason, len(list), test.found, test.kind, err)
		}
		if n := server.Count("", registrytest.Referrers); n != test.requests {
			t.Errorf("%s: %d requests, want %d", test.reason, n, test.requests)
		}
	}
}

// TestReferrerPages: a list goes on up to a bound, and one that breaks off is reported, with
// the entries before.
func TestReferrerPages(t *testing.T) {
	for _, test := range []struct {
		reason          string
		pages           int
		second          registrytest.Action // the second page, if not one of the list
		found, requests int
		kind            image.Kind
	}{
		{"as many pages as may be", 50, nil, 50, 50, ""},
		{"one more", 51, nil, 50, 50, image.Bound},
		{"the second is not there, which does not mean that the list is not", 2, noPath, 1, 2, image.Unavailable},
		{"the second is none of a list", 2, registrytest.HTML(), 1, 2, image.Corrupt},
	} {
		server := start(t, registrytest.Options{})
		subject := server.PutImage("app", "v1", "content")
		server.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				page, _ := strconv.Atoi(q.URL.Query().Get("n"))
				answer := registrytest.ForgeReferrers(crowd(page+1, wantedType)[page])
				if page == 1 && test.second != nil {
					answer = test.second
				}
				if page+1 < test.pages {
					w.Header().Set("Link", fmt.Sprintf(`<?n=%d>; rel="next"`, page+1))
				}
				answer(next).ServeHTTP(w, q)
			})
		}})
		list, err := newClient(t, registry.Config{}).Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), nil)
		if image.KindOf(err) != test.kind || len(list) != test.found {
			t.Errorf("%s: %d referrers, want %d, of kind %q: %v", test.reason, len(list), test.found, test.kind, err)
		}
		if n := server.Count("", registrytest.Referrers); n != test.requests {
			t.Errorf("%s: %d requests, want %d", test.reason, n, test.requests)
		}
	}
}
