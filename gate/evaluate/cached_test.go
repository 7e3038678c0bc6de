package evaluate

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// observed records the hits that an evaluation notifies of.
type observed struct{ hits []claims.Layer }

func (*observed) Begin(ctx context.Context, _ Phase) (context.Context, func()) { return ctx, func() {} }

func (o *observed) Asked(layer claims.Layer, known bool) {
	if known {
		o.hits = append(o.hits, layer)
	}
}

// TestCached: the cache alone decides where it has the digest and facts that meet each check.
func TestCached(t *testing.T) {
	digest := digestOf(t, "a")
	tagged, named := "registry.example/app:1", "registry.example/app@"+digest.String()
	facts, both := []claims.Layer{claims.LayerFacts}, []claims.Layer{claims.LayerFacts, claims.LayerTags}
	judged := func(c *policy.Check) { c.Judge = judge{} }
	for _, c := range []struct {
		reason, ref, statement string
		after                  time.Duration
		change                 func(*policy.Check) // after the claims were cached
		ended                  bool
		ok, partial            bool
		hits                   []claims.Layer
	}{
		{"all is known, by a tag", tagged, "clean", 0, nil, false, true, false, both},
		{"all is known, by a digest", named, "clean", time.Minute, nil, false, true, false, facts},
		{"the tag's digest is too old", tagged, "clean", time.Minute, nil, false, false, false, nil},
		{"the claims are too old", named, "clean", 2 * time.Hour, nil, false, false, true, nil},
		{"the claims do not meet the condition", named, "other", 0, nil, false, false, false, facts},
		{"no claims are needed", named, "clean", 2 * time.Hour, func(c *policy.Check) { c.Claims = policy.Claims{} }, false, true, false, nil},
		{"a check that is skipped", named, "clean", 2 * time.Hour, func(c *policy.Check) { c.Skip = "excepted" }, false, true, false, nil},
		{"another type of statement", named, "clean", 0, func(c *policy.Check) { c.Attestations[0].PredicateType = "sbom" }, false, false, true, nil},
		{"another authority", named, "clean", 0, func(c *policy.Check) {
			c.Attestations[0].Signers[0].Members[0].Authority = &verify.Authority{Name: "other"}
		}, false, false, true, nil},
		{"platforms", named, "clean", 0, func(c *policy.Check) { c.Platforms = policy.PlatformEach }, false, false, false, nil},
		{"content of the image", named, "clean", 0, func(c *policy.Check) { c.WantsData = policy.DataOne }, false, false, false, nil},
		{"the request has ended", named, "clean", 0, nil, true, false, false, nil},
		{"a judge, which runs later", named, "clean", 0, judged, false, true, true, facts},
		{"a judge, and no claims", named, "clean", 2 * time.Hour, judged, false, false, true, nil},
		{"a judge that needs no claims", named, "clean", 2 * time.Hour, func(c *policy.Check) { c.Judge, c.Claims = judge{}, policy.Claims{} }, false, true, true, nil},
	} {
		source := &library{tag: digest}
		source.attest(digest, c.statement)
		now := time.Now()
		e, check := newEvaluator(t, func() time.Time { return now }), scanned("")
		reference := Reference{Ref: parse(t, c.ref), Registry: source, Prover: believing{}}
		first := e.Evaluate(reference)
		first.Add(check)
		first.Run(t.Context())
		now = now.Add(c.after)
		if c.change != nil {
			c.change(check)
		}
		seen := &observed{}
		e.Observer = seen
		ctx, end := context.WithCancel(t.Context())
		if c.ended {
			end()
		}
		before := source.asked.Load()
		second := e.Evaluate(reference)
		at := second.Add(check)
		result, ok := second.Cached(ctx)
		end()
		if ok != c.ok || result.IsPartial != c.partial || source.asked.Load() != before || !slices.Equal(seen.hits, c.hits) {
			t.Errorf("%s: %t, partial %t, hits %q", c.reason, ok, result.IsPartial, seen.hits)
		}
		if got := result.own; ok && check.NeedsProof() && got[at].Result != policy.Pass {
			t.Errorf("%s: %+v", c.reason, got)
		}
	}
}

// TestKeepTag: the digest of a tag serves later only where this evaluation verified it.
func TestKeepTag(t *testing.T) {
	digest := digestOf(t, "a")
	for _, c := range []struct {
		reason    string
		ref       string
		statement string
		change    func(*Evaluator)
		kept      bool
	}{
		{"verified", "registry.example/app:1", "clean", nil, true},
		{"denied", "registry.example/app:1", "other", nil, false},
		{"stale entries are not used", "registry.example/app:1", "clean", func(e *Evaluator) { e.Stale = nil }, false},
		{"a digest is named", "registry.example/app:1@" + digest.String(), "clean", nil, false},
	} {
		source := &library{tag: digest}
		source.attest(digest, c.statement)
		now := time.Now()
		e := newEvaluator(t, func() time.Time { return now })
		if c.change != nil {
			c.change(e)
		}
		evaluation := e.Evaluate(Reference{Ref: parse(t, c.ref), Registry: source, Prover: believing{}})
		evaluation.Add(scanned(""))
		evaluation.Run(t.Context())
		if found, ok := e.Claims.Tags().Stale(claims.Tag{Reference: parse(t, c.ref).String()}, time.Hour); ok != c.kept || ok && found.Descriptor.Digest != digest {
			t.Errorf("%s: %+v, %t", c.reason, found, ok)
		}
	}
}

