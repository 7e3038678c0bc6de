package layout

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// TestHasTag: a name is a tag, of any repository, or a whole reference, of its own.
func TestHasTag(t *testing.T) {
	for _, test := range []struct {
		reason, refName, imageName string
		repository, tag            string
		has, hasFull               bool // where only names with their repository count
	}{
		{"the tag", "v1", "", "reg.example/app", "v1", true, false},
		{"another tag", "v1", "", "reg.example/app", "v2", false, false},
		{"the tag, under the other annotation", "", "v1", "reg.example/app", "v1", true, false},
		{"a tag of cosign's, which names a digest", "sha256-ab.sig", "", "reg.example/app", "sha256-ab.sig", true, true},
		{"the whole reference", "reg.example/app:v1", "", "reg.example/app", "v1", true, true},
		{"the whole reference, under the other annotation", "v0", "reg.example/app:v1", "reg.example/app", "v1", true, true},
		{"the whole reference of another tag", "reg.example/app:v2", "", "reg.example/app", "v1", false, false},
		{"the whole reference of another repository", "reg.example/db:v1", "", "reg.example/app", "v1", false, false},
		{"a reference without a tag", "reg.example/app", "", "reg.example/app", "latest", true, true},
		{"a word, which is a tag and no reference", "app", "", "docker.io/library/app", "latest", false, false},
		{"no reference", "reg.example/:v1", "", "reg.example/app", "v1", false, false},
		{"no name", "", "", "reg.example/app", "v1", false, false},
	} {
		entry := indexEntry{Annotations: map[string]string{annotationRefName: test.refName, annotationImageName: test.imageName}}.parsed()
		repository, err := image.ParseRepository(test.repository)
		if err != nil {
			t.Fatal(err)
		}
		has, hasFull := entry.hasTag(repository, test.tag, false), entry.hasTag(repository, test.tag, true)
		if has != test.has || hasFull != test.hasFull {
			t.Errorf("%s: %t, want %t; by its full name %t, want %t", test.reason, has, test.has, hasFull, test.hasFull)
		}
	}
	for _, name := range []string{"", "v1", "reg.example/:v1"} {
		if (indexEntry{Annotations: map[string]string{annotationRefName: name}}).parsed().hasTag(image.Repository{}, "", false) {
			t.Errorf("%q has no tag of no repository, and is named by none", name)
		}
	}
}

