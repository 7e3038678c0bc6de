package registry

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/guard"
)

// TestUploadAddress: an upload goes on where it was begun, whatever the registry calls
// itself, and with its own query.
func TestUploadAddress(t *testing.T) {
	digest := image.DigestOf(nil)
	for _, row := range []struct{ reason, from, location, want string }{
		{"a path", "https://reg.example/v2/a/blobs/uploads/", "/v2/a/blobs/uploads/1", "https://reg.example/v2/a/blobs/uploads/1?digest="},
		{"a path beside it", "https://reg.example/v2/a/blobs/uploads/", "1", "https://reg.example/v2/a/blobs/uploads/1?digest="},
		{"a state that is escaped", "https://reg.example/v2/a/blobs/uploads/", "/u/1?_state=a%2Bb==", "https://reg.example/u/1?_state=a%2Bb==&digest="},
		{"a path that is escaped", "https://reg.example/x", "/u/a%2Fb", "https://reg.example/u/a%2Fb?digest="},
		{"http without a port", "https://reg.example/x", "http://reg.example/u", "https://reg.example/u?digest="},
		{"http with the port of http", "https://reg.example/x", "http://reg.example:80/u", "https://reg.example/u?digest="},
		{"its name in capitals", "https://reg.example/x", "https://REG.example:443/u", "https://reg.example/u?digest="},
		{"a port that the other scheme implies", "https://reg.example:80/x", "http://reg.example:80/u", "https://reg.example:80/u?digest="},
		{"another port", "https://reg.example/x", "https://reg.example:8443/u", ""},
		{"another name", "https://reg.example/x", "https://reg.example.evil.example/u", ""},
		{"a user", "https://reg.example/x", "https://reg.example@evil.example/u", ""},
		{"another scheme", "https://reg.example/x", "ftp://reg.example/u", ""},
		{"nothing", "https://reg.example/x", "", ""},
	} {
		from, err := url.Parse(row.from)
		if err != nil {
			t.Fatal(err)
		}
		got, err := uploadAddress(from, row.location, digest)
		if (err != nil) != (row.want == "") || err == nil && got.String() != row.want+url.QueryEscape(digest.String()) {
			t.Errorf("%s: %v, %v; want %s", row.reason, got, err, row.want)
		}
	}
}

// FuzzUploadAddress: for any Location, the upload stays with the registry.
func FuzzUploadAddress(f *testing.F) {
	for _, seed := range []string{"/u?_state=1", "//evil.example/u", `\\evil.example`, "https://reg.example:443@evil.example", "http://REG.example/%2e%2e", "?", "#"} {
		f.Add(seed)
	}
	home, err := url.Parse("https://reg.example/v2/a/blobs/uploads/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, location string) {
		next, err := uploadAddress(home, location, image.DigestOf(nil))
		if err != nil {
			return
		}
		again, err := url.Parse(next.String()) // as the request is made
		if err != nil {
			return
		}
		if !guard.SameOrigin(home, again) || again.User != nil {
			t.Fatalf("%q leads to %s", location, next)
		}
	})
}

func entriesOf(index []byte) int {
	var members map[string]json.RawMessage
	var entries []json.RawMessage
	_ = json.Unmarshal(index, &members) // no index has none
	_ = json.Unmarshal(members["manifests"], &entries)
	return len(entries)
}

// TestEnlisted: other entries of a list stay, and content that is no list is not overwritten.
func TestEnlisted(t *testing.T) {
	manifest := describeBytes(image.MediaTypeManifest, []byte("x"))
	own := manifest.Digest.String()
	for _, row := range []struct {
		reason, index string
		entries       int // 0: refused
		there         bool
	}{
		{"none yet", "", 1, false},
		{"an empty one", "{}", 1, false},
		{"one with the list null", `{"manifests":null}`, 1, false},
		{"others", `{"manifests":[{"digest":"sha256:1"},{"digest":"sha256:2"}]}`, 3, false},
		{"it is there", `{"manifests":[{"digest":"sha256:1"},{"digest":"` + own + `"}]}`, 2, true},
		{"an entry that cannot be read", `{"manifests":[{"digest":"` + own + `","Digest":5}]}`, 2, false},
		{"a page", "<html>", 0, false},
		{"a list alone", "[]", 0, false},
		{"null", "null", 0, false},
		{"manifests that are no list", `{"manifests":{}}`, 0, false},
		{"JSON that is cut off", `{"manifests":[{"digest":"` + own + `"}]`, 0, false},
	} {
		list, there, err := enlisted([]byte(row.index), manifest)
		if (err == nil) != (row.entries > 0) || there != row.there || entriesOf(list) != row.entries {
			t.Errorf("%s: %s, there %t, %v", row.reason, list, there, err)
		}
	}
}

// FuzzEnlisted: whatever a referrers tag holds, what comes of it has the manifest once
// and everything that was there.
func FuzzEnlisted(f *testing.F) {
	manifest := describeBytes(image.MediaTypeManifest, []byte("x"))
	for _, seed := range []string{
		"", "{}", "null", `{"mediaType":"` + image.MediaTypeIndex + `","manifests":null}`,
		`{"mediaType":"` + image.MediaTypeIndex + `","manifests":[{"digest":"` + manifest.Digest.String() + `"}]}`,
		`{"mediaType":"` + image.MediaTypeIndex + `","manifests":[1,{"digest":2},{}],"manifests":[3]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, index []byte) {
		list, there, err := enlisted(index, manifest)
		if err != nil {
			return
		}
		again, found, err := enlisted(list, manifest)
		if err != nil || !found || string(again) != string(list) {
			t.Fatalf("%s: %t, %v", list, found, err)
		}
		if before, after := entriesOf(index), entriesOf(list); !there && after != before+1 {
			t.Fatalf("%d entries in %s of %d in %s", after, list, before, index)
		}
		if !strings.Contains(string(list), manifest.Digest.String()) && !there {
			t.Fatalf("%s lacks it", list)
		}
	})
}
