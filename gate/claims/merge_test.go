package claims

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// TestMerge: facts and rejections of a fallback replace its earlier ones once it has facts and was
// read to the end, and no others.
func TestMerge(t *testing.T) {
	own, mirror := ownQuery(), mirrorQuery()
	first := policy.Answer{
		Facts:      slices.Concat(factsIn(own, "own"), factsIn(mirror, "earlier")),
		Rejections: []*verify.Rejection{rejectedIn(own, "own"), rejectedIn(mirror, "earlier")},
		Gaps:       []error{errors.New("a gap")}, Instead: []string{"x"},
	}
	for _, c := range []struct {
		reason            string
		more              policy.Answer
		signers, rejected []string
		instead           []string
		gaps              int
	}{
		{"later facts", policy.Answer{Facts: factsIn(mirror, "later"), Rejections: []*verify.Rejection{rejectedIn(mirror, "later")}},
			[]string{"own", "later"}, []string{"own", "later"}, []string{"x"}, 1},
		{"not read to the end", policy.Answer{
			Facts: factsIn(mirror, "later"), Rejections: []*verify.Rejection{rejectedIn(mirror, "later")}, Gaps: []error{errors.New("b")},
		}, []string{"own", "earlier", "later"}, []string{"own", "earlier", "later"}, []string{"x"}, 2},
		{"no facts now", policy.Answer{Rejections: []*verify.Rejection{rejectedIn(mirror, "later")}},
			[]string{"own", "earlier"}, []string{"own", "earlier", "later"}, []string{"x"}, 1},
		{"other evidence, once known and once new", policy.Answer{Instead: []string{"x", "y", "y"}},
			[]string{"own", "earlier"}, []string{"own", "earlier"}, []string{"x", "y"}, 1},
		{"evidence that has no repository, once more and other", policy.Answer{Facts: factsIn(mirror, "later"), Rejections: []*verify.Rejection{
			{Code: verify.WrongKey, Found: "own", Origin: attest.Origin{Repository: own.Repository}}, rejectedIn(Query{}, "x"),
		}}, []string{"own", "later"}, []string{"own", "own", "x"}, []string{"x"}, 1},
	} {
		before := [3]int{len(first.Facts), len(first.Rejections), len(first.Instead)}
		merged := Merge(first, c.more, mirror.Repository)
		var rejected []string
		for _, r := range merged.Rejections {
			rejected = append(rejected, r.Found)
		}
		if !slices.Equal(signersOf(merged), c.signers) || !slices.Equal(rejected, c.rejected) ||
			!slices.Equal(merged.Instead, c.instead) || len(merged.Gaps) != c.gaps {
			t.Errorf("%s: facts %q, rejections %q, instead %q, gaps %v", c.reason, signersOf(merged), rejected, merged.Instead, merged.Gaps)
		}
		if !slices.Equal(signersOf(first), []string{"own", "earlier"}) || first.Rejections[1].Found != "earlier" ||
			before != [3]int{len(first.Facts), len(first.Rejections), len(first.Instead)} {
			t.Errorf("%s: the cached answer changed: %+v", c.reason, first)
		}
	}
}

func rejectedIn(q Query, found string) *verify.Rejection {
	return &verify.Rejection{Code: verify.WrongKey, Found: found, Origin: attest.Origin{Repository: q.Repository}}
}

// TestMergeIsBounded: a fallback that is searched for each request, because no fact meets the
// condition, does not lengthen its cached answer.
func TestMergeIsBounded(t *testing.T) {
	f := newFixture(t, nil)
	q := mirrorQuery()
	malformed := func(authority, text string) *verify.Rejection {
		return &verify.Rejection{Code: verify.Malformed, Authority: authority, Err: errors.New(text)}
	}
	f.search(t, q, policy.Answer{Facts: factsIn(q, "a"), Rejections: []*verify.Rejection{malformed("a", "an earlier layer"), malformed("c", "a layer")}})
	for range 5 {
		rejected := []*verify.Rejection{rejectedIn(q, "b"), malformed("a", "a layer"), malformed("a", "another layer"), malformed("b", "a layer")}
		f.search(t, q, policy.Answer{Facts: factsIn(q, "a"), Rejections: rejected, Instead: []string{"c"}})
		f.now = f.now.Add(time.Second)
	}
	if answer, _, _ := f.Facts(q.Key); len(answer.Facts) != 1 || len(answer.Rejections) != 6 || len(answer.Instead) != 1 {
		t.Errorf("%d facts, %d rejections, %d other", len(answer.Facts), len(answer.Rejections), len(answer.Instead))
	}
}

