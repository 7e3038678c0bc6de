package registry_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// note is an artifact that refers to the registry's team/app:v1.
func note(t *testing.T, subject registrytest.Descriptor) registry.Artifact {
	t.Helper()
	digest, err := image.ParseDigest(subject.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return registry.Artifact{
		Subject: image.Descriptor{MediaType: subject.MediaType, Digest: digest, Size: subject.Size},
		Type:    wantedType, Content: []byte(`{"note":"good"}`), Annotations: map[string]string{"dev.sigstore.bundle.content": "dsse-envelope"},
	}
}

// TestPush: a pushed artifact is found, as a referrer, in every kind of registry; and
// pushing it again sends no content that is there.
func TestPush(t *testing.T) {
	basic := registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: password}
	token := registrytest.Auth{Scheme: registrytest.Token, Username: "user", Password: password, AnonymousPull: true}
	for _, row := range []struct {
		reason           string
		options          registrytest.Options
		requests, again  int
		uploads, atLists int // PUTs of blobs, and of the referrers tag
	}{
		{"with a list of referrers", registrytest.Options{}, 7, 3, 2, 0},
		{"without one: the tag is kept, and read back", registrytest.Options{NoReferrers: true}, 10, 4, 2, 1},
		{"by a user", registrytest.Options{Auth: basic}, 8, 3, 2, 0},
		{"with a token to push, and public reads", registrytest.Options{Auth: token}, 11, 3, 2, 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			server := start(t, row.options)
			artifact := note(t, server.PutImage("team/app", "v1", "content"))
			client := newClient(t, registry.Config{Credentials: credentials(server.Host(), user)})
			where := repository(t, server.Host()+"/team/app")
			pushed, err := client.Push(t.Context(), where, artifact)
			if err != nil {
				t.Fatal(err)
			}
			first := server.Requests()
			if len(first) != row.requests {
				t.Errorf("%d requests, want %d", len(first), row.requests)
			}
			uploads, lists := 0, 0
			for _, request := range first {
				mediaType := image.MediaTypeManifest
				switch {
				case request.Method != http.MethodPut:
					mediaType = ""
				case request.Kind == registrytest.Upload:
					mediaType = "application/octet-stream"
					uploads++
				case strings.HasPrefix(request.Reference, "sha256-"):
					mediaType = image.MediaTypeIndex
					lists++
				}
				if said := request.Header.Values("Content-Type"); len(said) > 1 || strings.Join(said, "") != mediaType {
					t.Errorf("%s %s sends %q, want %q", request.Method, request.URI, said, mediaType)
				}
			}
			if uploads != row.uploads || lists != row.atLists {
				t.Errorf("%d uploads and %d lists, want %d and %d", uploads, lists, row.uploads, row.atLists)
			}
			found, err := client.Referrers(t.Context(), where, artifact.Subject.Digest, []string{wantedType})
			if err != nil || len(found) != 1 || found[0].Digest != pushed.Digest || found[0].ArtifactType != wantedType || found[0].Annotations["dev.sigstore.bundle.content"] != "dsse-envelope" {
				t.Fatalf("%+v, %v", found, err)
			}
			_, body, err := client.Manifest(t.Context(), where, pushed.Digest.String())
			if err != nil {
				t.Fatal(err)
			}
			var manifest struct {
				Subject image.Descriptor
				Layers  []image.Descriptor
			}
			if err := json.Unmarshal(body, &manifest); err != nil || manifest.Subject.Digest != artifact.Subject.Digest || len(manifest.Layers) != 1 {
				t.Fatalf("%s: %v", body, err)
			}
			content, err := client.Blob(t.Context(), where, manifest.Layers[0], 100)
			if err != nil || string(content) != string(artifact.Content) {
				t.Fatalf("%s: %v", content, err)
			}
			server.Reset()
			same, err := client.Push(t.Context(), where, artifact)
			if err != nil || same.Digest != pushed.Digest {
				t.Fatal(same, err)
			}
			if again := server.Requests(); len(again) != row.again {
				t.Errorf("%d requests for an existing artifact, want %d", len(again), row.again)
			}
		})
	}
}

