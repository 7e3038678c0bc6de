package registrytest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/quaymaster/quaymaster/registry/registrytest"
)

func start(t *testing.T, options registrytest.Options) *registrytest.Server {
	t.Helper()
	server := registrytest.Start(options)
	t.Cleanup(server.Close)
	return server
}

// head is an answer without its body.
type head struct {
	Status     string
	StatusCode int
	Header     http.Header
}

// get asks once and returns status, header and body.
func get(t *testing.T, method, url string) (head, []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return head{Status: answer.Status, StatusCode: answer.StatusCode, Header: answer.Header}, body
}

func TestPushAndPullByGoContainerRegistry(t *testing.T) {
	secret := authn.FromConfig(authn.AuthConfig{Username: "user", Password: "secret"})
	tests := []struct {
		reason  string
		options registrytest.Options
		auth    authn.Authenticator
		refused bool
	}{
		{reason: "anonymous", auth: authn.Anonymous},
		{reason: "basic", options: registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: "secret"}}, auth: secret},
		{reason: "basic without credential", options: registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: "secret"}}, auth: authn.Anonymous, refused: true},
		{reason: "token", options: registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Token, Username: "user", Password: "secret"}}, auth: secret},
		{reason: "token by refresh token", options: registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Token, IdentityToken: "identity"}}, auth: authn.FromConfig(authn.AuthConfig{IdentityToken: "identity"})},
		{reason: "token with another password", options: registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Token, Username: "user", Password: "other"}}, auth: secret, refused: true},
		{reason: "an anonymous token may not push", options: registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Token, Username: "user", Password: "secret", AnonymousPull: true}}, auth: authn.Anonymous, refused: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, test.options)
			image, err := random.Image(2000, 2)
			if err != nil {
				t.Fatal(err)
			}
			tag, err := name.NewTag(server.Host() + "/team/app:v1")
			if err != nil {
				t.Fatal(err)
			}
			options := []remote.Option{remote.WithAuth(test.auth), remote.WithContext(t.Context())}
			err = remote.Write(tag, image, options...)
			if test.refused {
				if err == nil {
					t.Fatal("the push was accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pulled, err := remote.Image(tag, options...)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := image.Digest()
			if got, err := pulled.Digest(); err != nil || got != want {
				t.Errorf("digest %v, %v; want %v", got, err, want)
			}
			layers, err := pulled.Layers()
			if err != nil || len(layers) != 2 {
				t.Fatalf("layers: %d, %v", len(layers), err)
			}
			content, err := layers[0].Compressed()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, content); err != nil {
				t.Errorf("layer: %v", err)
			}
			if tags, err := remote.List(tag.Context(), options...); err != nil || len(tags) != 1 || tags[0] != "v1" {
				t.Errorf("tags: %v, %v", tags, err)
			}
		})
	}
}

func TestReferrersOfAPushedSubject(t *testing.T) {
	for _, noAPI := range []bool{false, true} {
		t.Run(fmt.Sprintf("without API: %v", noAPI), func(t *testing.T) {
			server := start(t, registrytest.Options{NoReferrers: noAPI})
			repository, err := name.NewRepository(server.Host() + "/app")
			if err != nil {
				t.Fatal(err)
			}
			subject := server.PutImage("app", "v1", "content")
			body := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"a/b","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[],"subject":{"mediaType":%q,"digest":%q,"size":%d}}`,
				subject.MediaType, subject.Digest, subject.Size)
			pushed := server.PutReferrer("app", subject, "x/y", []byte("claim"))
			if err := remote.Put(repository.Digest(registrytest.DigestOf(body)), rawManifest{body}); err != nil {
				t.Fatal(err)
			}
			list, err := remote.Referrers(repository.Digest(subject.Digest))
			if err != nil {
				t.Fatal(err)
			}
			manifest, err := list.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, d := range manifest.Manifests {
				found = append(found, d.Digest.String())
			}
			want := []string{pushed.Digest, registrytest.DigestOf(body)}
			if strings.Join(found, " ") != strings.Join(want, " ") {
				t.Errorf("referrers %v, want %v", found, want)
			}
		})
	}
}

// rawManifest is a remote.Taggable of an OCI manifest.
type rawManifest struct{ body []byte }

func (m rawManifest) RawManifest() ([]byte, error) { return m.body, nil }

func (m rawManifest) MediaType() (string, error) {
	return "application/vnd.oci.image.manifest.v1+json", nil
}

func (m rawManifest) Digest() (v1.Hash, error) { return v1.NewHash(registrytest.DigestOf(m.body)) }

