package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

const provenance = "https://slsa.dev/provenance/v1"

// expect fails the test unless the outcome has the answer and, first, the code.
func expect(t *testing.T, outcome gate.Outcome, answer gate.Result, code policy.Code) {
	t.Helper()
	reasons := slices.Clone(outcome.Reasons)
	for _, v := range outcome.Verdicts {
		reasons = append(reasons, v.Reasons...)
	}
	if outcome.Result != answer || len(reasons) == 0 || reasons[0].Code != code {
		t.Fatalf("%s %+v, want %s with %s first", outcome.Result, reasons, answer, code)
	}
}

func TestThreeAnswers(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	g := h.gate(t, signedBy(h.key))

	signed := h.Build("signed", "v1", "signed")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	expect(t, decide(t, g, signed.Name), gate.Allow, policy.Verified)

	unsigned := h.Build("unsigned", "v1", "unsigned")
	expect(t, decide(t, g, unsigned.Name), gate.Deny, policy.Unsigned)

	foreign := h.Build("foreign", "v1", "foreign")
	must(0, h.SignBundle(foreign, byKey(h.stranger), nil))(t)
	expect(t, decide(t, g, foreign.Name), gate.Deny, policy.Code(verify.WrongKey))

	expect(t, decide(t, g, h.Registry.Host()+"/signed:v2"), gate.Error, policy.ImageNotFound)

	down := h.Build("down", "v1", "down")
	must(0, h.SignBundle(down, byKey(h.key), nil))(t)
	h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.RetryAfter(503, "600")})
	expect(t, decide(t, g, down.Name), gate.Error, policy.Unavailable)
	h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Status(403)})
	expect(t, decide(t, g, down.Name), gate.Error, policy.AccessRefused)
	h.Registry.SetFaults()
	expect(t, decide(t, g, down.Name), gate.Allow, policy.Verified) // the error was not cached
}

func TestFailureSettings(t *testing.T) {
	h := newEnv(t, registrytest.Options{Faults: []registrytest.Fault{{Kind: registrytest.Referrers, Do: registrytest.RetryAfter(503, "600")}}})
	image := h.Build("app", "v1", "app")
	unsignedRule := signedBy(h.key)
	for _, c := range []struct {
		reason   string
		failOpen bool
		action   policy.Action
		healthy  bool
		want     gate.Result
	}{
		{"unavailable, fail closed", false, policy.Enforce, false, gate.Error},
		{"unavailable, fail open", true, policy.Enforce, false, gate.Allow},
		{"unavailable, audit", false, policy.Audit, false, gate.Allow},
		{"unsigned is certain, fail open or not", true, policy.Enforce, true, gate.Deny},
		{"unsigned, audit", false, policy.Audit, true, gate.Allow},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if c.healthy {
				h.Registry.SetFaults()
			}
			r := unsignedRule
			r.check.Action = c.action
			g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: c.failOpen}, Rules: []policy.Rule{r}})
			outcome := decide(t, g, image.Name)
			if outcome.Result != c.want {
				t.Fatalf("%s, want %s: %+v", outcome.Result, c.want, outcome.Verdicts)
			}
			if c.want == gate.Allow && len(outcome.Verdicts[0].Warnings) == 0 {
				t.Fatal("allowed without a warning")
			}
		})
	}
}

