package content

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// TestReferrersIndex: an index is read to its end, and other content is reported; entries that
// were read before stay.
func TestReferrersIndex(t *testing.T) {
	entry := func(n int) string {
		return fmt.Sprintf(`{"digest":%q,"size":3}`, image.DigestOf(fmt.Append(nil, n)))
	}
	for _, test := range []struct {
		body  string
		found int
		good  bool
	}{
		{`{"manifests":[` + entry(1) + `]}`, 1, true},
		{`{"schemaVersion":2,"manifests":[` + entry(1) + `,` + entry(2) + `],"annotations":{"a":["b"]}}` + "\n", 2, true},
		{`{"manifests":[` + entry(1) + `],"manifests":[` + entry(2) + `]}`, 2, true},
		{`{"manifests":[{"digest":5},` + entry(1) + `]}`, 1, true},
		{`{"manifests":[` + strings.ReplaceAll(entry(1), "3}", "0}") + `]}`, 1, true},
		{`{"manifests":[` + strings.ReplaceAll(entry(1), "3}", "-1}") + `]}`, 0, true},
		{`{"manifests":null}`, 0, true},
		{`{}`, 0, true},
		{``, 0, false},
		{`null`, 0, false},
		{`[]`, 0, false},
		{`[` + entry(1) + `]`, 0, false},
		{`"manifests"`, 0, false},
		{`{"manifests":5}`, 0, false},
		{`{"manifests":{}}`, 0, false},
		{`{"manifests":{"a":` + entry(1) + `}}`, 0, false},
		{`{"manifests":`, 0, false},
		{`{"manifests":[` + entry(1), 1, false},
		{`{"manifests":[` + entry(1) + `]`, 1, false},
		{`{"manifests":[` + entry(1) + `}`, 1, false},
		{`{"manifests":[` + entry(1) + `]]`, 1, false},
		{`{"manifests":[` + entry(1) + ` ` + entry(2) + `]}`, 1, false},
		{`{"manifests":[` + entry(1) + `]}{}`, 1, false},
		{`{"manifests":[` + entry(1) + `]} and more`, 1, false},
		{`{"manifests":[` + entry(1) + `],"a":[}`, 1, false},
		{`{"manifests":[` + entry(1) + `],"a"`, 1, false},
		{`{"manifests":[` + entry(1) + `],5:6}`, 1, false},
		{`{"a":tru,"manifests":[` + entry(1) + `]}`, 0, false},
	} {
		found := NewReferrers(nil)
		if err := found.Add(strings.NewReader(test.body)); (err == nil) != test.good || len(found.list) != test.found {
			t.Errorf("%s: %d referrers, want %d: %v", test.body, len(found.list), test.found, err)
		}
	}
}

// TestCollectionBounds: so many are kept of each wanted type, and of all if no type is
// requested; of an entry, the short fields that identify it.
func TestCollectionBounds(t *testing.T) {
	for reason, test := range map[string]struct {
		types []string
		found int
		cut   bool
	}{
		"all types, which have one bound":          {nil, MaxListedReferrers, true},
		"two wanted types, which have one of each": {[]string{"a/0", "a/1"}, MaxListedReferrers + 2, false},
	} {
		found := NewReferrers(test.types)
		for i := range MaxListedReferrers + 2 {
			found.Take(Referrer{Digest: image.DigestOf(fmt.Append(nil, i)).String(), ArtifactType: fmt.Sprintf("a/%d", i%2)})
		}
		if len(found.list) != test.found || found.isCut != test.cut || (found.Err() != nil) != test.cut {
			t.Errorf("%s: %d referrers, cut %t", reason, len(found.list), found.isCut)
		}
	}
	const key = "dev.sigstore.bundle.content"
	for size, kept := range map[int]bool{0: true, maxAnnotation: true, maxAnnotation + 1: false} {
		got := keep(map[string]string{key: strings.Repeat("x", size), "other": "x"})
		if text, ok := got[key]; ok != kept || len(got) > 1 || kept && len(text) != size {
			t.Errorf("an annotation of %d bytes: kept %t", size, ok)
		}
	}
}

// TestPaced: the pending data is bounded, and the end of the stream is no failure.
func TestPaced(t *testing.T) {
	taken := int64(0)
	reader := &paced{from: strings.NewReader("12345678"), most: 5, taken: func() int64 { return taken }}
	for _, test := range []struct {
		reason  string
		taken   int64
		room, n int
		bound   bool
	}{
		{"at first", 0, 5, 5, false},
		{"as much waits as may", 0, 1, 1, false},
		{"more waits", 0, 1, 0, true},
		{"some of it was taken", 1, 1, 1, false},
		{"the rest, which is less than there is room for", 7, 5, 1, false},
	} {
		taken = test.taken
		n, err := reader.Read(make([]byte, test.room))
		if _, bound := errors.AsType[*limit.ExceededError](err); n != test.n || bound != test.bound || err != nil && !bound && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d bytes, %v", test.reason, n, err)
		}
	}
}

