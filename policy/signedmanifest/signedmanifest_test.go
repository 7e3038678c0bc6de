package signedmanifest_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/signedmanifest"
	"github.com/quaymaster/quaymaster/workload"
)

func packed(t testing.TB, content string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(gzipped(t, []byte(content)))
}

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, err := writer.Write(content)
	if err = errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRead(t *testing.T) {
	const at = "cosign.sigstore.dev/"
	huge := packed(t, strings.Repeat("a", signedmanifest.MaxContent+1))
	many := map[string]string{at + "message": packed(t, "a")}
	for n := range signedmanifest.MaxSignatures + 5 {
		many[fmt.Sprintf("%ssignature_%d", at, n)] = "s"
	}
	many[at+"signature"] = "s"
	for _, c := range []struct {
		reason      string
		annotations map[string]string
		content     string
		contentErr  string
		signatures  string // the names, with ! for those with an error
	}{
		{"nothing", nil, "", "", ""},
		{"a content with a signature", map[string]string{at + "message": packed(t, "a"), at + "signature": "s"}, "a", "", "signature"},
		{"a signature alone", map[string]string{at + "signature": "s"}, "", "", "signature"},
		{"several", map[string]string{at + "message": packed(t, "a"), at + "signature": "s", at + "signature_1": "s", at + "signature_2": "s"}, "a", "", "signature signature_1 signature_2"},
		{"with a gap", map[string]string{at + "message": packed(t, "a"), at + "signature": "s", at + "signature_2": "s"}, "a", "", "signature"},
		{"a certificate that is none", map[string]string{at + "message": packed(t, "a"), at + "signature": "s", at + "certificate": "?", at + "signature_1": "s"}, "a", "", "signature! signature_1"},
		{"a log entry that is too large", map[string]string{at + "message": packed(t, "a"), at + "signature": "s", at + "bundle": packed(t, strings.Repeat("a", signedmanifest.MaxEntry+1))}, "a", "", "signature!"},
		{"no base64", map[string]string{at + "message": "?"}, "", "illegal base64", ""},
		{"not compressed", map[string]string{at + "message": "YQ=="}, "", "the signed content: ", ""},
		{"cut off", map[string]string{at + "message": packed(t, strings.Repeat("abc", 99))[:24]}, "", "unexpected EOF", ""},
		{"empty", map[string]string{at + "message": packed(t, "")}, "", "is empty", ""},
		{"a bomb", map[string]string{at + "message": huge}, "", "larger than 1048576 bytes", ""},
		{"of another domain", map[string]string{"example.com/message": packed(t, "a"), "example.com/signature": "s"}, "", "", ""},
		{"more than the bound", many, "a", "", strings.TrimSpace("signature" + manyNames())},
	} {
		got := signedmanifest.Domain("").Read(c.annotations)
		var names []string
		for _, s := range got.Signatures {
			name := strings.TrimPrefix(s.Annotation, at)
			if s.Err != nil {
				name += "!"
			}
			names = append(names, name)
		}
		if string(got.Content) != c.content || strings.Join(names, " ") != c.signatures || (c.contentErr == "") != (got.ContentErr == nil) || got.ContentErr != nil && !strings.Contains(got.ContentErr.Error(), c.contentErr) {
			t.Errorf("%s: %q, %v, %v", c.reason, got.Content, got.ContentErr, names)
		}
	}
}

func manyNames() string {
	out := ""
	for n := 1; n < signedmanifest.MaxSignatures; n++ {
		out += fmt.Sprintf(" signature_%d", n)
	}
	return out
}

