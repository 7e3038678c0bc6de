package source_test

import (
	"encoding/base64"
	"encoding/pem"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

type known struct {
	Spec spec `json:"spec"`
}

type spec struct {
	Names []string `json:"names"`
	Count int      `json:"count"`
	On    *bool    `json:"on"`
	Text  string   `json:"text"`
	Inner struct {
		Deep string `json:"deep"`
	} `json:"inner"`
}

// TestDecode carries a document that is known whole, and refuses it by path with one
// thing wrong.
func TestDecode(t *testing.T) {
	for _, row := range []struct{ reason, text, problem string }{
		{"all of it is known", `{"spec": {"names": ["a"], "count": 2}}`, ""},
		{"an unknown field", `{"spec": {"names": ["a"], "more": 2}}`, "document 2: spec.more: unknown field"},
		{"a field in another case", `{"spec": {"Names": ["a"]}}`, "document 2: spec.Names: unknown field"},
		{"a text for a list", `{"spec": {"names": "a"}}`, "document 2: spec.names: want a list, found string"},
		{"a text for a number", `{"spec": {"count": "2"}}`, "document 2: spec.count: want a whole number, found string"},
		{"all kinds", `{"spec": {"on": true, "text": "a", "inner": {}}}`, ""},
		{"a text for a truth", `{"spec": {"on": "true"}}`, "document 2: spec.on: want true or false, found string"},
		{"a number for a text", `{"spec": {"text": 2}}`, "document 2: spec.text: want a string, found number"},
		{"a list for an object", `{"spec": {"inner": []}}`, "document 2: spec.inner: want an object, found array"},
		{"a number inside of what has no name", `{"spec": {"inner": {"deep": 2}}}`, "document 2: spec.inner.deep: want a string, found number"},
		{"a list for the whole", `[]`, "document 2: want an object, found array"},
		{"half a number", `{"spec": {"count": 2.5}}`, "document 2: spec.count: want a whole number, found number 2.5"},
		{"a field twice", `{"spec": {"count": 2, "count": 3}}`, "document 2: spec.count: duplicate field"},
	} {
		c := source.New(source.Options{})
		var into known
		ok := c.Decode([]byte(row.text), &into, "document 2: ")
		if ok != (row.problem == "") || ok != (len(c.Problems) == 0) {
			t.Errorf("%s: %v, and %v", row.reason, ok, c.Problems)
		}
		if !ok && !strings.HasPrefix(c.Problems[0].Error(), row.problem) {
			t.Errorf("%s: %v, want %q", row.reason, c.Problems[0], row.problem)
		}
	}
}

// TestSplit gives documents their places.
func TestSplit(t *testing.T) {
	documents, err := source.Split([]byte("apiVersion: v1\nkind: A\n---\n# nothing\n---\nkind: [B]\nspec: {}\n"))
	if err != nil || len(documents) != 2 {
		t.Fatalf("%d documents: %v", len(documents), err)
	}
	first, second := documents[0], documents[1]
	if first.APIVersion != "v1" || first.Kind != "A" || first.At("kind") != "document 1: kind" || first.Has("spec") {
		t.Errorf("the first document is %+v", first)
	}
	if second.Kind != "" || second.At("kind") != "document 2: kind" || !second.Has("spec") {
		t.Errorf("the second document is %+v", second)
	}
	alone, err := source.Split([]byte("kind: A"))
	if err != nil || alone[0].At("kind") != "kind" {
		t.Errorf("a document alone has places like %q: %v", alone[0].At("kind"), err)
	}
}

// TestSplitRefuses covers texts that are no policy, and the most documents that a file may have.
func TestSplitRefuses(t *testing.T) {
	for _, row := range []struct{ reason, text, problem string }{
		{"the most", strings.Repeat("a: b\n---\n", 100), ""}, {"one more", strings.Repeat("a: b\n---\n", 101), "more than 100 documents"},
		{"nothing", "", "there is no document in it"}, {"comments alone", "# a\n---\n# b\n", "there is no document in it"}, {"a list", "[a]", "document 1: "},
		{"a word", "kind: A\n---\nword", "document 2: "}, {"no text", "kind: \xff", "document 1: "}, {"a text in UTF-16", "\xff\xfea\x00:\x00 \x00b\x00", "document 1: "},
		{"a word after the line between documents", "a: b\n--- c\n---\nd: e\n", "document 1: "}, {"a comment there", "a: b\n--- # c\nd: e\n", ""},
		{"no YAML", "kind: A\n---\na: [", "document 2: "},
		{"a key twice", "a: b\na: c", "document 1: "}, {"a key twice in JSON", `{"a": 1, "a": 2}`, "document 1: "},
		{"a merge that is overridden after it", "a: &a {b: c}\nd: {<<: *a, b: e}", ""},
		{"a merge after the key that it brings", "a: &a {b: c}\nd: {b: e, <<: *a}", "write << first"},
	} {
		documents, err := source.Split([]byte(row.text))
		if (row.problem == "") != (err == nil) || (err == nil) != (len(documents) > 0) || err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %d documents and %v, want %q", row.reason, len(documents), err, row.problem)
		}
	}
}