// TestFailOpenIsNotForced: failurePolicy Ignore admits an unresponsive registry, and no condition
// that the pod's author or a user with push access can cause.
func TestFailOpenIsNotForced(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	missing := strings.Replace(app.Name, ":v1", ":later", 1)
	gone := strings.Replace(app.Name, ":v1", "@"+image.DigestOf([]byte("later")).String(), 1)
	for _, c := range []struct {
		reason, name string
		faults       []registrytest.Fault
		want         gate.Result
		code         policy.Code
	}{
		{"no response", app.Name, []registrytest.Fault{{Do: registrytest.RetryAfter(503, "600")}}, gate.Allow, policy.Unavailable},
		{"the tag is pushed later", missing, nil, gate.Error, policy.ImageNotFound},
		{"the digest is pushed later", gone, nil, gate.Error, policy.ImageNotFound},
		{"the digest is there", app.ByDigest(), nil, gate.Deny, policy.Unsigned},
		{"an unspecified address, which is this machine", "0.0.0.0:" + h.Registry.Port() + "/app:v1", nil, gate.Error, policy.AccessRefused},
		{"a metadata service", "169.254.169.254/app:v1", nil, gate.Error, policy.AccessRefused},
		{"a link-local address", "[fe80::1]/app:v1", nil, gate.Error, policy.AccessRefused},
		{"a redirect to a metadata service", app.Name, []registrytest.Fault{{Do: registrytest.RedirectTo("http://169.254.169.254/x")}}, gate.Error, policy.AccessRefused},
		{"a token service at a link-local address", app.Name, []registrytest.Fault{{
			Do: registrytest.Status(401, "WWW-Authenticate", `Bearer realm="http://169.254.1.1/token",service="x"`),
		}}, gate.Error, policy.AccessRefused},
		{"the pull secret is made right later", app.Name, []registrytest.Fault{{Do: registrytest.Status(403)}}, gate.Error, policy.AccessRefused},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h.Registry.SetFaults(c.faults...)
			g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{signedBy(h.key)}})
			outcome := decide(t, g, c.name)
			reasons := append(slices.Clone(outcome.Verdicts[0].Reasons), outcome.Verdicts[0].Warnings...)
			if outcome.Result != c.want || !slices.ContainsFunc(reasons, func(r policy.Reason) bool { return r.Code == c.code }) {
				t.Errorf("%s, want %s by %s: %+v", outcome.Result, c.want, c.code, reasons)
			}
		})
	}
	h.Registry.SetFaults()
	silent := &image.Error{Kind: image.Unavailable, Op: "read", On: "ConfigMap keys"}
	byHost := &image.Error{Kind: image.Unavailable, Op: "read", On: "0.0.0.0/app", Err: &image.HostError{Err: errors.New("unspecified")}}
	for _, c := range []struct {
		reason string
		err    error
		want   gate.Result
	}{
		{"the API server does not answer a look-up", silent, gate.Allow},
		{"the object names an image at an address that is never connected to", byHost, gate.Error},
		{"the object lacks a label that the rule reads", errors.New("no label team"), gate.Error},
	} {
		g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{silentRule{c.err}}})
		if outcome := decide(t, g, app.Name); outcome.Result != c.want {
			t.Errorf("%s: %s, want %s", c.reason, outcome.Result, c.want)
		}
	}
}

// TestCrowdedOut: an object's author cannot name so many other images that an image times out and
// is admitted by failurePolicy Ignore.
func TestCrowdedOut(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	names := []string{h.Build("app", "v1", "unsigned").Name}
	for i := range 8 {
		names = append(names, h.Build("slow", strconv.Itoa(i), "slow").Name)
	}
	open := &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{signedBy(h.key)}}
	h.Registry.SetFaults(registrytest.Fault{Repository: "slow", Do: registrytest.Hang()})
	g := h.gateWith(t, open, gate.WithConcurrency(1), gate.WithTimeout(2*time.Second))
	if outcome := g.Decide(t.Context(), pod(t, names...)); outcome.Result == gate.Allow {
		t.Errorf("an unsigned image is admitted beside slow ones: %+v", outcome.Verdicts[0])
	}
}

// silentRule is a rule that cannot be evaluated.
type silentRule struct{ err error }

func (silentRule) Name() string                                  { return "silentRule" }
func (silentRule) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (u silentRule) Plan(context.Context, *policy.Subject, []policy.Image) (policy.RulePlan, error) {
	return policy.RulePlan{}, u.err
}

