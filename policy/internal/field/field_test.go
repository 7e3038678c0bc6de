package field_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

type document struct {
	Name  string   `json:"name"`
	List  []string `json:"list"`
	Is    bool     `json:"is"`
	Below struct {
		Field string `json:"field"`
	} `json:"below"`
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{"name: a\nlist: [b]\nbelow: {field: c}", "", "every field"},
		{`{"name":"a"}`, "", "JSON"},
		{"nam: a", "nam: unknown field", "an unknown field"},
		{"Name: a", "Name: unknown field", "another case"},
		{"below: {other: a}", "below.other: unknown field", "an unknown field below"},
		{"a: 1\nb: 2", "a: unknown field\nb: unknown field", "all mistakes at once"},
		{"name: a\nname: b", "already set", "a field twice"},
		{"name: [a]", "name: want a string, found array", "a list for a text"},
		{"list: a", "list: want a list, found string", "a text for a list"},
		{"is: a", "is: want true or false, found string", "a text for a choice"},
		{"below: a", "below: want an object, found string", "a text for an object"},
		{"name: {", "YAML: line 1", "no YAML"},
		{strings.Repeat(" ", field.MaxDocument+1), "exceeds the bound", "size"},
	} {
		_, err := field.Read([]byte(c.text), &document{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
		}
	}
}

// TestReadUpTo: the very last byte that is accepted, and one more.
func TestReadUpTo(t *testing.T) {
	var into document
	data, err := field.ReadUpTo(len("name: a"), []byte("name: a"), &into)
	if err != nil || into.Name != "a" || string(data) != `{"name":"a"}` {
		t.Errorf("%s %+v %v", data, into, err)
	}
	if _, err := field.ReadUpTo(len("name: a")-1, []byte("name: a"), &into); err == nil {
		t.Error("a byte more is read")
	}
}

func TestReadName(t *testing.T) {
	for _, c := range []struct{ text, name, err string }{
		{`{"name":"a","uid":"b"}`, "a", ""},
		{`{}`, "", "metadata.name: is empty"},
		{`[]`, "", "metadata: want an object, found array"},
		{`{"name":1}`, "", "metadata: name: want a string, found number"},
		{``, "", "metadata: no JSON at byte 0"},
	} {
		name, err := field.ReadName(json.RawMessage(c.text))
		said := ""
		if err != nil {
			said = err.Error()
		}
		if name != c.name || said != c.err {
			t.Errorf("%s: %q %q, want %q %q", c.text, name, said, c.name, c.err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{field.Fail("a.b", "is %s", "bad"), "a.b: is bad"},
		{field.Fail("", "is bad"), "is bad"},
		{field.Below("a", errors.New("is bad")), "a: is bad"},
	} {
		if c.err.Error() != c.want {
			t.Errorf("%q, want %q", c.err, c.want)
		}
	}
	if err := field.Below("a", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	other := errors.New("some other")
	if got := field.Readable(other); got != other { //nolint:errorlint // the very same
		t.Errorf("%v became %v", other, got)
	}
}

func TestShorten(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", strings.Repeat("a", 60): strings.Repeat("a", 60), strings.Repeat("a", 61): strings.Repeat("a", 60) + "...",
	} {
		if got := field.Shorten(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

const key = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"

func TestPEM(t *testing.T) {
	certificate := strings.ReplaceAll(key, field.PublicKey, field.Certificate)
	for _, c := range []struct {
		text, kind string
		blocks     int // zero: refused
		reason     string
	}{
		{key, field.PublicKey, 1, "a key"},
		{"\n" + key + "\n" + key, field.PublicKey, 2, "two keys"},
		{certificate, field.Certificate, 1, "a certificate"},
		{"subject: a\n" + certificate + "text\n" + certificate, field.Certificate, 2, "text between certificates"},
		{key + "text\n" + key, field.PublicKey, 0, "text between keys"},
		{"text", field.PublicKey, 0, "no PEM"},
		{"text", field.Certificate, 0, "no PEM, where text may be"},
		{"", field.PublicKey, 0, "nothing"},
		{"", field.Certificate, 0, "nothing, where text may be"},
		{certificate, field.PublicKey, 0, "a certificate for a key"},
		{key, field.Certificate, 0, "a key for a certificate"},
		{certificate + strings.Replace(certificate, "AAAA", "A*A", 1), field.Certificate, 0, "a broken block is not passed over"},
		{strings.Repeat(key, 100), field.PublicKey, 100, "as many as may be"},
		{strings.Repeat(key, 101), field.PublicKey, 0, "too many"},
	} {
		blocks, err := field.PEM(c.text, "path", c.kind)
		if len(blocks) != c.blocks || (err == nil) != (c.blocks > 0) {
			t.Errorf("%s: %d blocks, %v", c.reason, len(blocks), err)
		}
		if problem, ok := errors.AsType[*field.Error](err); err != nil && (!ok || problem.Path != "path" || errors.Unwrap(err) == nil) {
			t.Errorf("%s: %v has no path", c.reason, err)
		}
	}
}

func TestURL(t *testing.T) {
	for text, good := range map[string]bool{"https://a.example/b": true, "http://a": true, "a.example": false, "ftp://a": false, "https://": false, "": false, "://": false} {
		if err := field.URL(text, "path"); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzPEM(f *testing.F) {
	f.Add(key)
	f.Add("-----BEGIN PUBLIC KEY-----")
	f.Fuzz(func(t *testing.T, text string) {
		if blocks, err := field.PEM(text, "path", field.PublicKey); err == nil && len(blocks) != strings.Count(text, "-----BEGIN ") {
			t.Errorf("%q: %d blocks", text, len(blocks))
		}
	})
}

func Example() {
	var into struct {
		Spec struct {
			Mode string `json:"mode"`
		} `json:"spec"`
	}
	_, err := field.Read([]byte("spec: {mod: warn}"), &into)
	fmt.Println(err)
	// Output: spec.mod: unknown field
}
