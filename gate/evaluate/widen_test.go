package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// library is a fake registry with one tag, the indexes behind digests, and statements about digests.
type library struct {
	Registry
	tag     image.Digest // zero: there is no tag
	indexes map[image.Digest][]image.Digest
	shelves map[image.Digest]*shelf
	err     error // of requests for evidence
	asked   atomic.Int32
}

func (*library) Scope() string { return "" }

func (l *library) Describe(_ context.Context, pinned image.Pinned) (image.Pinned, error) {
	return pinned, l.err
}

func (l *library) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	if l.tag.IsZero() {
		return image.Pinned{}, &image.Error{Kind: image.NotFound, Op: "resolve"}
	}
	return ref.Pin(image.Descriptor{Digest: l.tag})
}

func (l *library) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	if digest, err := image.ParseDigest(reference); err == nil {
		children, ok := l.indexes[digest]
		if !ok {
			return image.Descriptor{MediaType: image.MediaTypeManifest, Digest: digest}, []byte(`{}`), nil
		}
		var listed []image.Descriptor
		for _, child := range children {
			listed = append(listed, image.Descriptor{MediaType: image.MediaTypeManifest, Digest: child})
		}
		body, err := json.Marshal(map[string]any{"mediaType": image.MediaTypeIndex, "manifests": listed})
		return image.Descriptor{MediaType: image.MediaTypeIndex, Digest: digest}, body, err
	}
	l.asked.Add(1)
	for digest, found := range l.shelves {
		if strings.Contains(reference, digest.Hex()) && l.err == nil {
			return found.Manifest(ctx, repository, reference)
		}
	}
	return (&shelf{err: l.err}).Manifest(ctx, repository, reference)
}

func (l *library) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, limit int64) ([]byte, error) {
	for _, found := range l.shelves {
		if body, err := found.Blob(ctx, repository, blob, limit); err == nil && body != nil {
			return body, l.err
		}
	}
	return nil, &image.Error{Kind: image.NotFound, Op: "read"}
}

func (l *library) Referrers(context.Context, image.Repository, image.Digest, []string) ([]image.Descriptor, error) {
	l.asked.Add(1)
	return nil, l.err
}

// attest adds a statement about a digest.
func (l *library) attest(about image.Digest, predicate string) {
	if l.shelves == nil {
		l.shelves = map[image.Digest]*shelf{}
	}
	if l.shelves[about] == nil {
		l.shelves[about] = &shelf{}
	}
	l.shelves[about].attest(about, predicate)
}

// scanned is a check of scans with a key, on the platforms.
func scanned(platforms policy.Platforms) *policy.Check {
	check := scans(clean{})
	check.Platforms = platforms
	check.Attestations[0].Signers[0].Members[0].Authority.Key = &verify.Key{PEM: []byte("key")}
	return check
}