// TestPushToOthers: the same, to a registry of go-containerregistry.
func TestPushToOthers(t *testing.T) {
	for _, with := range []bool{true, false} {
		server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)), ggcr.WithReferrersSupport(with)))
		defer server.Close()
		where := repository(t, strings.TrimPrefix(server.URL, "http://")+"/team/app")
		client := newClient(t, registry.Config{})
		subject := image.Descriptor{MediaType: image.MediaTypeManifest, Digest: image.DigestOf([]byte("an image")), Size: 8}
		var want []string
		for _, text := range []string{"one", "two", "three"} {
			pushed, err := client.Push(t.Context(), where, registry.Artifact{Subject: subject, Type: wantedType, Content: []byte(text)})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, pushed.Digest.String())
		}
		slices.Sort(want)
		found, err := client.Referrers(t.Context(), where, subject.Digest, nil) // it lists artifacts by the type of their configuration
		if err != nil || !slices.Equal(digests(found), want) {
			t.Errorf("referrers API %t: %v, want %v: %v", with, digests(found), want, err)
		}
	}
}

// TestPushRefuses: failures of a registry on a push, and artifacts that are not
// pushed.
func TestPushRefuses(t *testing.T) {
	const other = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	lie := registrytest.LieDigest(other)
	for _, row := range []struct {
		reason string
		fault  registrytest.Fault
		kind   image.Kind
		says   string
	}{
		{"it leads the upload to another host", registrytest.Fault{Method: http.MethodPost, Do: registrytest.SetHeader("Location", "http://STRANGER/upload?state=1")}, image.Corrupt, "another host"},
		{"it leads it to another host by a name without a scheme", registrytest.Fault{Method: http.MethodPost, Do: registrytest.SetHeader("Location", "//STRANGER/upload")}, image.Corrupt, "another host"},
		{"it puts a user before its own name", registrytest.Fault{Method: http.MethodPost, Do: registrytest.SetHeader("Location", "http://user@HOME/upload")}, image.Corrupt, "another host"},
		{"it leads the upload nowhere", registrytest.Fault{Method: http.MethodPost, Do: registrytest.SetHeader("Location", "")}, image.Corrupt, "where the upload goes on"},
		{"its location is no address", registrytest.Fault{Method: http.MethodPost, Do: registrytest.SetHeader("Location", "http://[/")}, image.Corrupt, "no address"},
		{"it redirects the upload", registrytest.Fault{Method: http.MethodPut, Kind: registrytest.Upload, Do: registrytest.Status(307, "Location", "http://STRANGER/upload")}, image.Unavailable, "is not sent to another"},
		{"it redirects the manifest", registrytest.Fault{Method: http.MethodPut, Kind: registrytest.Manifest, Do: registrytest.Status(308, "Location", "http://STRANGER/upload")}, image.Unavailable, "is not sent to another"},
		{"it kept other bytes of the document", registrytest.Fault{Method: http.MethodPut, Kind: registrytest.Upload, Do: lie}, image.Corrupt, "kept"},
		{"it kept another manifest", registrytest.Fault{Method: http.MethodPut, Kind: registrytest.Manifest, Do: lie}, image.Corrupt, "kept"},
		{"it has no room", registrytest.Fault{Method: http.MethodPost, Do: registrytest.Status(507)}, image.Unavailable, "507"},
		{"it does not let look for the document", registrytest.Fault{Method: http.MethodHead, Kind: registrytest.Blob, Do: registrytest.Status(403)}, image.Refused, "403"},
		{"it takes no manifest, but what comes after it", registrytest.Fault{Method: http.MethodPut, Kind: registrytest.Manifest, Nth: 1, Do: registrytest.Status(400)}, image.Corrupt, "400"},
		{"it takes no manifest", registrytest.Fault{Method: http.MethodPut, Kind: registrytest.Manifest, Do: registrytest.Status(400)}, image.Corrupt, "400"},
		{"it answers 200 without keeping", registrytest.Fault{Method: http.MethodPut, Kind: registrytest.Manifest, Do: registrytest.Status(200)}, image.Unavailable, "200"},
		{"it answers without an end", registrytest.Fault{Method: http.MethodPut, Kind: registrytest.Manifest, Do: endless(201)}, image.Bound, "bytes"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var strange atomic.Int64
			stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				strange.Add(1)
				w.WriteHeader(http.StatusCreated)
			}))
			defer stranger.Close()
			server := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: password}})
			row.fault.Do = placed(row.fault.Do, "STRANGER", strings.TrimPrefix(stranger.URL, "http://"), "HOME", server.Host())
			server.SetFaults(row.fault)
			artifact := note(t, server.PutImage("team/app", "v1", "content"))
			client := newClient(t, registry.Config{Credentials: credentials(server.Host(), user)}, registry.WithBackoff(1))
			_, err := client.Push(t.Context(), repository(t, server.Host()+"/team/app"), artifact)
			failure := wantFailure(t, err, row.kind)
			if !strings.Contains(failure.Error(), row.says) || strings.Contains(failure.Error(), password) {
				t.Error(failure)
			}
			if strange.Load() != 0 {
				t.Error("the other host was asked")
			}
		})
	}
}

