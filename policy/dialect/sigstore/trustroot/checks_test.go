package trustroot_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// tufRoot is a first root.json.
var tufRoot = []byte(`{"signed":{"_type":"root"}}`)

func zip(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestParseDocument: the documents that are a TrustRoot.
func TestParseDocument(t *testing.T) {
	good := keysOf("r", verifytest.Must(verifytest.New(verifytest.Options{})))
	for _, c := range []struct{ reason, old, new, want string }{
		{"a TrustRoot", "", "", ""},
		{"another version", "policy.sigstore.dev/v1alpha1", "policy.sigstore.dev/v9", "is no TrustRoot"},
		{"another kind", `"TrustRoot"`, `"TrustRoots"`, "is no TrustRoot"},
		{"no name", `"name":"r"`, `"uid":"r"`, "metadata.name: is empty"},
		{"a certificate authority without an address", `"uri":"https://fulcio.example"`, `"uri":""`, ""},
		{"an address that is none", `"uri":"https://fulcio.example"`, `"uri":"ftp://fulcio.example"`, "certificateAuthorities[0].uri: "},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		_, err := trustroot.Parse([]byte(text), "root.yaml")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.reason, err, c.want)
		}
	}
	for version, kinds := range map[string]map[string]bool{
		"policy.sigstore.dev/v1alpha1": {"TrustRoot": true, "ClusterImagePolicy": false},
		"kyverno.io/v1":                {"TrustRoot": false},
	} {
		for kind, want := range kinds {
			if trustroot.Recognises(version, kind) != want {
				t.Errorf("%s %s is a TrustRoot: %t", version, kind, !want)
			}
		}
	}
}

// TestRemote: which roots and targets a repository may have.
func TestRemote(t *testing.T) {
	for _, c := range []struct {
		reason, target string
		root           []byte
		good           bool
	}{
		{"a target", "a/b.json", tufRoot, true},
		{"a target with dots in it", "a..b", tufRoot, true},
		{"a target from the root", "/b.json", tufRoot, false},
		{"a target with a backslash", `a\b.json`, tufRoot, false},
		{"a target by a way around", "a/../b.json", tufRoot, false},
		{"a target with an empty folder", "a//b.json", tufRoot, false},
		{"the folder above", "..", tufRoot, false},
		{"a root that is none in the end", "b.json", []byte(`{"signed":{"_type":"root"},"signed":5}`), false},
		{"another document of TUF", "b.json", []byte(`{"signed":{"_type":"snapshot"}}`), false},
	} {
		text := rootDocument("r", map[string]any{"remote": map[string]any{"root": encode(c.root), "mirror": "https://tuf.example", "trustedRootTarget": c.target}})
		if _, err := trustroot.Parse([]byte(text), "root.yaml"); (err == nil) != c.good {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestArchive: the number and size of files, and files that are no archive.
func TestArchive(t *testing.T) {
	many := func(n int) (list []tar.Header) {
		for i := range n {
			list = append(list, tar.Header{Name: fmt.Sprint("f", i), Typeflag: tar.TypeReg, Size: 1})
		}
		return list
	}
	sized := func(size int64) []tar.Header {
		return []tar.Header{{Name: "a", Typeflag: tar.TypeReg, Size: size}}
	}
	var cut bytes.Buffer
	files := tar.NewWriter(&cut)
	if err := files.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 100}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		text   []byte
		want   string
	}{
		{"as many files as may be", archive(t, many(1000)...), ""},
		{"more files", archive(t, many(1001)...), "more than 1000 files"},
		{"as large as may be", archive(t, sized(16<<20)...), ""},
		{"larger", archive(t, sized(16<<20+1)...), "exceed the bound"},
		{"the folder above", archive(t, tar.Header{Name: "..", Typeflag: tar.TypeReg}), "outside the repository"},
		{"no archive in it", zip(t, bytes.Repeat([]byte("x"), 2000)), "want a tar.gz"},
		{"a file that is cut off", zip(t, cut.Bytes()), "unexpected EOF"},
	} {
		text := rootDocument("r", map[string]any{"repository": map[string]any{"root": encode(tufRoot), "targets": "targets", "mirrorFS": encode(c.text)}})
		_, err := trustroot.Parse([]byte(text), "root.yaml")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.reason, err, c.want)
		}
	}
}

func TestNoCertificate(t *testing.T) {
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
	text := rootDocument("r", map[string]any{"sigstoreKeys": map[string]any{"certificateAuthorities": []any{map[string]any{"certChain": encode(block)}}}})
	if _, err := trustroot.Parse([]byte(text), "root.yaml"); err == nil || !strings.Contains(err.Error(), "certChain: certificate 1: ") {
		t.Error(err)
	}
}

// TestLongKey: a chain with a long key is refused before its signatures are verified.
func TestLongKey(t *testing.T) {
	for bits, want := range map[int]string{8192: "certChain: certificate 1 is not signed", 8193: "certChain: certificate 1: the RSA key of 8193 bits is longer"} {
		certificate := verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits)))
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
		text := rootDocument("r", map[string]any{"sigstoreKeys": map[string]any{"certificateAuthorities": []any{map[string]any{"certChain": encode(block)}}}})
		if _, err := trustroot.Parse([]byte(text), "root.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bits: got %v, want %q", bits, err, want)
		}
	}
}

// TestUnmarshal: valid trusted_root.json documents, and responses that are refused.
func TestUnmarshal(t *testing.T) {
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	padded := func(size int) []byte {
		return append(s.TrustedRoot(), bytes.Repeat([]byte(" "), size-len(s.TrustedRoot()))...)
	}
	for _, c := range []struct {
		reason string
		text   []byte
		good   bool
	}{
		{"as long as may be", padded(field.MaxDocument), true},
		{"longer", padded(field.MaxDocument + 1), false},
		{"without a media type", []byte("{}"), false},
		{"with more than is known", []byte(`{"mediaType":"` + trustroot.MediaType + `","more":1}`), false},
	} {
		if _, err := trustroot.Unmarshal(c.text); (err == nil) != c.good {
			t.Errorf("%s: %v", c.reason, err)
		}
		roots := &trustroot.Roots{}
		root := remoteRoot(t, "tuf", "https://a.example")
		roots.Put(root)
		if err := roots.Answer("tuf", root.Hash, s.TrustedRoot()); err != nil {
			t.Fatal(err)
		}
		if err := roots.Answer("tuf", root.Hash, c.text); (err == nil) != c.good {
			t.Errorf("%s, as an answer: %v", c.reason, err)
		}
		want := s.TrustedRoot() // the root before
		if c.good {
			want = c.text
		}
		if got, err := roots.TrustedRoot("tuf"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the root has %d bytes, %v", c.reason, len(got), err)
		}
	}
	roots, keys := &trustroot.Roots{}, parseRoot(t, keysOf("keys", s))
	roots.Put(keys)
	if err := roots.Answer("keys", keys.Hash, s.TrustedRoot()); err == nil {
		t.Error("an answer for one that has no repository")
	}
}
