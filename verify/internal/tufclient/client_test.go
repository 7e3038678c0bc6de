package tufclient_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/verify/internal/tufclient"
	"github.com/quaymaster/quaymaster/verify/trust/trusttest"
)

const address = "https://tuf.example"

// host answers from the repository that it shows now.
type host struct {
	shown   http.Handler
	changed map[string]http.HandlerFunc // in place of the repository's files
	asked   map[string]int
}

func (h *host) RoundTrip(request *http.Request) (*http.Response, error) {
	name := strings.TrimPrefix(request.URL.Path, "/")
	if h.asked == nil {
		h.asked = map[string]int{}
	}
	h.asked[name]++
	recorder := httptest.NewRecorder()
	if answer, ok := h.changed[name]; ok {
		answer(recorder, request)
	} else {
		h.shown.ServeHTTP(recorder, request)
	}
	return recorder.Result(), nil
}

func (h *host) client(first []byte, folder string) *tufclient.Client {
	return tufclient.New(tufclient.Options{URL: address, Root: first, Folder: folder, HTTP: &http.Client{Transport: h}})
}

func newRepository(t *testing.T) *trusttest.Repository {
	t.Helper()
	return testkit.Must(trusttest.New())(t)
}

func publish(t *testing.T, r *trusttest.Repository, content string, fault trusttest.Fault) {
	t.Helper()
	if err := r.Publish([]byte(content), fault); err != nil {
		t.Fatal(err)
	}
}

// fetches requires a content; an empty one means an error.
func fetches(t *testing.T, reason string, c *tufclient.Client, want string) {
	t.Helper()
	got, err := c.Fetch(t.Context())
	if string(got) != want || (err == nil) != (want != "") {
		t.Errorf("%s: got %q, %v; want %q", reason, got, err, want)
	}
}

// TestRotation: after a rotation of all keys, neither a holder of the earlier ones nor the
// metadata from before it is trusted again, also where the new root is hidden.
func TestRotation(t *testing.T) {
	for _, row := range []struct {
		reason          string
		stored, restart bool
		trusted         bool // the earlier keys
	}{
		{"in a process without a folder", false, false, false},
		{"in a process with a folder", true, false, false},
		{"after a restart with a folder", true, true, false},
		{"a restart without a folder knows the first root only", false, true, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			folder := ""
			if row.stored {
				folder = t.TempDir()
			}
			honest := newRepository(t)
			h := &host{shown: honest}
			c := h.client(honest.Root(), folder)
			again := func() *tufclient.Client {
				if row.restart {
					return h.client(honest.Root(), folder)
				}
				return c
			}
			publish(t, honest, "one", trusttest.None)
			fetches(t, "the first version", c, "one")
			earlier := honest.Clone()
			publish(t, honest, "two", trusttest.Rotated)
			fetches(t, "the rotation", c, "two")

			evil := ""
			if row.trusted {
				evil = "evil"
			}
			h.shown = earlier
			if !row.trusted {
				fetches(t, "the version before the rotation", again(), "")
			}
			for range 5 {
				publish(t, earlier, "evil", trusttest.None)
			}
			fetches(t, "a later version by the earlier keys", again(), evil)
			publish(t, earlier, "evil", trusttest.Rotated)
			fetches(t, "another root by the earlier keys", again(), evil)
			if row.trusted {
				return
			}
			h.shown = honest
			fetches(t, "the repository again", again(), "two")
			publish(t, honest, "three", trusttest.Rotated)
			publish(t, honest, "four", trusttest.Rotated)
			fetches(t, "two rotations at once", again(), "four")
			h.shown = earlier
			fetches(t, "the first keys after them", again(), "")
		})
	}
}

// TestNewestRootWhereTheRestFails: a root counts from its own verification on, and not only after
// a whole fetch.
func TestNewestRootWhereTheRestFails(t *testing.T) {
	honest := newRepository(t)
	h := &host{shown: honest}
	c := h.client(honest.Root(), "")
	publish(t, honest, "one", trusttest.None)
	earlier := honest.Clone()
	publish(t, honest, "two", trusttest.Rotated)
	h.changed = map[string]http.HandlerFunc{"timestamp.json": http.NotFound}
	fetches(t, "without a timestamp", c, "")
	h.shown, h.changed = earlier, nil
	fetches(t, "the version before the rotation", c, "")
	h.shown = honest
	fetches(t, "the rotated version", c, "two")
	if h.asked["2.root.json"] != 1 || h.asked["3.root.json"] != 3 {
		t.Errorf("requested %v, want a kept root once, and the next one in each fetch", h.asked)
	}
}