func TestHas(t *testing.T) {
	for name, want := range map[string]bool{
		"cosign.sigstore.dev/message": true, "cosign.sigstore.dev/signature": true, "cosign.sigstore.dev/signature_1": true, "cosign.sigstore.dev/certificate_31": true,
		"cosign.sigstore.dev/bundle": true, "cosign.sigstore.dev/resourceBundleRef": true, "cosign.sigstore.dev/message_1": false, "cosign.sigstore.dev/signature_0": false, "cosign.sigstore.dev/signature_01": false,
		"cosign.sigstore.dev/signature_32": false, "cosign.sigstore.dev/signature_": false, "cosign.sigstore.dev/signatures": false, "cosign.sigstore.dev/other": false, "example.com/message": false, "cosign.sigstore.dev": false,
	} {
		if got := signedmanifest.DefaultDomain.Has(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !signedmanifest.Domain("example.com").Has("example.com/message") || signedmanifest.Domain("example.com").Has("cosign.sigstore.dev/message") {
		t.Error("another domain")
	}
}

// archive makes an archive of files, by name and type.
func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, header := range headers {
		content := header.Linkname
		if header.Typeflag == tar.TypeReg {
			header.Size, header.Linkname = int64(len(content)), ""
		}
		if header.Typeflag != tar.TypeXGlobalHeader { // which has records alone
			header.Mode = 0o600
		}
		err := writer.WriteHeader(&header)
		if header.Typeflag == tar.TypeReg {
			_, failed := io.WriteString(writer, content)
			err = errors.Join(err, failed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return gzipped(t, out.Bytes())
}

func TestManifests(t *testing.T) {
	const one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	file := func(name, content string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Linkname: content}
	}
	var many []tar.Header
	for n := range signedmanifest.MaxFiles + 1 {
		many = append(many, file(fmt.Sprintf("%d.txt", n), ""))
	}
	for _, c := range []struct {
		reason, content, want string // the number of manifests, or part of the error
	}{
		{"one", one, "1"},
		{"two", one + "---\n" + one, "2"},
		{"JSON", `{"apiVersion":"v1","kind":"ConfigMap"}`, "1"},
		{"none", "# nothing\n", "0"},
		{"a name twice", "apiVersion: v1\nkind: ConfigMap\nkind: Secret\n", "kind"},
		{"a manifest next to text", one + "---\ntext\n", "document 2"},
		{"more than the bound", strings.Repeat(one+"---\n", signedmanifest.MaxManifests+1), "MaxManifests"},
		{"an archive", string(archive(t, tar.Header{Name: "d/", Typeflag: tar.TypeDir}, file("d/a.yaml", one), file("d/b.yml", one), file("d/c.json", one))), "2"},
		{"an archive with a global header", string(archive(t, tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "a"}}, file("a.yaml", one))), "1"},
		{"an archive with a link", string(archive(t, tar.Header{Name: "a.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})), "neither a file nor a folder"},
		{"an archive of too many files", string(archive(t, many...)), "MaxFiles"},
		{"an archive of too large files", string(archive(t, file("a.yaml", strings.Repeat("#", signedmanifest.MaxArchive/2)), file("b.yaml", strings.Repeat("#", signedmanifest.MaxArchive/2+1)))), "larger than"},
		{"no archive", string(gzipped(t, []byte("text"))), "archive"},
	} {
		got, err := signedmanifest.Manifests([]byte(c.content))
		if text := fmt.Sprint(len(got)); err == nil && text != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v, want %s", c.reason, text, err, c.want)
		}
	}
}

func TestIsOf(t *testing.T) {
	for _, c := range []struct {
		reason, manifest, object string
		anyNamespace, want       bool
	}{
		{"the same", "v1 ConfigMap a/b", "v1 ConfigMap a/b", false, true},
		{"another name", "v1 ConfigMap a/b", "v1 ConfigMap a/c", false, false},
		{"another kind", "v1 ConfigMap a/b", "v1 Secret a/b", false, false},
		{"another version", "v1 ConfigMap a/b", "v2 ConfigMap a/b", false, false},
		{"another namespace", "v1 ConfigMap a/b", "v1 ConfigMap c/b", false, false},
		{"any namespace", "v1 ConfigMap a/b", "v1 ConfigMap c/b", true, true},
		{"without a namespace", "v1 ConfigMap /b", "v1 ConfigMap c/b", false, true},
		{"without a name", "v1 ConfigMap a/", "v1 ConfigMap a/", false, false},
		{"a name that is to be generated", "v1 Job a/run-?", "v1 Job a/run-?", false, true},
		{"a generated name", "v1 Job a/run-?", "v1 Job a/run-x7kqz?run-", false, true},
		{"a name that no API server generates", "v1 Job a/run-?", "v1 Job a/run-admin?run-", false, false},
		{"a name that was not generated", "v1 Job a/run-?", "v1 Job a/run-x7kqz", false, false},
		{"a generated name of another base", "v1 Job a/run-?", "v1 Job a/ran-x7kqz?ran-", false, false},
		{"a longer name", "v1 Job a/run-?", "v1 Job a/run-x7kqzz?run-", false, false},
		{"a name and a base", "v1 Job a/b", "v1 Job a/b?run-", false, true}, // the base is a difference
	} {
		parsed, err := workload.Parse([]byte(text(c.manifest)))
		if err != nil {
			t.Fatal(err)
		}
		object, err := workload.Parse([]byte(text(c.object)))
		if err != nil {
			t.Fatal(err)
		}
		if got := signedmanifest.IsOf(parsed, object.Content(), c.anyNamespace); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}

// text writes an object: version, kind, namespace/name, and a base after ?, which is the name if it is
// empty.
func text(of string) string {
	parts := strings.Fields(of)
	namespace, name, _ := strings.Cut(parts[2], "/")
	name, base, generated := strings.Cut(name, "?")
	if generated && base == "" {
		name, base = "", name
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"generateName":%q}}`, parts[0], parts[1], namespace, name, base)
}

func FuzzRead(f *testing.F) {
	f.Add(packed(f, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"))
	f.Add(base64.StdEncoding.EncodeToString(gzipped(f, archive(f, tar.Header{Name: "a.yaml", Typeflag: tar.TypeReg, Linkname: "apiVersion: v1\nkind: ConfigMap\n"}))))
	f.Fuzz(func(t *testing.T, message string) {
		carried := signedmanifest.DefaultDomain.Read(map[string]string{"cosign.sigstore.dev/message": message, "cosign.sigstore.dev/signature": message, "cosign.sigstore.dev/certificate": message})
		if carried.ContentErr != nil {
			return
		}
		manifests, err := signedmanifest.Manifests(carried.Content)
		if len(carried.Content) > signedmanifest.MaxContent || err == nil && len(manifests) > signedmanifest.MaxManifests {
			t.Errorf("%d bytes and %d manifests", len(carried.Content), len(manifests))
		}
	})
}

func ExampleDomain_Read() {
	carried := signedmanifest.DefaultDomain.Read(map[string]string{"cosign.sigstore.dev/resourceBundleRef": "registry.example/manifests:1"})
	fmt.Println(carried.Reference, len(carried.Signatures))
	// Output: registry.example/manifests:1 0
}
