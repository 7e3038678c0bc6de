package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestReplacedRoot: a claim that was cached under one trusted root does not admit under another, and
// a replica with the other root does not adopt it from the shared store.
func TestReplacedRoot(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	identity := verifytest.Identity{Email: "ann@example.com", Issuer: "https://issuer.example"}
	app := h.Build("app", "v1", "app")
	signer := must(h.Sigstore.Keyless(identity))(t)
	must(0, h.SignBundle(app, verifytest.Claim{Signer: signer}, nil))(t)
	other := must(verifytest.New(verifytest.Options{Name: "other"}))(t)
	proverOf := func(root []byte) gate.Prover {
		s := must(trust.New(trust.Options{TrustedRoot: root}))(t).Snapshot()
		return prover{Snapshot: s, ByFormat: verify.ByFormat{attest.Cosign: cosign.New(s), attest.Bundle: bundle.New(s)}}
	}
	first, both, second := proverOf(h.Sigstore.TrustedRoot()), proverOf(h.Sigstore.TrustedRoot(other)), proverOf(other.TrustedRoot())
	authority := &verify.Authority{Name: "keyless", Keyless: &verify.Keyless{Identities: []verify.Identity{{
		Issuer: verify.Exactly(identity.Issuer), Subject: verify.Exactly(identity.Email),
	}}}}
	policies := must(set.New(&policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{
		rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Requirements: []policy.Requirement{{
			Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: authority}},
		}}}}},
	}}))(t)
	store, state := &shelf{}, &gate.Current{}
	state.Replace(gate.Snapshot{Policies: policies, Prover: first})
	g := must(gate.New(gate.Config{Registries: h, State: state}, gate.WithStore(store)))(t)
	for _, c := range []struct {
		reason string
		prover gate.Prover
		want   gate.Result
	}{
		{"the root of the signer", first, gate.Allow},
		{"a root without it", second, gate.Deny},
		{"a root with both", both, gate.Allow},
		{"without it again", second, gate.Deny},
		{"as at first", first, gate.Allow},
	} {
		state.ReplaceProver(c.prover)
		if out := decide(t, g, app.Name); out.Result != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.reason, out.Result, c.want, out.Verdicts[0].Reasons)
		}
		replica := must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: policies, Prover: c.prover}}, gate.WithStore(store)))(t)
		if out := decide(t, replica, app.Name); out.Result != c.want {
			t.Errorf("a replica, %s: %s, want %s", c.reason, out.Result, c.want)
		}
	}
}

// TestTypesOfStatements: a type in other letters, or with a slash, is another type, although the
// annotation of the referrer has the required one. Any subject may be the image.
func TestTypesOfStatements(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	foreign := h.Build("foreign", "v1", "foreign")
	for _, c := range []struct {
		reason, stated, annotated string
		subjects                  func(own string) []verifytest.Subject
		want                      gate.Result
	}{
		{"as required", scanType, scanType, nil, gate.Allow},
		{"no annotation", scanType, "", nil, gate.Allow},
		{"an annotation of another type: not opened", scanType, scanType + "/", nil, gate.Deny},
		{"a slash", scanType + "/", scanType, nil, gate.Deny},
		{"upper case", "HTTPS" + scanType[len("https"):], scanType, nil, gate.Deny},
		{"a blank", scanType + " ", scanType, nil, gate.Deny},
		{"a signature", attest.PredicateCosignSign, scanType, nil, gate.Deny},
		{"the second subject", scanType, scanType, func(own string) []verifytest.Subject {
			return []verifytest.Subject{{Digest: foreign.Manifest.Digest}, {Digest: own}}
		}, gate.Allow},
		{"no subject of two", scanType, scanType, func(string) []verifytest.Subject {
			return []verifytest.Subject{{Digest: foreign.Manifest.Digest}, {Digest: h.Build("third", "v1", "third").Manifest.Digest}}
		}, gate.Deny},
	} {
		t.Run(c.reason, func(t *testing.T) {
			app := h.Build("app", "v1", c.reason)
			claim := verifytest.Claim{Signer: h.key, Records: []verifytest.Record{{Time: time.Now().Add(-time.Hour)}}}
			claim.Statement = verifytest.Attestation(app.Manifest.Digest, c.stated, map[string]string{"verdict": "clean"})
			if c.subjects != nil {
				claim.Statement.Subjects = c.subjects(app.Manifest.Digest)
			}
			must(0, h.PutBundle(app, must(h.Sigstore.Bundle(claim))(t), c.annotated))(t)
			if out := decide(t, h.gate(t, scanned(h, false)), app.Name); out.Result != c.want {
				t.Errorf("%s, want %s: %+v", out.Result, c.want, out.Verdicts[0].Reasons)
			}
		})
	}
}

// teams opens sessions for one namespace, and none for others.
type teams struct{ *env }

type scoped struct {
	session
	scope string
}

func (s scoped) Scope() string { return s.scope }

func (o teams) Open(_ context.Context, access gate.Access, _ image.Repository) (gate.Session, error) {
	if access.Workload.Namespace == "broken" {
		return nil, errors.New("the namespace has no usable credentials")
	}
	meter := &registry.Meter{}
	return scoped{session{Client: o.client.With(meter), meter: meter}, access.Workload.Namespace}, nil
}

// TestNoneOfOtherCredentials: "none found" with the credentials of one namespace is not an answer for
// another, and neither is a resolved tag.
func TestNoneOfOtherCredentials(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bare := h.Build("app", "v1", "app"), h.Build("bare", "v1", "bare")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	g := h.gateAt(t, teams{h}, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.key)}})
	for _, c := range []struct {
		reason, namespace, image string
		want                     gate.Result
	}{
		{"signed", "a", app.Name, gate.Allow},
		{"no tag resolves without credentials", "broken", app.Name, gate.Error},
		{"unsigned", "a", bare.Name, gate.Deny},
		{"another's none is no answer", "broken", bare.Name, gate.Error},
		{"nor by digest", "broken", h.Registry.Host() + "/bare@" + bare.Manifest.Digest, gate.Error},
	} {
		if out := g.Decide(t.Context(), in(t, c.namespace, c.image)); out.Result != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.reason, out.Result, c.want, out.Verdicts[0].Reasons)
		}
	}
	must(0, h.SignBundle(bare, byKey(h.key), nil))(t)
	if out := g.Decide(t.Context(), in(t, "b", bare.Name)); out.Result != gate.Allow {
		t.Errorf("signed since, other credentials: %s: %+v", out.Result, out.Verdicts[0].Reasons)
	}
}
