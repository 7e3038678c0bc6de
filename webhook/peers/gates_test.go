package peers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/webhook/peers"
	"github.com/quaymaster/quaymaster/workload"
)

// prover is trust, with another generation where it is set.
type prover struct {
	*trust.Snapshot
	verify.ByFormat
	generation string
}

func (p prover) Generation() string {
	if p.generation != "" {
		return p.generation
	}
	return p.Snapshot.Generation()
}

type session struct {
	*registry.Client
	meter *registry.Meter
}

func (session) Scope() string { return "" }
func (s session) Cost() gate.Cost {
	return gate.Cost{Requests: s.meter.Requests(), RateLimitRemaining: -1}
}

type registries struct{ client *registry.Client }

func (r registries) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	meter := &registry.Meter{}
	return session{Client: r.client.With(meter), meter: meter}, nil
}

// rule asks every image for a signature and an attestation by the key.
type rule struct{ authority *verify.Authority }

func (rule) Name() string                                  { return "rule" }
func (rule) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (r rule) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	for _, found := range images {
		by := []policy.Requirement{{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: r.authority}}}}
		plan.Checks = append(plan.Checks, policy.Check{
			Entry: "verifyImages[0]", Image: found, Pinning: policy.Pinning{MutateDigest: true, VerifyDigest: true}, Claims: policy.Claims{Requirements: by, Attestations: []policy.Attestation{{
				Path: "attestations[0]", PredicateType: attest.PredicateSLSAv1, Signers: by, Condition: builtBy{"trusted"},
			}}},
		})
	}
	return plan, nil
}

type builtBy struct{ builder string }

func (b builtBy) Holds(data any) (bool, string, error) {
	predicate, _ := data.(map[string]any)
	return predicate["builder"] == b.builder, fmt.Sprintf("expected builder %s, found %v", b.builder, predicate["builder"]), nil
}

// TestColdPodCostsOneReplica has replica A verify and pin a pod, and
// replica B validate it, which never saw the image.
func TestColdPodCostsOneReplica(t *testing.T) {
	for _, c := range []struct {
		reason     string
		generation string // of B's trust
		key        []byte // of B
		more       bool
	}{
		{"the replicas are equal", "", ourKey, false},
		{"B trusts other roots and asks the registry itself", "another", ourKey, true},
		{"B has another key and asks the registry itself", "", otherKey, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			server := registrytest.Start(registrytest.Options{})
			t.Cleanup(server.Close)
			sigstore := testkit.Must(verifytest.New(verifytest.Options{}))(t)
			store := testkit.Must(trust.New(trust.Options{TrustedRoot: sigstore.TrustedRoot()}))(t)
			yard := gatetest.New(server, sigstore)
			signer := testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t)
			app := yard.Build("app", "v1", "app")
			testkit.Must(0, yard.SignBundle(app, verifytest.Claim{Signer: signer, NoLog: true}, nil))(t)
			testkit.Must(0, yard.AttestBundle(app, verifytest.Claim{Signer: signer, NoLog: true}, attest.PredicateSLSAv1, map[string]any{"builder": "trusted"}))(t)

			authority := &verify.Authority{Name: "key", Key: &verify.Key{Ref: string(signer.PublicPEM())}, Log: verify.Log{Ignore: true}}
			open := func(generation string, with ...gate.Option) *gate.Gate {
				client := testkit.Must(registry.New(registry.Config{}))(t)
				t.Cleanup(client.Close)
				snapshot := store.Snapshot()
				set := testkit.Must(set.New(&policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{rule{authority}}}))(t)
				state := gate.Fixed{Policies: set, Prover: prover{snapshot, verify.ByFormat{
					attest.Cosign: cosign.New(snapshot), attest.Bundle: bundle.New(snapshot),
				}, generation}}
				return testkit.Must(gate.New(gate.Config{Registries: registries{client}, State: state}, with...))(t)
			}
			one := open("")
			asked := client(t, c.key, []peers.Option{peers.WithTimeout(5 * time.Second)}, serve(t, path(t, ourKey, one)))
			two := open(c.generation, gate.WithPeers(asked))

			request := testkit.Must(gate.ForImage(app.Name, "default"))(t)
			outcome := one.Decide(t.Context(), request)
			if outcome.Result != gate.Allow || len(outcome.Patch) != 2 {
				t.Fatalf("A: %s %+v", outcome.Result, outcome.Verdicts)
			}
			alone := len(server.Requests())

			pinned := testkit.Must(workload.Apply(request.Object, outcome.Patch))(t)
			outcome = two.Decide(t.Context(), gate.Request{Object: pinned, Pinning: gate.PinDone})
			if outcome.Result != gate.Allow {
				t.Fatalf("B: %s %+v", outcome.Result, outcome.Verdicts)
			}
			if both := len(server.Requests()); (both > alone) != c.more {
				t.Errorf("two replicas cost %d requests, one costs %d", both, alone)
			}
		})
	}
}
