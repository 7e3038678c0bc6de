package signing_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/suite/signing"
)

const release = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAES4shFcVuooc4Empwt1GEw3bMcTBe
zxgVoJ5EGMvAlituKWmMvPjZNo0rrGHC25EUxWAxmMcn8EzXm0BoKjDosA==
-----END PUBLIC KEY-----
`

func stage(t *testing.T, c signing.Config) *signing.Stage {
	t.Helper()
	s, err := signing.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestSwap(t *testing.T) {
	t.Parallel()
	c := signing.Config{
		Images: []signing.Image{{Name: "registry.example/a:1", Signers: []signing.Signer{{Key: "pem"}}}},
		Keys:   []signing.Key{{Name: "pem", Replaces: release}, {Name: "kms", Replaces: "awskms:///alias/release"}, {Name: "stranger"}},
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
	signed := []signing.Signer{{Key: "k"}}
	for reason, c := range map[string]signing.Config{
		"neither signed nor unsigned":     {Images: []signing.Image{{Name: "a:1"}}},
		"signed and unsigned":             {Images: []signing.Image{{Name: "a:1", Unsigned: true, Signers: signed}}, Keys: []signing.Key{{Name: "k"}}},
		"by a digest":                     {Images: []signing.Image{{Name: "a@sha256:" + strings.Repeat("a", 64), Unsigned: true}}},
		"no reference":                    {Images: []signing.Image{{Name: "A B", Unsigned: true}}},
		"by a key that there is not":      {Images: []signing.Image{{Name: "a:1", Signers: signed}}},
		"without a key":                   {Images: []signing.Image{{Name: "a:1", Signers: []signing.Signer{{}}}}},
		"keyless without a subject":       {Images: []signing.Image{{Name: "a:1", Signers: []signing.Signer{{Keyless: &signing.Identity{Issuer: "i"}}}}}},
		"a key twice":                     {Images: []signing.Image{{Name: "a:1", Unsigned: true}}, Keys: []signing.Key{{Name: "k"}, {Name: "k"}}},
		"a statement without a predicate": {Images: []signing.Image{{Name: "a:1", Signers: signed, Attestations: []signing.Attestation{{Type: "vuln"}}}}, Keys: []signing.Key{{Name: "k"}}},
		"a layout with signers":           {Images: []signing.Image{{Layout: "x", Signers: signed}}},
		"a layout that is not there":      {Images: []signing.Image{{Layout: "none"}}, Folder: t.TempDir()},
		"a key for layouts":               {Images: []signing.Image{{Layout: "none"}}, Keys: []signing.Key{{Name: "k"}}},
		"what replaces is no file":        {Images: []signing.Image{{Name: "a:1", Unsigned: true}}, Keys: []signing.Key{{Name: "k", Replaces: "none.pub"}}, Folder: t.TempDir()},
	} {
		if s, err := signing.New(c); err == nil {
			s.Close()
			t.Errorf("%s is taken", reason)
		}
	}
}

func TestSameDigestEveryTime(t *testing.T) {
	t.Parallel()
	var digests [2]image.Digest
	for i := range digests {
		s := stage(t, signing.Config{Images: []signing.Image{{Name: "registry.example/a:1", Unsigned: true}}})
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
			t.Errorf("an image that is not described: %v", err)
		}
		if _, err := session.Resolve(t.Context(), image.MustParse("registry.example/a:2")); image.KindOf(err) != image.NotFound || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("a tag that is not described: %v", err)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("%s and %s", digests[0], digests[1])
	}
}