func TestAnAttestationIsNoSignature(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "app")
	must(0, h.AttestBundle(image, byKey(h.key), provenance, map[string]any{}))(t)
	outcome := decide(t, h.gate(t, signedBy(h.key)), image.Name)
	expect(t, outcome, gate.Deny, policy.Unsigned)
	if found := outcome.Verdicts[0].Reasons[0].Found; !strings.Contains(found, provenance) {
		t.Errorf("the denial has found %q, and the attestation was of type %s", found, provenance)
	}
	must(0, h.SignBundle(image, byKey(h.key), nil))(t)
	expect(t, decide(t, h.gate(t, signedBy(h.key)), image.Name), gate.Allow, policy.Verified)
}

func attestedBy(signer *verifytest.Signer, predicateType string) rule {
	return rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{{
		Path: "attestations[0]", PredicateType: predicateType,
		Signers: []policy.Requirement{{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: keyAuthority(signer)}}}},
	}}}}}
}

func TestAttestations(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	g := h.gate(t, attestedBy(h.key, provenance))

	good := h.Build("good", "v1", "good")
	must(0, h.AttestBundle(good, byKey(h.key), provenance, map[string]any{"buildType": "x"}))(t)
	expect(t, decide(t, g, good.Name), gate.Allow, policy.Verified)

	other := h.Build("other", "v1", "other")
	must(0, h.AttestBundle(other, byKey(h.key), "https://spdx.dev/Document", map[string]any{}))(t)
	expect(t, decide(t, g, other.Name), gate.Deny, policy.NoAttestation)

	signedOnly := h.Build("signed", "v1", "signed")
	must(0, h.SignBundle(signedOnly, byKey(h.key), nil))(t)
	expect(t, decide(t, g, signedOnly.Name), gate.Deny, policy.NoAttestation)

	foreign := h.Build("foreign", "v1", "foreign")
	must(0, h.AttestBundle(foreign, byKey(h.stranger), provenance, map[string]any{}))(t)
	expect(t, decide(t, g, foreign.Name), gate.Deny, policy.Code(verify.WrongKey))

	mixed := h.Build("mixed", "v1", "mixed")
	must(0, h.AttestBundle(mixed, byKey(h.stranger), provenance, map[string]any{}))(t)
	must(0, h.AttestBundle(mixed, byKey(h.key), provenance, map[string]any{}))(t)
	expect(t, decide(t, g, mixed.Name), gate.Allow, policy.Verified) // a foreign statement does not block
}

func TestASignatureOfAnotherImageIsNone(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed := h.Build("app", "v1", "signed")
	other := h.Build("app", "v2", "other")
	content := must(h.Sigstore.Bundle(verifytest.Claim{
		Signer: h.key, NoLog: true, Statement: verifytest.CosignSignature(signed.Manifest.Digest, nil),
	}))(t)
	must(0, h.PutBundle(signed, content, verifytest.CosignSignPredicateType))(t)
	must(0, h.PutBundle(other, content, verifytest.CosignSignPredicateType))(t)
	g := h.gate(t, signedBy(h.key))
	expect(t, decide(t, g, signed.Name), gate.Allow, policy.Verified)
	expect(t, decide(t, g, other.Name), gate.Deny, policy.Code(verify.WrongDigest))
}

func TestThePinnedDigestIsTheProvedDigest(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed := h.Build("app", "v1", "signed")
	evil := h.Build("app", "evil", "unsigned")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	h.Registry.SetFaults(registrytest.Fault{
		Kind: registrytest.Manifest, Repository: "app", Reference: "v1",
		Do: registrytest.Flip(signed.Manifest.Digest, evil.Manifest.Digest),
	})
	outcome := decide(t, h.gate(t, signedBy(h.key)), signed.Name)
	expect(t, outcome, gate.Allow, policy.Verified)
	v := outcome.Verdicts[0]
	if got := v.Pinned.Digest().String(); got != signed.Manifest.Digest || v.Decisions[0].Facts[0].Subject.String() != got {
		t.Fatalf("pinned %s, proved %s", got, v.Decisions[0].Facts[0].Subject)
	}
	if !v.Pin {
		t.Error("the policy pins, the verdict does not")
	}
}

