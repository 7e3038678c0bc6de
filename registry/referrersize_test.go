package registry_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestAnEntryIsBounded: the reader's memory for a list is bounded, and
// not by the list's own bound: neither white space nor one entry is read as far as that.
func TestAnEntryIsBounded(t *testing.T) {
	for _, test := range []struct {
		reason string
		do     registrytest.Action
		kind   image.Kind
		most   int64 // bytes that are read
	}{
		{"white space without end", registrytest.Endless(), image.Bound, 256 << 10},
		{"white space within a list, without end", list(`{"manifests":[{"mediaType":"x"},` + strings.Repeat(" \n", 1<<20) + `{}]}`), image.Bound, 256 << 10},
		{"as much of it as may be", list(`{"manifests":[{"mediaType":"x"},` + strings.Repeat(" \n", 20<<10) + `{}]}`), "", 64 << 10},
		{"more of it within a string", list(`{"manifests":[{"mediaType":"` + strings.Repeat(" ", 1<<20) + `"},{}]}`), "", 2 << 20},
		{"one entry of the size of a list", registrytest.Oversize(image.MediaTypeIndex, 31<<20), image.Bound, 5 << 20},
		{"one entry of the size of a manifest", registrytest.Oversize(image.MediaTypeIndex, 4<<20-1024), "", 4 << 20},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{})
			subject := server.PutImage("app", "v1", "content")
			server.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: test.do})
			var meter registry.Meter
			client := newClient(t, registry.Config{}).With(&meter)
			_, err := client.Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), []string{wantedType})
			if image.KindOf(err) != test.kind {
				t.Errorf("kind %q, want %q: %v", image.KindOf(err), test.kind, err)
			}
			if read := meter.Bytes(); read > test.most {
				t.Errorf("%d bytes were read, want %d at most", read, test.most)
			}
		})
	}
}

// list answers with that text.
func list(text string) registrytest.Action {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", image.MediaTypeIndex)
			_, _ = w.Write([]byte(text))
		})
	}
}
