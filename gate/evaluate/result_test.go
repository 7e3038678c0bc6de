package evaluate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// judge is a fake judge with fixed decisions.
type judge struct {
	decisions []policy.Decision
	panics    bool
}

func (j judge) Judge(context.Context, []policy.Given) policy.Judgement {
	if j.panics {
		panic("a defect")
	}
	return policy.Judgement{Decisions: j.decisions, Object: policy.Ruling{Result: policy.Pass}}
}

// TestJudge: a judge's decision counts only where it is one of the known ones, with a reason.
func TestJudge(t *testing.T) {
	reasons := []policy.Reason{{Code: policy.Verified, Message: "signed"}}
	for _, c := range []struct {
		reason string
		judge  judge
		want   policy.Result
		object policy.Result
	}{
		{"it passes", judge{decisions: []policy.Decision{{Result: policy.Pass, Reasons: reasons}}}, policy.Pass, policy.Pass},
		{"it fails", judge{decisions: []policy.Decision{{Result: policy.Fail, Reasons: reasons}}}, policy.Fail, policy.Pass},
		{"it is indeterminate", judge{decisions: []policy.Decision{{Result: policy.Indeterminate, Reasons: reasons}}}, policy.Indeterminate, policy.Pass},
		{"it skips", judge{decisions: []policy.Decision{{Result: policy.Skipped, Reasons: reasons}}}, policy.Skipped, policy.Pass},
		{"no result", judge{decisions: []policy.Decision{{Reasons: reasons}}}, policy.Indeterminate, policy.Pass},
		{"an unknown result", judge{decisions: []policy.Decision{{Result: "yes", Reasons: reasons}}}, policy.Indeterminate, policy.Pass},
		{"no reason", judge{decisions: []policy.Decision{{Result: policy.Pass}}}, policy.Indeterminate, policy.Pass},
		{"no decision", judge{}, policy.Indeterminate, policy.Indeterminate},
		{"too many decisions", judge{decisions: []policy.Decision{{Result: policy.Pass, Reasons: reasons}, {Result: policy.Pass, Reasons: reasons}}}, policy.Indeterminate, policy.Indeterminate},
		{"it panics", judge{panics: true}, policy.Indeterminate, policy.Indeterminate},
	} {
		check := &policy.Check{Entry: "rule"}
		got := Judge(t.Context(), c.judge, []policy.Given{{Check: check}})
		if len(got.Decisions) != 1 || got.Object.Result != c.object {
			t.Errorf("%s: %+v", c.reason, got)
			continue
		}
		if d := got.Decisions[0]; d.Result != c.want || d.Check != check || len(d.Reasons) != 1 {
			t.Errorf("%s: %+v, want %s", c.reason, d, c.want)
		}
	}
}

// signedCheck requires a signature, and enforces it.
func signedCheck(t *testing.T) *policy.Check {
	t.Helper()
	return &policy.Check{Entry: "entry", Claims: policy.Claims{Requirements: []policy.Requirement{
		{Threshold: 1, Members: []policy.Member{{Authority: &verify.Authority{Name: "key"}}}},
	}}}
}