func TestMemory(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	clock := &clock{}
	g := h.gate(t, signedBy(h.key), gate.WithClock(clock.now))
	image := h.Build("app", "v1", "first")

	expect(t, decide(t, g, image.Name), gate.Deny, policy.Unsigned)
	must(0, h.SignBundle(image, byKey(h.key), nil))(t)
	expect(t, decide(t, g, image.Name), gate.Deny, policy.Unsigned) // "none found" is kept for seconds
	clock.advance(11 * time.Second)
	expect(t, decide(t, g, image.Name), gate.Allow, policy.Verified)

	h.Build("app", "v1", "second, unsigned") // the tag moves
	clock.advance(11 * time.Second)
	expect(t, decide(t, g, image.Name), gate.Deny, policy.Unsigned)

	h.Registry.Reset()
	expect(t, decide(t, g, image.ByDigest()), gate.Allow, policy.Verified)
	if n := len(h.Registry.Requests()); n != 0 {
		t.Errorf("%d requests for a fact that is remembered", n)
	}
	clock.advance(2 * time.Hour)
	expect(t, decide(t, g, image.ByDigest()), gate.Allow, policy.Verified)
	if n := len(h.Registry.Requests()); n == 0 {
		t.Error("a fact is believed beyond its greatest age")
	}
}

func TestAnotherKeyIsNotAnsweredFromMemory(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "app")
	must(0, h.SignBundle(image, byKey(h.key), nil))(t)
	both := rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Requirements: []policy.Requirement{
		{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: keyAuthority(h.key)}}},
		{Name: "attestors[1]", Threshold: 1, Members: []policy.Member{{Authority: keyAuthority(h.stranger)}}},
	}}}}
	g := h.gate(t, both)
	for range 2 {
		expect(t, decide(t, g, image.Name), gate.Deny, policy.Code(verify.WrongKey))
	}
}

func TestPlatforms(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	amd := h.Build("app", "amd64", "amd64")
	arm := h.Build("app", "arm64", "arm64")
	index := h.BuildIndex("app", "v1", amd, arm)
	child := h.Registry.Host() + "/app:v1@" + amd.Manifest.Digest

	each, either, onlyIndex := signedBy(h.key), signedBy(h.key), signedBy(h.key)
	each.check.Platforms, either.check.Platforms = policy.PlatformEach, policy.PlatformAny
	fresh := func(r rule) *gate.Gate { return h.gate(t, r) }

	expect(t, decide(t, fresh(either), index.Name), gate.Deny, policy.Unsigned)
	must(0, h.SignBundle(amd, byKey(h.key), nil))(t)
	expect(t, decide(t, fresh(either), index.Name), gate.Allow, policy.Verified)
	expect(t, decide(t, fresh(each), index.Name), gate.Deny, policy.Unsigned)
	expect(t, decide(t, fresh(onlyIndex), index.Name), gate.Deny, policy.Unsigned)
	must(0, h.SignBundle(arm, byKey(h.key), nil))(t)
	expect(t, decide(t, fresh(each), index.Name), gate.Allow, policy.Verified)

	other := h.Build("app", "other", "a child of no index")
	orphan := h.Registry.Host() + "/app:v2@" + other.Manifest.Digest
	plain := h.Build("app", "plain-amd64", "plain")
	second := h.BuildIndex("app", "v2", plain)
	must(0, h.SignBundle(second, byKey(h.key), nil))(t)
	listed := h.Registry.Host() + "/app:v2@" + plain.Manifest.Digest
	expect(t, decide(t, fresh(onlyIndex), listed), gate.Allow, policy.Verified)
	expect(t, decide(t, fresh(onlyIndex), orphan), gate.Deny, policy.Unsigned)
	expect(t, decide(t, fresh(onlyIndex), child), gate.Allow, policy.Verified)
}

