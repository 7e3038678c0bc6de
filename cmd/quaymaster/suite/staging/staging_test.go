package staging_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/suite/staging"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
)

const release = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAES4shFcVuooc4Empwt1GEw3bMcTBe
zxgVoJ5EGMvAlituKWmMvPjZNo0rrGHC25EUxWAxmMcn8EzXm0BoKjDosA==
-----END PUBLIC KEY-----
`

func stage(t *testing.T, c staging.Config) *staging.Stage {
	t.Helper()
	s, err := staging.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestSwap(t *testing.T) {
	t.Parallel()
	c := staging.Config{
		Images: []staging.Image{{Name: "registry.example/a:1", Signers: []staging.Signer{{Key: "pem"}}}},
		Keys:   []staging.Key{{Name: "pem", Replaces: release}, {Name: "kms", Replaces: "awskms:///alias/release"}, {Name: "stranger"}},
	}
	s := stage(t, c)
	wide := strings.ReplaceAll(strings.ReplaceAll(release, "zxgV", "\nzxgV"), "\n\n", "\n")
	before := map[string]any{"keys": []any{release, "first\n" + wide + "last", " awskms:///alias/release\n", "awskms:///alias/other"}}
	after := s.Swap(before).(map[string]any)["keys"].([]any)
	for i, reason := range []string{"the key itself", "the key among other text"} {
		if text := after[i].(string); strings.Contains(text, "S4shFcVu") || strings.Count(text, "BEGIN PUBLIC KEY") != 1 {
			t.Errorf("%s became %q", reason, text)
		}
	}
	if text := after[1].(string); !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "last") {
		t.Errorf("what stands beside the key became %q", text)
	}
	if text := after[2].(string); !strings.HasPrefix(text, "-----BEGIN PUBLIC KEY-----") {
		t.Errorf("the URI became %q", text)
	}
	if after[3] != "awskms:///alias/other" || before["keys"].([]any)[0] != release {
		t.Error("something else was changed")
	}
	if err := s.Unused(); err != nil {
		t.Error(err)
	}
	if err := stage(t, c).Unused(); err == nil || !strings.Contains(err.Error(), "keys[0].replaces") || !strings.Contains(err.Error(), "keys[1].replaces") {
		t.Errorf("of keys that stand nowhere: %v", err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	signed := []staging.Signer{{Key: "k"}}
	for reason, c := range map[string]staging.Config{
		"neither signed nor unsigned":     {Images: []staging.Image{{Name: "a:1"}}},
		"signed and unsigned":             {Images: []staging.Image{{Name: "a:1", Unsigned: true, Signers: signed}}, Keys: []staging.Key{{Name: "k"}}},
		"by a digest":                     {Images: []staging.Image{{Name: "a@sha256:" + strings.Repeat("a", 64), Unsigned: true}}},
		"no reference":                    {Images: []staging.Image{{Name: "A B", Unsigned: true}}},
		"by a key that there is not":      {Images: []staging.Image{{Name: "a:1", Signers: signed}}},
		"by nobody":                       {Images: []staging.Image{{Name: "a:1", Signers: []staging.Signer{{}}}}},
		"keyless without a subject":       {Images: []staging.Image{{Name: "a:1", Signers: []staging.Signer{{Keyless: &staging.Identity{Issuer: "i"}}}}}},
		"a key twice":                     {Images: []staging.Image{{Name: "a:1", Unsigned: true}}, Keys: []staging.Key{{Name: "k"}, {Name: "k"}}},
		"a statement without a predicate": {Images: []staging.Image{{Name: "a:1", Signers: signed, Attestations: []staging.Attestation{{Type: "vuln"}}}}, Keys: []staging.Key{{Name: "k"}}},
		"a layout with signers":           {Images: []staging.Image{{Layout: "x", Signers: signed}}},
		"a layout that is not there":      {Images: []staging.Image{{Layout: "none"}}, Folder: t.TempDir()},
		"a key for layouts":               {Images: []staging.Image{{Layout: "none"}}, Keys: []staging.Key{{Name: "k"}}},
		"what replaces is no file":        {Images: []staging.Image{{Name: "a:1", Unsigned: true}}, Keys: []staging.Key{{Name: "k", Replaces: "none.pub"}}, Folder: t.TempDir()},
	} {
		if s, err := staging.New(c); err == nil {
			s.Close()
			t.Errorf("%s is taken", reason)
		}
	}
}

func TestSameDigestEveryTime(t *testing.T) {
	t.Parallel()
	var digests [2]image.Digest
	for i := range digests {
		s := stage(t, staging.Config{Images: []staging.Image{{Name: "registry.example/a:1", Unsigned: true}}})
		ref := image.MustParse("registry.example/a:1")
		session, err := s.Open(t.Context(), gate.Access{}, ref.Repository())
		if err != nil {
			t.Fatal(err)
		}
		pinned, err := session.Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		digests[i] = pinned.Digest()
		if pinned.Ref().String() != ref.String() {
			t.Errorf("it is called %s", pinned.Ref())
		}
		if _, err := session.Resolve(t.Context(), image.MustParse("registry.example/b:1")); image.KindOf(err) != image.NotFound {
			t.Errorf("an image that nobody describes: %v", err)
		}
		if _, err := session.Resolve(t.Context(), image.MustParse("registry.example/a:2")); image.KindOf(err) != image.NotFound || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("a tag that nobody describes: %v", err)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("%s and %s", digests[0], digests[1])
	}
}
