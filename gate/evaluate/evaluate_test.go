package evaluate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// registry is a fake that resolves one tag.
type registry struct {
	Registry
	digest image.Digest
	err    error
}

func (registry) Scope() string { return "anonymous" }

func (r *registry) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	if r.err != nil {
		return image.Pinned{}, r.err
	}
	return ref.Pin(image.Descriptor{Digest: r.digest})
}

func digestOf(t *testing.T, hex string) image.Digest {
	t.Helper()
	digest, err := image.ParseDigest("sha256:" + strings.Repeat(hex, 64))
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func parse(t *testing.T, text string) image.Ref {
	t.Helper()
	ref, err := image.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func newEvaluator(t *testing.T, now func() time.Time) *Evaluator {
	t.Helper()
	known, err := claims.New(claims.Config{Fact: time.Hour, None: time.Second, Tag: time.Second, Stale: 24 * time.Hour, Timeout: time.Minute, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	age := time.Hour
	e, err := New(Config{Claims: known, Now: now, Parallel: 2, Age: time.Hour, Stale: &age})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestStaleTag: only a registry that does not answer makes the digest last verified for a tag
// count, and not for longer than the window.
func TestStaleTag(t *testing.T) {
	unavailable := &image.Error{Kind: image.Unavailable, Op: "resolve", On: "registry.example/app:1", Err: errors.New("no answer")}
	missing := &image.Error{Kind: image.NotFound, Op: "resolve", On: "registry.example/app:1"}
	refused := &image.Error{Kind: image.Refused, Op: "resolve", On: "registry.example/app:1"}
	for _, c := range []struct {
		reason  string
		err     error
		passed  time.Duration
		window  time.Duration
		isStale bool
	}{
		{"the registry answers", nil, time.Minute, time.Hour, false},
		{"no answer", unavailable, time.Minute, time.Hour, true},
		{"no answer, and the entry is too old", unavailable, 2 * time.Hour, time.Hour, false},
		{"no answer, and no policy admits stale entries", unavailable, time.Minute, 0, false},
		{"the tag is gone", missing, time.Minute, time.Hour, false},
		{"access is refused", refused, time.Minute, time.Hour, false},
	} {
		now := time.Now()
		e := newEvaluator(t, func() time.Time { return now })
		source := &registry{digest: digestOf(t, "b"), err: c.err}
		r := resolver{Evaluator: e, registry: source, scope: source.Scope(), ref: parse(t, "registry.example/app:1")}
		r.keep(image.Descriptor{Digest: digestOf(t, "a")})
		now = now.Add(c.passed)
		got, err := r.resolve(t.Context(), c.window)
		switch {
		case c.isStale && (err != nil || !got.IsStale || got.Digest() != digestOf(t, "a")):
			t.Errorf("%s: got %v (stale: %t), %v", c.reason, got.Pinned, got.IsStale, err)
		case !c.isStale && (got.IsStale || !errors.Is(err, c.err)):
			t.Errorf("%s: got %v (stale: %t), %v", c.reason, got.Pinned, got.IsStale, err)
		case c.err == nil && got.Digest() != digestOf(t, "b"):
			t.Errorf("%s: got %v", c.reason, got.Pinned)
		}
		if _, ok := r.stale(time.Hour); errors.Is(c.err, missing) && ok {
			t.Errorf("%s: the stale entry remains", c.reason)
		}
	}
}

// TestPlatforms: a check on platforms passes by the claims about the children of an index.
func TestPlatforms(t *testing.T) {
	authority := &verify.Authority{Name: "key"}
	check := &policy.Check{Claims: policy.Claims{Requirements: []policy.Requirement{{Threshold: 1, Members: []policy.Member{{Authority: authority}}}}}}
	one, two := image.Descriptor{Digest: digestOf(t, "1")}, image.Descriptor{Digest: digestOf(t, "2")}
	signed := policy.Answer{Facts: []verify.Fact{{Role: attest.Signature, Signer: verify.Signer{ID: "key"}}}}
	unknown := policy.Answer{Gaps: []error{&image.Error{Kind: image.Unavailable, Err: errors.New("no answer")}}}
	unsigned := policy.Answer{}
	unread := content.Index{Err: &image.Error{Kind: image.Unavailable, Err: errors.New("no answer")}}
	listed := content.Index{Children: []image.Descriptor{one, two}}
	for _, c := range []struct {
		reason      string
		own         policy.Result
		first, next policy.Answer
		listed      content.Index
		each, any   policy.Result
	}{
		{"all are signed", policy.Fail, signed, signed, listed, policy.Pass, policy.Pass},
		{"one is not signed", policy.Fail, signed, unsigned, listed, policy.Fail, policy.Pass},
		{"none is signed", policy.Fail, unsigned, unsigned, listed, policy.Fail, policy.Fail},
		{"one could not be verified", policy.Fail, signed, unknown, listed, policy.Indeterminate, policy.Pass},
		{"a failure outweighs an error", policy.Fail, unknown, unsigned, listed, policy.Fail, policy.Indeterminate},
		{"the index alone is signed", policy.Pass, unsigned, unsigned, listed, policy.Fail, policy.Pass},
		{"the index cannot be read", policy.Fail, signed, signed, unread, policy.Indeterminate, policy.Indeterminate},
		{"a signed manifest", policy.Pass, unsigned, unsigned, content.Index{}, policy.Pass, policy.Pass},
		{"an unsigned manifest", policy.Fail, signed, signed, content.Index{}, policy.Fail, policy.Fail},
	} {
		a := &answers{known: map[claimQuery]policy.Answer{}}
		for _, q := range check.Questions() {
			a.set(claimQueryOf(one.Digest, q), c.first)
			a.set(claimQueryOf(two.Digest, q), c.next)
		}
		own := policy.Decision{Check: check, Result: c.own}
		r := &Result{children: c.listed, answers: a}
		if got := r.platforms().Each(own); got.Result != c.each {
			t.Errorf("%s: each platform: %s, want %s", c.reason, got.Result, c.each)
		}
		if got := r.platforms().Any(own); got.Result != c.any {
			t.Errorf("%s: any platform: %s, want %s", c.reason, got.Result, c.any)
		}
	}
}

// TestAnswers: misses of the cache and answers of old entries are dropped, and no others.
func TestAnswers(t *testing.T) {
	a := &answers{known: map[claimQuery]policy.Answer{}}
	found, miss, old := claimQuery{predicate: "found"}, claimQuery{predicate: "miss"}, claimQuery{predicate: "old"}
	a.set(found, policy.Answer{})
	a.set(miss, policy.Answer{Gaps: []error{errNotAsked}})
	a.set(old, policy.Answer{})
	a.markOld(old)
	if !a.hasMisses() {
		t.Error("the miss is not reported")
	}
	a.dropMisses()
	if a.hasMisses() || a.has(miss) || !a.has(found) || !a.has(old) {
		t.Errorf("after misses were dropped: %v", a.known)
	}
	if a.dropOld(found) || !a.dropOld(old) || a.dropOld(old) {
		t.Error("only the answer of the old entry is to be dropped, once")
	}
	if a.has(old) || !a.has(found) {
		t.Errorf("after the old answer was dropped: %v", a.known)
	}
	if got := a.about(image.Digest{})(policy.Question{Predicate: "miss"}); len(got.Gaps) != 1 {
		t.Errorf("a query that was never asked: got %v", got)
	}
}

// TestBounded: the image's own repository is searched, however many others there are.
func TestBounded(t *testing.T) {
	own := parse(t, "registry.example/own").Repository()
	var evidence []image.Repository
	for i := range maxRepositories + 2 {
		evidence = append(evidence, parse(t, fmt.Sprintf("registry.example/evidence/%d", i)).Repository())
	}
	evidence = append(evidence, own)
	got, left := bounded(evidence, own)
	if len(got) != maxRepositories || left != 3 || got[maxRepositories-1] != own || got[0] != evidence[0] {
		t.Errorf("got %v, %d left out", got, left)
	}
	if got, left := bounded(evidence[:2], own); len(got) != 2 || left != 0 {
		t.Errorf("below the bound: got %v, %d left out", got, left)
	}
}