// TestAnyPlatformThatCouldNotBeVerified: the reasons of a platform that could not be verified decide
// whether the failure setting admits the image. A user with push access can reach a bound.
func TestAnyPlatformThatCouldNotBeVerified(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	child := h.Build("app", "amd64", "amd64")
	index := h.BuildIndex("app", "v1", child, h.Build("app", "arm64", "arm64"))
	anyOf := signedBy(h.key)
	anyOf.check.Platforms = policy.PlatformAny
	decided := func() gate.Outcome {
		open := &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{anyOf}}
		return decide(t, h.gateWith(t, open), index.Name)
	}
	expect(t, decided(), gate.Deny, policy.Unsigned)
	h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Reference: child.Manifest.Digest, Do: registrytest.RetryAfter(503, "600")})
	if outcome := decided(); outcome.Result != gate.Allow {
		t.Errorf("the registry does not respond, and the policy fails open: %s %+v", outcome.Result, outcome.Verdicts)
	}
	expect(t, decide(t, h.gate(t, anyOf), index.Name), gate.Error, policy.Unavailable)
	h.Registry.SetFaults()
	for i := range 1000 {
		must(0, h.PutBundle(child, fmt.Appendf(nil, `{"junk":%d}`, i), verifytest.CosignSignPredicateType))(t)
	}
	expect(t, decided(), gate.Error, policy.TooMuch)
}

// means is a condition that a predicate contains a word.
type means string

func (m means) Holds(data any) (bool, string, error) {
	return strings.Contains(fmt.Sprint(data), string(m)), "want " + string(m), nil
}

// TestStatementsOfAPlatform: the index behind the tag proves a platform about which nothing is
// attested, and not one with a verified statement that does not meet the policy.
func TestStatementsOfAPlatform(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	const scan = "https://example.com/scan/v1"
	quiet, clean, dirty, foreign := h.Build("app", "q", "q"), h.Build("app", "c", "c"), h.Build("app", "d", "d"), h.Build("app", "f", "f")
	index := h.BuildIndex("app", "v1", quiet, clean, dirty, foreign)
	for _, said := range []struct {
		image  gatetest.Image
		signer *verifytest.Signer
		word   string
	}{{index, h.key, "clean"}, {clean, h.key, "clean"}, {dirty, h.key, "dirty"}, {foreign, h.stranger, "dirty"}} {
		if err := h.AttestBundle(said.image, byKey(said.signer), scan, map[string]string{"verdict": said.word}); err != nil {
			t.Fatal(err)
		}
	}
	asking := func(condition, deny policy.Condition) *gate.Gate {
		r := rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Deny: deny, Attestations: []policy.Attestation{{
			Name: "scan", Path: "attestations[0]", PredicateType: scan, Condition: condition,
			Signers: []policy.Requirement{{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: keyAuthority(h.key)}}}},
		}}}}}
		return h.gate(t, r)
	}
	for _, c := range []struct {
		reason string
		image  gatetest.Image
		want   gate.Result
		code   policy.Code // of the condition
		denied policy.Code // of the deny condition
	}{
		{"nothing is attested", quiet, gate.Allow, policy.Verified, policy.Verified},
		{"it is clean", clean, gate.Allow, policy.Verified, policy.Verified},
		{"it is dirty", dirty, gate.Deny, policy.ConditionFailed, policy.Denied},
		{"another key attests that it is dirty", foreign, gate.Allow, policy.Verified, policy.Verified},
	} {
		name := index.Name + "@" + c.image.Manifest.Digest
		expect(t, decide(t, asking(means("clean"), nil), name), c.want, c.code)
		expect(t, decide(t, asking(nil, means("dirty")), name), c.want, c.denied)
		if t.Failed() {
			t.Fatal(c.reason)
		}
	}
}

// TestTooManyImages: more images than are evaluated exceed a bound, and no failure setting admits them; none of the
// references is malformed.
func TestTooManyImages(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed := h.Build("app", "v1", "signed")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{signedBy(h.key)}})
	expect(t, g.Decide(t.Context(), pod(t, slices.Repeat([]string{signed.Name}, 500)...)), gate.Allow, policy.Verified)
	outcome := g.Decide(t.Context(), pod(t, slices.Repeat([]string{signed.Name}, 501)...))
	expect(t, outcome, gate.Error, policy.TooMuch)
	if len(outcome.Reasons) == 0 || outcome.Reasons[0].Hint != hint.SmallerObject {
		t.Errorf("the next step: %+v", outcome.Reasons)
	}
}

