package redact_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/redact"
)

func TestText(t *testing.T) {
	tests := []struct{ reason, in, want string }{
		{"no address", "plain text: 5 of 7", "plain text: 5 of 7"},
		{"an address without secrets", "GET https://reg.example/v2/app/manifests/v1: 404", "GET https://reg.example/v2/app/manifests/v1: 404"},
		{"signed query", `Get "https://s3.example/b?X-Signature=abc&X-Expires=5": EOF`, `Get "https://s3.example/b?X-Signature=REDACTED&X-Expires=REDACTED": EOF`},
		{"user information", "http://user:secret@reg.example/v2/", "http://REDACTED@reg.example/v2/"},
		{"a bare query", "https://a.example/?secret", "https://a.example/?REDACTED"},
		{"fragment", "https://a.example/#secret", "https://a.example/"},
		{"not an address after all", "http://a b%zz://secret%zz/", "http://a b%zz://REDACTED"},
		{"two addresses", "https://a.example/?k=s, https://b.example/?k=s.", "https://a.example/?k=REDACTED, https://b.example/?k=REDACTED."},
		{"header value", "sent Authorization: Bearer abcdefgh.ijk", "sent Authorization: Bearer REDACTED"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if got := redact.Text(test.in); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestErrorKeepsTheChain(t *testing.T) {
	cause := &url.Error{Op: "Get", URL: "https://a.example/?k=secret", Err: io.ErrUnexpectedEOF}
	err := redact.Error(fmt.Errorf("fetch: %w", cause))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause was lost")
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the secret is in %q", err)
	}
	if redact.Error(nil) != nil {
		t.Error("nil became an error")
	}
}

func FuzzText(f *testing.F) {
	f.Add("https://user:pass@host/?a=b#c")
	f.Add("Bearer abcdefghijk")
	f.Fuzz(func(t *testing.T, s string) {
		secret := "hunter2hunter2"
		got := redact.Text(s + " https://u:" + secret + "@h.example/?k=" + secret)
		if strings.Contains(got, secret) {
			t.Errorf("%q shows the secret: %q", s, got)
		}
	})
}

func ExampleText() {
	fmt.Println(redact.Text(`Get "https://store.example/blob?signature=c2VjcmV0": connection reset`))
	// Output: Get "https://store.example/blob?signature=REDACTED": connection reset
}
