package registry

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/registry/internal/login"
	"github.com/quaymaster/quaymaster/registry/internal/memory"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// TestCheckDigest: the body must match the requested digest and the header's.
func TestCheckDigest(t *testing.T) {
	body := []byte("manifest")
	own, other := image.DigestOf(body), image.DigestOf([]byte("other"))
	long := "sha512:" + strings.Repeat("ab", 64)
	sum := sha512.Sum512(body)
	longer := image.MustParseDigest("sha512:" + hex.EncodeToString(sum[:]))
	tests := []struct {
		reason, reference, header string
		refused                   bool
	}{
		{"a tag, and no header", "v1", "", false},
		{"a tag, and its header", "v1", own.String(), false},
		{"a tag, and the header of another", "v1", other.String(), true},
		{"a tag, and a header that is no digest", "v1", "sha256:x", true},
		{"a tag, and a header of another algorithm", "v1", long, true},
		{"the digest", own.String(), "", false},
		{"the digest, and its header", own.String(), own.String(), false},
		{"the digest, and the header of another", own.String(), other.String(), true},
		{"the digest, and a header that is no digest", own.String(), "x", true},
		{"another digest", other.String(), "", true},
		{"another digest, and the body's own header", other.String(), own.String(), true},
		{"another digest, and its header", other.String(), other.String(), true},
	}
	for _, test := range tests {
		digest, err := checkDigest(test.reference, test.header, body)
		if (err != nil) != test.refused || err == nil && digest != own {
			t.Errorf("%s: got %s, %v", test.reason, digest, err)
		}
	}
	// A tag goes by the digest that the registry names, and a digest by itself.
	for reference, want := range map[string]image.Digest{"v1": longer, own.String(): own, longer.String(): longer} {
		if got, err := checkDigest(reference, longer.String(), body); err != nil || got != want {
			t.Errorf("%s with a header of sha512: got %s, %v, want %s", reference, got, err, want)
		}
	}
}

func TestIsTag(t *testing.T) {
	for tag, want := range map[string]bool{
		"v1": true, "_": true, "0": true, "9": true, "a": true, "z": true, "A": true, "Z": true, "a.b": true, "a-b": true, "a_b": true,
		"": false, ".": false, "-": false, ".a": false, "-a": false, "a/b": false, "a:b": false, "a@b": false, "a[b": false, "a`b": false, "a{b": false, "a b": false, "é": false,
		strings.Repeat("a", 128): true, strings.Repeat("a", 129): false,
	} {
		if isTag(tag) != want {
			t.Errorf("%q is a tag: %t", tag, !want)
		}
	}
	repository := image.MustParse("reg.example/app").Repository()
	for reference, good := range map[string]bool{"v1": true, image.DigestOf(nil).String(): true, "../x": false, "": false} {
		if err := checkReference(request{repository: repository, reference: reference}); (err == nil) != good {
			t.Errorf("%q: got %v", reference, err)
		}
		if checkReference(request{reference: reference}) == nil {
			t.Errorf("%q of no repository was taken", reference)
		}
	}
}

// TestFromConfig reads what docker's and podman's files hold.
func TestFromConfig(t *testing.T) {
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tests := []struct {
		reason string
		config authn.AuthConfig
		want   auth.Credential
		fails  bool
	}{
		{"plain", authn.AuthConfig{Username: "u", Password: "p"}, auth.Credential{Username: "u", Password: "p"}, false},
		{"encoded", authn.AuthConfig{Auth: encoded("u:p:q")}, auth.Credential{Username: "u", Password: "p:q"}, false},
		{"plain beside encoded", authn.AuthConfig{Username: "u", Password: "p", Auth: "%"}, auth.Credential{Username: "u", Password: "p"}, false},
		{"a user beside encoded", authn.AuthConfig{Username: "u", Auth: encoded("x:y")}, auth.Credential{Username: "u"}, false},
		{"a password beside encoded", authn.AuthConfig{Password: "p", Auth: encoded("x:y")}, auth.Credential{Password: "p"}, false},
		{"an identity token", authn.AuthConfig{Username: "<token>", IdentityToken: "t"}, auth.Credential{RefreshToken: "t"}, false},
		{"no base64", authn.AuthConfig{Auth: "%"}, auth.EmptyCredential, true},
		{"base64 that ends in something else", authn.AuthConfig{Auth: encoded("u:p") + "%"}, auth.EmptyCredential, true},
		{"no password", authn.AuthConfig{Auth: encoded("u")}, auth.EmptyCredential, true},
		{"nothing", authn.AuthConfig{}, auth.EmptyCredential, false},
	}
	for _, test := range tests {
		if got, err := fromConfig(&test.config); got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %+v, %v", test.reason, got, err)
		}
	}
}

