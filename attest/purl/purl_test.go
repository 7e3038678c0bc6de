package purl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest/purl"
	"github.com/quaymaster/quaymaster/internal/testkit"
)

func ExampleURL_Matches() {
	pattern, _ := purl.Parse("pkg:maven/org.apache.logging.log4j/log4j-core?vers=vers:maven/>=2.0|<2.17.1")
	is, _ := purl.Parse("pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1")
	fmt.Println(pattern.Matches(is))
	// Output: true <nil>
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		reason, pattern, is string
		want                bool
		err                 string
	}{
		{"equal", "pkg:npm/foo@1.0.0", "pkg:npm/foo@1.0.0", true, ""},
		{"another version", "pkg:npm/foo@1.0.0", "pkg:npm/foo@1.0.1", false, ""},
		{"a version that begins alike", "pkg:npm/foo@1.0", "pkg:npm/foo@1.0.0", false, ""},
		{"a version with another one behind it", "pkg:npm/foo@1.0.0", "pkg:npm/foo@1.0.0@2.0.0", false, ""},
		{"no version means all", "pkg:npm/foo", "pkg:npm/foo@1.0.1", true, ""},
		{"another name", "pkg:npm/foo", "pkg:npm/foobar@1.0.1", false, ""},
		{"another type", "pkg:npm/foo", "pkg:pypi/foo@1.0.1", false, ""},
		{"another namespace", "pkg:npm/foo", "pkg:npm/%40org/foo@1.0.1", false, ""},
		{"a namespace in another encoding", "pkg:npm/@org/foo", "pkg:npm/%40org/foo@1", true, ""},
		{"a name in another case, where the type ignores it", "pkg:pypi/Foo_Bar", "pkg:pypi/foo-bar@1", true, ""},
		{"a name in another case, where it counts", "pkg:maven/org/Foo", "pkg:maven/org/foo@1", false, ""},
		{"a qualifier more in the package", "pkg:deb/debian/curl@1", "pkg:deb/debian/curl@1?arch=amd64", true, ""},
		{"a qualifier that the package lacks", "pkg:deb/debian/curl@1?arch=amd64", "pkg:deb/debian/curl@1", false, ""},
		{"another qualifier", "pkg:deb/debian/curl@1?arch=amd64", "pkg:deb/debian/curl@1?arch=arm64", false, ""},
		{"an epoch as a qualifier", "pkg:deb/debian/curl@1:2.0-1", "pkg:deb/debian/curl@2.0-1?epoch=1", true, ""},
		{"another epoch", "pkg:deb/debian/curl@2.0-1", "pkg:deb/debian/curl@2.0-1?epoch=1", false, ""},
		{"an epoch of zero", "pkg:deb/debian/curl@2.0-1", "pkg:deb/debian/curl@0:2.0-1", true, ""},
		{"a subpath", "pkg:golang/example.com/a#b", "pkg:golang/example.com/a@v1#b", true, ""},
		{"another subpath", "pkg:golang/example.com/a#b", "pkg:golang/example.com/a@v1#c", false, ""},
		{"of no subpath", "pkg:golang/example.com/a#b", "pkg:golang/example.com/a@v1", false, ""},
		{"in a range", "pkg:npm/foo?vers=vers:npm/%3E%3D1.0.0%7C%3C2.0.0", "pkg:npm/foo@1.9.9", true, ""},
		{"above a range", "pkg:npm/foo?vers=vers:npm/%3E%3D1.0.0%7C%3C2.0.0", "pkg:npm/foo@2.0.0", false, ""},
		{"a prerelease of its end", "pkg:npm/foo?vers=>=1.0.0|<2.0.0", "pkg:npm/foo@2.0.0-rc.1", true, ""},
		{"a range and no version", "pkg:npm/foo?vers=vers:npm/%3C2.0.0", "pkg:npm/foo", false, "has no version"},
		{"a version that has no order", "pkg:apk/alpine/foo?vers=vers:apk/%3C2.0.0", "pkg:apk/alpine/foo@%0a", false, "is not a version"},
	} {
		got, err := testkit.Must(purl.Parse(c.pattern))(t).Matches(testkit.Must(purl.Parse(c.is))(t))
		if got != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, %v", c.reason, got, err)
		}
	}
	if got, err := (purl.URL{}).Matches(purl.URL{}); got || err != nil {
		t.Errorf("no URL: %v, %v", got, err)
	}
}