// TestAge: an entry has the greater of two ages, by the wall clock and by the monotonic clock.
func TestAge(t *testing.T) {
	now := time.Now() // has both clocks
	woken := now.Round(0).Add(time.Hour)
	if got := passed(now, woken); got != time.Hour {
		t.Errorf("passed %s while the monotonic clock stood still", got)
	}
	if end := now.Add(time.Minute); !isBefore(now, end) || isBefore(woken, end) || isBefore(end, end) {
		t.Errorf("before its end: %t, after it: %t, at it: %t", isBefore(now, end), isBefore(woken, end), isBefore(end, end))
	}
	for _, c := range []struct {
		reason     string
		a, b, want time.Time
	}{
		{"the first", start, start.Add(1), start},
		{"the second", start.Add(1), start, start},
		{"no first", time.Time{}, start, start},
		{"no second", start, time.Time{}, start},
		{"none", time.Time{}, time.Time{}, time.Time{}},
	} {
		if got := Earlier(c.a, c.b); !got.Equal(c.want) {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
}

// TestTags: a tag's digest is cached for its credentials, and serves as a stale entry while the
// tag was not gone.
func TestTags(t *testing.T) {
	ref := image.MustParse("registry.example/app:v1")
	one := image.Descriptor{Digest: image.DigestOf([]byte("one"))}
	asked := 0
	ask := func(err error) func(context.Context, image.Ref) (image.Pinned, error) {
		return func(_ context.Context, ref image.Ref) (image.Pinned, error) {
			asked++
			if err != nil {
				return image.Pinned{}, err
			}
			return ref.Pin(one)
		}
	}
	f := newFixture(t, nil)
	resolve := func(scope string, err error) error {
		pinned, got := f.Tags().Resolve(t.Context(), scope, "", ref, ask(err))
		if got == nil && pinned.Digest() != one.Digest {
			t.Errorf("resolved to %s", pinned.Digest())
		}
		return got
	}
	failed := errors.New("unavailable")
	for _, c := range []struct {
		reason, scope string
		after         time.Duration
		fails         error
		asked         int
	}{
		{"the registry fails", "a", 0, failed, 1},
		{"the error is not cached", "a", 0, nil, 2},
		{"cached", "a", time.Minute - 1, failed, 2},
		{"other credentials", "b", time.Minute - 1, nil, 3},
		{"at the end of its age", "a", time.Minute, failed, 4},
	} {
		f.now = start.Add(c.after)
		before := asked
		if err := resolve(c.scope, c.fails); asked != c.asked || (err != nil) != (asked > before && c.fails != nil) {
			t.Errorf("%s: %v after %d requests", c.reason, err, asked)
		}
	}
	if pinned, err := f.Tags().Pin("b", ref); err != nil || pinned.Digest() != one.Digest {
		t.Errorf("from the cache: %s, %v", pinned, err)
	}
	if _, err := f.Tags().Pin("c", ref); !errors.Is(err, errNotCached) {
		t.Errorf("by other credentials: %v", err)
	}
	named := image.MustParse("registry.example/app@" + one.Digest.String())
	if pinned, err := f.Tags().Pin("c", named); err != nil || pinned.Digest() != one.Digest {
		t.Errorf("a reference with a digest: %s, %v", pinned, err)
	}
}

// TestStaleTags: a verified digest serves for as long as the window, and not after the tag was gone.
func TestStaleTags(t *testing.T) {
	tag, one := Tag{Scope: "a", Reference: "registry.example/app:v1"}, image.Descriptor{Digest: image.DigestOf([]byte("one"))}
	for _, c := range []struct {
		reason string
		change func(*Config)
		kept   []image.Descriptor
		key    Tag
		window time.Duration
		ok     bool
	}{
		{"within the window", nil, []image.Descriptor{one}, tag, time.Hour + 1, true},
		{"at its end", nil, []image.Descriptor{one}, tag, time.Hour, false},
		{"other credentials", nil, []image.Descriptor{one}, Tag{Scope: "b", Reference: tag.Reference}, time.Hour + 1, false},
		{"gone since", nil, []image.Descriptor{one, {}}, tag, time.Hour + 1, false},
		{"back again", nil, []image.Descriptor{one, {}, one}, tag, time.Hour + 1, true},
		{"nothing outlives its age", func(c *Config) { c.Stale = 0 }, []image.Descriptor{one}, tag, time.Hour + 1, false},
	} {
		f := newFixture(t, c.change)
		for _, descriptor := range c.kept {
			f.Tags().Keep(tag, descriptor)
		}
		f.now = start.Add(time.Hour)
		found, ok := f.Tags().Stale(c.key, c.window)
		if ok != c.ok || ok && (found.Descriptor.Digest != one.Digest || !found.At.Equal(start)) {
			t.Errorf("%s: %+v, %t", c.reason, found, ok)
		}
	}
}