// given is a keychain, and the credential in it.
type given struct {
	config *authn.AuthConfig
	err    error
}

func (g given) Resolve(authn.Resource) (authn.Authenticator, error) { return g, nil }

func (g given) Authorization() (*authn.AuthConfig, error) { return g.config, g.err }

// TestBrokenCredential: a credential that cannot be read is reported, and no request is
// sent without it.
func TestBrokenCredential(t *testing.T) {
	repository := image.MustParse("reg.example/app").Repository()
	for reason, test := range map[string]struct {
		keychain authn.Keychain
		want     auth.Credential
		fails    bool
	}{
		"one":                     {given{config: &authn.AuthConfig{Username: "u", Password: "p"}}, auth.Credential{Username: "u", Password: "p"}, false},
		"one that cannot be had":  {given{err: errors.New("locked")}, auth.EmptyCredential, true},
		"one that cannot be read": {given{config: &authn.AuthConfig{Auth: "%"}}, auth.EmptyCredential, true},
	} {
		got, _, err := credentials{{Name: "test", Keychain: test.keychain}}.find(t.Context(), repository)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %+v, %v", reason, got, err)
		}
	}
}

// once fails, and has more to give afterwards.
type once struct {
	err  error
	then io.Reader
}

func (o *once) Read(p []byte) (int, error) {
	if err := o.err; err != nil {
		o.err = nil
		return 0, err
	}
	return o.then.Read(p)
}

// TestStream: a streamed body is bounded too, and the reason of its end is reported.
func TestStream(t *testing.T) {
	all := func(_ http.Header, body io.Reader) error {
		_, err := io.ReadAll(body)
		return err
	}
	broken := errors.New("broken off")
	for _, test := range []struct {
		reason string
		body   io.Reader
		take   func(http.Header, io.Reader) error
		read   int64
		kind   image.Kind
	}{
		{"as much as may be", strings.NewReader("1234567890"), all, 10, ""},
		{"one byte more", strings.NewReader("1234567890-"), all, 0, image.Bound},
		{"it breaks off", io.MultiReader(strings.NewReader("123"), &once{err: broken, then: strings.NewReader("456")}), all, 0, image.Unavailable},
		{"no more is read", strings.NewReader("1234567890-"), func(http.Header, io.Reader) error { return nil }, 0, ""},
		{"it is not understood", strings.NewReader("123"), func(_ http.Header, body io.Reader) error {
			_, _ = io.ReadAll(body)
			return errors.New("odd")
		}, 0, image.Corrupt},
		{"it is too much for the reader", strings.NewReader("123"), func(http.Header, io.Reader) error {
			return &limit.ExceededError{What: "the entry", Most: 1}
		}, 0, image.Bound},
	} {
		q := request{repository: image.MustParse("reg.example/app").Repository(), most: 10, take: test.take}
		response := &http.Response{Body: io.NopCloser(test.body), Request: &http.Request{}}
		got, err := (&Client{}).stream(t.Context(), q, response)
		if image.KindOf(err) != test.kind || err == nil && got.read != test.read {
			t.Errorf("%s: got %+v, %v", test.reason, got, err)
		}
	}
	// A second read returns the same error.
	body := &bounded{from: &once{err: broken, then: strings.NewReader("456")}, left: 10}
	for range 2 {
		if n, err := body.Read(make([]byte, 5)); n != 0 || !errors.Is(err, broken) {
			t.Errorf("after it broke off: %d bytes, %v", n, err)
		}
	}
}