// TestClaimKey: signatures count in every repository of an image, statements where they were
// searched alone.
func TestClaimKey(t *testing.T) {
	own, named := parse(t, "registry.example/app").Repository(), parse(t, "evidence.example/app").Repository()
	s := &search{statements: "mirror.example/app", own: repository{name: own}}
	for _, c := range []struct {
		reason  string
		role    attest.Role
		sources []attest.Source
		of      string
		named   bool // the sources are part of the key
	}{
		{"a signature", attest.Signature, nil, "", false},
		{"a signature in named sources", attest.Signature, []attest.Source{{TagPrefix: "a"}}, "", true},
		{"a statement", attest.Attestation, nil, "mirror.example/app", false},
		{"a statement in a named repository", attest.Attestation, []attest.Source{{Repository: named}}, "", true},
		{"a statement under a prefix of tags", attest.Attestation, []attest.Source{{Repository: named}, {TagPrefix: "a"}}, own.String(), true},
	} {
		key := s.claimKey(pin(t, digestOf(t, "a")), "hash", policy.Question{Role: c.role, Sources: c.sources})
		if key.Of != c.of || (key.Sources != "") != c.named {
			t.Errorf("%s: of %q, sources %q", c.reason, key.Of, key.Sources)
		}
	}
}

// TestAllFacts: the reason why an answer is incomplete is that of the authorities that are asked about.
func TestAllFacts(t *testing.T) {
	one, two := &verify.Authority{Name: "one"}, &verify.Authority{Name: "two"}
	failed := errors.New("unavailable")
	a := &answers{known: map[claimQuery]policy.Answer{}}
	questions := []policy.Question{{Authority: one}, {Authority: two}}
	a.set(claimQueryOf(digestOf(t, "a"), questions[0]), policy.Answer{Facts: []verify.Fact{{Role: attest.Signature}}})
	a.set(claimQueryOf(digestOf(t, "b"), questions[1]), policy.Answer{Facts: []verify.Fact{{Role: attest.Attestation}}, Gaps: []error{failed}})
	for _, c := range []struct {
		of  *verify.Authority
		gap error
	}{{one, nil}, {two, failed}} {
		facts, gap := a.facts(questions, func(by *verify.Authority) bool { return by == c.of })
		if len(facts) != 2 || facts[0].Role != attest.Signature || !errors.Is(gap, c.gap) {
			t.Errorf("%s: %+v, %v", c.of.Name, facts, gap)
		}
	}
}

// TestCompareSource: the source's digest is reported where a target resolves the tag, and the source
// is an evidence repository.
func TestCompareSource(t *testing.T) {
	ref := parse(t, "registry.example/app:1")
	own := []image.Repository{ref.Repository()}
	for _, c := range []struct {
		reason   string
		target   *Target
		evidence []image.Repository
		tag      image.Digest
		want     image.Digest
	}{
		{"a target resolves the tag", &Target{}, own, digestOf(t, "a"), digestOf(t, "a")},
		{"the source does not", &Target{}, own, image.Digest{}, image.Digest{}},
		{"the source is not contacted", &Target{}, nil, digestOf(t, "a"), image.Digest{}},
		{"the source resolves the tag itself", nil, own, digestOf(t, "a"), image.Digest{}},
	} {
		r := resolver{Evaluator: newEvaluator(t, time.Now), registry: &library{tag: c.tag}, ref: ref, target: c.target, evidence: c.evidence}
		if got := r.compareSource(t.Context())(); got != c.want {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
}

// mistrusting is a fake of trust without access to keys.
type mistrusting struct {
	believing
	panics bool
}

func (m mistrusting) Resolve(context.Context, verify.Authority) (verify.Authority, error) {
	if m.panics {
		panic("a defect")
	}
	return verify.Authority{}, errors.New("the key is not there")
}

// TestIndeterminate: what cannot be looked up is indeterminate, and neither verified nor denied.
func TestIndeterminate(t *testing.T) {
	digest := digestOf(t, "a")
	source := &library{}
	source.attest(digest, "clean")
	reference := Reference{Ref: parse(t, "registry.example/app@"+digest.String()), Registry: source}
	for _, c := range []struct {
		reason string
		prover Prover
		change func(*Reference)
		want   policy.Result
	}{
		{"all is there", believing{}, nil, policy.Pass},
		{"no key", mistrusting{}, nil, policy.Indeterminate},
		{"a defect", mistrusting{panics: true}, nil, policy.Indeterminate},
		{"the tag cannot be resolved", believing{}, func(r *Reference) { r.Ref = parse(t, "registry.example/app:1") }, policy.Indeterminate},
		{"the repository cannot be opened", believing{}, func(r *Reference) {
			r.Evidence = []image.Repository{parse(t, "mirror.example/app").Repository()}
			r.Open = func(context.Context, image.Repository) (Registry, error) { return nil, unavailable() }
		}, policy.Indeterminate},
		{"a defect while it is opened", believing{}, func(r *Reference) {
			r.Evidence = []image.Repository{parse(t, "mirror.example/app").Repository()}
			r.Open = func(context.Context, image.Repository) (Registry, error) { panic("a defect") }
		}, policy.Indeterminate},
	} {
		asked := reference
		asked.Prover = c.prover
		if c.change != nil {
			c.change(&asked)
		}
		evaluation := newEvaluator(t, time.Now).Evaluate(asked)
		at := evaluation.Add(scanned(""))
		if got := evaluation.Run(t.Context()).Decide(at); got.Result != c.want {
			t.Errorf("%s: %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}