// TestVersions: a version older than an accepted one is refused, with and without a folder. New keys
// begin anew.
func TestVersions(t *testing.T) {
	for _, folder := range []string{"", t.TempDir()} {
		honest := newRepository(t)
		h := &host{shown: honest}
		c := h.client(honest.Root(), folder)
		publish(t, honest, "one", trusttest.None)
		earlier := honest.Clone()
		for range 4 {
			publish(t, honest, "two", trusttest.None)
		}
		fetches(t, "the fifth version", c, "two")
		fetches(t, "the same version", c, "two")
		h.shown = earlier
		fetches(t, "the first version", c, "")
		publish(t, earlier, "new", trusttest.Rotated)
		fetches(t, "the second version by new keys", c, "new")
	}
}

// TestKeptRoots: a kept root counts only for the first root that it is of, and if it is whole.
func TestKeptRoots(t *testing.T) {
	folder := t.TempDir()
	ours, theirs := newRepository(t), newRepository(t)
	for _, r := range []*trusttest.Repository{ours, theirs} {
		publish(t, r, "one", trusttest.None)
		publish(t, r, "two", trusttest.Rotated)
	}
	h := &host{shown: ours}
	fetches(t, "the repository", h.client(ours.Root(), folder), "two")
	fetches(t, "another first root", h.client(theirs.Root(), folder), "")
	h.shown = theirs
	fetches(t, "another first root and its repository", h.client(theirs.Root(), folder), "two")

	kept, err := filepath.Glob(filepath.Join(folder, "*", "root_history", "2.root.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(text, theirs.Files()["2.root.json"]) {
		t.Errorf("the root of the other repository is not kept: %v", err)
	}
	if err := os.WriteFile(kept[0], []byte(`{"signed":`), 0o600); err != nil {
		t.Fatal(err)
	}
	fetches(t, "a damaged root", h.client(theirs.Root(), folder), "two")
	if err := os.WriteFile(kept[0], theirs.Files()["2.root.json"], 0o600); err != nil {
		t.Fatal(err)
	}
	h.changed = map[string]http.HandlerFunc{"2.root.json": http.NotFound}
	fetches(t, "a kept root that the repository hides", h.client(theirs.Root(), folder), "two")

	blocked := t.TempDir()
	if err := os.WriteFile(filepath.Join(blocked, "tuf.example"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.changed = nil
	fetches(t, "a folder that cannot be written", h.client(theirs.Root(), blocked), "")
	fetches(t, "no first root", h.client([]byte("{}"), ""), "")
}

// TestLengths: whatever a repository signs, its files have bounds.
func TestLengths(t *testing.T) {
	for _, row := range []struct {
		reason string
		fault  trusttest.Fault
		size   int // of the target
		wrong  string
	}{
		{"a usual repository", trusttest.None, 3, ""},
		{"a target at the bound", trusttest.None, 512 << 10, ""},
		{"a target above it", trusttest.None, 512<<10 + 1, "more than the bound of 524288"},
		{"a target of a terabyte", trusttest.LongTarget, 3, "more than the bound of 524288"},
		{"targets of a terabyte", trusttest.LongTargets, 3, "more than the bound of 131072"},
		{"a snapshot of a terabyte", trusttest.LongSnapshot, 3, "more than the bound of 131072"},
		{"a target that does not end", trusttest.EndlessTarget, 3, "more than the expected 3"},
	} {
		r := newRepository(t)
		publish(t, r, strings.Repeat("x", row.size), row.fault)
		server := httptest.NewServer(r)
		_, err := tufclient.New(tufclient.Options{URL: server.URL, Root: r.Root(), HTTP: server.Client()}).Fetch(t.Context())
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s: got %v, want %q", row.reason, err, row.wrong)
		}
		_, err = tufclient.New(tufclient.Options{Files: r.Files(), Root: r.Root()}).Fetch(t.Context())
		if fails := row.wrong != "" && row.fault != trusttest.EndlessTarget; (err != nil) != fails {
			t.Errorf("%s, from files: got %v", row.reason, err)
		}
		server.Close()
	}
}

// TestCompressed: the bounds count bytes after decompression.
func TestCompressed(t *testing.T) {
	r := newRepository(t)
	publish(t, r, "one", trusttest.None)
	for _, name := range []string{"2.root.json", "timestamp.json", "1.snapshot.json", "1.targets.json"} {
		for _, padding := range []int{0, 1, 64} { // MiB
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				text, ok := r.Files()[strings.TrimPrefix(request.URL.Path, "/")]
				if !ok && request.URL.Path != "/"+name {
					http.NotFound(w, request)
					return
				}
				w.Header().Set("Content-Encoding", "gzip")
				zipped := gzip.NewWriter(w)
				_, err := zipped.Write(text)
				for i := 0; i < padding && err == nil && request.URL.Path == "/"+name; i++ {
					_, err = zipped.Write(bytes.Repeat([]byte(" "), 1<<20))
				}
				_ = zipped.Close() // the client may be gone
			}))
			_, err := tufclient.New(tufclient.Options{URL: server.URL, Root: r.Root(), HTTP: server.Client()}).Fetch(t.Context())
			server.Close()
			switch {
			case padding == 0 && name == "2.root.json":
				if err == nil {
					t.Error("an empty root was accepted")
				}
			case padding == 0 && err != nil, padding > 0 && (err == nil || !strings.Contains(err.Error(), "more than the expected")):
				t.Errorf("%s with %d MiB: got %v", name, padding, err)
			}
		}
	}
}