// pin returns a pinned reference of the digest.
func pin(t *testing.T, digest image.Digest) image.Pinned {
	t.Helper()
	pinned, err := parse(t, "registry.example/app:1").Pin(image.Descriptor{Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	return pinned
}

// TestDecideByIndex: an index that lists the named digest verifies it where the digest's own claims
// do not, and no other check.
func TestDecideByIndex(t *testing.T) {
	named, listing := pin(t, digestOf(t, "a")), pin(t, digestOf(t, "b"))
	signed, unsigned := signedCheck(t), &policy.Check{Entry: "entry"}
	for _, c := range []struct {
		reason      string
		check       *policy.Check
		err         error
		own, parent policy.Result // "" where the parent was not asked
		want        policy.Result
		byIndex     bool
	}{
		{"the digest itself", signed, nil, policy.Pass, "", policy.Pass, false},
		{"neither", signed, nil, policy.Fail, policy.Fail, policy.Fail, false},
		{"the index", signed, nil, policy.Fail, policy.Pass, policy.Pass, true},
		{"the index, where the digest is indeterminate", signed, nil, policy.Indeterminate, policy.Pass, policy.Pass, true},
		{"both", signed, nil, policy.Pass, policy.Pass, policy.Pass, false},
		{"the index is indeterminate", signed, nil, policy.Fail, policy.Indeterminate, policy.Indeterminate, false},
		{"the index was not asked", signed, nil, policy.Fail, "", policy.Fail, false},
		{"no digest", signed, errors.New("unavailable"), policy.Pass, "", policy.Indeterminate, false},
		{"a check without claims, and no digest", unsigned, errors.New("unavailable"), policy.Pass, "", policy.Pass, false},
		{"a check without claims", unsigned, nil, policy.Fail, policy.Pass, policy.Fail, false},
	} {
		r := &Result{
			Pinned: named, Err: c.err, checks: []*policy.Check{c.check}, own: []policy.Decision{{Check: c.check, Result: c.own}},
			parent: content.Index{Pinned: listing}, answers: &answers{known: map[claimQuery]policy.Answer{}},
		}
		if c.parent != "" {
			r.byParent = []policy.Decision{{Check: c.check, Result: c.parent}}
		}
		got := r.Decide(0)
		isNamed := len(got.Reasons) > 0 && strings.Contains(got.Reasons[len(got.Reasons)-1].Message, listing.Digest().String())
		if got.Result != c.want || isNamed != c.byIndex {
			t.Errorf("%s: %+v, want %s", c.reason, got, c.want)
		}
	}
}

// TestUnsignedIndex: missing evidence of an index names it as one, since its platforms may be signed.
func TestUnsignedIndex(t *testing.T) {
	digest := digestOf(t, "a")
	each := signedCheck(t)
	each.Platforms = policy.PlatformEach
	for _, c := range []struct {
		reason, mediaType string
		check             *policy.Check
		code              policy.Code
		result            policy.Result
		named             bool
	}{
		{"unsigned", image.MediaTypeIndex, signedCheck(t), policy.Unsigned, policy.Fail, true},
		{"a list of Docker's", image.MediaTypeDockerList, signedCheck(t), policy.Unsigned, policy.Fail, true},
		{"without an attestation", image.MediaTypeIndex, signedCheck(t), policy.NoAttestation, policy.Fail, true},
		{"signed with another key", image.MediaTypeIndex, signedCheck(t), policy.Code("wrong-key"), policy.Fail, false},
		{"one platform", image.MediaTypeManifest, signedCheck(t), policy.Unsigned, policy.Fail, false},
		{"of a digest that was not resolved", "", signedCheck(t), policy.Unsigned, policy.Fail, false},
		{"indeterminate", image.MediaTypeIndex, signedCheck(t), policy.Unsigned, policy.Indeterminate, false},
		{"by its platforms", image.MediaTypeIndex, each, policy.Unsigned, policy.Fail, false},
	} {
		pinned, err := parse(t, "registry.example/app:v1").Pin(image.Descriptor{Digest: digest, MediaType: c.mediaType})
		if err != nil {
			t.Fatal(err)
		}
		own := policy.Decision{Check: c.check, Result: c.result, Reasons: []policy.Reason{{Code: c.code, Message: "no signature found"}}}
		r := &Result{Pinned: pinned, checks: []*policy.Check{c.check}, own: []policy.Decision{own}, answers: &answers{known: map[claimQuery]policy.Answer{}}}
		for how, got := range map[string]policy.Decision{"decided": r.Decide(0), "judged": r.Judged(0, own)} {
			if strings.Contains(got.Reasons[0].Message, "is an index") != c.named || got.Result != c.result {
				t.Errorf("%s, %s: %+v", c.reason, how, got)
			}
		}
		if own.Reasons[0].Message != "no signature found" {
			t.Errorf("%s: the decision itself was changed", c.reason)
		}
	}
}

// TestGiven: a judge reads the claims about the index where those pass, and its decision names it.
func TestGiven(t *testing.T) {
	named, listing := pin(t, digestOf(t, "a")), pin(t, digestOf(t, "b"))
	check := signedCheck(t)
	a := &answers{known: map[claimQuery]policy.Answer{}}
	a.set(claimQueryOf(named.Digest(), check.Questions()[0]), policy.Answer{Instead: []string{"named"}})
	a.set(claimQueryOf(listing.Digest(), check.Questions()[0]), policy.Answer{Instead: []string{"index"}})
	failed := errors.New("unavailable")
	for _, c := range []struct {
		reason  string
		err     error
		parent  policy.Result
		decided policy.Result
		reads   string // "" for a gap
		names   bool   // the decision names the index
	}{
		{"the index passes", nil, policy.Pass, policy.Pass, "index", true},
		{"the judge denies it", nil, policy.Pass, policy.Fail, "index", false},
		{"the index fails", nil, policy.Fail, policy.Pass, "named", false},
		{"no digest", failed, policy.Pass, policy.Pass, "", false},
	} {
		r := &Result{
			Pinned: named, Err: c.err, checks: []*policy.Check{check}, own: []policy.Decision{{Check: check, Result: policy.Fail}},
			parent: content.Index{Pinned: listing}, byParent: []policy.Decision{{Check: check, Result: c.parent}}, answers: a,
		}
		given := r.Given(0)
		answer := given.Answers(check.Questions()[0])
		if !errors.Is(given.Err, c.err) || given.Check != check || strings.Join(answer.Instead, "") != c.reads || (len(answer.Gaps) == 1) != (c.err != nil) {
			t.Errorf("%s: %+v, answer %+v", c.reason, given, answer)
		}
		if got := r.Judged(0, policy.Decision{Check: check, Result: c.decided}); (len(got.Reasons) == 1) != c.names || got.Result != c.decided {
			t.Errorf("%s: judged %+v", c.reason, got)
		}
	}
}

// TestIsVerified: a tag's digest is kept where a check verifies the image, and none denies it.
func TestIsVerified(t *testing.T) {
	signed, unsigned := signedCheck(t), &policy.Check{}
	warned := signedCheck(t)
	warned.Action = policy.Warn
	for _, c := range []struct {
		reason   string
		checks   []*policy.Check
		results  []policy.Result
		verified bool
		lacks    bool
	}{
		{"verified", []*policy.Check{signed}, []policy.Result{policy.Pass}, true, false},
		{"denied", []*policy.Check{signed}, []policy.Result{policy.Fail}, false, true},
		{"could not be verified", []*policy.Check{signed}, []policy.Result{policy.Indeterminate}, false, true},
		{"no check", nil, nil, false, false},
		{"a check without claims", []*policy.Check{unsigned}, []policy.Result{policy.Pass}, false, false},
		{"verified, and a check without claims", []*policy.Check{signed, unsigned}, []policy.Result{policy.Pass, policy.Pass}, true, false},
		{"verified, and denied by such a check", []*policy.Check{signed, unsigned}, []policy.Result{policy.Pass, policy.Fail}, false, false},
		{"denied after it was verified", []*policy.Check{signed, signed}, []policy.Result{policy.Pass, policy.Fail}, false, true},
		{"with a warning", []*policy.Check{signed, warned}, []policy.Result{policy.Pass, policy.Fail}, true, true},
		{"a warning alone", []*policy.Check{warned}, []policy.Result{policy.Fail}, false, true},
		{"verified for a warning", []*policy.Check{warned}, []policy.Result{policy.Pass}, true, false},
		{"skipped", []*policy.Check{unsigned}, []policy.Result{policy.Skipped}, false, false},
		{"verified, and skipped by another", []*policy.Check{unsigned, signed}, []policy.Result{policy.Skipped, policy.Pass}, true, false},
	} {
		r := &Result{checks: c.checks}
		for i, result := range c.results {
			r.own = append(r.own, policy.Decision{Check: c.checks[i], Result: result})
		}
		if r.isVerified() != c.verified || r.lacksClaims() != c.lacks {
			t.Errorf("%s: verified %t, lacks claims %t", c.reason, r.isVerified(), r.lacksClaims())
		}
	}
}

// TestDecideByNearest: statements about an index do not count where those about the platform do not
// meet the policy, and it is indeterminate where those could not be read.
func TestDecideByNearest(t *testing.T) {
	here, elsewhere := parse(t, "registry.example/app").Repository(), parse(t, "mirror.example/app").Repository()
	gap := func(in image.Repository, kind image.Kind) policy.Answer {
		return policy.Answer{Gaps: []error{attest.Gap{Repository: in, Err: &image.Error{Kind: kind}}}}
	}
	stated := func(predicate string) policy.Answer {
		return policy.Answer{Facts: []verify.Fact{{
			Role: attest.Attestation, Origin: attest.Origin{Repository: here}, Statement: &attest.Statement{Predicate: []byte(`"` + predicate + `"`)},
		}}}
	}
	unread, signature := gap(here, image.Unavailable), signedCheck(t)
	denies := scans(nil)
	denies.Deny = dirty{}
	both := scans(nil)
	both.Deny = dirty{}
	both.Attestations = append(both.Attestations, both.Attestations[0])
	both.Attestations[1].Name, both.Attestations[1].PredicateType = "sbom", "sbom"
	named := scans(clean{})
	named.Sources = []attest.Source{{Repository: elsewhere}}
	mixed := scans(clean{})
	mixed.Requirements = signature.Requirements
	for _, c := range []struct {
		reason string
		check  *policy.Check
		own    policy.Answer // about the platform: to its first query
		want   policy.Result
	}{
		{"the statements of the platform were not read", scans(clean{}), unread, policy.Indeterminate},
		{"all was read", scans(clean{}), policy.Answer{}, policy.Pass},
		{"at a mirror", scans(clean{}), gap(elsewhere, image.Unavailable), policy.Pass},
		{"refused by a mirror", scans(clean{}), gap(elsewhere, image.Refused), policy.Indeterminate},
		{"at a repository that does not exist", scans(clean{}), gap(here, image.NotFound), policy.Pass},
		{"at a repository that the policy names", named, gap(elsewhere, image.Unavailable), policy.Indeterminate},
		{"beyond a bound", scans(clean{}), gap(here, image.Bound), policy.Indeterminate},
		{"a gap of no repository, such as a panic", scans(clean{}), policy.Answer{Gaps: []error{errors.New("panic")}}, policy.Indeterminate},
		{"the same, of statements that may deny", denies, policy.Answer{Gaps: []error{errors.New("panic")}}, policy.Indeterminate},
		{"a registry that was not asked", scans(clean{}), policy.Answer{Gaps: []error{&image.Error{Kind: image.Unavailable}}}, policy.Indeterminate},
		{"evidence beyond a verifier's bound, which one push adds", scans(clean{}), gap(image.Repository{}, image.Bound), policy.Pass},
		{"one that meets the condition", scans(clean{}), stated("clean"), policy.Pass},
		{"one that does not", scans(clean{}), stated("dirty"), policy.Fail},
		{"statements without a condition", scans(nil), unread, policy.Pass},
		{"statements that may deny", denies, unread, policy.Indeterminate},
		{"one that is denied", denies, stated("dirty"), policy.Fail},
		{"one that is not", denies, stated("clean"), policy.Pass},
		{"one that is denied, where another is on the index alone", both, stated("dirty"), policy.Fail},
		{"one that is not, where another is on the index alone", both, stated("clean"), policy.Pass},
		{"signatures, which cannot contradict", signature, unread, policy.Pass},
		{"unread signatures beside statements that were read", mixed, unread, policy.Pass},
	} {
		r := &Result{Pinned: pin(t, digestOf(t, "a")), answers: &answers{known: map[claimQuery]policy.Answer{}, first: here}}
		r.parent.Pinned = pin(t, digestOf(t, "b"))
		for i, q := range c.check.Questions() {
			above := stated("clean")
			if q.Role == attest.Signature {
				above = policy.Answer{Facts: []verify.Fact{{Role: attest.Signature, Origin: attest.Origin{Repository: here}}}}
			}
			r.answers.set(claimQueryOf(r.parent.Pinned.Digest(), q), above)
			if i == 0 {
				r.answers.set(claimQueryOf(r.Pinned.Digest(), q), c.own)
			} else {
				r.answers.set(claimQueryOf(r.Pinned.Digest(), q), policy.Answer{})
			}
		}
		if got := r.decideByNearest(t.Context(), c.check); got.Result != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got.Result, c.want)
		}
	}
}