// TestWiden: the claims about an index count for the digest that it lists, and those about the
// children of an index for a policy that selects platforms.
func TestWiden(t *testing.T) {
	index, child, other := digestOf(t, "a"), digestOf(t, "b"), digestOf(t, "c")
	listed := map[image.Digest][]image.Digest{index: {child, other}}
	named, tagged := "registry.example/app:1@"+child.String(), "registry.example/app:1"
	for _, c := range []struct {
		reason     string
		ref        string
		tag        image.Digest
		indexes    map[image.Digest][]image.Digest
		statements map[image.Digest]string
		platforms  policy.Platforms
		want       policy.Result
	}{
		{"its own statements", named, image.Digest{}, nil, map[image.Digest]string{child: "clean"}, "", policy.Pass},
		{"none", named, index, listed, nil, "", policy.Fail},
		{"those of its index", named, index, listed, map[image.Digest]string{index: "clean"}, "", policy.Pass},
		{"its index does not meet the condition", named, index, listed, map[image.Digest]string{index: "dirty"}, "", policy.Fail},
		{"those of another index", named, index, map[image.Digest][]image.Digest{index: {other}}, map[image.Digest]string{index: "clean"}, "", policy.Fail},
		{"those of a manifest", named, index, nil, map[image.Digest]string{index: "clean"}, "", policy.Fail},
		{"those of its index, and its own contradict", named, index, listed, map[image.Digest]string{index: "clean", child: "dirty"}, "", policy.Fail},
		{"those of its index, and another platform's contradict", named, index, listed, map[image.Digest]string{index: "clean", other: "dirty"}, "", policy.Pass},
		{"the tag is gone", named, image.Digest{}, listed, map[image.Digest]string{index: "clean"}, "", policy.Fail},
		{"the tag is of the digest itself", named, child, listed, map[image.Digest]string{index: "clean"}, "", policy.Fail},
		{"no tag is named", "registry.example/app@" + child.String(), index, listed, map[image.Digest]string{index: "clean"}, "", policy.Fail},
		{"a tag alone, of the index", tagged, index, listed, map[image.Digest]string{index: "clean"}, "", policy.Pass},
		{"a tag alone, with statements about a platform", tagged, index, listed, map[image.Digest]string{child: "clean"}, "", policy.Fail},
		{"each platform", tagged, index, listed, map[image.Digest]string{child: "clean", other: "clean"}, policy.PlatformEach, policy.Pass},
		{"not each platform", tagged, index, listed, map[image.Digest]string{child: "clean"}, policy.PlatformEach, policy.Fail},
		{"each, and the index alone", tagged, index, listed, map[image.Digest]string{index: "clean"}, policy.PlatformEach, policy.Fail},
		{"any platform", tagged, index, listed, map[image.Digest]string{other: "clean"}, policy.PlatformAny, policy.Pass},
		{"not any platform", tagged, index, listed, map[image.Digest]string{other: "dirty"}, policy.PlatformAny, policy.Fail},
		{"each platform of the named one's index", named, index, listed, map[image.Digest]string{index: "clean"}, policy.PlatformEach, policy.Fail},
	} {
		source := &library{tag: c.tag, indexes: c.indexes}
		for about, predicate := range c.statements {
			source.attest(about, predicate)
		}
		evaluation := newEvaluator(t, time.Now).Evaluate(Reference{Ref: parse(t, c.ref), Registry: source, Prover: believing{}})
		at := evaluation.Add(scanned(c.platforms))
		unrelated := evaluation.Add(&policy.Check{}) // needs no claims, and passes
		result := evaluation.Run(t.Context())
		if got := result.Decide(at); got.Result != c.want {
			t.Errorf("%s: %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
		if got := result.Decide(unrelated); got.Result != policy.Pass {
			t.Errorf("%s: a check without claims: %s", c.reason, got.Result)
		}
	}
}

// TestFallbacks: fallbacks are searched in order while a check is not met, and those beyond the
// bound are a gap.
func TestFallbacks(t *testing.T) {
	digest := digestOf(t, "a")
	for _, c := range []struct {
		reason       string
		repositories int
		at           int // with the statement; -1 for none
		searched     int
		want         policy.Result
	}{
		{"the first", 3, 0, 1, policy.Pass},
		{"the second", 3, 1, 2, policy.Pass},
		{"none", 3, -1, 3, policy.Fail},
		{"none of as many as may be", maxRepositories, -1, maxRepositories, policy.Fail},
		{"the last of them", maxRepositories, maxRepositories - 1, maxRepositories, policy.Pass},
		{"none of those that are searched", maxRepositories + 1, -1, maxRepositories, policy.Indeterminate},
		{"the last that is searched", maxRepositories + 1, maxRepositories - 1, maxRepositories, policy.Pass},
	} {
		ref := parse(t, "registry.example/app@"+digest.String())
		reference := Reference{Ref: ref, Registry: &library{}, Prover: believing{}}
		searched := 0
		for i := range c.repositories {
			reference.Evidence = append(reference.Evidence, parse(t, fmt.Sprintf("mirror.example/%d", i)).Repository())
		}
		reference.Open = func(_ context.Context, repository image.Repository) (Registry, error) {
			searched++
			found := &library{}
			if c.at >= 0 && repository == reference.Evidence[c.at] {
				found.attest(digest, "clean")
			}
			return found, nil
		}
		evaluation := newEvaluator(t, time.Now).Evaluate(reference)
		at := evaluation.Add(scanned(""))
		if got := evaluation.Run(t.Context()).Decide(at); got.Result != c.want || searched != c.searched {
			t.Errorf("%s: %s %+v after %d repositories, want %s after %d", c.reason, got.Result, got.Reasons, searched, c.want, c.searched)
		}
	}
}

// TestRest: a repository of a resting registry is not opened, which is a gap and not "none found".
func TestRest(t *testing.T) {
	digest := digestOf(t, "a")
	for _, resting := range []bool{true, false} {
		opened := 0
		evaluation := newEvaluator(t, time.Now).Evaluate(Reference{
			Ref: parse(t, "registry.example/app@"+digest.String()), Registry: &library{}, Prover: believing{},
			Evidence: []image.Repository{parse(t, "mirror.example/app").Repository()},
			Open: func(context.Context, image.Repository) (Registry, error) {
				opened++
				return &library{}, nil
			},
			Rest: func(registry string) (string, bool) { return "it rests", resting && registry == "mirror.example" },
		})
		at := evaluation.Add(scanned(""))
		want, opens := policy.Fail, 1
		if resting {
			want, opens = policy.Indeterminate, 0
		}
		if got := evaluation.Run(t.Context()).Decide(at); got.Result != want || opened != opens {
			t.Errorf("resting %t: %s %+v, opened %d times", resting, got.Result, got.Reasons, opened)
		}
	}
}

// peers answer from the cache of another replica.
type peers struct{ *claims.Cache }

func (p peers) Get(_ context.Context, keys []string) map[string][]byte { return p.Shared(keys) }

// TestPeersAnswer: claims of another replica count where the registry is not asked.
func TestPeersAnswer(t *testing.T) {
	digest := digestOf(t, "a")
	source := &library{}
	source.attest(digest, "clean")
	check := scanned("")
	decide := func(e *Evaluator, from *library) policy.Result {
		evaluation := e.Evaluate(Reference{Ref: parse(t, "registry.example/app@"+digest.String()), Registry: from, Prover: believing{}})
		at := evaluation.Add(check)
		return evaluation.Run(t.Context()).Decide(at).Result
	}
	first := newEvaluator(t, time.Now)
	if got := decide(first, source); got != policy.Pass {
		t.Fatalf("at first: %s", got)
	}
	for _, c := range []struct {
		reason string
		peers  claims.Peers
		want   policy.Result
	}{
		{"a peer has the claims", peers{first.Claims}, policy.Pass},
		{"a peer has none", peers{newEvaluator(t, time.Now).Claims}, policy.Indeterminate},
		{"no peers", nil, policy.Indeterminate},
	} {
		known, err := claims.New(claims.Config{
			Fact: time.Hour, None: time.Second, Tag: time.Second, Timeout: time.Minute, Now: time.Now, Peers: c.peers,
		})
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(Config{Claims: known, Now: time.Now, Parallel: 1, Age: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if got := decide(e, &library{err: unavailable()}); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestRenew: a cached claim that is old may allow, and denies only after the registry was asked again.
func TestRenew(t *testing.T) {
	digest := digestOf(t, "a")
	for _, c := range []struct {
		reason       string
		first, later string
		after        time.Duration
		want         policy.Result
		asked        bool
	}{
		{"an old claim denies, and a later one allows", "other", "clean", time.Minute, policy.Pass, true},
		{"an old claim denies still", "other", "", time.Minute, policy.Fail, true},
		{"a new claim denies", "other", "clean", 0, policy.Fail, false},
		{"an old claim allows", "clean", "dirty", time.Minute, policy.Pass, false},
		{"no claim is cached any more", "clean", "dirty", 2 * time.Hour, policy.Fail, true},
	} {
		source := &library{}
		source.attest(digest, c.first)
		now := time.Now()
		e, check := newEvaluator(t, func() time.Time { return now }), scanned("")
		decide := func() policy.Result {
			evaluation := e.Evaluate(Reference{Ref: parse(t, "registry.example/app@"+digest.String()), Registry: source, Prover: believing{}})
			at := evaluation.Add(check)
			return evaluation.Run(t.Context()).Decide(at).Result
		}
		decide()
		before := source.asked.Load()
		now = now.Add(c.after)
		if c.later != "" {
			source.attest(digest, c.later)
		}
		if got := decide(); got != c.want || (source.asked.Load() > before) != c.asked {
			t.Errorf("%s: %s after %d requests, want %s", c.reason, got, source.asked.Load()-before, c.want)
		}
	}
}

// TestRenewWidened: an old claim about a platform, or about the index behind a tag, denies only after
// the registry was asked again.
func TestRenewWidened(t *testing.T) {
	index, child := digestOf(t, "a"), digestOf(t, "b")
	for _, c := range []struct {
		reason, ref  string
		platforms    policy.Platforms
		about        image.Digest // of the statements
		first, later string
		after        time.Duration
		want         policy.Result
	}{
		{"an old claim about a platform, and a later one", "@" + index.String(), policy.PlatformAny, child, "other", "clean", time.Minute, policy.Pass},
		{"an old claim about a platform alone", "@" + index.String(), policy.PlatformAny, child, "other", "", time.Minute, policy.Fail},
		{"a new claim about a platform", "@" + index.String(), policy.PlatformAny, child, "other", "clean", 0, policy.Fail},
		{"an old claim about the index, and a later one", ":1@" + child.String(), policy.PlatformIndex, index, "other", "clean", time.Minute, policy.Pass},
		{"an old claim about the index alone", ":1@" + child.String(), policy.PlatformIndex, index, "other", "", time.Minute, policy.Fail},
		{"a new claim about the index", ":1@" + child.String(), policy.PlatformIndex, index, "other", "clean", 0, policy.Fail},
	} {
		source := &library{tag: index, indexes: map[image.Digest][]image.Digest{index: {child}}}
		source.attest(c.about, c.first)
		now := time.Now()
		e, check := newEvaluator(t, func() time.Time { return now }), scanned(c.platforms)
		decide := func() policy.Result {
			evaluation := e.Evaluate(Reference{Ref: parse(t, "registry.example/app"+c.ref), Registry: source, Prover: believing{}})
			at := evaluation.Add(check)
			return evaluation.Run(t.Context()).Decide(at).Result
		}
		if got := decide(); got != policy.Fail {
			t.Errorf("%s: at first %s", c.reason, got)
		}
		now = now.Add(c.after)
		if c.later != "" {
			source.attest(c.about, c.later)
		}
		if got := decide(); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestSilentRegistry: a registry that does not answer is asked once, and stale claims count meanwhile.
func TestSilentRegistry(t *testing.T) {
	digest := digestOf(t, "a")
	source := &library{}
	source.attest(digest, "clean")
	now := time.Now()
	e, check := newEvaluator(t, func() time.Time { return now }), scanned("")
	window := 24 * time.Hour
	e.Stale = &window
	run := func(reason string, want policy.Result, stale, asked bool) {
		t.Helper()
		before := source.asked.Load()
		evaluation := e.Evaluate(Reference{Ref: parse(t, "registry.example/app@"+digest.String()), Registry: source, Prover: believing{}})
		at := evaluation.Add(check)
		result := evaluation.Run(t.Context())
		if got := result.Decide(at); got.Result != want || result.StaleSince().IsZero() == stale || (source.asked.Load() > before) != asked {
			t.Errorf("%s: %s %+v, stale since %s, %d requests", reason, got.Result, got.Reasons, result.StaleSince(), source.asked.Load()-before)
		}
	}
	run("the registry answers", policy.Pass, false, true)
	now = now.Add(2 * time.Hour)
	source.err = unavailable()
	run("it does not answer", policy.Pass, true, true)
	run("nor shortly after", policy.Pass, true, false)
	now = now.Add(time.Minute)
	run("nor a minute later", policy.Pass, true, true)
	now = now.Add(time.Minute)
	source.err = &image.Error{Kind: image.Refused, Op: "list"}
	run("it refuses", policy.Indeterminate, false, true)
	source.err = nil
	source.attest(digest, "dirty")
	run("it answers again", policy.Fail, false, true)
}