// TestPushOfInvalidArtifact: an invalid artifact is refused before a request is made.
func TestPushOfInvalidArtifact(t *testing.T) {
	server := start(t, registrytest.Options{})
	whole := note(t, server.PutImage("team/app", "v1", "content"))
	client, where := newClient(t, registry.Config{}), repository(t, server.Host()+"/team/app")
	for _, row := range []struct {
		reason string
		where  image.Repository
		edit   func(*registry.Artifact)
		kind   image.Kind // "": it is pushed
	}{
		{"all of it", where, func(*registry.Artifact) {}, ""},
		{"no repository", image.Repository{}, func(*registry.Artifact) {}, image.Corrupt},
		{"no type", where, func(a *registry.Artifact) { a.Type = "" }, image.Corrupt},
		{"no digest of subject", where, func(a *registry.Artifact) { a.Subject.Digest = image.Digest{} }, image.Corrupt},
		{"no size of subject", where, func(a *registry.Artifact) { a.Subject.Size = 0 }, image.Corrupt},
		{"no type of subject", where, func(a *registry.Artifact) { a.Subject.MediaType = "" }, image.Corrupt},
		{"a document of 4 MiB", where, func(a *registry.Artifact) { a.Content = make([]byte, 4<<20) }, ""},
		{"one byte more", where, func(a *registry.Artifact) { a.Content = make([]byte, 4<<20+1) }, image.Bound},
	} {
		artifact := whole
		row.edit(&artifact)
		server.Reset()
		_, err := client.Push(t.Context(), row.where, artifact)
		if asked := server.Count("") > 0; image.KindOf(err) != row.kind || asked != (row.kind == "") {
			t.Errorf("%s: %q, want %q, asked %t: %v", row.reason, image.KindOf(err), row.kind, asked, err)
		}
	}
}

// TestPushToTerseRegistries: a registry need not report the stored digest; its OCI-Subject
// must match the subject to show that it lists the document.
func TestPushToTerseRegistries(t *testing.T) {
	for _, row := range []struct {
		reason string
		fault  registrytest.Fault
		lists  int // writings of the referrers tag
	}{
		{"all headers", registrytest.Fault{Nth: -1}, 0},
		{"it does not say which blob it kept", registrytest.Fault{Kind: registrytest.Upload, Do: registrytest.SetHeader("Docker-Content-Digest", "")}, 0},
		{"it does not say which manifest it kept", registrytest.Fault{Kind: registrytest.Manifest, Do: registrytest.SetHeader("Docker-Content-Digest", "")}, 0},
		{"it does not say that it lists it", registrytest.Fault{Kind: registrytest.Manifest, Do: registrytest.SetHeader("OCI-Subject", "")}, 1},
		{"OCI-Subject is no digest", registrytest.Fault{Kind: registrytest.Manifest, Do: registrytest.SetHeader("OCI-Subject", "x")}, 1},
		{"OCI-Subject is another digest", registrytest.Fault{Kind: registrytest.Manifest, Do: registrytest.SetHeader("OCI-Subject", image.DigestOf(nil).String())}, 1},
	} {
		server := start(t, registrytest.Options{})
		artifact := note(t, server.PutImage("team/app", "v1", "content"))
		row.fault.Method = http.MethodPut
		server.SetFaults(row.fault)
		if _, err := newClient(t, registry.Config{}).Push(t.Context(), repository(t, server.Host()+"/team/app"), artifact); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		if lists := listings(server); lists != row.lists {
			t.Errorf("%s: the list was written %d times, want %d", row.reason, lists, row.lists)
		}
	}
}

