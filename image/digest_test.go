package image_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
)

var (
	hex64  = strings.Repeat("0123456789abcdef", 4)
	hex128 = strings.Repeat("0123456789abcdef", 8)
)

func TestParseDigest(t *testing.T) {
	for name, row := range map[string]struct{ reason, input, err string }{
		"sha256":            {"registered", "sha256:" + hex64, ""},
		"sha512":            {"registered", "sha512:" + hex128, ""},
		"short":             {"a digit is missing", "sha256:" + hex64[1:], "has 64 hexadecimal digits, got 63"},
		"long":              {"a digit too many", "sha256:" + hex64 + "0", "has 64 hexadecimal digits, got 65"},
		"length of sha512":  {"the length belongs to the algorithm", "sha256:" + hex128, "got 128"},
		"upper case":        {"there is one canonical form", "sha256:" + strings.ToUpper(hex64), `'A' is not a lower-case`},
		"algorithm in caps": {"there is one canonical form", "SHA256:" + hex64, `"SHA256" is not sha256 or sha512`},
		"path":              {"it must be safe in a URL", "sha256:../../" + hex64[6:], "is not a lower-case"},
		"md5":               {"broken, and not registered", "md5:" + hex64[:32], `"md5" is not`},
		"no colon":          {"no algorithm", hex64, "want algorithm:hex"},
		"another colon":     {"not a digit", "sha256:" + hex64[:63] + ":", "':' is not"},
		"no value":          {"nothing", "sha256:", "got 0"},
		"no algorithm":      {"nothing", ":" + hex64, `"" is not`},
		"blank":             {"not a digit", "sha256:" + hex64[:63] + " ", "' ' is not"},
		"line end":          {"not part of it", "sha256:" + hex64 + "\n", "got 65"},
		"empty":             {"nothing", "", "want algorithm:hex"},
		"endless":           {"the message stays short", strings.Repeat("x", 1<<16), "..."},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := image.ParseDigest(row.input)
			switch {
			case row.err == "" && (err != nil || d.String() != row.input || d.Algorithm()+":"+d.Hex() != row.input):
				t.Errorf("%s: got %q, %v", row.reason, d, err)
			case row.err != "" && (err == nil || !d.IsZero() || !strings.Contains(err.Error(), row.err)):
				t.Errorf("%s: got %q, error %v; want one with %q", row.reason, d, err, row.err)
			case row.err != "" && len(err.Error()) > 400:
				t.Errorf("the message has %d characters", len(err.Error()))
			}
		})
	}
}

func TestDigestMatches(t *testing.T) {
	sha512 := image.MustParseDigest("sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a" +
		"2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f") // of "abc", FIPS 180-4
	for name, row := range map[string]struct {
		digest image.Digest
		bytes  string
		want   bool
	}{
		"sha256":             {image.DigestOf([]byte("abc")), "abc", true},
		"sha256, one letter": {image.DigestOf([]byte("abc")), "abd", false},
		"sha512":             {sha512, "abc", true},
		"sha512, one letter": {sha512, "abd", false},
		"zero":               {image.Digest{}, "", false},
	} {
		if got := row.digest.Matches([]byte(row.bytes)); got != row.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := image.DigestOf([]byte("abc")).String(); got != "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("sha256 of abc is %s", got)
	}
	if _, err := (image.Digest{}).NewHash(); err == nil {
		t.Error("the zero digest has a hash")
	}
}

func TestDigestInJSON(t *testing.T) {
	for _, d := range []image.Digest{{}, image.MustParseDigest("sha256:" + hex64), image.MustParseDigest("sha512:" + hex128)} {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again image.Digest
		if err := json.Unmarshal(b, &again); err != nil || again != d {
			t.Errorf("%s became %q, %v", b, again, err)
		}
	}
	for _, bad := range []string{`"sha256:x"`, `7`, `{}`} {
		var d image.Digest
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s was taken for %q", bad, d)
		}
	}
}

func TestMustPanics(t *testing.T) {
	for name, call := range map[string]func(){
		"digest":    func() { image.MustParseDigest("x") },
		"reference": func() { image.MustParse("X") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add("sha256:" + hex64)
	f.Add("sha512:" + hex128)
	f.Add("sha256:../../x")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := image.ParseDigest(s)
		if err != nil {
			return
		}
		if d.String() != s || strings.ContainsAny(s, "/. \\%") || d.IsZero() {
			t.Errorf("%q was read as %q", s, d)
		}
		if _, err := d.NewHash(); err != nil {
			t.Error(err)
		}
	})
}