// dirty denies predicates under a name that contain "dirty".
type dirty struct{}

func (dirty) Holds(data any) (bool, string, error) {
	named, _ := data.(map[string]any)
	return named["scan"] == "dirty", "it is dirty", nil
}

// TestMaxStale: the shortest window of the policies involved counts.
func TestMaxStale(t *testing.T) {
	of := func(d time.Duration) *time.Duration { return &d }
	with := func(window *time.Duration) *policy.Check {
		return &policy.Check{Policy: &policy.Policy{StaleIfError: window}}
	}
	for _, c := range []struct {
		reason string
		stale  *time.Duration
		checks []*policy.Check
		want   time.Duration
	}{
		{"the default", of(time.Hour), []*policy.Check{{}}, time.Hour},
		{"a policy without its own", of(time.Hour), []*policy.Check{with(nil)}, time.Hour},
		{"a policy with less", of(time.Hour), []*policy.Check{{}, with(of(time.Minute))}, time.Minute},
		{"a policy with more", of(time.Hour), []*policy.Check{with(of(2 * time.Hour))}, 2 * time.Hour},
		{"a policy that forbids it", of(time.Hour), []*policy.Check{with(of(0)), {}}, 0},
		{"more than may be", of(2 * policy.MaxStale), []*policy.Check{{}}, policy.MaxStale},
		{"nothing is stale here", nil, []*policy.Check{with(of(time.Hour))}, 0},
		{"no check", of(time.Hour), nil, 0},
	} {
		if got := (&Evaluator{Config: Config{Stale: c.stale}}).maxStale(c.checks); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