// TestPlaces covers the path of a problem.
func TestPlaces(t *testing.T) {
	for _, row := range []struct{ path, field, want string }{
		{"", "a", "a"}, {"document 1: ", "a", "document 1: a"}, {"a", "", "a"}, {"a", "[0]", "a[0]"}, {"a", "b", "a.b"}, {"", "", ""}, {"", "[0]", "[0]"},
	} {
		if got := source.Below(row.path, row.field); got != row.want {
			t.Errorf("%q below %q is %q, want %q", row.field, row.path, got, row.want)
		}
	}
	for want, problem := range map[string]source.Problem{
		"document 2: found: do": {Path: "document 2: ", Found: "found", Do: "do"}, "a.b: found: do": {Path: "a.b", Found: "found", Do: "do"}, "found: do": {Found: "found", Do: "do"},
	} {
		if got := problem.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestOne wants the only document of a file, and keeps each note once.
func TestOne(t *testing.T) {
	for n, fits := range map[int]bool{0: false, 1: true, 2: false} {
		c := source.New(source.Options{})
		if _, ok := c.One(make([]source.Document, n)); ok != fits || ok != (len(c.Problems) == 0) {
			t.Errorf("%d documents: %v and %v", n, ok, c.Problems)
		}
	}
	c := source.New(source.Options{})
	for _, text := range []string{"a", "b", "a"} {
		c.Note("note %s", text)
	}
	if len(c.Notes) != 2 || c.Notes[0] != "note a" || c.Notes[1] != "note b" {
		t.Errorf("the notes are %q", c.Notes)
	}
}

// TestMetadata reads names, and refuses invalid ones.
func TestMetadata(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		want         source.Metadata
		problem      string
	}{
		{"names", `{"name": "a", "namespace": "b", "uid": 7}`, source.Metadata{Name: "a", Namespace: "b"}, ""},
		{"nothing", "", source.Metadata{}, ""},
		{"a namespace that is none", `{"name": "a", "namespace": false}`, source.Metadata{Name: "a"}, "metadata.namespace: want a string, found bool"},
		{"a text for the whole", `"a"`, source.Metadata{}, "metadata: want an object, found string"},
	} {
		c := source.New(source.Options{})
		got := c.Metadata([]byte(row.text), "metadata")
		if got.Name != row.want.Name || got.Namespace != row.want.Namespace || (row.problem == "") != (len(c.Problems) == 0) || len(c.Problems) > 0 && !strings.HasPrefix(c.Problems[0].Error(), row.problem) {
			t.Errorf("%s: %+v and %v, want %q", row.reason, got, c.Problems, row.problem)
		}
	}
}

// TestIdentity covers valid signer identities, and those with two values of a field or none.
func TestIdentity(t *testing.T) {
	for _, row := range []struct {
		reason  string
		who     ivp.Identity
		problem string
	}{
		{"texts", ivp.Identity{Issuer: "a", Subject: "b"}, ""},
		{"expressions", ivp.Identity{IssuerRegExp: "^a$", SubjectRegExp: ".*"}, ""},
		{"no issuer", ivp.Identity{Subject: "b"}, "has no issuer"},
		{"no subject", ivp.Identity{Issuer: "a"}, "has no subject"},
		{"two issuers", ivp.Identity{Issuer: "a", IssuerRegExp: "a", Subject: "b"}, "has no issuer, or one and an expression"},
		{"two subjects", ivp.Identity{Issuer: "a", Subject: "b", SubjectRegExp: "b"}, "has no subject, or one and an expression"},
		{"a star in the issuer", ivp.Identity{Issuer: "a*", Subject: "b"}, `"a*" is compared letter by letter`},
		{"a star in the subject", ivp.Identity{Issuer: "a", Subject: "*b"}, `"*b" is compared letter by letter`},
		{"no expression for the issuer", ivp.Identity{IssuerRegExp: "(", Subject: "b"}, `"(" does not compile`},
		{"an expression that is too large", ivp.Identity{IssuerRegExp: strings.Repeat("a{1000}", 4), Subject: "b"}, `more than the bound`},
		{"no expression for the subject", ivp.Identity{Issuer: "a", SubjectRegExp: "["}, `"[" does not compile`},
	} {
		c := source.New(source.Options{})
		c.CheckIdentity(row.who, "at")
		if (row.problem == "") != (len(c.Problems) == 0) || len(c.Problems) > 0 && (len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Error(), row.problem)) {
			t.Errorf("%s: %v, want %q", row.reason, c.Problems, row.problem)
		}
	}
	for _, row := range []struct {
		who     ivp.Identity
		differs bool
	}{
		{ivp.Identity{Issuer: "a", Subject: "b"}, false}, {ivp.Identity{IssuerRegExp: "^a$", SubjectRegExp: "^b$"}, false},
		{ivp.Identity{IssuerRegExp: "a$", Subject: "b"}, true}, {ivp.Identity{Issuer: "a", SubjectRegExp: "^b"}, true},
	} {
		if got := source.Anchored(ivp.Identity{Issuer: "x", Subject: "y"}, row.who); (got != "") != row.differs {
			t.Errorf("%+v: got %q", row.who, got)
		}
	}
}