// TestTotals: the roots that are kept, and all files of a fetch, have a bound together.
func TestTotals(t *testing.T) {
	r := newRepository(t)
	publish(t, r, "one", trusttest.None)
	h := &host{shown: r, changed: map[string]http.HandlerFunc{}}
	for i, name := range []string{"2.root.json", "3.root.json", "4.root.json", "5.root.json", "6.root.json"} {
		publish(t, r, "one", trusttest.Rotated)
		text := append(bytes.Clone(r.Files()[name]), bytes.Repeat([]byte(" "), 120_000)...)
		h.changed[name] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }
		want := "one"
		if i == 4 {
			want = ""
		}
		fetches(t, name, h.client(r.Root(), ""), want)
	}
	_, err := h.client(r.Root(), "").Fetch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "configure a newer root.json") {
		t.Errorf("too many roots: got %v", err)
	}
	newer := r.Files()["2.root.json"]
	fetches(t, "a newer first root", h.client(newer, ""), "one")
}

// TestWholeFetch: files that are all within their bounds may be too much together.
func TestWholeFetch(t *testing.T) {
	r := newRepository(t)
	for range 4 {
		publish(t, r, strings.Repeat("x", 280_000), trusttest.Rotated)
	}
	h := &host{shown: r, changed: map[string]http.HandlerFunc{}}
	pad := func(name string, size int) {
		text := r.Files()[name]
		text = append(bytes.Clone(text), bytes.Repeat([]byte(" "), size-len(text))...)
		h.changed[name] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }
	}
	for _, name := range []string{"2.root.json", "3.root.json", "4.root.json", "5.root.json"} {
		pad(name, 125_000)
	}
	pad("4.snapshot.json", 128<<10)
	pad("4.targets.json", 128<<10)
	fetches(t, "1 MiB", h.client(r.Root(), ""), strings.Repeat("x", 280_000))
	pad("timestamp.json", 16_000)
	if _, err := h.client(r.Root(), "").Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "more than the expected") {
		t.Errorf("more than 1 MiB: got %v", err)
	}
}

// TestWithoutFolder: nothing is written, and no file of the working directory has an effect.
func TestWithoutFolder(t *testing.T) {
	r := newRepository(t)
	publish(t, r, "one", trusttest.None)
	later := r.Clone()
	publish(t, later, "two", trusttest.None)
	t.Chdir(t.TempDir())
	for _, name := range []string{"timestamp.json", filepath.Join("tuf.example", "timestamp.json")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, later.Files()["timestamp.json"], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fetches(t, "a repository", (&host{shown: r}).client(r.Root(), ""), "one")
	left, err := filepath.Glob("*")
	if err != nil || len(left) != 2 {
		t.Errorf("the working directory has %v, %v", left, err)
	}
}

// TestFetchFails: a fault in a library and a canceled context are errors; and a later fetch is
// possible.
func TestFetchFails(t *testing.T) {
	r := newRepository(t)
	publish(t, r, "one", trusttest.None)
	h := &host{shown: r, changed: map[string]http.HandlerFunc{"timestamp.json": func(http.ResponseWriter, *http.Request) { panic("a fault") }}}
	c := h.client(r.Root(), "")
	if _, err := c.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be read: a fault") {
		t.Errorf("a fault in a library: got %v", err)
	}
	clear(h.changed)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	h.changed["2.root.json"] = func(w http.ResponseWriter, request *http.Request) {
		http.Error(w, "", http.StatusInternalServerError)
	}
	fetches(t, "a root that the server cannot read", c, "")
	clear(h.changed)
	server := httptest.NewServer(r)
	defer server.Close()
	over := tufclient.New(tufclient.Options{URL: server.URL, Root: r.Root(), HTTP: server.Client()})
	if _, err := over.Fetch(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context: got %v", err)
	}
	fetches(t, "after that", over, "one")
	fetches(t, "after the fault", c, "one")
	files := maps.Clone(r.Files())
	delete(files, "timestamp.json")
	fetches(t, "files without a timestamp", tufclient.New(tufclient.Options{Files: files, Root: r.Root()}), "")
}
