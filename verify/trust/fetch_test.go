package trust_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quaymaster/quaymaster/verify/trust"
)

// folder returns the repository's files with another folder of targets.
func (r *repository) folder(targets string) map[string][]byte {
	files := map[string][]byte{}
	for name, data := range r.Files() {
		if target, ok := strings.CutPrefix(name, "targets/"); ok {
			name = targets + "/" + target
		}
		files[name] = data
	}
	return files
}

func TestFetch(t *testing.T) {
	ours, theirs, broken := newRepository(t), newRepository(t), newRepository(t)
	want := newSigstore("ours").TrustedRoot()
	ours.publish(t, want)
	theirs.publish(t, newSigstore("theirs").TrustedRoot())
	broken.publish(t, []byte(`{"mediaType":"none"}`))
	server := httptest.NewServer(ours)
	defer server.Close()
	elsewhere := fstest.MapFS{}
	for name, data := range ours.folder("repository/objects") {
		elsewhere["deep/"+name] = &fstest.MapFile{Data: data}
	}
	deep := httptest.NewServer(http.FileServerFS(elsewhere))
	defer deep.Close()
	packed := map[string][]byte{}
	for name, data := range ours.folder("targets") {
		packed["repository/"+name] = data
	}
	long := maps.Clone(ours.folder("targets"))
	for name, data := range long {
		if strings.HasPrefix(name, "targets/") {
			long[name] = append(bytes.Clone(data), ' ')
		}
	}
	for _, c := range []struct {
		tuf    *trust.TUF
		wrong  string // empty: fetched
		reason string
	}{
		{&trust.TUF{URL: server.URL, Root: ours.root, Client: server.Client()}, "", "a repository at an address"},
		{&trust.TUF{URL: server.URL + "/", Root: ours.root, Client: server.Client()}, "", "an address with a slash at its end"},
		{&trust.TUF{URL: deep.URL + "/deep", Root: ours.root, Client: deep.Client(), Targets: "repository/objects"}, "", "another folder of targets"},
		{&trust.TUF{Files: ours.folder("targets"), Root: ours.root}, "", "a repository that is carried along"},
		{&trust.TUF{Files: ours.folder("a"), Root: ours.root, Targets: "a"}, "", "one with another folder"},
		{&trust.TUF{Files: packed, Root: ours.root}, "", "one in the folder that TUF's tools make"},
		{&trust.TUF{URL: server.URL, Root: theirs.root, Client: server.Client()}, "TUF repository " + server.URL, "another first root"},
		{&trust.TUF{URL: server.URL, Client: server.Client()}, "TUF repository", "no root: not signed by the public-good keys"},
		{&trust.TUF{URL: deep.URL + "/deep", Root: ours.root, Client: deep.Client()}, "404", "the folder is not configured"},
		{&trust.TUF{Files: theirs.folder("targets"), Root: ours.root}, "of a document", "foreign files"},
		{&trust.TUF{Files: map[string][]byte{}, Root: ours.root}, "404", "no files"},
		{&trust.TUF{Files: long, Root: ours.root}, "more than the expected", "a target that is longer than declared"},
		{&trust.TUF{Files: ours.folder("targets"), Root: ours.root, Target: "other.json"}, "other.json", "a target that is not there"},
		{&trust.TUF{Files: broken.folder("targets"), Root: broken.root}, "cannot be read", "a target that is no trusted root"},
		{&trust.TUF{URL: server.URL, Root: []byte("{}"), Client: server.Client()}, "TUF repository", "no root.json"},
		{&trust.TUF{URL: server.URL, Root: ours.root}, "HTTP client", "no client"},
		{&trust.TUF{URL: server.URL, Root: ours.root, Files: ours.folder("targets")}, "not both", "two repositories"},
		{&trust.TUF{URL: server.URL, Root: ours.root, Client: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			panic("a fault in a library")
		})}}, "cannot be read", "a library that fails"},
	} {
		text, err := c.tuf.Fetch(t.Context())
		switch {
		case c.wrong == "" && (err != nil || !bytes.Equal(text, want)):
			t.Errorf("%s: %v", c.reason, err)
		case c.wrong != "" && (err == nil || text != nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: got %q, %v; want an error with %q", c.reason, text, err, c.wrong)
		}
	}
}