// TestStrictness lists the levels of notation that can be converted.
func TestStrictness(t *testing.T) {
	for level, fits := range map[string]bool{"": true, "strict": true, "permissive": false, "skip": false} {
		c := source.New(source.Options{})
		c.CheckLevel(level, "at")
		if fits != (len(c.Problems) == 0) {
			t.Errorf("the level %q: %v", level, c.Problems)
		}
	}
	for when, fits := range map[string]bool{"": true, "always": true, "afterCertExpiry": false} {
		c := source.New(source.Options{})
		c.CheckTimestamp(when, "at")
		if fits != (len(c.Problems) == 0) {
			t.Errorf("timestamps %q: %v", when, c.Problems)
		}
	}
}

// TestPEM reads keys and certificates, each alone, and nothing else.
func TestPEM(t *testing.T) {
	read := func(name string) string {
		data, err := fs.ReadFile(converttest.Files(), "etc/pki/"+name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	one, two, authority := read("one.pub"), read("two.pub"), read("fulcio.pem")
	block := func(kind string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("x")}))
	}
	certificates := strings.Count(authority, "-----BEGIN ")
	for _, row := range []struct {
		reason, text, kind string
		blocks             int
		problem            string
	}{
		{"a key", one, source.PublicKey, 1, ""},
		{"keys with words around", "first\n" + one + "second\n" + two, source.PublicKey, 2, ""},
		{"a certificate", authority, source.Certificate, certificates, ""},
		{"nothing", "", source.PublicKey, 0, "no PEM block"},
		{"a key for a certificate", one, source.Certificate, 0, `a PEM block is of type "PUBLIC KEY"`},
		{"a certificate behind a key", one + authority, source.PublicKey, 0, `a PEM block is of type "CERTIFICATE"`},
		{"no key in it", block(source.PublicKey), source.PublicKey, 0, "a PEM block of type PUBLIC KEY cannot be parsed"},
		{"no certificate in it", block(source.Certificate), source.Certificate, 0, "a PEM block of type CERTIFICATE cannot be parsed"},
		{"half a key behind a whole one", one + two[:len(two)/2], source.PublicKey, 0, "1 of 2 PEM blocks are broken"},
	} {
		c := source.New(source.Options{})
		for form, blocks := range map[string][]string{
			"PEM": c.PEM(row.text, row.kind, "at"), "base64": c.EncodedPEM(base64.StdEncoding.EncodeToString([]byte(row.text))+"\n", row.kind, "at"),
		} {
			if len(blocks) != row.blocks {
				t.Errorf("%s in %s: %d blocks", row.reason, form, len(blocks))
			}
		}
		refused := row.problem != ""
		if len(c.Problems) != map[bool]int{false: 0, true: 2}[refused] || refused && !strings.Contains(c.Problems[0].Error(), row.problem) {
			t.Errorf("%s: %v, want %q", row.reason, c.Problems, row.problem)
		}
	}
	c := source.New(source.Options{})
	c.EncodedPEM("???", source.PublicKey, "at")
	if len(c.Problems) != 1 || c.Problems[0].Found != "no base64" {
		t.Errorf("no base64: %v", c.Problems)
	}
	c = source.New(source.Options{})
	if c.OptionalPEM(" \n", source.PublicKey, "at") != "" || c.OptionalPEM(one+two, source.PublicKey, "at") != one+two || len(c.Problems) > 0 {
		t.Errorf("what may be left out: %v", c.Problems)
	}
	if c.OptionalPEM("x", source.PublicKey, "at") != "" || len(c.Problems) != 1 {
		t.Errorf("no PEM: %v", c.Problems)
	}
}