func TestChunkedUpload(t *testing.T) {
	server := start(t, registrytest.Options{})
	send := func(method, path, contentRange, body string) head {
		q, err := http.NewRequestWithContext(t.Context(), method, server.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if contentRange != "" {
			q.Header.Set("Content-Range", contentRange)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return head{Status: answer.Status, StatusCode: answer.StatusCode, Header: answer.Header}
	}
	started := send(http.MethodPost, "/v2/app/blobs/uploads/", "", "")
	location := started.Header.Get("Location")
	if answer := send(http.MethodPatch, location, "0-2", "abc"); answer.StatusCode != http.StatusAccepted {
		t.Fatalf("first chunk: %s", answer.Status)
	}
	if answer := send(http.MethodPatch, location, "9-11", "zzz"); answer.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a chunk that leaves a hole: %s", answer.Status)
	}
	if answer := send(http.MethodPatch, location, "3-5", "def"); answer.StatusCode != http.StatusAccepted {
		t.Fatalf("second chunk: %s", answer.Status)
	}
	digest := registrytest.DigestOf([]byte("abcdef"))
	if answer := send(http.MethodPut, location+"?digest="+digest, "", ""); answer.StatusCode != http.StatusCreated {
		t.Fatalf("end: %s", answer.Status)
	}
	if _, body := get(t, http.MethodGet, server.URL()+"/v2/app/blobs/"+digest); string(body) != "abcdef" {
		t.Errorf("blob is %q", body)
	}
	if answer := send(http.MethodPost, "/v2/app/blobs/uploads/?digest="+digest, "", "wrong"); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a monolithic upload of other bytes: %s", answer.Status)
	}
}

func TestReferrersPages(t *testing.T) {
	server := start(t, registrytest.Options{PageSize: 2})
	subject := server.PutImage("app", "v1", "content")
	for i := range 5 {
		server.PutReferrer("app", subject, "a/b", fmt.Append(nil, i))
	}
	path, pages, seen := "/v2/app/referrers/"+subject.Digest+"?artifactType=a%2Fb", 0, 0
	for path != "" && pages < 10 {
		answer, body := get(t, http.MethodGet, server.URL()+path)
		var list struct{ Manifests []registrytest.Descriptor }
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatal(err)
		}
		pages, seen = pages+1, seen+len(list.Manifests)
		link, _, _ := strings.Cut(strings.TrimPrefix(answer.Header.Get("Link"), "<"), ">")
		path = link
	}
	if pages != 3 || seen != 5 {
		t.Errorf("%d pages with %d referrers, want 3 with 5", pages, seen)
	}
	if _, body := get(t, http.MethodGet, server.URL()+"/v2/app/referrers/"+subject.Digest+"?artifactType=other"); !bytes.Contains(body, []byte(`"manifests":[]`)) {
		t.Errorf("the filter let something through: %s", body)
	}
}

func TestCounters(t *testing.T) {
	server := start(t, registrytest.Options{Delay: 30 * time.Millisecond})
	image := server.PutImage("app", "v1", "content")
	get(t, http.MethodHead, server.URL()+"/v2/app/manifests/v1")
	done := make(chan struct{})
	for range 3 { // together: one round
		go func() {
			defer func() { done <- struct{}{} }()
			answer, err := http.Get(server.URL() + "/v2/app/manifests/" + image.Digest)
			if err == nil {
				_ = answer.Body.Close()
			}
		}()
	}
	for range 3 {
		<-done
	}
	get(t, http.MethodGet, server.URL()+"/v2/app/manifests/none")
	if got := server.Rounds(); got != 3 {
		t.Errorf("%d rounds, want 3 (one, three together, one)", got)
	}
	if got := server.Count(http.MethodGet, registrytest.Manifest); got != 4 {
		t.Errorf("%d manifest GETs, want 4", got)
	}
	if got := server.Pulls(); got != 3 {
		t.Errorf("%d counted pulls, want 3: neither HEAD nor 404 counts", got)
	}
	server.Reset()
	if server.Rounds() != 0 || server.Count("") != 0 {
		t.Error("Reset left requests behind")
	}
}

func TestPullLimit(t *testing.T) {
	server := start(t, registrytest.Options{PullLimit: 1})
	server.PutImage("app", "v1", "content")
	url := server.URL() + "/v2/app/manifests/v1"
	answer, _ := get(t, http.MethodHead, url)
	if got := answer.Header.Get("Ratelimit-Remaining"); got != "1;w=21600" {
		t.Errorf("after a HEAD %q remain", got)
	}
	answer, _ = get(t, http.MethodGet, url)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Ratelimit-Remaining") != "0;w=21600" {
		t.Errorf("first pull: %s, %q remain", answer.Status, answer.Header.Get("Ratelimit-Remaining"))
	}
	answer, _ = get(t, http.MethodGet, url)
	if answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("second pull: %s", answer.Status)
	}
}