func TestRefusedURL(t *testing.T) {
	for reason, text := range map[string]string{
		"nothing": "", "another scheme": "http://npm/foo", "no name": "pkg:npm/", "no type": "pkg:foo", "a wrong escape": "pkg:npm/%zz",
		"a version and a range": "pkg:npm/foo@1?vers=vers:npm/*", "a range of another type": "pkg:npm/foo?vers=vers:pypi/*",
		"too long": "pkg:npm/" + strings.Repeat("a", purl.MaxLength), "too many qualifiers": "pkg:npm/foo?" + qualifiers(33),
	} {
		if got, err := purl.Parse(text); err == nil {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

// qualifiers are n qualifiers.
func qualifiers(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("a%d=b", i)
	}
	return strings.Join(list, "&")
}

func TestPattern(t *testing.T) {
	if _, err := purl.Parse("pkg:npm/foo?" + qualifiers(32)); err != nil {
		t.Errorf("as many qualifiers as the bound: %v", err)
	}
	is := testkit.Must(purl.Parse("pkg:npm/foo@1.5.0"))(t)
	for within, want := range map[string]bool{">=1.0.0|<2.0.0": true, "vers:npm/<1.5.0": false} {
		if got, err := testkit.Must(purl.Pattern("pkg:npm/foo", within))(t).Matches(is); got != want || err != nil {
			t.Errorf("%s: %v, %v", within, got, err)
		}
	}
	if got, err := testkit.Must(purl.Pattern("pkg:npm/foo"))(t).Matches(is); !got || err != nil {
		t.Errorf("no range: %v, %v", got, err)
	}
	for reason, c := range map[string][]string{
		"a version and a range": {"pkg:npm/foo@1", "<2"}, "two ranges": {"pkg:npm/foo?vers=<2", "<3"}, "two ranges apart": {"pkg:npm/foo", "<2", "<3"},
		"no range": {"pkg:npm/foo", ""}, "a range of another type": {"pkg:npm/foo", "vers:gem/<2"}, "no URL": {"foo", "<2"},
	} {
		if got, err := purl.Pattern(c[0], c[1:]...); err == nil {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct{ kind, less, more string }{
		{"deb", "1.0~rc1-1", "1.0-1"}, {"deb", "2.0-1", "1:1.0-1"}, {"deb", "1.0-9", "1.0-10"}, {"rpm", "1.0-9.el8", "1.0-10.el8"}, {"rpm", "1.0~rc1", "1.0"},
		{"apk", "1.2.3-r9", "1.2.3-r10"}, {"apk", "1.2_rc1", "1.2"}, {"npm", "1.0.0-alpha.9", "1.0.0-alpha.10"}, {"npm", "9.0.0", "10.0.0"},
		{"golang", "v1.9.0", "v1.10.0"}, {"pypi", "1.0.dev1", "1.0a1"}, {"pypi", "1.0rc1", "1.0"}, {"pypi", "1.0", "1!0.1"}, {"maven", "1.0-SNAPSHOT", "1.0"},
		{"maven", "1.0-alpha-1", "1.0-beta-1"}, {"gem", "1.0.pre", "1.0"}, {"nuget", "1.0.0-a", "1.0.0.1"}, {"cargo", "0.9.0", "0.10.0"},
	} {
		for _, order := range []struct {
			a, b string
			want int
		}{{c.less, c.more, -1}, {c.more, c.less, 1}, {c.less, c.less, 0}} {
			if got, err := purl.Compare(c.kind, order.a, order.b); got != order.want || err != nil {
				t.Errorf("%s: %s and %s: %d, %v; want %d", c.kind, order.a, order.b, got, err, order.want)
			}
		}
	}
	for reason, c := range map[string][3]string{
		"no version": {"npm", "", "1"}, "an unknown type": {"generic", "1", "1"}, "white space": {"npm", "1 2", "1"},
		"too long": {"npm", strings.Repeat("1", purl.MaxVersion+1), "1"}, "of no such form": {"apk", "1.0.0", "x y"},
	} {
		if _, err := purl.Compare(c[0], c[1], c[2]); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		text    string
		in, out []string
	}{
		{"vers:npm/*", []string{"1", "anything"}, nil},
		{"vers:npm/1.0.0", []string{"1.0.0"}, []string{"1.0.1", "0.9.0"}},
		{"vers:npm/1.0.0|2.0.0", []string{"1.0.0", "2.0.0"}, []string{"1.5.0"}},
		{"vers:npm/!=1.0.0", []string{"1.0.1", "0.9.0"}, []string{"1.0.0"}},
		{"vers:npm/<2.0.0", []string{"1.9.9", "2.0.0-a"}, []string{"2.0.0", "3.0.0"}},
		{"vers:npm/<=2.0.0", []string{"2.0.0"}, []string{"2.0.1"}},
		{"vers:npm/>2.0.0", []string{"2.0.1"}, []string{"2.0.0", "1.0.0"}},
		{"vers:npm/>=1.0.0|<2.0.0|>=3.0.0|<4.0.0", []string{"1.0.0", "1.5.0", "3.9.0"}, []string{"0.1.0", "2.0.0", "2.5.0", "4.0.0"}},
		{"vers:npm/<1.0.0|>=3.0.0", []string{"0.1.0", "3.0.0", "9.0.0"}, []string{"1.0.0", "2.0.0"}},
		{"vers:npm/<2.0.0|>=1.0.0", []string{"1.0.0", "1.5.0"}, []string{"0.9.0", "2.0.0"}},
		{"vers:npm/>=1.0.0|!=1.5.0|<2.0.0", []string{"1.4.0", "1.6.0"}, []string{"1.5.0"}},
		{"vers:npm/1.0.0|>=3.0.0", []string{"1.0.0", "3.1.0"}, []string{"0.1.0", "2.0.0"}},
		{">=1.0.0|<2.0.0", []string{"1.5.0"}, []string{"2.0.0"}},
	} {
		r := testkit.Must(purl.ParseRange(c.text, "npm"))(t)
		for want, list := range map[bool][]string{true: c.in, false: c.out} {
			for _, version := range list {
				if got, err := r.Contains(version); got != want || err != nil {
					t.Errorf("%s has %s: %v, %v", c.text, version, got, err)
				}
			}
		}
	}
	for reason, text := range map[string]string{
		"nothing": "", "no type": "vers:", "no constraints": "vers:npm/", "an empty one": "vers:npm/1|", "another type": "vers:pypi/*", "one twice": "vers:npm/1|<1",
		"a star among others": "vers:npm/1|>*", "too many": strings.Repeat("1|", purl.MaxConstraints) + "1", "too long": strings.Repeat("1", purl.MaxLength+1),
	} {
		if got, err := purl.ParseRange(text, "npm"); err == nil {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("pkg:deb/debian/curl?vers=vers:deb/>=1|<2", "pkg:deb/debian/curl@1.5-1?epoch=1")
	f.Add("pkg:npm/%40a/b@1#c", "pkg:pypi/A_b")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		a, err := purl.Parse(pattern)
		if err != nil {
			return
		}
		if b, err := purl.Parse(text); err == nil {
			_, _ = a.Matches(b) // must end, without a panic
		}
		if same, err := a.Matches(a); a.Range == nil && (!same || err != nil) {
			t.Errorf("%q does not match itself: %v", pattern, err)
		}
	})
}