func FuzzReferrersIndex(f *testing.F) {
	f.Add([]byte(`{"manifests":[{"digest":"sha256:` + strings.Repeat("0", 64) + `","size":3,"artifactType":"a/b"}]}`))
	f.Add([]byte(`{"manifests":[{"digest":3},null,{"digest":"sha256:../x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		found := NewReferrers([]string{"a/b"})
		_ = found.Add(bytes.NewReader(body))
		if len(found.list) > MaxListedReferrers {
			t.Errorf("%d referrers", len(found.list))
		}
		for _, d := range found.list {
			if d.Digest.IsZero() || d.Size < 0 || d.ArtifactType != "a/b" {
				t.Errorf("kept %+v", d)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`), image.MediaTypeIndex)
	f.Add([]byte(`{"config":{},"layers":[]}`), image.MediaTypeManifest)
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		d, err := Describe(body, header)
		if err == nil && (d.MediaType == "" || d.Size != int64(len(body))) {
			t.Errorf("%q under %q is %+v", body, header, d)
		}
	})
}

func TestReferrersTagIsCut(t *testing.T) {
	long := image.MustParseDigest("sha512:" + strings.Repeat("ab", 64))
	if got, want := ReferrersTag(long), "sha512-"+strings.Repeat("ab", 32); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDescribe: a manifest is of one kind, by its header and by its own word.
func TestDescribe(t *testing.T) {
	const index, one = image.MediaTypeIndex, image.MediaTypeManifest
	typed := func(mediaType, rest string) string { return `{"mediaType":"` + mediaType + `"` + rest + `}` }
	tests := []struct {
		reason, body, header string
		want                 string // empty: refused
	}{
		{"both say the same", typed(one, ""), one, one},
		{"they contradict each other", typed(one, ""), index, ""},
		{"the header alone", `{}`, one, one},
		{"the body alone", typed(one, ""), "", one},
		{"the body alone, under a vague header", typed(one, ""), "text/plain", one},
		{"the body, under the header of something else", typed(one, ""), "text/html", ""},
		{"neither", `{}`, "", ""},
		{"the body has another one", typed("text/html", ""), "", ""},
		{"no JSON", `<html>`, one, ""},
		{"a part of another kind", `{"artifactType":5}`, one, ""},
		{"an index", typed(index, `,"manifests":[]`), index, index},
		{"an index with layers", typed(index, `,"manifests":[],"layers":[]`), index, ""},
		{"an index with a config", typed(index, `,"manifests":[],"config":{}`), index, ""},
		{"an image", typed(one, `,"config":{},"layers":[]`), one, one},
		{"an image with manifests", typed(one, `,"config":{},"manifests":[]`), one, ""},
	}
	for _, test := range tests {
		got, err := Describe([]byte(test.body), test.header)
		if (err == nil) != (test.want != "") || got.MediaType != test.want {
			t.Errorf("%s: got %q, %v", test.reason, got.MediaType, err)
		}
	}
}

// TestBlobs: how much is read for a descriptor, and what must come.
func TestBlobs(t *testing.T) {
	body := []byte("blob")
	digest := image.DigestOf(body)
	tests := []struct {
		reason string
		blob   image.Descriptor
		most   int64
		want   int64 // -1: refused
		bound  bool  // as past a bound
	}{
		{"its size", image.Descriptor{Digest: digest, Size: 4}, 10, 4, false},
		{"as much as may be", image.Descriptor{Digest: digest, Size: 10}, 10, 10, false},
		{"more", image.Descriptor{Digest: digest, Size: 11}, 10, -1, true},
		{"no size", image.Descriptor{Digest: digest}, 10, 10, false},
		{"no size, and no bound below ours", image.Descriptor{Digest: digest}, MaxBlob + 1, MaxBlob, false},
		{"a negative size", image.Descriptor{Digest: digest, Size: -1}, 10, -1, false},
		{"nothing may be read, and no size is given", image.Descriptor{Digest: digest}, 0, 0, false},
		{"a negative bound", image.Descriptor{Digest: digest}, -1, -1, false},
		{"no digest", image.Descriptor{Size: 4}, 10, -1, false},
	}
	for _, test := range tests {
		got, err := BlobBound(test.blob, test.most)
		if (err == nil) != (test.want >= 0) || err == nil && got != test.want {
			t.Errorf("%s: got %d, %v", test.reason, got, err)
		}
		if _, is := errors.AsType[*limit.ExceededError](err); is != test.bound || err != nil && (KindOfBound(err) == image.Bound) != test.bound {
			t.Errorf("%s: got %v, of kind %s", test.reason, err, KindOfBound(err))
		}
	}
	if KindOfBound(ErrTooManyReferrers) != image.Bound {
		t.Error("a list that is too long is no bound")
	}
	for size, good := range map[int64]bool{0: true, 4: true, 3: false, 5: false} {
		if err := CheckBlob(image.Descriptor{Digest: digest, Size: size}, body); (err == nil) != good {
			t.Errorf("a blob of %d bytes for one of 4: got %v", size, err)
		}
	}
	if CheckBlob(image.Descriptor{Digest: image.DigestOf(nil), Size: 4}, body) == nil {
		t.Error("a blob of another digest was taken")
	}
}

// TestShorten: what others wrote is one line of a message, without words to the terminal.
func TestShorten(t *testing.T) {
	for text, want := range map[string]string{
		"as it is": "as it is", "two\nlines": "two lines", "\x1b[31mred": " [31mred", "\x1fa\x7fb": " a b", "~é": "~é",
		strings.Repeat("a", 200): strings.Repeat("a", 200), strings.Repeat("a", 201): strings.Repeat("a", 200) + "...",
		strings.Repeat("a", 199) + "éé": strings.Repeat("a", 199) + "...",
	} {
		if got := Shorten(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
