package gate_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// FuzzIndex holds that no index makes the gate panic, and that an unsigned one is never admitted
// where each of its platforms has to be signed.
func FuzzIndex(f *testing.F) {
	h := newEnv(f, registrytest.Options{})
	signed, unsigned := h.Build("app", "s390x", "good"), h.Build("app", "amd64", "evil")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(f)
	each := signedBy(h.key)
	each.check.Platforms = policy.PlatformEach
	g := h.gate(f, each)
	list := func(children ...string) []byte {
		return []byte(`{"schemaVersion":2,"mediaType":"` + image.MediaTypeIndex + `","manifests":[` + strings.Join(children, ",") + `]}`)
	}
	child := func(digest, platform string) string {
		return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":7,"platform":%s}`, image.MediaTypeManifest, digest, platform)
	}
	h.Registry.PutManifest("app", "listed", image.MediaTypeIndex, list(child(signed.Manifest.Digest, `{"os":"linux","architecture":"s390x"}`)))
	if outcome := decide(f, g, h.Registry.Host()+"/app:listed"); outcome.Result != gate.Allow {
		f.Fatalf("the platform that is listed is signed: %+v", outcome.Verdicts)
	}
	evil := unsigned.Manifest.Digest
	for _, children := range []string{
		child(evil, `{"os":"linux","architecture":"amd64"}`), child(evil, `{"os":"unknown"}`), child(evil, `{"os":"unknown","architecture":"unknown"}`),
		child("sha256:../../x", "null"), "null", "{}", "[]", "",
	} {
		f.Add(list(children))
	}
	f.Add(list(slices.Repeat([]string{child(evil, "null")}, 100)...))
	f.Fuzz(func(t *testing.T, body []byte) {
		h.Registry.Reset()
		h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Manifest, Repository: "app", Do: served(body)})
		if outcome := decide(t, g, h.Registry.Host()+"/app:fuzzed"); outcome.Result == gate.Allow {
			t.Errorf("admitted, and unsigned: %s: %+v", body, outcome.Verdicts)
		}
	})
}

// served answers with a body of any bytes as an index, under its tag and its digest.
func served(body []byte) registrytest.Action {
	digest := registrytest.DigestOf(body)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if !strings.HasSuffix(request.URL.Path, "/fuzzed") && !strings.HasSuffix(request.URL.Path, "/"+digest) {
				next.ServeHTTP(w, request)
				return
			}
			w.Header().Set("Content-Type", image.MediaTypeIndex)
			w.Header().Set("Docker-Content-Digest", digest)
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			if request.Method == http.MethodGet {
				_, _ = w.Write(body)
			}
		})
	}
}