// TestSigningKey has where a key may lie.
func TestSigningKey(t *testing.T) {
	one, err := fs.ReadFile(converttest.Files(), "etc/pki/one.pub")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		reason, text string
		want         ivp.Key
		problem      string
	}{
		{"the key itself", "\n" + string(one), ivp.Key{Data: string(one)}, ""},
		{"of AWS", "awskms:///x", ivp.Key{KMS: "awskms:///x"}, ""},
		{"of Azure", " azurekms://x ", ivp.Key{KMS: "azurekms://x"}, ""},
		{"of Google", "gcpkms://x", ivp.Key{KMS: "gcpkms://x"}, ""},
		{"of Vault", "hashivault://x", ivp.Key{KMS: "hashivault://x"}, ""},
		{"of another service", "k8s://a/b", ivp.Key{}, `refers to "k8s://a/b"`},
		{"two keys", string(one) + string(one), ivp.Key{Data: string(one) + string(one)}, "2 keys"},
		{"no key", "x", ivp.Key{}, "no PEM block"},
	} {
		c := source.New(source.Options{})
		key := c.SigningKey(row.text, "at")
		if key == nil {
			key = &ivp.Key{}
		}
		if *key != row.want || (row.problem == "") != (len(c.Problems) == 0) || len(c.Problems) > 0 && !strings.Contains(c.Problems[0].Error(), row.problem) {
			t.Errorf("%s: %+v and %v, want %q", row.reason, *key, c.Problems, row.problem)
		}
	}
}

// TestFile reads what lies in the folder that was handed in, and nothing else.
func TestFile(t *testing.T) {
	folder := fstest.MapFS{"etc/key": &fstest.MapFile{Data: []byte("key")}, "etc/large": &fstest.MapFile{Data: make([]byte, 1<<20+1)}, "etc/full": &fstest.MapFile{Data: make([]byte, 1<<20)}}
	for _, row := range []struct {
		reason, name string
		options      source.Options
		problem      string
	}{
		{"it is there", "/etc/key", source.Options{Files: folder}, ""},
		{"dots lead nowhere else", "/../etc/./key", source.Options{Files: folder}, ""},
		{"it is not there", "/etc/other", source.Options{Files: folder}, "at: names the file /etc/other, which cannot be read"},
		{"it is too large", "/etc/large", source.Options{Files: folder}, "at: names the file /etc/large, which cannot be read"},
		{"no folder was handed in", "/etc/key", source.Options{}, "at: names the file /etc/key: give --root"},
	} {
		c := source.New(row.options)
		data, ok := c.File(row.name, "at")
		if ok != (row.problem == "") || ok != (string(data) == "key") || ok != (len(c.Problems) == 0) {
			t.Errorf("%s: %q, %v and %v", row.reason, data, ok, c.Problems)
		}
		if !ok && !strings.HasPrefix(c.Problems[0].Error(), row.problem) {
			t.Errorf("%s: %v, want %q", row.reason, c.Problems[0], row.problem)
		}
	}
	if data, err := source.ReadFile(folder, "etc/full"); err != nil || len(data) != 1<<20 {
		t.Errorf("the largest file: %d bytes and %v", len(data), err)
	}
}

// TestPolicyNames gives each policy a name of its own, and refuses an expression that the
// gateway would not compile.
func TestPolicyNames(t *testing.T) {
	c := source.New(source.Options{})
	for range 2 {
		c.Say(&ivp.Policy{Name: "A/b", Images: []ivp.ImageReference{{Expression: strings.Repeat("x", 60<<10)}}})
	}
	if c.Policies[0].Name != "a-b" || c.Policies[1].Name != "a-b-2" || len(c.Problems) > 0 {
		t.Errorf("the names are %q and %q, refused is %v", c.Policies[0].Name, c.Policies[1].Name, c.Problems)
	}
	c.Say(&ivp.Policy{Name: "c", Images: []ivp.ImageReference{{Expression: strings.Repeat("x", 60<<10+1)}}})
	if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Error(), "take an expression of 61441 bytes") {
		t.Errorf("an expression that is too long is refused with %v", c.Problems)
	}
}
