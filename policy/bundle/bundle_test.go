package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/bundle"
)

func contents() *bundle.Contents {
	item := func(name string) bundle.Item {
		return bundle.Item{Name: name, Source: "policies/" + name + ".yaml", Text: []byte(`{"name":"` + name + `"}`)}
	}
	return &bundle.Contents{
		Gateway: []byte("{}"), TrustedRoot: []byte("{ }"), Kinds: []byte("[]"),
		Keys: []bundle.Item{item("key")}, Policies: []bundle.Item{item("b"), item("a"), item("c")}, Mirrors: []bundle.Item{item("mirror")},
		Resources: []bundle.Item{item("ConfigMap/shop/app")}, Roots: []bundle.Item{item("trustroot/acme/1")}, Globals: []bundle.Item{item("entry")},
		Notes: []string{"a rule calls a service"},
	}
}

func write(t *testing.T, c *bundle.Contents) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := bundle.Write(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRoundTrip: a bundle that was written is read back, sorted; the same contents in another order
// make the same bytes.
func TestRoundTrip(t *testing.T) {
	c := contents()
	packed := write(t, c)
	read, err := bundle.Open(bytes.NewReader(packed), image.DigestOf(packed))
	if err != nil {
		t.Fatal(err)
	}
	want := contents()
	want.Policies = []bundle.Item{c.Policies[1], c.Policies[0], c.Policies[2]}
	if !reflect.DeepEqual(&read.Contents, want) {
		t.Errorf("read %+v\nwant %+v", read.Contents, want)
	}
	for range 20 {
		shuffled := contents()
		rand.Shuffle(len(shuffled.Policies), func(i, j int) {
			shuffled.Policies[i], shuffled.Policies[j] = shuffled.Policies[j], shuffled.Policies[i]
		})
		if !bytes.Equal(write(t, shuffled), packed) {
			t.Fatal("equal contents made other bytes")
		}
	}
	changed := contents()
	changed.Policies[0].Text = []byte("{}")
	if bytes.Equal(write(t, changed), packed) {
		t.Error("other contents made the same bytes")
	}
	_, err = bundle.Open(bytes.NewReader(write(t, changed)), image.DigestOf(packed))
	if err == nil || !strings.Contains(err.Error(), "is wanted") {
		t.Errorf("another digest: %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*bundle.Contents)
		says   string
	}{
		{"two of one name", func(c *bundle.Contents) { c.Policies[0].Name = "a" }, "a is there twice"},
		{"no name", func(c *bundle.Contents) { c.Keys[0].Name = "" }, "without a name"},
		{"no text", func(c *bundle.Contents) { c.Roots[0].Text = nil }, "without text"},
		{"an entry beyond the bound", func(c *bundle.Contents) { c.Globals[0].Text = make([]byte, 10<<20) }, "is the bound"},
		{"an empty note", func(c *bundle.Contents) { c.Notes = []string{" "} }, "a note is empty"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			made := contents()
			c.change(made)
			if err := bundle.Write(io.Discard, made); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// entry is a file of an archive that a test makes.
type entry struct {
	header tar.Header
	text   string
}

func packed(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		if e.header.Typeflag == 0 {
			e.header.Typeflag = tar.TypeReg
		}
		if e.header.Typeflag == tar.TypeReg {
			e.header.Size = int64(len(e.text))
		}
		if err := archive.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, e.text); err != nil && e.header.Typeflag == tar.TypeReg {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// manifested returns a manifest of files, and the files.
func manifested(files ...entry) []entry {
	var listed []map[string]any
	for _, f := range files {
		sum := sha256.Sum256([]byte(f.text))
		listed = append(listed, map[string]any{"path": f.header.Name, "size": len(f.text), "sha256": hex.EncodeToString(sum[:]), "name": "n"})
	}
	text, _ := json.Marshal(map[string]any{"format": bundle.Format, "version": bundle.Version, "entries": listed})
	return append([]entry{{header: tar.Header{Name: "manifest.json"}, text: string(text)}}, files...)
}

func file(name, text string) entry { return entry{header: tar.Header{Name: name}, text: text} }

// TestOpenRefuses: each row has one thing wrong; the first is a bundle.
func TestOpenRefuses(t *testing.T) {
	policy := file("policies/000000.json", "{}")
	good := manifested(policy)
	with := func(change func(e []entry) []entry) []byte { return packed(t, change(manifested(policy))...) }
	manifest := func(text string) []byte { return packed(t, file("manifest.json", text)) }
	bomb := func() []byte {
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		archive := tar.NewWriter(zipped)
		_ = archive.WriteHeader(&tar.Header{Name: "manifest.json", Size: 1 << 30, Typeflag: tar.TypeReg})
		zeros := make([]byte, 1<<20)
		for range 300 {
			_, _ = archive.Write(zeros)
		}
		_ = zipped.Close()
		return out.Bytes()
	}
	for _, c := range []struct {
		reason string
		bytes  []byte
		says   string // empty: it is read
	}{
		{"a bundle", packed(t, good...), ""},
		{"nothing", nil, "no gzip file"},
		{"text", []byte("policies"), "no gzip file"},
		{"no archive", func() []byte {
			var out bytes.Buffer
			zipped := gzip.NewWriter(&out)
			_, _ = io.WriteString(zipped, strings.Repeat("policies", 100))
			_ = zipped.Close()
			return out.Bytes()
		}(), "no tar archive"},
		{"no manifest", packed(t, policy), "want the file manifest.json"},
		{"an empty archive", packed(t), "manifest.json is missing"},
		{"another format", manifest(`{"format":"x","version":1,"entries":[]}`), "want format"},
		{"a newer version", manifest(`{"format":"quaymaster.dev/bundle","version":2,"entries":[]}`), "by a newer one"},
		{"an unknown member", manifest(`{"format":"quaymaster.dev/bundle","version":1,"entries":[],"x":1}`), "x"},
		{"a member that is there twice", manifest(`{"format":"quaymaster.dev/bundle","version":1,"version":1,"entries":[]}`), "duplicate"},
		{"a file that is not listed", with(func(e []entry) []entry { return append(e, file("policies/000001.json", "{}")) }), "not in the manifest"},
		{"a file that is missing", with(func(e []entry) []entry { return e[:1] }), "policies/000000.json is missing"},
		{"a file that was changed", with(func(e []entry) []entry { e[1].text = "[]"; return e }), "differs from the manifest"},
		{"a file that became longer", with(func(e []entry) []entry { e[1].text = "{ }"; return e }), "differs from the manifest"},
		{"a folder that is none", packed(t, manifested(file("secrets/000000.json", "{}"))...), "no file of a bundle"},
		{"a place that is none", packed(t, manifested(file("policies/000001.json", "{}"))...), "not at its place"},
		{"a path that leads out", packed(t, manifested(file("../../etc/passwd", "{}"))...), "no file of a bundle"},
		{"an absolute path", packed(t, manifested(file("/policies/000000.json", "{}"))...), "no file of a bundle"},
		{"a link", with(func(e []entry) []entry {
			e[1].header = tar.Header{Name: "policies/000000.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}
			return e
		}), "want the file"},
		{"a folder", with(func(e []entry) []entry {
			e[1].header.Typeflag = tar.TypeDir
			return e
		}), "want the file"},
		{"an extended header", with(func(e []entry) []entry {
			e[1].header.PAXRecords = map[string]string{"VENDOR.x": "y"}
			return e
		}), "want the file"},
		{"a single file with a name", packed(t, manifested(file("gateway.json", "{}"))...), "has a name"},
		{"a file that is there twice", packed(t, manifested(policy, policy)...), "not at its place"},
		{"two of one name", packed(t, manifested(policy, file("policies/000001.json", "{}"))...), "n is there twice"},
		{"something behind the archive", append(packed(t, good...), 0), "follows the compressed archive"},
		{"a second archive behind it", append(packed(t, good...), packed(t, good...)...), "follows the compressed archive"},
		{"something behind the archive's end", func() []byte {
			var out bytes.Buffer
			source, _ := gzip.NewReader(bytes.NewReader(packed(t, good...)))
			zipped := gzip.NewWriter(&out)
			_, _ = io.Copy(zipped, source)
			_, _ = io.WriteString(zipped, "more")
			_ = zipped.Close()
			return out.Bytes()
		}(), "follows the archive's end"},
		{"a truncated file", packed(t, good...)[:100], ""},
		{"an archive that unpacks to a lot", bomb(), "is the bound"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			started := time.Now()
			_, err := bundle.Open(bytes.NewReader(c.bytes), image.Digest{})
			wanted := c.says != "" || c.reason == "a truncated file"
			if (err != nil) != wanted || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// FuzzOpen: whatever is read is either refused, or written again it is the same.
func FuzzOpen(f *testing.F) {
	var out bytes.Buffer
	if err := bundle.Write(&out, contents()); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		read, err := bundle.Open(bytes.NewReader(packed), image.Digest{})
		if err != nil {
			return
		}
		again, err := bundle.Open(bytes.NewReader(write(t, &read.Contents)), image.Digest{})
		if err != nil || !reflect.DeepEqual(again.Contents, read.Contents) {
			t.Errorf("written again it is another: %v", err)
		}
	})
}
