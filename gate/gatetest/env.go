package gatetest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Env holds the real dependencies of a gate: a yard, the product's client and
// verifiers, and one signer.
type Env struct {
	*Yard
	Client *registry.Client
	Signer *verifytest.Signer
	// Authority is the signer, without a log.
	Authority *verify.Authority
	Prover    gate.Prover
}

// NewEnv returns an environment on a registry of its own, on loopback. The caller closes
// it.
func NewEnv() (*Env, error) {
	sigstore, err := verifytest.New(verifytest.Options{})
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	store, err := trust.New(trust.Options{TrustedRoot: sigstore.TrustedRoot()})
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	signer, err := verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	client, err := registry.New(registry.Config{})
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	snapshot := store.Snapshot()
	notary, err := notation.New(notation.Options{})
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return &Env{
		Yard: New(registrytest.Start(registrytest.Options{}), sigstore), Client: client, Signer: signer,
		Authority: &verify.Authority{Name: "key", Key: &verify.Key{Ref: string(signer.PublicPEM())}, Log: verify.Log{Ignore: true}},
		Prover: prover{Snapshot: snapshot, ByFormat: verify.ByFormat{
			attest.Cosign: cosign.New(snapshot), attest.Bundle: bundle.New(snapshot), attest.Notation: notary,
		}},
	}, nil
}

// Close ends the registry and the connections to it.
func (h *Env) Close() {
	h.Client.Close()
	h.Registry.Close()
}

// Gate returns a gate with its own cache that uses its registry.
func (h *Env) Gate(policies ...*policy.Policy) (*gate.Gate, error) {
	set, err := set.New(policies...)
	if err != nil {
		return nil, err
	}
	return gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: h.Prover}})
}

// Policy compiles a Kyverno policy. HOST in the text is replaced by the registry and KEY
// by the signer's public key.
func (h *Env) Policy(text string) (*policy.Policy, error) {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		return nil, err
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		return nil, err
	}
	key, err := json.Marshal(string(h.Signer.PublicPEM()))
	if err != nil {
		return nil, err
	}
	text = strings.NewReplacer("HOST", h.Registry.Host(), "KEY", string(key)).Replace(text)
	return compiler.Compile([]byte(text), "test.yaml")
}

// Signed builds an image below shop and signs it by the signer.
func (h *Env) Signed(name string) (Image, error) {
	built := h.Build("shop/"+name, "1", name)
	return built, h.SignLegacy(built, verifytest.Claim{Signer: h.Signer, NoLog: true}, nil)
}

// Open implements gate.Registries: every workload sees the same.
func (h *Env) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	meter := &registry.Meter{}
	return session{Client: h.Client.With(meter), meter: meter}, nil
}

type prover struct {
	*trust.Snapshot
	verify.ByFormat
}

type session struct {
	*registry.Client
	meter *registry.Meter
}

// Scope implements gate.Session.
func (session) Scope() string { return "" }

// Cost implements gate.Session.
func (s session) Cost() gate.Cost {
	return gate.Cost{Requests: s.meter.Requests(), CountedPulls: s.meter.Pulls(), Bytes: s.meter.Bytes(), RateLimitRemaining: -1}
}