func TestMalformedReference(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	g := h.gate(t, signedBy(h.key))
	for _, written := range []string{"UPPER/case", "app@sha256:../../x", "app:", strings.Repeat("a", 5000)} {
		expect(t, g.Decide(t.Context(), pod(t, written)), gate.Deny, policy.Malformed)
	}
	if reason := g.Decide(t.Context(), pod(t, "docker://nginx")).Reasons[0]; reason.Hint != "write the reference without docker://, as nginx" {
		t.Errorf("the next step does not follow from the text: %+v", reason)
	}
	signed := h.Build("app", "v1", "signed")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	outcome := g.Decide(t.Context(), pod(t, "UPPER/case", signed.Name, "app:"))
	expect(t, outcome, gate.Deny, policy.Malformed)
	if len(outcome.Reasons) != 2 || len(outcome.Verdicts) != 1 || outcome.Verdicts[0].Result != gate.Allow {
		t.Errorf("all images at once: %+v, %+v", outcome.Reasons, outcome.Verdicts)
	}
}

func TestNoPolicyMatches(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	set := must(set.New())(t)
	g := must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: prover{Snapshot: h.snapshot}}}))(t)
	outcome := decide(t, g, h.Registry.Host()+"/app:v1")
	expect(t, outcome, gate.Unchecked, policy.NotConcerned)
	if n := len(h.Registry.Requests()); n != 0 || outcome.Verdicts[0].Matched() {
		t.Errorf("%d requests, matched %t", n, outcome.Verdicts[0].Matched())
	}
}

