package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

// counting counts proofs that are tried: pieces of evidence for authorities.
type counting struct {
	gate.Prover
	tried atomic.Int64
}

// Verify implements verify.Verifier.
func (c *counting) Verify(ctx context.Context, subject image.Pinned, evidence attest.Evidence, authority verify.Authority) (verify.Fact, error) {
	c.tried.Add(1)
	return c.Prover.Verify(ctx, subject, evidence, authority)
}

// eightImages are images that every statement of Sigstore holds for.
func eightImages(t testing.TB, v *gatetest.Variants) []gatetest.Image {
	t.Helper()
	var images []gatetest.Image
	for i := range 8 {
		built := v.Build(fmt.Sprintf("shop/many%d", i), "1", fmt.Sprintf("image %d of many", i))
		for _, err := range []error{
			v.SignLegacy(built, verifytest.Claim{Signer: v.Signer}, map[string]any{"env": "prod", "team": "a"}),
			v.SignLegacy(built, verifytest.Claim{Signer: v.Second}, nil),
			v.AttestLegacy(built, verifytest.Claim{Signer: v.Signer}, gatetest.ScanType, map[string]any{"verdict": "clean"}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		images = append(images, built)
	}
	return images
}

func namesOf(images []gatetest.Image) (names, digests []string) {
	for _, image := range images {
		names, digests = append(names, image.Name), append(digests, image.ByDigest())
	}
	return names, digests
}

func podOfMany(t testing.TB, images ...string) gate.Request {
	t.Helper()
	var containers []any
	for i, image := range images {
		containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i), "image": image})
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": map[string]any{"containers": containers},
	})
	if err != nil {
		t.Fatal(err)
	}
	object, err := workload.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return gate.Request{Object: object}
}

// counted is a gate with a count of verifications.
func counted(t testing.TB, v *gatetest.Variants, policies []*policy.Policy) (*gate.Gate, *counting) {
	t.Helper()
	set, err := set.New(policies...)
	if err != nil {
		t.Fatal(err)
	}
	prover := &counting{Prover: v.Prover}
	g, err := gate.New(gate.Config{Registries: v, State: gate.Fixed{Policies: set, Prover: prover}})
	if err != nil {
		t.Fatal(err)
	}
	return g, prover
}

// cost is what a decision asks of the registry and of the verifiers.
type cost struct{ requests, proofs int }

func decide(t *testing.T, v *gatetest.Variants, g *gate.Gate, prover *counting, images []string) cost {
	t.Helper()
	v.Registry.Reset()
	before := prover.tried.Load()
	o := g.Decide(t.Context(), podOfMany(t, images...))
	if o.Result != gate.Allow || len(o.Verdicts) != len(images) {
		t.Fatalf("%s: %+v", o.Result, o)
	}
	return cost{requests: len(v.Registry.Requests()), proofs: int(prover.tried.Load() - before)}
}

// TestTenPoliciesCostNoMore holds that ten image policies of all dialects, asked about
// eight images, cost the registry exactly what one costs, and nothing once they are
// known.
func TestTenPoliciesCostNoMore(t *testing.T) {
	const count = 10
	v, with := newVariants(t), compilers(t)
	images := eightImages(t, v)
	names, digests := namesOf(images)
	by := map[string]statement{}
	for _, s := range statements() {
		by[s.column] = s
	}
	g, prover := counted(t, v, compile(t, with, v, one(by["key"])[0], enforce, ""))
	decide(t, v, g, prover, names) // it is known from here on that the host has the referrers API
	for _, c := range []struct {
		reason  string
		columns []string
	}{
		{"all say that the key signed", []string{"key"}},
		{"all say that the key attested a clean scan", []string{"scan"}},
		{"signed by one key, by the other, by both, for prod, and logged", []string{"key", "either", "both", "count", "prod", "logged"}},
	} {
		var many []*policy.Policy
		for n := 0; len(many) < count; n++ {
			spellings := one(by[c.columns[n%len(c.columns)]])
			many = append(many, compile(t, with, v, spellings[n%len(spellings)], enforce, fmt.Sprint(n, "-"))...)
		}
		g, prover := counted(t, v, compile(t, with, v, one(by[c.columns[0]])[0], enforce, ""))
		alone := decide(t, v, g, prover, names)
		g, prover = counted(t, v, many)
		together := decide(t, v, g, prover, names)
		if together.requests != alone.requests || alone.requests == 0 {
			t.Errorf("%s: %d policies cost %d requests, one costs %d", c.reason, len(many), together.requests, alone.requests)
		}
		if len(c.columns) == 1 && together.proofs != alone.proofs {
			t.Errorf("%s: %d policies try %d proofs, one tries %d", c.reason, len(many), together.proofs, alone.proofs)
		}
		if warm := decide(t, v, g, prover, digests); warm != (cost{}) {
			t.Errorf("%s: known, they cost %+v", c.reason, warm)
		}
	}
}

// declared checks each image like a policy without a language: the floor above which a dialect's
// cost is measured.
type declared struct{ check policy.Check }

func (declared) Name() string                                  { return "declared" }
func (declared) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (d declared) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	plan := policy.RulePlan{Checks: make([]policy.Check, len(images))}
	for i, image := range images {
		plan.Checks[i] = d.check
		plan.Checks[i].Image = image
	}
	return plan, nil
}

// BenchmarkDialectWarm measures a pod of three containers with cached images, by digest, by a
// policy of each dialect, and first by the same check without one.
func BenchmarkDialectWarm(b *testing.B) {
	v, with := newVariants(b), compilers(b)
	_, digests := namesOf(eightImages(b, v)[:3])
	request := podOfMany(b, digests...)
	second := *v.Authority
	second.Key = &verify.Key{Ref: string(v.Second.PublicPEM())}
	by := func(threshold int, authorities ...*verify.Authority) []policy.Requirement {
		r := policy.Requirement{Name: "attestors[0]", Threshold: threshold}
		for _, authority := range authorities {
			r.Members = append(r.Members, policy.Member{Authority: authority})
		}
		return []policy.Requirement{r}
	}
	floors := map[string]policy.Check{
		"key":   {Claims: policy.Claims{Requirements: by(1, v.Authority)}},
		"count": {Claims: policy.Claims{Requirements: by(2, v.Authority, &second)}},
		"scan":  {Claims: policy.Claims{Attestations: []policy.Attestation{{Path: "attestations[0]", PredicateType: gatetest.ScanType, Signers: by(1, v.Authority)}}}},
	}
	for _, statement := range statements() {
		check, ok := floors[statement.column]
		if !ok {
			continue
		}
		check.Entry, check.Action, check.MutateDigest, check.Required = "floor", policy.Enforce, true, true
		measure(b, v, statement.column+"/floor", request, []*policy.Policy{{Kind: "Test", Name: "floor", Rules: []policy.Rule{declared{check}}}})
		for _, s := range one(statement) {
			kind, _, _ := strings.Cut(s.name, " ")
			measure(b, v, statement.column+"/"+kind, request, compile(b, with, v, s, enforce, ""))
		}
	}
}

func measure(b *testing.B, v *gatetest.Variants, name string, request gate.Request, policies []*policy.Policy) {
	b.Run(name, func(b *testing.B) {
		g, err := v.Gate(policies...)
		if err != nil {
			b.Fatal(err)
		}
		if o := g.Decide(b.Context(), request); o.Result != gate.Allow {
			b.Fatalf("%s: %+v", o.Result, o)
		}
		b.ReportAllocs()
		for b.Loop() {
			if g.Decide(b.Context(), request).Result != gate.Allow {
				b.Fatal("not allowed")
			}
		}
	})
}
