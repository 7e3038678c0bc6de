package evaluate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/evidence"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/verify"
)

// clean holds for predicates that contain "clean".
type clean struct{}

func (clean) Holds(data any) (bool, string, error) { return data == "clean", "it is not clean", nil }

// earlier verifies the evidence "clean" with a trusted time, and fails for the rest.
type earlier struct{ err error }

func (e earlier) Verify(_ context.Context, subject image.Pinned, evidence attest.Evidence, _ verify.Authority) (verify.Fact, error) {
	if string(evidence.Payload) != "clean" {
		return verify.Fact{}, e.err
	}
	return verify.Fact{
		Subject: subject.Digest(), Role: attest.Attestation, SignedAt: time.Unix(1, 0), Origin: evidence.Origin,
		Statement: &attest.Statement{PredicateType: "scan", Predicate: []byte(`"clean"`)},
	}, nil
}

// scans requires a clean scan, the latest.
func scans(condition policy.Condition) *policy.Check {
	return &policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{{
		Name: "scan", Path: "attestations[0]", PredicateType: "scan", LatestDecides: true, Condition: condition,
		Signers: []policy.Requirement{{Threshold: 1, Members: []policy.Member{{Authority: &verify.Authority{Name: "notary"}}}}},
	}}}}
}

// TestUnverifiedStatements: a statement that was found and could not be verified may be a later one
// than those that were. A rejected one, and one beyond a bound, is not: a user with push access can
// add it.
func TestUnverifiedStatements(t *testing.T) {
	here, elsewhere := parse(t, "registry.example/app").Repository(), parse(t, "mirror.example/app").Repository()
	subject, err := parse(t, "registry.example/app:1").Pin(image.Descriptor{Digest: digestOf(t, "a")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		err    error
		in     image.Repository
		ended  bool // the time of the request
		want   policy.Result
	}{
		{"no revocation status", &image.Error{Kind: image.Unavailable, Op: "look up revocation"}, here, false, policy.Indeterminate},
		{"the time passed before", context.DeadlineExceeded, here, true, policy.Indeterminate},
		{"a defect of the verifier", errors.New("panicked"), here, false, policy.Indeterminate},
		{"no revocation status elsewhere", &image.Error{Kind: image.Unavailable, Op: "look up revocation"}, elsewhere, false, policy.Pass},
		{"beyond a bound", &image.Error{Kind: image.Bound, Op: "verify"}, here, false, policy.Pass},
		{"of another signer", &verify.Rejection{Code: verify.UntrustedChain}, here, false, policy.Pass},
	} {
		found := evidence.Found{Subject: subject, Found: attest.Found{Evidence: []attest.Evidence{
			{Format: attest.Cosign, Role: attest.Attestation, PredicateType: "scan", Payload: []byte("clean"), Origin: attest.Origin{Repository: here, Via: "a"}},
			{Format: attest.Cosign, Role: attest.Attestation, PredicateType: "scan", Payload: []byte("dirty"), Origin: attest.Origin{Repository: c.in, Via: "b"}},
		}}}
		check := scans(clean{})
		asked := check.Questions()[0]
		a := &answers{known: map[claimQuery]policy.Answer{}}
		a.set(claimQueryOf(subject.Digest(), asked), evidence.Verify(t.Context(), earlier{c.err}, found, []evidence.Query{{Question: asked}})[0])
		if c.ended {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			a.markLate(over)
		}
		if got := decide.Check(check, a.about(subject.Digest())); got.Result != c.want {
			t.Errorf("%s: %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
		exists := scans(nil)
		exists.Attestations[0].Signers[0].Members[0].Authority = asked.Authority
		if got := decide.Check(exists, a.about(subject.Digest())); got.Result != policy.Pass {
			t.Errorf("%s, without a condition: %s %+v", c.reason, got.Result, got.Reasons)
		}
	}
}

// TestUnsearched: a search without a result leaves a gap in each repository that it is about.
func TestUnsearched(t *testing.T) {
	own, named := parse(t, "registry.example/app").Repository(), parse(t, "evidence.example/app").Repository()
	for _, c := range []struct {
		reason  string
		sources []attest.Source
		want    string
	}{
		{"the image's own", nil, "registry.example/app"},
		{"named ones, each once", []attest.Source{{Repository: named}, {TagPrefix: "a"}, {Repository: named, TagPrefix: "b"}}, "evidence.example/app registry.example/app"},
	} {
		p := &pendingQuery{Query: evidence.Query{Question: policy.Question{Sources: c.sources}}, query: claims.Query{Repository: own}}
		var got []string
		for _, gap := range p.unsearched(context.DeadlineExceeded) {
			of, ok := errors.AsType[attest.Gap](gap)
			if !ok || !errors.Is(gap, context.DeadlineExceeded) {
				t.Errorf("%s: %#v", c.reason, gap)
			}
			got = append(got, of.Repository.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.reason, got, c.want)
		}
	}
}