// TestErrorFields: it has the known fields, and no placeholders for the others.
func TestErrorFields(t *testing.T) {
	digest := image.DigestOf(nil).String()
	for want, failure := range map[string]*Error{
		"ping reg.example: no usable answer": {Op: "ping", Host: "reg.example", Kind: image.Unavailable},
		"resolve reg.example/app:v1: not found (HTTP 404); check the name": {
			Op: "resolve", Host: "reg.example", Repository: "app", Reference: "v1", Status: 404, Kind: image.NotFound, Hint: "check the name",
		},
		"fetch manifest reg.example/app@" + digest + ": refused: no": {
			Op: "fetch manifest", Host: "reg.example", Repository: "app", Reference: digest, Kind: image.Refused, Err: errors.New("no"),
		},
		"begin reg.example/app: too much: see https://reg.example/x?token=REDACTED": {
			Op: "begin", Host: "reg.example", Repository: "app", Kind: image.Bound, Err: errors.New("see https://reg.example/x?token=hunter2"),
		},
		"ping reg.example: no usable answer: slow down, retry after 5": {
			Op: "ping", Host: "reg.example", Kind: image.Unavailable, Err: &retryAfterError{value: "5", err: errors.New("slow down")},
		},
	} {
		if got := failure.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for reason, test := range map[string]struct {
		failure   Error
		temporary bool
	}{
		"no answer":                          {Error{Kind: image.Unavailable}, true},
		"no answer, now or later":            {Error{Kind: image.Unavailable, final: true}, false},
		"it is not there, and never will be": {Error{Kind: image.NotFound, final: true}, false},
		"it is refused":                      {Error{Kind: image.Refused}, false},
	} {
		if got := test.failure.Temporary(); got != test.temporary {
			t.Errorf("%s: asking again could help: %t", reason, got)
		}
	}
}

// TestStatuses: their messages.
func TestStatuses(t *testing.T) {
	if got := statusOf(fmt.Errorf("ask: %w", &Error{Status: 404})); got != 404 {
		t.Errorf("the status of a refusal: %d", got)
	}
	if got := statusOf(errors.New("odd")); got != 0 {
		t.Errorf("the status of none: %d", got)
	}
}

// TestPulls: what a registry with a limit counts is counted.
func TestPulls(t *testing.T) {
	for _, test := range []struct {
		reason, method, path string
		status               int
		pulls                int64
	}{
		{"a manifest", http.MethodGet, "/v2/app/manifests/v1", 200, 1},
		{"a manifest that lies elsewhere", http.MethodGet, "/v2/app/manifests/v1", 307, 1},
		{"a manifest that the registry does not accept", http.MethodGet, "/v2/app/manifests/v1", 400, 0},
		{"a manifest that is not there", http.MethodGet, "/v2/app/manifests/v1", 404, 0},
		{"the head of a manifest", http.MethodHead, "/v2/app/manifests/v1", 200, 0},
		{"a blob", http.MethodGet, "/v2/app/blobs/v1", 200, 0},
	} {
		var meter Meter
		request := &http.Request{Method: test.method, URL: &url.URL{Path: test.path}}
		meter.answered(request, http.Header{}, test.status)
		if _, said := meter.Remaining(); meter.Pulls() != test.pulls || said {
			t.Errorf("%s: %d pulls, want %d; remaining reported: %t", test.reason, meter.Pulls(), test.pulls, said)
		}
		var none *Meter
		none.count()
		none.read(1)
		none.answered(request, http.Header{}, test.status)
	}
	var meter Meter
	meter.answered(&http.Request{Method: http.MethodGet, URL: &url.URL{}}, http.Header{"Ratelimit-Remaining": {"0"}}, 429)
	if n, said := meter.Remaining(); n != 0 || !said {
		t.Errorf("nothing remains: got %d, reported %t", n, said)
	}
}

// TestDoubt: a credential that could not be had might have changed a refusal, and that an
// image is not there; not that evidence is not.
func TestDoubt(t *testing.T) {
	for _, test := range []struct {
		reason, op string
		kind       image.Kind
		unlooked   string
		doubted    bool
	}{
		{"refused", "fetch manifest", image.Refused, "x", true},
		{"an image that is not there", opResolve, image.NotFound, "x", true},
		{"an image that is not there any more", opDescribe, image.NotFound, "x", true},
		{"evidence that is not there", "list referrers", image.NotFound, "x", false},
		{"an image that contradicts itself", opResolve, image.Corrupt, "x", false},
		{"refused, with all credentials", opResolve, image.Refused, "", false},
		{"an image that is not there, with all credentials", opResolve, image.NotFound, "", false},
	} {
		client, failure := &Client{from: Provenance{FailedLookups: test.unlooked}}, &Error{Kind: test.kind}
		client.hint(t.Context(), request{op: test.op}, failure)
		if failure.final != test.doubted || (failure.Kind == image.Unavailable) != test.doubted || strings.Contains(failure.Hint, "before it, x") != test.doubted {
			t.Errorf("%s: doubted %t, and is %s: %q", test.reason, failure.final, failure.Kind, failure.Hint)
		}
		if failure.denied != (test.kind == image.Refused) {
			t.Errorf("%s: the credential did not do: %t", test.reason, failure.denied)
		}
	}
	for _, kind := range []image.Kind{image.Refused, image.Bound} {
		client, failure := &Client{from: Provenance{FailedLookups: "x", Doubt: kind}}, &Error{Kind: image.NotFound}
		client.hint(t.Context(), request{op: opResolve}, failure)
		if failure.Kind != kind || !failure.final {
			t.Errorf("an image that is not there, and a place that is %s: %s", kind, failure.Kind)
		}
	}
	for want, failure := range map[string]*Error{
		"limits requests": {Kind: image.Unavailable, Status: 429}, "check the name": {Kind: image.NotFound, Status: 404}, "asked anonymously": {Kind: image.Refused, Status: 401},
	} {
		(&Client{}).hint(t.Context(), request{op: opResolve}, failure)
		if !strings.Contains(failure.Hint, want) {
			t.Errorf("%d: %q, want one that contains %q", failure.Status, failure.Hint, want)
		}
	}
}

// TestBlame: a refusal names the credentials that were tried, and those that were of no use.
func TestBlame(t *testing.T) {
	have, lack := given{config: &authn.AuthConfig{Username: "u", Password: "p"}}, given{config: &authn.AuthConfig{}}
	for want, test := range map[string]struct {
		sources []authn.Keychain
		from    Provenance
	}{
		"it was asked anonymously: if it exists, log in with \"docker login reg.example\" or name a credential": {},
		"it was asked anonymously: ask the team; secret x is gone": {
			[]authn.Keychain{lack, given{err: errors.New("locked")}}, Provenance{Advice: "ask the team", Notes: []string{"secret x is gone"}},
		},
		"the credential from the second does not allow it: check that it is current and may pull; before it, y was down": {
			[]authn.Keychain{lack, have}, Provenance{Sources: []string{"the first", "the second"}, FailedLookups: "y was down", Advice: "ask the team"},
		},
		"the credentials from the first and from source 1 do not allow it: check that one is current and may pull": {
			[]authn.Keychain{have, have}, Provenance{Sources: []string{"the first"}},
		},
	} {
		client := &Client{from: test.from}
		for i, keychain := range test.sources {
			client.credentials = append(client.credentials, Source{Name: fmt.Sprintf("source %d", i), Keychain: keychain})
		}
		if got := client.blame(t.Context(), image.MustParse("reg.example/app").Repository()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestExplain: why there was no answer, and whether that concerns the image.
func TestExplain(t *testing.T) {
	tokens := func(status int) error {
		return &url.Error{Op: "Get", URL: "https://auth.example/hidden", Err: &errcode.ErrorResponse{URL: &url.URL{Host: "auth.example"}, StatusCode: status}}
	}
	for _, test := range []struct {
		reason string
		err    error
		kind   image.Kind
		final  bool
		says   string
	}{
		{"it broke off", &url.Error{Op: "Get", URL: "https://reg.example/hidden", Err: errors.New("broken off")}, image.Unavailable, false, "broken off"},
		{"the token service refuses", tokens(http.StatusUnauthorized), image.Refused, true, "no token from auth.example"},
		{"the token service is not there, which has no meaning for the image", tokens(http.StatusNotFound), image.Unavailable, true, "no token from auth.example"},
		{"the token service is down", tokens(http.StatusServiceUnavailable), image.Unavailable, false, "no token from auth.example"},
	} {
		failure := (&Client{}).explain(t.Context(), request{op: opResolve, repository: image.MustParse("reg.example/app").Repository()}, test.err)
		if failure.Kind != test.kind || failure.final != test.final || !strings.Contains(failure.Error(), test.says) {
			t.Errorf("%s: %s, final %t: %v", test.reason, failure.Kind, failure.final, failure)
		}
		if strings.Contains(failure.Error(), "hidden") {
			t.Errorf("%s: it contains the address, which may be a signed one: %v", test.reason, failure)
		}
	}
}

// TestParseCodes: a body in another format has no codes, not even in part.
func TestParseCodes(t *testing.T) {
	for body, want := range map[string]int{
		`{"errors":[{"code":"NAME_UNKNOWN"}]}`: 1, `{"errors":[{"code":"NAME_UNKNOWN"},5]}`: 0, `{"errors":[{"code":"NAME_UNKNOWN"}]} and more`: 0,
		`{"errors":[{},{},{}]}`: 3, `{"errors":[{},{},{},{}]}`: 3, `{"errors":[]}`: 0, `{}`: 0, `<html>`: 0, ``: 0,
	} {
		if got := parseCodes([]byte(body)); len(got) != want {
			t.Errorf("%s: %d codes, want %d", body, len(got), want)
		}
	}
}

// TestTheCredentialOfAHost: it is given to the registry's own host, whichever source it
// is of.
func TestTheCredentialOfAHost(t *testing.T) {
	client := &Client{tokens: login.NewTokens(), credentials: credentials{{Name: "test", Keychain: given{config: &authn.AuthConfig{Username: "u", Password: "p"}}}}}
	for host, want := range map[string]auth.Credential{"reg.example": {Username: "u", Password: "p"}, "reg.example:5000": auth.EmptyCredential, "other.example": auth.EmptyCredential} {
		for turn := range 2 {
			q := request{repository: image.MustParse("reg.example/app").Repository(), turn: turn}
			if got, err := client.sender(&url.URL{Scheme: "https", Host: "reg.example"}, nil, q).Credential(t.Context(), host); got != want || err != nil {
				t.Errorf("%s, turn %d: got %+v, %v", host, turn, got, err)
			}
		}
	}
}

// TestCertificateWanted: the alert of the other side about a certificate is about ours.
func TestCertificateWanted(t *testing.T) {
	for _, test := range []struct {
		reason string
		err    error
		wanted bool
	}{
		{"the alert", &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, true},
		{"another alert", &net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, false},
		{"of this side", &net.OpError{Op: "read", Err: errors.New("tls: certificate required")}, false},
		{"of no network", errors.New("remote error: tls: certificate required"), false},
	} {
		if got := isCertificateWanted(fmt.Errorf("ask: %w", test.err)); got != test.wanted {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}

// TestPause: the Retry-After of a registry is honoured, up to a bound.
func TestPause(t *testing.T) {
	limited := ratelimit.New()
	for _, test := range []struct {
		reason   string
		status   int
		after    string
		deadline time.Duration
		waits    time.Duration // at least; 0: it fails at once
		says     string
	}{
		{"as long as may be", 503, "30", 0, 30 * time.Second, ""},
		{"longer", 503, "31", 0, 0, "in 31s; try again then"},
		{"no Retry-After", 503, "", 0, 50 * time.Millisecond, ""},
		{"the Retry-After of a 429 applies to all, elsewhere", 429, "31", 0, 50 * time.Millisecond, ""},
		{"within the deadline", 503, "10", 11 * time.Second, 10 * time.Second, ""},
		{"beyond the deadline", 503, "10", 9 * time.Second, 0, "after the deadline"},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &Client{backoff: 100 * time.Millisecond, limiter: limited, schemes: schemes{found: memory.New[bool](1, time.Hour)}}
			failure := &Error{Kind: image.Unavailable, Status: test.status}
			if test.after != "" {
				failure.Err = &retryAfterError{value: test.after}
			}
			ctx := t.Context()
			if test.deadline > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, test.deadline)
				defer cancel()
			}
			began := time.Now()
			err := client.pause(ctx, 1, request{repository: image.MustParse("reg.example/app").Repository()}, failure)
			if waited := time.Since(began); (err == nil) != (test.waits > 0) || waited < test.waits || waited > test.waits*2 {
				t.Errorf("%s: waited %s, %v", test.reason, waited, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, want one that contains %q", test.reason, err, test.says)
			}
		})
	}
}

// TestNoRequestWithoutReference: no request is made for an invalid reference; the client
// here has no transport.
func TestNoRequestWithoutReference(t *testing.T) {
	client, repository := &Client{}, image.MustParse("reg.example/app").Repository()
	for reason, ask := range map[string]func() error{
		"no reference": func() error { _, err := client.Resolve(t.Context(), image.Ref{}); return err },
		"no repository": func() error {
			_, err := client.Blob(t.Context(), image.Repository{}, image.Descriptor{Digest: image.DigestOf(nil)}, 10)
			return err
		},
		"a path": func() error { _, err := client.head(t.Context(), "test", repository, "../x"); return err },
		"referrers of no repository": func() error {
			_, err := client.Referrers(t.Context(), image.Repository{}, image.DigestOf(nil), nil)
			return err
		},
		"referrers of no digest": func() error {
			_, err := client.Referrers(t.Context(), repository, image.Digest{}, nil)
			return err
		},
		"a path of a manifest": func() error {
			_, _, err := client.Manifest(t.Context(), repository, "../x")
			return err
		},
	} {
		if ask() == nil {
			t.Errorf("%s: no error", reason)
		}
	}
	if got, err := client.Describe(t.Context(), image.Pinned{}); err != nil || !got.IsZero() {
		t.Errorf("nothing to describe: got %v, %v", got, err)
	}
}

// TestPingOnce: asking at once again is of use where the host was found to want TLS, or to
// have none, and nowhere else.
func TestPingOnce(t *testing.T) {
	client, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	repository := image.MustParse("reg.example/app").Repository()
	if again, err := client.pingOnce(ctx, request{op: opPing, method: http.MethodGet, repository: repository}); again || err == nil {
		t.Errorf("a client that has left pings again: %t, %v", again, err)
	}
}

func TestMediaTypeOf(t *testing.T) {
	const one = image.MediaTypeManifest
	if mediaTypeOf(http.Header{"Content-Type": {one + "; charset=utf-8"}}) != one || mediaTypeOf(http.Header{"Content-Type": {"a/b; ="}}) != "" {
		t.Error("a media type is read with its parameters, or an invalid one is accepted")
	}
}