func TestAnAnnotationHidesNoPlatform(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	good, evil := h.Build("app", "s390x", "good"), h.Build("app", "amd64", "evil")
	must(0, h.SignBundle(good, byKey(h.key), nil))(t)
	each := signedBy(h.key)
	each.check.Platforms = policy.PlatformEach
	index := func(tag, os string) string {
		body := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[
			{"mediaType":%q,"digest":%q,"size":%d,"platform":{"os":"linux","architecture":"s390x"}},
			{"mediaType":%q,"digest":%q,"size":%d,"platform":{"os":%q,"architecture":%q},"annotations":{"vnd.docker.reference.type":"attestation-manifest"}}]}`,
			image.MediaTypeIndex, good.Manifest.MediaType, good.Manifest.Digest, good.Manifest.Size,
			evil.Manifest.MediaType, evil.Manifest.Digest, evil.Manifest.Size, os, map[string]string{"unknown": "unknown"}[os]+map[string]string{"linux": "amd64"}[os])
		h.Registry.PutManifest("app", tag, image.MediaTypeIndex, []byte(body))
		return h.Registry.Host() + "/app:" + tag
	}
	expect(t, decide(t, h.gate(t, each), index("buildkit", "unknown")), gate.Allow, policy.Verified)
	expect(t, decide(t, h.gate(t, each), index("forged", "linux")), gate.Deny, policy.Unsigned)
}

func TestABoundIsNeverAdmittedByTheFailureSetting(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "unsigned")
	open := func() *gate.Gate {
		return h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{signedBy(h.key)}})
	}
	expect(t, decide(t, open(), image.Name), gate.Deny, policy.Unsigned)
	for i := range 1000 {
		must(0, h.PutBundle(image, fmt.Appendf(nil, `{"junk":%d}`, i), verifytest.CosignSignPredicateType))(t)
	}
	if outcome := decide(t, open(), image.Name); outcome.Result == gate.Allow {
		t.Fatalf("pushed referrers caused the image to be admitted: %+v", outcome.Verdicts)
	}
	h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.RetryAfter(503, "600")})
	if outcome := decide(t, open(), image.Name); outcome.Result != gate.Allow {
		t.Fatalf("the registry is down and the policy fails open: %+v", outcome.Verdicts)
	}
}

// saysClean is a condition that holds for predicates with clean: true.
type saysClean struct{}

func (saysClean) Holds(data any) (bool, string, error) {
	predicate, _ := data.(map[string]any)
	return predicate["clean"] == true, "expected clean", nil
}

func TestABetterStatementIsFoundSoon(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	clock := &clock{}
	asks := attestedBy(h.key, provenance)
	asks.check.Attestations[0].Condition = saysClean{}
	g := h.gate(t, asks, gate.WithClock(clock.now))
	image := h.Build("app", "v1", "app")
	must(0, h.AttestBundle(image, byKey(h.key), provenance, map[string]any{"clean": false}))(t)
	expect(t, decide(t, g, image.Name), gate.Deny, policy.ConditionFailed)
	must(0, h.AttestBundle(image, byKey(h.key), provenance, map[string]any{"clean": true}))(t)
	clock.advance(11 * time.Second)
	expect(t, decide(t, g, image.Name), gate.Allow, policy.Verified)
}

// extracting is a rule with images in another field, for one namespace.
type extracting struct {
	rule
	namespace string
}

func (extracting) Extractors(*policy.Subject) []policy.Extractor {
	return []policy.Extractor{{Name: "param", Path: "/metadata/annotations/image"}}
}

func (e extracting) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	if s.Namespace != e.namespace {
		return policy.RulePlan{Skip: "another namespace"}, nil
	}
	return e.rule.Plan(ctx, s, images)
}

func TestAnExtractorMattersOnlyWhereItsRuleApplies(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	for _, c := range []struct {
		reason, namespace string
		audit             bool
		want              gate.Result
	}{
		{"the rule is for another namespace", "elsewhere", false, gate.Unchecked},
		{"the rule applies and cannot read the image", "default", false, gate.Error},
		{"the rule applies and only audits", "default", true, gate.Allow},
	} {
		p := &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{AuditOnly: c.audit}, Rules: []policy.Rule{extracting{signedBy(h.key), c.namespace}}}
		object := must(workload.Parse([]byte(`{"apiVersion":"example.test/v1","kind":"Task","metadata":{"name":"x","namespace":"default","annotations":{"image":"$(params.image)"}}}`)))(t)
		if outcome := h.gateWith(t, p).Decide(t.Context(), gate.Request{Object: object}); outcome.Result != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.reason, outcome.Result, c.want, outcome)
		}
	}
}

func TestLegacyAttestations(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	good, foreign := h.Build("good", "v1", "1"), h.Build("foreign", "v1", "2")
	must(0, h.AttestLegacy(good, byKey(h.key), provenance, map[string]any{}))(t)
	must(0, h.AttestLegacy(foreign, byKey(h.stranger), provenance, map[string]any{}))(t)
	g := h.gate(t, attestedBy(h.key, provenance))
	expect(t, decide(t, g, good.Name), gate.Allow, policy.Verified)
	expect(t, decide(t, g, foreign.Name), gate.Deny, policy.Code(verify.WrongKey))
}

func TestNotationMetadata(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	tagged, plain := h.Build("tagged", "v1", "1"), h.Build("plain", "v1", "2")
	must(0, h.SignNotation(tagged, h.notary, verifytest.Notation{Metadata: map[string]string{"team": "web"}}))(t)
	must(0, h.SignNotation(plain, h.notary, verifytest.Notation{}))(t)
	asks := notarized(h.notary)
	asks.check.Requirements[0].Members[0].Authority.Annotations = map[string]string{"team": "web"}
	g := h.gate(t, asks)
	expect(t, decide(t, g, tagged.Name), gate.Allow, policy.Verified)
	expect(t, decide(t, g, plain.Name), gate.Deny, policy.Code(verify.WrongAnnotation))
}

func TestProgressPerReference(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	one, two := h.Build("one", "v1", "1"), h.Build("two", "v1", "2")
	var told []string
	h.gate(t, signedBy(h.key)).DecideAll(t.Context(), []gate.Request{pod(t, one.Name, one.Name), pod(t, two.Name)}, func(done, total int) {
		told = append(told, fmt.Sprintf("%d/%d", done, total))
	})
	if want := []string{"1/2", "2/2"}; !slices.Equal(told, want) {
		t.Errorf("got %v, want %v", told, want)
	}
}