// listings counts the writings of referrers tags.
func listings(server *registrytest.Server) (n int) {
	for _, q := range server.Requests() {
		if q.Method == http.MethodPut && strings.HasPrefix(q.Reference, "sha256-") {
			n++
		}
	}
	return n
}

// placed replaces words in the headers that an action writes.
func placed(do registrytest.Action, words ...string) registrytest.Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			recorder := httptest.NewRecorder()
			do(next).ServeHTTP(recorder, q)
			for key, values := range recorder.Header() {
				for _, value := range values {
					w.Header().Add(key, strings.NewReplacer(words...).Replace(value))
				}
			}
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(recorder.Body.Bytes())
		})
	}
}

// endless answers with a body that is longer than any answer.
func endless(status int) registrytest.Action {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body)
			w.WriteHeader(status)
			_, _ = w.Write(make([]byte, 1<<20))
		})
	}
}

// TestPushKeepsTheList: of a registry without a list of referrers, entries of other clients
// at the tag stay, and an entry that they overwrite is written again.
func TestPushKeepsTheList(t *testing.T) {
	server := start(t, registrytest.Options{NoReferrers: true})
	artifact := note(t, server.PutImage("team/app", "v1", "content"))
	tag := strings.ReplaceAll(artifact.Subject.Digest.String(), ":", "-")
	before := server.PutReferrer("team/app", registrytest.Descriptor{MediaType: artifact.Subject.MediaType, Digest: artifact.Subject.Digest.String(), Size: artifact.Subject.Size}, otherType, []byte("theirs"))
	server.PutManifest("team/app", tag, image.MediaTypeIndex, []byte(`{"schemaVersion":2,"mediaType":"`+image.MediaTypeIndex+`","manifests":[{"mediaType":"`+before.MediaType+`","digest":"`+before.Digest+`","size":1234567890123,"unknown":{"kept":true}}],"annotations":{"of":"others"}}`))
	// The first writing of the list is lost, as to another client.
	server.SetFaults(registrytest.Fault{Method: http.MethodPut, Reference: tag, Nth: 1, Do: registrytest.Status(201)})
	client := newClient(t, registry.Config{})
	where := repository(t, server.Host()+"/team/app")
	pushed, err := client.Push(t.Context(), where, artifact)
	if err != nil {
		t.Fatal(err)
	}
	_, list, err := client.Manifest(t.Context(), where, tag)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{pushed.Digest.String(), before.Digest, "1234567890123", `"unknown":{"kept":true}`, `"annotations":{"of":"others"}`} {
		if !strings.Contains(string(list), want) {
			t.Errorf("no %s in %s", want, list)
		}
	}
	server.SetFaults(registrytest.Fault{Method: http.MethodPut, Reference: tag, Do: registrytest.Status(201)})
	artifact.Content = []byte("another")
	if _, err := client.Push(t.Context(), where, artifact); err == nil || !strings.Contains(err.Error(), "push again") {
		t.Errorf("a list that never keeps: %v", err)
	}
	server.SetFaults()
	server.PutManifest("team/app", tag, image.MediaTypeManifest, []byte(`{"schemaVersion":2,"mediaType":"`+image.MediaTypeManifest+`","config":{},"layers":[]}`))
	if _, err := client.Push(t.Context(), where, artifact); err == nil || !strings.Contains(err.Error(), "no index") {
		t.Errorf("a tag that is an image: %v", err)
	}
}

