package guard_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/registry/internal/guard"
)

func TestNextPage(t *testing.T) {
	const current = "https://reg.example/v2/app/referrers/sha256:00?n=1"
	tests := []struct {
		reason, header, want string
		refused              bool
	}{
		{reason: "none"},
		{reason: "relative", header: `</v2/app/referrers/sha256:00?n=2>; rel="next"`, want: "https://reg.example/v2/app/referrers/sha256:00?n=2"},
		{reason: "query alone", header: `<?n=2>; rel=next`, want: "https://reg.example/v2/app/referrers/sha256:00?n=2"},
		{reason: "without rel", header: `<?n=2>`, want: "https://reg.example/v2/app/referrers/sha256:00?n=2"},
		{reason: "absolute with the port written", header: `<https://REG.example:443/v2/app/referrers/sha256:00?n=2>; rel="next"`, want: "https://REG.example:443/v2/app/referrers/sha256:00?n=2"},
		{reason: "the second of two", header: `<?n=0>; rel="prev", <?n=2>; rel="next"`, want: "https://reg.example/v2/app/referrers/sha256:00?n=2"},
		{reason: "a title with the value next", header: `<?n=2>; title="next"; rel="prev"`},
		{reason: "a parameter without a value", header: `<?n=2>; rel`, want: "https://reg.example/v2/app/referrers/sha256:00?n=2"},
		{reason: "previous only", header: `<?n=0>; rel="prev"`},
		{reason: "a word without brackets", header: `next`},
		{reason: "never closed", header: `<?n=2; rel="next"`},
		{reason: "another host", header: `<https://evil.example/v2/app/referrers/sha256:00?n=2>; rel="next"`, refused: true},
		{reason: "another port", header: `<https://reg.example:8443/v2/app/referrers/sha256:00?n=2>; rel="next"`, refused: true},
		{reason: "another scheme", header: `<http://reg.example/v2/app/referrers/sha256:00?n=2>; rel="next"`, refused: true},
		{reason: "another host without scheme", header: `<//evil.example/v2/app/referrers/sha256:00>; rel="next"`, refused: true},
		{reason: "a user", header: `<https://user:pass@reg.example/v2/app/referrers/sha256:00?n=2>; rel="next"`, refused: true},
		{reason: "another path", header: `</v2/other/referrers/sha256:00?n=2>; rel="next"`, refused: true},
		{reason: "no address", header: `<https://%zz>; rel="next"`, refused: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			at, err := url.Parse(current)
			if err != nil {
				t.Fatal(err)
			}
			next, err := guard.NextPage(at, []string{test.header})
			if (err != nil) != test.refused {
				t.Fatalf("error %v", err)
			}
			got := ""
			if next != nil {
				got = next.String()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzNextPage(f *testing.F) {
	f.Add(`</v2/app/referrers/sha256:00?n=2>; rel="next"`)
	f.Add(`<?n=0>; rel="prev", <//evil.example/>; rel="next"`)
	f.Fuzz(func(t *testing.T, header string) {
		at, _ := url.Parse("https://reg.example/v2/app/referrers/x")
		next, err := guard.NextPage(at, []string{header})
		if err == nil && next != nil && (next.Host != "reg.example" && !strings.EqualFold(next.Hostname(), "reg.example") || next.Path != at.Path || next.User != nil || !strings.EqualFold(next.Scheme, "https")) {
			t.Errorf("%q leads to %s", header, next)
		}
	})
}