// TestFindSaved: "cosign save" writes one image without a name, and its signatures.
func TestFindSaved(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	of := func(kind, digest, name string) indexEntry {
		return indexEntry{Digest: "sha256:" + digest, Annotations: map[string]string{annotationKind: kind, annotationRefName: name}}
	}
	whole := []indexEntry{of(kindSigs, "sigs", ""), of(kindImage, a, ""), of(kindAtts, "atts", "")}
	for _, test := range []struct {
		reason  string
		entries []indexEntry
		tag     string
		want    string
	}{
		{"the image", whole, "v1", "sha256:" + a},
		{"an index", []indexEntry{of(kindIndex, b, "")}, "v1", "sha256:" + b},
		{"its signatures", whole, "sha256-" + a + ".sig", "sha256:sigs"},
		{"its attestations", whole, "sha256-" + a + ".att", "sha256:atts"},
		{"what cosign keeps of it under no such name", whole, "sha256-" + a + ".sbom", ""},
		{"what cosign names by its digest alone", whole, "sha256-" + a, ""},
		{"signatures of another image", whole, "sha256-" + b + ".sig", ""},
		{"signatures that were not saved", []indexEntry{of(kindImage, a, "")}, "sha256-" + a + ".sig", ""},
		{"two images", []indexEntry{of(kindImage, a, ""), of(kindIndex, b, "")}, "v1", ""},
		{"an image that has a name", []indexEntry{of(kindImage, a, "v2")}, "v1", ""},
		{"no image", []indexEntry{of("", a, "")}, "v1", ""},
	} {
		layout := &Layout{unlisted: newUnlisted(), entries: test.entries}
		if got := layout.entries.findSaved(test.tag); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestMediaTypeOfALayout: the index has a manifest's type, else its shape determines it.
func TestMediaTypeOfALayout(t *testing.T) {
	for _, test := range []struct{ reason, entry, body, want string }{
		{"the index has it", image.MediaTypeManifest, `{"manifests":[]}`, image.MediaTypeManifest},
		{"the index has another one", "text/html", `{"config":{}}`, image.MediaTypeManifest},
		{"the shape of an index", "", `{"manifests":[]}`, image.MediaTypeIndex},
		{"the shape of an image", "", `{"config":{}}`, image.MediaTypeManifest},
		{"no shape", "", `{}`, ""},
		{"the manifest has it", "", `{"mediaType":"text/html","config":{}}`, ""},
		{"no JSON", "", `{"config":{},`, ""},
		{"JSON that is no manifest", "", `{"config":{},"artifactType":5}`, ""},
	} {
		digest := image.DigestOf([]byte(test.body))
		layout := &Layout{unlisted: newUnlisted(), entries: []indexEntry{{Digest: image.DigestOf(nil).String(), MediaType: image.MediaTypeIndex}, {Digest: digest.String(), MediaType: test.entry}}}
		if got := layout.entries.mediaType(digest, []byte(test.body)); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestLayoutMarker: there is one version, and one field for it.
func TestLayoutMarker(t *testing.T) {
	for marker, good := range map[string]bool{
		`{"imageLayoutVersion":"1.0.0"}`: true, `{"imageLayoutVersion":"1.0.1"}`: false, `{"imageLayoutVersion":"1.0.0","imageLayoutVersion":5}`: false, `{}`: false, `1.0.0`: false, ``: false,
	} {
		layout := &Layout{unlisted: newUnlisted(), files: inMemory{"oci-layout": marker, "index.json": `{"manifests":[]}`}}
		if err := layout.readIndex(); (err == nil) != good || err != nil && image.KindOf(err) != image.Corrupt {
			t.Errorf("%s: %v", marker, err)
		}
	}
}

// TestLayoutFind: a tag is one manifest, and an error for a missing tag lists the others.
func TestLayoutFind(t *testing.T) {
	a, b := image.DigestOf([]byte("a")).String(), image.DigestOf([]byte("b")).String()
	of := func(digest, name, kind string) indexEntry {
		return indexEntry{Digest: digest, Annotations: map[string]string{annotationRefName: name, annotationKind: kind}}.parsed()
	}
	const several = "; several repositories are asked for, so only names with their repository count"
	for _, test := range []struct {
		reason   string
		entries  []indexEntry
		onlyFull bool
		kind     image.Kind // "": it is a
		hint     string
	}{
		{"the tag", []indexEntry{of(b, "v0", ""), of(a, "v1", "")}, false, "", ""},
		{"the tag, twice of the same", []indexEntry{of(a, "v1", ""), of(a, "v1", "")}, false, "", ""},
		{"the tag, of two", []indexEntry{of(a, "v1", ""), of(b, "v1", "")}, false, image.Corrupt, ""},
		{"the tag of what has no digest", []indexEntry{of("sha256:../../x", "v1", "")}, false, image.Corrupt, ""},
		{"what cosign saved", []indexEntry{of(a, "", kindImage)}, false, "", ""},
		{"what cosign saved, which does not say its repository", []indexEntry{of(a, "", kindImage)}, true, image.NotFound, "the layout has no tags: name the image by its digest" + several},
		{"a name with its repository, of several", []indexEntry{of(a, "reg.example/app:v1", ""), of(b, "v1", "")}, true, "", ""},
		{"nothing", nil, false, image.NotFound, "the layout has no tags: name the image by its digest"},
		{"what has no tag", []indexEntry{of(a, "", "")}, false, image.NotFound, "the layout has no tags: name the image by its digest"},
		{"other tags, as many as are listed", []indexEntry{of(a, "1", ""), of(a, "", ""), of(a, "2", ""), of(a, "3", ""), of(a, "4", ""), of(a, "5", "")}, false, image.NotFound, "the layout has the tags 1, 2, 3, 4, 5"},
		{"one more", []indexEntry{of(a, "1", ""), of(a, "2", ""), of(a, "3", ""), of(a, "4", ""), of(a, "5", ""), of(a, "6", "")}, false, image.NotFound, "the layout has the tags 1, 2, 3, 4, 5"},
	} {
		layout := &Layout{unlisted: newUnlisted(), entries: test.entries, onlyFull: test.onlyFull}
		got, err := layout.find("resolve", image.MustParse("reg.example/app").Repository(), "v1")
		if image.KindOf(err) != test.kind || err == nil && got.String() != a || hintOf(err) != test.hint {
			t.Errorf("%s: %s, %v", test.reason, got, err)
		}
	}
}

// TestLayoutReads: intact content is read; every other case has its error.
func TestLayoutReads(t *testing.T) {
	ctx, ref := t.Context(), image.MustParse("reg.example/app:v1")
	files := inMemory{}
	const good, odd, empty = `{"config":{},"layers":[]}`, `{"config":{},"manifests":[]}`, ``
	for _, body := range []string{good, odd, empty} {
		files.put(body)
	}
	layout := &Layout{unlisted: newUnlisted(), files: files}
	describe := func(d image.Descriptor) error {
		pinned, err := ref.Pin(d)
		if err != nil {
			t.Fatal(err)
		}
		described, err := layout.Describe(ctx, pinned)
		if err == nil && (!described.Descriptor().IsComplete() || described.Digest() != d.Digest) {
			t.Errorf("%v became %v", d, described.Descriptor())
		}
		return err
	}
	manifest := func(body string) error {
		_, _, err := layout.Manifest(ctx, ref.Repository(), image.DigestOf([]byte(body)).String())
		return err
	}
	blob := func(body string, size, most int64) error {
		_, err := layout.Blob(ctx, ref.Repository(), image.Descriptor{Digest: image.DigestOf([]byte(body)), Size: size}, most)
		return err
	}
	none := image.DigestOf([]byte("none"))
	for reason, test := range map[string]struct {
		err  error
		want image.Kind
	}{
		"a manifest":                                 {manifest(good), ""},
		"a manifest that is an index as well":        {manifest(odd), image.Corrupt},
		"a manifest that is not there":               {manifest("none"), image.NotFound},
		"described":                                  {describe(image.Descriptor{Digest: image.DigestOf([]byte(good))}), ""},
		"described, an index as well":                {describe(image.Descriptor{Digest: image.DigestOf([]byte(odd))}), image.Corrupt},
		"described, and not there":                   {describe(image.Descriptor{Digest: none}), image.NotFound},
		"described already, so that nothing is read": {describe(image.Descriptor{Digest: none, MediaType: image.MediaTypeManifest, Size: 1}), ""},
		"a blob":                            {blob(good, int64(len(good)), 100), ""},
		"an empty blob":                     {blob(empty, 0, 100), ""},
		"a blob that is not there":          {blob("none", 4, 100), image.Corrupt},
		"a blob of a negative size":         {blob(good, -1, 100), image.Corrupt},
		"an empty blob of a negative size":  {blob(empty, -1, 100), image.Corrupt},
		"a blob that is larger than may be": {blob(good, int64(len(good)), 4), image.Bound},
	} {
		if image.KindOf(test.err) != test.want {
			t.Errorf("%s: %q, want %q: %v", reason, image.KindOf(test.err), test.want, test.err)
		}
	}
	if got, err := layout.Describe(ctx, image.Pinned{}); err != nil || !got.IsZero() {
		t.Errorf("nothing to describe: got %v, %v", got, err)
	}
}

// TestLayoutReferrersTag: the list at the referrers tag counts in addition to the
// index, and a list that cannot be read is reported.
func TestLayoutReferrersTag(t *testing.T) {
	subject := image.DigestOf([]byte("subject"))
	names := `{"config":{"mediaType":"a/b"},"subject":{"digest":"` + subject.String() + `"}`
	entries := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"digest":%q,"size":1}`, image.DigestOf(fmt.Append(nil, i))))
		}
		return `{"manifests":[` + strings.Join(list, ",") + `]}`
	}
	for _, test := range []struct {
		reason string
		index  []string // of the layout
		tag    []string // what has the referrers tag
		want   int
		kind   image.Kind
		says   string
	}{
		{"neither", nil, nil, 0, "", ""},
		{"the index alone", []string{names + "}"}, nil, 1, "", ""},
		{"the list alone", nil, []string{entries(2)}, 2, "", ""},
		{"both", []string{names + "}"}, []string{entries(2)}, 3, "", ""},
		{"one that cannot be read", []string{names + `,"annotations":{"a":5}}`}, nil, 0, "", ""},
		{"one that can be read as two things", []string{names + `,"manifests":[]}`}, nil, 0, "", ""},
		{"one of another subject", []string{strings.ReplaceAll(names, subject.String(), image.DigestOf(nil).String()) + "}"}, nil, 0, "", ""},
		{"a list that is none", []string{names + "}"}, []string{`{"manifests":{}}`}, 1, image.Corrupt, "no list"},
		{"a list that is too large", []string{names + "}"}, []string{entries(1) + strings.Repeat(" ", content.MaxManifest)}, 1, image.Bound, "larger"},
		{"two lists", []string{names + "}"}, []string{entries(1), entries(2)}, 1, image.Corrupt, "two manifests have this tag"},
		{"as many as may be", nil, []string{entries(content.MaxListedReferrers)}, content.MaxListedReferrers, "", ""},
		{"one more", nil, []string{entries(content.MaxListedReferrers + 1)}, content.MaxListedReferrers, image.Bound, "more than 1000"},
	} {
		files := inMemory{}
		layout := &Layout{unlisted: newUnlisted(), files: files, entries: []indexEntry{{Digest: "no digest"}}}
		add := func(body, name string) {
			files.put(body)
			layout.entries = append(layout.entries, indexEntry{Digest: image.DigestOf([]byte(body)).String(), Annotations: map[string]string{annotationRefName: name}})
		}
		for _, body := range test.index {
			add(body, "")
		}
		for _, body := range test.tag {
			add(body, content.ReferrersTag(subject))
		}
		list, err := layout.Referrers(t.Context(), image.MustParse("reg.example/app").Repository(), subject, nil)
		if len(list) != test.want || image.KindOf(err) != test.kind || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %d referrers, want %d: %v", test.reason, len(list), test.want, err)
		}
	}
}

// TestLayoutReferrersMissing: a listed manifest that is missing or damaged is reported if
// it could be a referrer, with those that are found; if it could not, it does not matter.
func TestLayoutReferrersMissing(t *testing.T) {
	subject := image.DigestOf([]byte("subject"))
	names := func(i int) string {
		return fmt.Sprintf(`{"i":%d,"config":{"mediaType":"a/b"},"subject":{"digest":%q}}`, i, subject)
	}
	const there, gone, damaged, large = "there", "gone", "damaged", "large"
	const manifest, layer = image.MediaTypeManifest, "application/vnd.oci.image.layer.v1.tar"
	arm, unknown, nowhere := `{"architecture":"arm64"}`, `{"architecture":"unknown"}`, `{}`
	for _, test := range []struct {
		reason                          string
		state                           string
		mediaType, name, kind, platform string
		want                            image.Kind // "": no error
	}{
		{"a manifest", there, manifest, "", "", nowhere, ""},
		{"a manifest that is missing", gone, manifest, "", "", nowhere, image.Corrupt},
		{"a manifest that is damaged", damaged, manifest, "", "", nowhere, image.Corrupt},
		{"a manifest that is too large", large, manifest, "", "", nowhere, image.Bound},
		{"an index that is missing", gone, image.MediaTypeIndex, "", "", nowhere, image.Corrupt},
		{"what has no type and is missing", gone, "", "", "", nowhere, image.Corrupt},
		{"a layer", there, layer, "", "", nowhere, ""},
		{"a layer that is missing", gone, layer, "", "", nowhere, ""},
		{"an image that is missing", gone, manifest, "v1", "", nowhere, ""},
		{"an image that is damaged", damaged, manifest, "v1", "", nowhere, ""},
		{"an image that cosign saved and is missing", gone, manifest, "", kindImage, nowhere, ""},
		{"an index that cosign saved and is missing", gone, manifest, "", kindIndex, nowhere, ""},
		{"signatures that cosign saved and are missing", gone, manifest, "", kindSigs, nowhere, image.Corrupt},
		{"a platform's image that is missing", gone, manifest, "", "", arm, ""},
		{"one without a platform, missing", gone, manifest, "", "", unknown, image.Corrupt},
	} {
		files := inMemory{}
		layout := &Layout{unlisted: newUnlisted(), files: files}
		list := func(body, entry string) string {
			var parsed indexEntry
			if err := json.Unmarshal([]byte(entry), &parsed); err != nil {
				t.Fatal(err)
			}
			digest := image.DigestOf([]byte(body))
			parsed.Digest = digest.String()
			layout.entries = append(layout.entries, parsed.parsed())
			files[blobPath(digest)] = body
			return blobPath(digest)
		}
		annotations := fmt.Sprintf(`{%q:%q,%q:%q}`, annotationRefName, test.name, annotationKind, test.kind)
		asked := list(names(1), fmt.Sprintf(`{"mediaType":%q,"annotations":%s,"platform":%s}`, test.mediaType, annotations, test.platform))
		list(names(2), `{}`)
		list(`{"config":{}}`, fmt.Sprintf(`{"annotations":{%q:"v2"}}`, annotationRefName)) // another image, which is there

		want := 2 // its own media type is a manifest's, whatever the index has
		if test.state != there {
			want = 1
		}
		switch test.state {
		case gone:
			delete(files, asked)
		case damaged:
			files[asked] = files[asked][1:]
		case large:
			files[asked] += strings.Repeat(" ", content.MaxManifest)
		}
		found, err := layout.Referrers(t.Context(), image.MustParse("reg.example/app").Repository(), subject, nil)
		if len(found) != want || image.KindOf(err) != test.want {
			t.Errorf("%s: %d referrers, want %d: %v, want %q", test.reason, len(found), want, err, test.want)
		}
		if test.state == gone && err != nil && !strings.Contains(err.Error(), "incomplete") {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestLayoutOfMissingManifests: a tagged manifest that is missing has another error than an
// unknown tag, and a manifest that the index lists twice is read once.
func TestLayoutOfMissingManifests(t *testing.T) {
	subject, ref := image.DigestOf([]byte("subject")), image.MustParse("reg.example/app:v1")
	missing := image.DigestOf([]byte("missing")).String()
	named := func(name, kind string) indexEntry {
		return indexEntry{Digest: missing, Annotations: map[string]string{annotationRefName: name, annotationKind: kind}}.parsed()
	}
	for _, test := range []struct {
		reason    string
		entries   []indexEntry
		tag       string
		manifest  image.Kind
		referrers image.Kind
	}{
		{"nothing", nil, "v1", image.NotFound, ""},
		{"the tag", []indexEntry{named("v1", "")}, "v1", image.Corrupt, ""},
		{"the whole name", []indexEntry{named("reg.example/app:v1", "")}, "v1", image.Corrupt, ""},
		{"another tag", []indexEntry{named("v2", "")}, "v1", image.NotFound, ""},
		{"the digest, which another layout may have", []indexEntry{named("v1", "")}, missing, image.NotFound, ""},
		{"cosign's signatures", []indexEntry{named(content.ReferrersTag(subject)+".sig", "")}, content.ReferrersTag(subject) + ".sig", image.Corrupt, ""},
		{"the referrers tag", []indexEntry{named(content.ReferrersTag(subject), "")}, content.ReferrersTag(subject), image.Corrupt, image.Corrupt},
		{"the referrers tag of another", []indexEntry{named(content.ReferrersTag(image.DigestOf(nil)), "")}, content.ReferrersTag(subject), image.NotFound, ""},
		{"an image that is listed without its name, too", []indexEntry{named("", ""), named("v1", "")}, "v1", image.Corrupt, ""},
	} {
		layout := &Layout{unlisted: newUnlisted(), files: inMemory{}, entries: test.entries}
		_, _, err := layout.Manifest(t.Context(), ref.Repository(), test.tag)
		if image.KindOf(err) != test.manifest {
			t.Errorf("%s: the manifest: %v, want %q", test.reason, err, test.manifest)
		}
		_, err = layout.Referrers(t.Context(), ref.Repository(), subject, nil)
		if image.KindOf(err) != test.referrers {
			t.Errorf("%s: referrers: %v, want %q", test.reason, err, test.referrers)
		}
	}
	// The subject cannot refer to itself, there or not.
	itself := &Layout{unlisted: newUnlisted(), files: inMemory{}, entries: []indexEntry{{Digest: subject.String()}}}
	if _, err := itself.Referrers(t.Context(), ref.Repository(), subject, nil); err != nil {
		t.Error(err)
	}
	files := counted{inMemory{}, map[string]int{}}
	body := `{"config":{},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar"}]}`
	files.put(body)
	files.inMemory[dockerManifest] = "[]"
	twice := &Layout{unlisted: newUnlisted(), files: files, entries: slices.Repeat([]indexEntry{{Digest: image.DigestOf([]byte(body)).String()}}, 5)}
	if _, err := twice.Referrers(t.Context(), ref.Repository(), subject, nil); err != nil {
		t.Error(err)
	}
	if notes := twice.Notes(); len(notes) != 1 {
		t.Errorf("%d notes", len(notes))
	}
	if n := files.opened[blobPath(image.DigestOf([]byte(body)))]; n != 2 {
		t.Errorf("it was read %d times, once for each question", n)
	}
}

// TestDockerImages: what Docker reads, and nothing of other programs.
func TestDockerImages(t *testing.T) {
	for body, want := range map[string]int{
		`[{"Config":"c"}]`: 1, `[{"Config":"c"},{"Config":"d"}] and more`: 2, `[{"Config":""},{"Config":"d"}]`: 2, `[{"Config":""}]`: 0, `[]`: 0, `null`: 0, `{}`: 0, `[{"Config":"c"}`: 0,
		`[{"Config":"c","Layers":5}]`: 0,
	} {
		if got := len(dockerImages([]byte(body))); got != want {
			t.Errorf("%s: %d images, want %d", body, got, want)
		}
	}
	const packed, plain, docker = "application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar", "application/vnd.docker.image.rootfs.diff.tar"
	layers := func(types ...string) string {
		var list []string
		for _, mediaType := range types {
			list = append(list, fmt.Sprintf(`{"mediaType":%q}`, mediaType))
		}
		return `{"layers":[` + strings.Join(list, ",") + `]}`
	}
	for body, want := range map[string]bool{
		layers(plain): true, layers(docker, plain): true, layers(packed): false, layers(plain, packed): false, layers(): false, `{}`: false, layers(plain) + "}": false,
	} {
		if got := isUnpacked([]byte(body)); got != want {
			t.Errorf("%s: unpacked %t, want %t", body, got, want)
		}
	}
}

// inMemory are files by their names.
type inMemory map[string]string

func (m inMemory) Open(name string) (io.ReadCloser, error) {
	content, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

func (m inMemory) Close() error { return nil }

func (m inMemory) Blobs(algorithm string, most int64) ([]string, error) {
	var names []string
	for name, text := range m {
		if strings.HasPrefix(name, "blobs/"+algorithm+"/") && int64(len(text)) <= most {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// put adds a blob, and returns a descriptor of it in JSON.
func (m inMemory) put(body string) string {
	digest := image.DigestOf([]byte(body))
	m[blobPath(digest)] = body
	return fmt.Sprintf(`{"digest":%q}`, digest)
}

// TestConfigurations: an index has the configurations of its platforms, and an unreadable
// entry has none.
func TestConfigurations(t *testing.T) {
	files := inMemory{}
	index := func(entries ...string) string { return files.put(`{"manifests":[` + strings.Join(entries, ",") + `]}`) }
	of := func(config string) string { return files.put(`{"config":{"digest":"` + config + `"}}`) }
	one, other := of("c1"), of("c2")
	damaged := of("c3")
	for name, content := range files {
		if strings.Contains(content, "c3") {
			files[name] = content + " "
		}
	}
	missing := `{"digest":"` + image.DigestOf(nil).String() + `"}`
	for _, test := range []struct {
		reason, entry string
		want          string
	}{
		{"an image", one, "c1"},
		{"an index", index(one, other), "c1 c2"},
		{"an index of one image twice", index(one, one), "c1"},
		{"an index that has a configuration as well", files.put(`{"config":{"digest":"c0"},"manifests":[` + one + `]}`), "c0 c1"},
		{"an index of which a platform is missing", index(missing, other, damaged, `{"digest":"x"}`), "c2"},
		{"as many platforms as are read", index(slices.Repeat([]string{one}, maxLayoutManifests)...), "c1"},
		{"one more", index(slices.Repeat([]string{one}, maxLayoutManifests+1)...), ""},
		{"an index in an index", index(index(one)), ""},
		{"an image that is damaged", damaged, ""},
		{"an image that is not there", missing, ""},
		{"what has no digest", `{"digest":"x"}`, ""},
		{"another document", files.put(`{"config":{"digest":"c1"},"manifests":5}`), ""},
	} {
		var entry indexEntry
		if err := json.Unmarshal([]byte(test.entry), &entry); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(slices.Sorted(maps.Keys(newConfigurations(&Layout{unlisted: newUnlisted(), files: files}).of(entry.Digest))), " ")
		if got != test.want {
			t.Errorf("%s: configurations %q, want %q", test.reason, got, test.want)
		}
	}
}

// counted are files, and how often each is opened.
type counted struct {
	inMemory
	opened map[string]int
}

func (c counted) Open(name string) (io.ReadCloser, error) {
	c.opened[name]++
	return c.inMemory.Open(name)
}

// TestDockerComparisonIsBounded: each file is read once, however often it is listed, not
// too much in all, and not too many names are looked for.
func TestDockerComparisonIsBounded(t *testing.T) {
	entries := func(files inMemory, bodies ...string) []indexEntry {
		var list []indexEntry
		for _, body := range bodies {
			var entry indexEntry
			if err := json.Unmarshal([]byte(files.put(body)), &entry); err != nil {
				t.Fatal(err)
			}
			list = append(list, entry)
		}
		return list
	}
	manifest := func(i, size int) string {
		body := fmt.Sprintf(`{"i":%d,"config":{"digest":%q}}`, i, image.DigestOf([]byte("{}")))
		return body + strings.Repeat(" ", size-len(body))
	}
	two := []string{manifest(1, 1000), manifest(2, 1000)}
	const config = 2 // bytes
	image1, tagged := dockerImage{Config: "c"}, dockerImage{Config: "c", RepoTags: []string{"a:b", "a:c"}}
	other := dockerImage{Config: "d"}
	for _, test := range []struct {
		reason string
		bodies []string
		saved  []dockerImage
		room   int64      // for bytes
		kind   image.Kind // "": it is opened
		says   string
	}{
		{"nothing of Docker's", two, nil, 0, "", ""},
		{"an image", two, []dockerImage{image1}, 2000 + config, "", ""},
		{"the configuration has no room", two, []dockerImage{image1}, 2000 + config - 1, image.Bound, "all manifests and configurations is larger"},
		{"a configuration that is named twice", two, []dockerImage{image1, image1}, 2000 + config, "", ""},
		{"a second one has no room", two, []dockerImage{image1, other}, 2000 + config, image.Bound, "all manifests and configurations is larger"},
		{"a second one has room", two, []dockerImage{image1, other}, 2000 + 2*config, "", ""},
		{"a manifest has no room", two, []dockerImage{image1}, 1999, image.Bound, "all manifests and configurations is larger"},
		{"a manifest that is too large, and was read all the same", append(two, manifest(3, content.MaxManifest+1)), []dockerImage{image1}, 2000 + config + content.MaxManifest - 1, image.Bound, "all manifests and configurations is larger"},
		{"one for which there is room", append(two, manifest(3, content.MaxManifest+1)), []dockerImage{image1}, 2000 + config + content.MaxManifest, "", ""},
		{"as many images as may be", two, slices.Repeat([]dockerImage{image1}, 4096), 1 << 20, "", ""},
		{"one more", two, slices.Repeat([]dockerImage{image1}, 4097), 1 << 20, image.Bound, "more than 4096 images or names"},
		{"as many names as may be", two, slices.Repeat([]dockerImage{tagged}, 2048), 1 << 20, "", ""},
		{"more names", two, slices.Repeat([]dockerImage{tagged}, 2049), 1 << 20, image.Bound, "more than 4096 images or names"},
	} {
		files := counted{inMemory{"c": "{}", "d": "{}"}, map[string]int{}}
		layout := &Layout{unlisted: newUnlisted(), files: files, entries: entries(files.inMemory, test.bodies...)}
		found := newConfigurations(layout)
		if found.left != 64<<20 {
			t.Fatalf("%d bytes are read", found.left)
		}
		found.left = test.room
		err := layout.agreesWith(test.saved, found)
		if image.KindOf(err) != test.kind || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if test.saved == nil && len(files.opened) > 0 {
			t.Errorf("%s: %v were read", test.reason, files.opened)
		}
		for name, n := range files.opened {
			if n > 1 {
				t.Errorf("%s: %s was read %d times", test.reason, name, n)
			}
		}
	}
	// Names times manifests.
	many := &Layout{unlisted: newUnlisted(), files: inMemory{"c": "{}"}}
	many.files.(inMemory).put(two[0])
	many.entries = slices.Repeat(entries(inMemory{}, two[0]), 2048)
	for n, kind := range map[int]image.Kind{1024: "", 1025: image.Bound} {
		err := many.agreesWith(slices.Repeat([]dockerImage{tagged}, n), newConfigurations(many))
		if image.KindOf(err) != kind || err != nil && !strings.Contains(err.Error(), "too many names to compare") {
			t.Errorf("%d images of two names, 2048 manifests: %v", n, err)
		}
	}
	// The same large manifest in many indexes, and each index twice.
	files := counted{inMemory{"c": "{}", dockerManifest: `[{"Config":"c"}]`}, map[string]int{}}
	platform := files.put(manifest(0, 1<<20))
	var indexes []string
	for i := range 60 {
		indexes = append(indexes, fmt.Sprintf(`{"i":%d,"manifests":[%s%s]}`, i, strings.Repeat(platform+",", 1000), platform))
	}
	layout := &Layout{unlisted: newUnlisted(), files: files, entries: entries(files.inMemory, slices.Concat(indexes, indexes)...)}
	if err := layout.agreesWithDocker(); err != nil {
		t.Error(err)
	}
	for name, n := range files.opened {
		if n > 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
	// Of more than there is room for, nothing is read.
	full := newConfigurations(layout)
	full.left = -1
	if _, err := full.named("c"); kindOfFile(err) != image.Bound || files.opened["c"] > 1 {
		t.Errorf("%v, opened %d times", err, files.opened["c"])
	}
}

// TestNamed: what "docker save" calls an image is looked for as it is resolved.
func TestNamed(t *testing.T) {
	a, b := image.DigestOf([]byte("a")).String(), image.DigestOf([]byte("b")).String()
	of := func(digest, refName, imageName, kind string) indexEntry {
		return indexEntry{Digest: digest, Annotations: map[string]string{annotationRefName: refName, annotationImageName: imageName, annotationKind: kind}}.parsed()
	}
	tagged := []indexEntry{of(a, "v1", "", ""), of(b, "", "reg.example/app:v2", "")}
	twice := []indexEntry{of(a, "v1", "reg.example/app:v1", ""), of(b, "v1", "reg.example/db:v1", "")}
	for _, test := range []struct {
		reason  string
		entries []indexEntry
		name    string
		want    []string
	}{
		{"a tag", tagged, "reg.example/app:v1", []string{a}},
		{"a whole name", tagged, "reg.example/app:v2", []string{b, b}},
		{"of another repository", tagged, "reg.example/db:v2", nil},
		{"a tag that two repositories have", twice, "reg.example/db:v1", []string{b}},
		{"what cosign saved, under any name", []indexEntry{of(a, "", "", kindImage), of(b, "", "", "")}, "reg.example/app:v1", []string{a}},
		{"what has no name otherwise", []indexEntry{of(a, "", "", "")}, "reg.example/app:v1", nil},
		{"no name", tagged, "::", nil},
		{"nothing", tagged, "", nil},
	} {
		if got := (&Layout{unlisted: newUnlisted(), entries: test.entries}).named(test.name); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q is %q, want %q", test.reason, test.name, got, test.want)
		}
	}
}

func TestKindOfFile(t *testing.T) {
	for want, err := range map[image.Kind]error{
		image.NotFound: fmt.Errorf("open: %w", fs.ErrNotExist), image.Refused: fmt.Errorf("open: %w", fs.ErrPermission),
		image.Bound: &limit.ExceededError{What: "it", Most: 1}, image.Corrupt: fmt.Errorf("open: %w", errNotALayout), image.Unavailable: errors.New("broken"),
	} {
		if got := kindOfFile(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// TestLayoutBounds: the last that is taken, and the first that is not.
func TestLayoutBounds(t *testing.T) {
	for n, good := range map[int]bool{0: false, 1: true, 256: true, 257: false} {
		if _, err := Join(slices.Repeat([]*Layout{{}}, n)...); (err == nil) != good {
			t.Errorf("%d layouts are joined: %v", n, err)
		}
	}
	for n, good := range map[int]bool{4096: true, 4097: false} {
		folder := t.TempDir()
		index := `{"manifests":[` + strings.TrimSuffix(strings.Repeat(`{},`, n), ",") + `]}`
		if err := errors.Join(os.WriteFile(filepath.Join(folder, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o600),
			os.WriteFile(filepath.Join(folder, "index.json"), []byte(index), 0o600)); err != nil {
			t.Fatal(err)
		}
		layout, err := Open(folder)
		if (err == nil) != good {
			t.Errorf("%d manifests: %v", n, err)
		}
		if err == nil {
			_ = layout.Close()
		}
	}
}

// archiveOf writes a tar archive of empty files, folders (name/), symbolic links (name@)
// and hard ones (name=).
func archiveOf(t *testing.T, names ...string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "layout.tar"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	writer := tar.NewWriter(file)
	for _, name := range names {
		header := &tar.Header{Name: strings.TrimRight(name, "@="), Typeflag: tar.TypeReg}
		switch name[len(name)-1] {
		case '/':
			header.Typeflag = tar.TypeDir
		case '@':
			header.Typeflag, header.Linkname = tar.TypeSymlink, "elsewhere"
		case '=':
			header.Typeflag, header.Linkname = tar.TypeLink, "elsewhere"
		}
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestArchives: a name is there once, and there are not too many.
func TestArchives(t *testing.T) {
	var many []string
	for i := range maxArchiveEntries + 1 {
		many = append(many, fmt.Sprintf("blobs/%d", i))
	}
	for _, test := range []struct {
		reason string
		names  []string
		says   string // empty: it is read
	}{
		{"a file and its folder", []string{"blobs/", "blobs/a"}, ""},
		{"a folder twice", []string{"blobs/", "blobs/", "blobs/a"}, ""},
		{"nothing but a folder", []string{"blobs/"}, "no tar archive"},
		{"nothing", nil, "no tar archive"},
		{"a file twice", []string{"blobs/a", "./blobs//./a"}, "blobs/a twice"},
		{"a file twice, and once by way of a folder above", []string{"blobs/a", "./blobs/../blobs/a"}, "leads through a folder above"},
		{"as many as may be", many[:maxArchiveEntries], ""},
		{"one more", many, "more than 65536 files"},
	} {
		entries, err := listArchive(archiveOf(t, test.names...))
		if (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, errNotALayout) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %d files, %v", test.reason, len(entries), err)
		}
	}
	entries, err := listArchive(archiveOf(t, "file", "soft@", "hard="))
	if err != nil {
		t.Fatal(err)
	}
	archive := &archive{file: archiveOf(t), entries: entries}
	for name, want := range map[string]string{"file": "", "soft": "is a link", "hard": "is a link", "none": fs.ErrNotExist.Error()} {
		if _, err := archive.Open(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one that contains %q", name, err, want)
		}
	}
	closed := archiveOf(t, "file")
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := listArchive(closed); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("an archive that cannot be read: %v", err)
	}
	cutOff, text := archiveOf(t, "blobs/a"), archiveOf(t, "blobs/a")
	_, written := text.WriteAt([]byte(strings.Repeat("text ", 1000)), 0)
	if err := errors.Join(cutOff.Truncate(100), written); err != nil {
		t.Fatal(err)
	}
	for reason, file := range map[string]*os.File{"an archive that is cut off": cutOff, "text": text} {
		if _, err := listArchive(file); !errors.Is(err, errNotALayout) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestLayoutsGoOnWithoutOne: of content that is the same in each layout, the first that is found
// counts; a layout that cannot be read is reported before a missing one.
func TestLayoutsGoOnWithoutOne(t *testing.T) {
	gone, broken := &registry.Error{Kind: image.NotFound}, &registry.Error{Kind: image.Unavailable}
	worse := &registry.Error{Kind: image.Corrupt}
	for _, test := range []struct {
		reason  string
		answers []error
		want    error
	}{
		{"the first has it", []error{nil, broken}, nil},
		{"the second has it", []error{gone, nil}, nil},
		{"the second has it, and the first is broken", []error{broken, nil}, nil},
		{"none has it", []error{gone, gone}, gone},
		{"one that is broken might have it", []error{broken, gone}, broken},
		{"one that is broken might have it, at the end", []error{gone, broken}, broken},
		{"two are broken", []error{broken, worse}, broken},
	} {
		asked := 0
		_, err := firstOf(make([]*Layout, len(test.answers)), func(*Layout) (int, error) {
			asked++
			return asked, test.answers[asked-1]
		})
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v, want %v", test.reason, err, test.want)
		}
	}
}
