package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

// env is a gate with real parts: a registry on loopback, real signers, the
// product's client and verifiers.
type env struct {
	*gatetest.Yard
	key, stranger *verifytest.Signer
	notary        *verifytest.Notary
	client        *registry.Client
	snapshot      *trust.Snapshot
}

func newEnv(t testing.TB, options registrytest.Options) *env {
	t.Helper()
	server := registrytest.Start(options)
	t.Cleanup(server.Close)
	sigstore := must(verifytest.New(verifytest.Options{}))(t)
	store := must(trust.New(trust.Options{TrustedRoot: sigstore.TrustedRoot()}))(t)
	h := &env{
		Yard:     gatetest.New(server, sigstore),
		key:      must(verifytest.KeySigner(verifytest.KeyOptions{}))(t),
		stranger: must(verifytest.KeySigner(verifytest.KeyOptions{}))(t),
		notary:   must(verifytest.NewNotary(verifytest.NotaryOptions{}))(t),
		client:   must(registry.New(registry.Config{}))(t),
		snapshot: store.Snapshot(),
	}
	t.Cleanup(h.client.Close)
	return h
}

// must fails the test on an error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

type prover struct {
	*trust.Snapshot
	verify.ByFormat
}

type session struct {
	*registry.Client
	meter *registry.Meter
}

func (session) Scope() string { return "" }

func (s session) Cost() gate.Cost {
	return gate.Cost{Requests: s.meter.Requests(), CountedPulls: s.meter.Pulls(), RateLimitRemaining: -1}
}

// Open implements gate.Registries.
func (h *env) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	meter := &registry.Meter{}
	return session{Client: h.client.With(meter), meter: meter}, nil
}

// gate makes a gate with one policy of one rule.
func (h *env) gate(t testing.TB, rule policy.Rule, options ...gate.Option) *gate.Gate {
	t.Helper()
	return h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{rule}}, options...)
}

func (h *env) gateWith(t testing.TB, p *policy.Policy, options ...gate.Option) *gate.Gate {
	t.Helper()
	return h.gateAt(t, h, p, options...)
}

// gateAt makes a gate that asks other registries than the env.
func (h *env) gateAt(t testing.TB, registries gate.Registries, p *policy.Policy, options ...gate.Option) *gate.Gate {
	t.Helper()
	return h.gateOf(t, registries, must(set.New(p))(t), options...)
}

// gateOf makes a gate of a set of policies.
func (h *env) gateOf(t testing.TB, registries gate.Registries, set *set.Set, options ...gate.Option) *gate.Gate {
	t.Helper()
	notary := must(notation.New(notation.Options{}))(t)
	state := gate.Fixed{Policies: set, Prover: prover{Snapshot: h.snapshot, ByFormat: verify.ByFormat{
		attest.Cosign: cosign.New(h.snapshot), attest.Bundle: bundle.New(h.snapshot), attest.Notation: notary,
	}}}
	return must(gate.New(gate.Config{Registries: registries, State: state}, options...))(t)
}

// decide judges one image.
func decide(t testing.TB, g *gate.Gate, image string) gate.Outcome {
	t.Helper()
	return g.Decide(t.Context(), must(gate.ForImage(image, "default"))(t))
}

// rule asks the same of every image.
type rule struct{ check policy.Check }

func (rule) Name() string                                  { return "rule" }
func (rule) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (r rule) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	for _, found := range images {
		check := r.check
		check.Image = found
		plan.Checks = append(plan.Checks, check)
	}
	return plan, nil
}

// signedBy asks for a signature by the key, without a log.
func signedBy(signers ...*verifytest.Signer) rule {
	r := policy.Requirement{Name: "attestors[0]", Threshold: 1}
	for _, signer := range signers {
		r.Members = append(r.Members, policy.Member{Authority: keyAuthority(signer)})
	}
	return rule{policy.Check{Entry: "verifyImages[0]", Pinning: policy.Pinning{MutateDigest: true}, Claims: policy.Claims{Requirements: []policy.Requirement{r}}}}
}

func keyAuthority(signer *verifytest.Signer) *verify.Authority {
	return &verify.Authority{Name: "key", Key: &verify.Key{Ref: string(signer.PublicPEM())}, Log: verify.Log{Ignore: true}}
}

func notarized(notary *verifytest.Notary) rule {
	authority := &verify.Authority{Name: "notary", Notation: &verify.Notation{CA: notary.RootPEM()}}
	return rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Requirements: []policy.Requirement{{
		Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: authority}},
	}}}}}
}

func byKey(signer *verifytest.Signer) verifytest.Claim {
	return verifytest.Claim{Signer: signer, NoLog: true}
}

// pod is a Pod with a container for each image.
func pod(t testing.TB, images ...string) gate.Request {
	t.Helper()
	containers := make([]map[string]any, len(images))
	for i, image := range images {
		containers[i] = map[string]any{"name": fmt.Sprintf("c%d", i), "image": image}
	}
	raw := must(json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "test", "namespace": "default"},
		"spec": map[string]any{"containers": containers},
	}))(t)
	return gate.Request{Object: must(workload.Parse(raw))(t)}
}

// changed returns an object after a change.
func changed(t testing.TB, object workload.Object, change func(map[string]any)) workload.Object {
	t.Helper()
	content := object.Root().Decoded().(map[string]any)
	change(content)
	return must(workload.Parse(must(json.Marshal(content))(t)))(t)
}