// TestPushToAList: a list is written where it can be read, until the new entry stays, up
// to a bound.
func TestPushToAList(t *testing.T) {
	const broken = `{"schemaVersion":2,"mediaType":"` + image.MediaTypeIndex + `","manifests":5}`
	for _, row := range []struct {
		reason string
		list   string // that is there
		faults func(tag string) []registrytest.Fault
		kind   image.Kind
		says   string
		lists  int // writings
	}{
		{"it is written once", "", nil, "", "", 1},
		{"it cannot be read", "", func(tag string) []registrytest.Fault {
			return []registrytest.Fault{{Method: http.MethodGet, Reference: tag, Do: registrytest.Status(403)}}
		}, image.Refused, "403", 0},
		{"it is none", broken, nil, image.Corrupt, "the list of referrers", 0},
		{"it may not be written", "", func(tag string) []registrytest.Fault {
			return []registrytest.Fault{{Method: http.MethodPut, Reference: tag, Do: registrytest.Status(403)}}
		}, image.Refused, "403", 1},
		{"two writings are lost", "", func(tag string) []registrytest.Fault {
			return []registrytest.Fault{{Method: http.MethodPut, Reference: tag, Nth: 1, Do: registrytest.Status(201)}, {Method: http.MethodPut, Reference: tag, Nth: 1, Do: registrytest.Status(201)}}
		}, "", "", 3},
		{"each is lost", "", func(tag string) []registrytest.Fault {
			return []registrytest.Fault{{Method: http.MethodPut, Reference: tag, Do: registrytest.Status(201)}}
		}, image.Unavailable, "push again", 3},
		{"each is lost, and at last it cannot be read", "", func(tag string) []registrytest.Fault {
			return []registrytest.Fault{{Method: http.MethodPut, Reference: tag, Do: registrytest.Status(201)}, {Method: http.MethodGet, Reference: tag, Nth: 4, Do: registrytest.Status(403)}}
		}, image.Refused, "403", 3},
		{"each is lost, and at last it is none", `{"mediaType":"` + image.MediaTypeIndex + `","manifests":[]}`, func(tag string) []registrytest.Fault {
			return []registrytest.Fault{{Method: http.MethodPut, Reference: tag, Do: registrytest.Status(201)}, {Method: http.MethodGet, Reference: tag, Nth: 4, Do: registrytest.Body([]byte(broken))}}
		}, image.Corrupt, "list", 3},
	} {
		server := start(t, registrytest.Options{NoReferrers: true})
		artifact := note(t, server.PutImage("team/app", "v1", "content"))
		tag := strings.ReplaceAll(artifact.Subject.Digest.String(), ":", "-")
		if row.list != "" {
			server.PutManifest("team/app", tag, image.MediaTypeIndex, []byte(row.list))
		}
		if row.faults != nil {
			server.SetFaults(row.faults(tag)...)
		}
		_, err := newClient(t, registry.Config{}).Push(t.Context(), repository(t, server.Host()+"/team/app"), artifact)
		if image.KindOf(err) != row.kind || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %q, want %q: %v", row.reason, image.KindOf(err), row.kind, err)
		}
		if lists := listings(server); lists != row.lists {
			t.Errorf("%s: it was written %d times, want %d", row.reason, lists, row.lists)
		}
	}
}

// TestPushToALongList: a list is no longer than what a registry must take.
func TestPushToALongList(t *testing.T) {
	server := start(t, registrytest.Options{NoReferrers: true})
	artifact := note(t, server.PutImage("team/app", "v1", "content"))
	client, where := newClient(t, registry.Config{}), repository(t, server.Host()+"/team/app")
	tag := strings.ReplaceAll(artifact.Subject.Digest.String(), ":", "-")
	push := func(pad int) error {
		list := `{"schemaVersion":2,"mediaType":"` + image.MediaTypeIndex + `","manifests":[],"annotations":{"pad":"` + strings.Repeat("x", pad) + `"}}`
		server.PutManifest("team/app", tag, image.MediaTypeIndex, []byte(list))
		_, err := client.Push(t.Context(), where, artifact)
		return err
	}
	if err := push(0); err != nil {
		t.Fatal(err)
	}
	_, list, err := client.Manifest(t.Context(), where, tag)
	if err != nil {
		t.Fatal(err)
	}
	room := 4<<20 - len(list)
	if err := push(room); err != nil {
		t.Errorf("as long as may be: %v", err)
	}
	server.Reset()
	wantKind(t, push(room+1), image.Bound)
	if listings(server) > 0 {
		t.Error("a list that is too long was written")
	}
}
