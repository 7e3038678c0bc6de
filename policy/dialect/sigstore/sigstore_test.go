package sigstore_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

var _ catalog.Dialect = sigstore.Policies{}

// head is a policy but for its authorities.
const head = `apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: signed}
spec:
  images: [{glob: ghcr.io/org/**}]
`

// newKey returns the PEM of a new key, as a string in YAML.
func newKey(tb testing.TB) string {
	tb.Helper()
	signer, err := verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return quoted(tb, signer.PublicPEM())
}

func quoted(tb testing.TB, text []byte) string {
	tb.Helper()
	q, err := json.Marshal(string(text))
	if err != nil {
		tb.Fatal(err)
	}
	return string(q)
}

// fill puts a key in the place of each $KEY.
func fill(tb testing.TB, text string) string {
	tb.Helper()
	for strings.Contains(text, "$KEY") {
		text = strings.Replace(text, "$KEY", newKey(tb), 1)
	}
	return text
}

func compile(tb testing.TB, options sigstore.Options, text string) *policy.Policy {
	tb.Helper()
	p, err := sigstore.New(options).Compile([]byte(fill(tb, text)), "test.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func pod(namespace string) *policy.Subject {
	return &policy.Subject{
		Object:  policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "web", "labels": map[string]any{"app": "web"}}}),
		Version: "v1", Kind: "Pod", Namespace: namespace, Name: "web", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}, Operation: "CREATE",
	}
}

func container(ref string) policy.Image {
	return policy.Image{Container: "web", Role: "container", Pointer: "/spec/containers/0/image", Ref: image.MustParse(ref)}
}

// plan asks a set of policies about an image of a pod.
func plan(tb testing.TB, s *policy.Subject, ref string, policies ...*policy.Policy) set.Plan {
	tb.Helper()
	set, err := set.New(policies...)
	if err != nil {
		tb.Fatal(err)
	}
	return set.Plan(tb.Context(), s, func([]policy.Extractor) ([]policy.Image, error) { return []policy.Image{container(ref)}, nil })
}

// decision returns the decision of a check, by its judge where it has one.
func decision(tb testing.TB, check *policy.Check, proved policy.Answers) policy.Decision {
	tb.Helper()
	if check.Judge == nil {
		return decide.Check(check, proved)
	}
	judged := check.Judge.Judge(tb.Context(), []policy.Given{{Check: check, Answers: proved}})
	if len(judged.Decisions) != 1 || len(judged.Decisions[0].Reasons) == 0 || !judged.Object.Passes() {
		tb.Fatalf("%+v", judged)
	}
	return judged.Decisions[0]
}

// only returns the one check of a policy for an image that it names.
func only(tb testing.TB, p *policy.Policy) *policy.Check {
	tb.Helper()
	made := plan(tb, pod("prod"), "ghcr.io/org/app:v1", p)
	if len(made.Checks) != 1 {
		tb.Fatalf("%d checks, %+v", len(made.Checks), made.Results)
	}
	return &made.Checks[0]
}

// proof is a made-up verified claim: a signature or statement by the authorities of a name.
type proof struct {
	authority string
	// predicateType is empty for a signature.
	predicateType, predicate string
}

func answers(proofs ...proof) policy.Answers {
	return func(q policy.Question) policy.Answer {
		var out policy.Answer
		for _, p := range proofs {
			isStatement := q.Role == attest.Attestation
			if q.Authority.Name != p.authority || isStatement != (p.predicateType != "") || isStatement && q.Predicate != p.predicateType {
				continue
			}
			fact := verify.Fact{Role: q.Role, Signer: verify.Signer{KeyFingerprint: p.authority}}
			if isStatement {
				fact.Statement = &attest.Statement{PredicateType: p.predicateType, Predicate: json.RawMessage(p.predicate)}
			}
			out.Facts = append(out.Facts, fact)
		}
		return out
	}
}

