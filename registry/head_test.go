package registry_test

import (
	"crypto/sha512"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
)

// TestIncompleteHeaders: where HEAD is not answered, or not whole, the manifest itself is
// asked; where HEAD is whole, it is not.
func TestIncompleteHeaders(t *testing.T) {
	body := []byte(`{"mediaType":"` + image.MediaTypeManifest + `"}`)
	own := image.DigestOf(body)
	sum := sha512.Sum512(body)
	longer := "sha512:" + hex.EncodeToString(sum[:])
	header := func(digest, mediaType string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Docker-Content-Digest", digest)
			if mediaType != "" {
				w.Header().Set("Content-Type", mediaType)
			}
			w.Header().Set("Content-Length", "51")
		}
	}
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code) }
	}
	for reason, test := range map[string]struct {
		head     func(http.ResponseWriter)
		manifest []byte
		gets     int32
		kind     image.Kind // of what a description fails with
	}{
		"all headers":                            {header(own.String(), image.MediaTypeManifest), body, 0, ""},
		"all headers, another algorithm":         {header(longer, image.MediaTypeManifest), body, 0, ""},
		"the digest alone":                       {header(own.String(), "text/plain"), body, 1, ""},
		"the digest alone, and the body is none": {header(own.String(), "text/plain"), []byte("{}"), 1, image.Corrupt},
		"HEAD is not allowed":                    {status(http.StatusMethodNotAllowed), body, 1, ""},
		"HEAD is not there":                      {status(http.StatusNotImplemented), body, 1, ""},
		"nothing is there":                       {status(http.StatusNotFound), body, 0, image.NotFound},
		"the digest of another":                  {header(image.DigestOf(nil).String(), image.MediaTypeManifest), body, 0, image.Corrupt},
	} {
		t.Run(reason, func(t *testing.T) {
			var gets atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/manifests/") {
					return
				}
				if r.Method == http.MethodHead {
					test.head(w)
					return
				}
				gets.Add(1)
				w.Header().Set("Content-Type", image.MediaTypeManifest)
				_, _ = w.Write(test.manifest)
			}))
			defer server.Close()
			ref := image.MustParse(strings.TrimPrefix(server.URL, "http://") + "/app@" + own.String())
			pinned, err := ref.Pin(image.Descriptor{Digest: own})
			if err != nil {
				t.Fatal(err)
			}
			described, err := newClient(t, registry.Config{}).Describe(t.Context(), pinned)
			if test.kind != "" {
				wantKind(t, err, test.kind)
			} else if got := described.Descriptor(); err != nil || got.Digest != own || got.MediaType != image.MediaTypeManifest || !got.IsComplete() {
				t.Errorf("got %+v, %v", got, err)
			}
			if gets.Load() != test.gets {
				t.Errorf("the manifest was asked for %d times, want %d", gets.Load(), test.gets)
			}
		})
	}
}