// TestAuthorities: any inside a policy.
func TestAuthorities(t *testing.T) {
	const (
		keys       = "  authorities: [{key: {data: $KEY}}, {key: {data: $KEY}}]\n"
		one        = "  authorities: [{key: {data: $KEY}}]\n"
		provenance = "https://slsa.dev/provenance/v0.2"
		two        = "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: slsaprovenance}, {name: b, predicateType: vuln}]}]\n"
		either     = "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: slsaprovenance}]}, {key: {data: $KEY}, attestations: [{name: b, predicateType: slsaprovenance}]}]\n"
		cued       = "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: slsaprovenance, policy: {type: cue, data: 'predicate: builder: id: \"ci\"'}}]}]\n"
		regoed     = "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: slsaprovenance, policy: {type: rego, data: \"package sigstore\\nisCompliant { input.predicateType == \\\"https://slsa.dev/provenance/v0.2\\\"; input.predicate.builder.id == \\\"ci\\\" }\"}}]}]\n"
	)
	first, second := "authorities[0].key", "authorities[1].key"
	ci, other := `{"builder":{"id":"ci"}}`, `{"builder":{"id":"home"}}`
	for _, c := range []struct {
		spec   string
		proofs []proof
		want   policy.Result
		code   policy.Code
		reason string
	}{
		{one, []proof{{authority: first}}, policy.Pass, policy.Verified, "one key"},
		{one, nil, policy.Fail, policy.Unsigned, "no signature"},
		{one, []proof{{authority: first, predicateType: provenance, predicate: ci}}, policy.Fail, policy.Unsigned, "a statement is no signature"},
		{keys, []proof{{authority: second}}, policy.Pass, policy.Verified, "the second of two keys"},
		{keys, []proof{{authority: "another"}}, policy.Fail, policy.Unsigned, "neither of two keys"},
		{two, []proof{{first, provenance, ci}, {first, "https://cosign.sigstore.dev/attestation/vuln/v1", "{}"}}, policy.Pass, policy.Verified, "both statements"},
		{two, []proof{{first, provenance, ci}}, policy.Fail, policy.NoAttestation, "one of two statements"},
		{two, []proof{{authority: first}}, policy.Fail, policy.NoAttestation, "a signature is no statement"},
		{either, []proof{{second, provenance, ci}}, policy.Pass, policy.Verified, "the statement of the second"},
		{either, []proof{{"another", provenance, ci}}, policy.Fail, policy.NoAttestation, "a statement signed by another key"},
		{cued, []proof{{first, provenance, ci}}, policy.Pass, policy.Verified, "CUE holds"},
		{cued, []proof{{first, provenance, other}}, policy.Fail, policy.ConditionFailed, "CUE does not hold"},
		{cued, []proof{{first, provenance, "{}"}}, policy.Fail, policy.ConditionFailed, "CUE and a statement that lacks the field"},
		{cued, []proof{{first, provenance, other}, {first, provenance, ci}}, policy.Pass, policy.Verified, "a stale statement does not block"},
		{regoed, []proof{{first, provenance, ci}}, policy.Pass, policy.Verified, "Rego holds"},
		{regoed, []proof{{first, provenance, other}}, policy.Fail, policy.ConditionFailed, "Rego does not hold"},
		{regoed, []proof{{first, "https://slsa.dev/provenance/v1", ci}}, policy.Fail, policy.NoAttestation, "a statement of another type (CVE-2022-35930)"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			check := only(t, compile(t, sigstore.Options{}, head+c.spec))
			for range 2 { // the second time from the cache
				decision := decision(t, check, answers(c.proofs...))
				if decision.Result != c.want || decision.Reasons[0].Code != c.code {
					t.Errorf("%s %+v; want %s %s", decision.Result, decision.Reasons, c.want, c.code)
				}
			}
		})
	}
}

// TestStatic: a static authority needs no claim queries.
func TestStatic(t *testing.T) {
	for _, c := range []struct {
		authorities string
		want        policy.Result
		proof       bool
		reason      string
	}{
		{"[{static: {action: pass}}]", policy.Pass, false, "passes"},
		{"[{static: {action: fail}}]", policy.Fail, false, "fails"},
		{"[{static: {action: fail, message: no more}}, {static: {action: pass}}]", policy.Pass, false, "one of two passes"},
		{"[{key: {data: $KEY}}, {static: {action: pass}}]", policy.Pass, false, "one passes beside a key"},
		{"[{key: {data: $KEY}, ctlog: {trustRootRef: unknown}}, {static: {action: pass}}]", policy.Pass, false, "one passes beside what cannot be evaluated"},
		{"[{key: {data: $KEY}}, {static: {action: fail}}]", policy.Fail, true, "one fails beside a key that did not sign"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			check := only(t, compile(t, sigstore.Options{}, head+"  authorities: "+c.authorities+"\n"))
			if check.NeedsDigest() != c.proof {
				t.Errorf("asks the registry: %t", check.NeedsDigest())
			}
			if d := decision(t, check, answers()); d.Result != c.want {
				t.Errorf("%s %+v; want %s", d.Result, d.Reasons, c.want)
			}
		})
	}
	check := only(t, compile(t, sigstore.Options{}, head+"  authorities: [{key: {data: $KEY}}, {static: {action: fail}}]\n"))
	if d := decision(t, check, answers(proof{authority: "authorities[0].key"})); d.Result != policy.Pass {
		t.Errorf("a key that signed beside one that fails: %s %+v", d.Result, d.Reasons)
	}
	check = only(t, compile(t, sigstore.Options{}, head+"  authorities: [{static: {action: fail, message: end of life}}]\n"))
	if check.DenyMessage != "end of life" || !check.Required {
		t.Errorf("the author's words: %q, required %t", check.DenyMessage, check.Required)
	}
}

// TestPolicies: all across policies.
func TestPolicies(t *testing.T) {
	a := compile(t, sigstore.Options{}, head+"  authorities: [{key: {data: $KEY}}]\n")
	b := compile(t, sigstore.Options{}, strings.Replace(head, "signed", "other", 1)+"  authorities: [{static: {action: fail}}]\n")
	made := plan(t, pod("prod"), "ghcr.io/org/app:v1", a, b)
	var results []policy.Result
	for i := range made.Checks {
		results = append(results, decision(t, &made.Checks[i], answers(proof{authority: "authorities[0].key"})).Result)
	}
	slices.Sort(results)
	if !slices.Equal(results, []policy.Result{policy.Fail, policy.Pass}) {
		t.Errorf("%v: want a result of each", results)
	}
}

func TestMode(t *testing.T) {
	for mode, want := range map[string]policy.Action{"": policy.Enforce, "  mode: enforce\n": policy.Enforce, "  mode: warn\n": policy.Warn} {
		p := compile(t, sigstore.Options{}, head+mode+"  authorities: [{key: {data: $KEY}}]\n")
		if got := only(t, p).Action; got != want || p.AuditOnly != (want == policy.Warn) {
			t.Errorf("%q: %s, audit only %t", mode, got, p.AuditOnly)
		}
	}
}
