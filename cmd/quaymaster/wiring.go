package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// prover joins one snapshot of trust with the verifiers bound to it.
type prover struct {
	*trust.Snapshot
	verify.ByFormat
}

func newProver(snapshot *trust.Snapshot) (gate.Prover, error) {
	notary, err := notation.New(notation.Options{Transport: guardedTransport()})
	if err != nil {
		return nil, err
	}
	return prover{Snapshot: snapshot, ByFormat: verify.ByFormat{
		attest.Cosign:   cosign.New(snapshot),
		attest.Bundle:   bundle.New(snapshot),
		attest.Notation: notary,
	}}, nil
}

// answerTimeout is how long a service that is no registry may take to answer.
const answerTimeout = 10 * time.Second

// guardedTransport opens connections for whoever is not a registry.
func guardedTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial.New(dial.Config{}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   2,
		ResponseHeaderTimeout: answerTimeout,
	}
}

// online opens sessions with registries.
type online struct {
	client   *registry.Client
	insecure *registry.Client // for policies that allow insecure registries
	secrets  *resources
}

// Open implements gate.Registries. What a manifest names for its own pulls is the
// cluster's matter; the command line has its caller's credentials.
func (o online) Open(_ context.Context, access gate.Access, _ image.Repository) (gate.Session, error) {
	credentials, client := access.Credentials, o.client
	if credentials.AllowInsecure {
		client = o.insecure
	}
	if len(credentials.Providers)+len(credentials.Secrets) > 0 {
		sources, err := o.sources(credentials)
		if err != nil {
			return nil, err
		}
		if client, err = client.WithCredentials(sources...); err != nil {
			return nil, err
		}
	}
	meter := &registry.Meter{}
	return session{Client: client.With(meter), meter: meter, scope: credentialScope(credentials)}, nil
}

// credentialScope names what a policy says of credentials.
func credentialScope(c policy.Credentials) string {
	if !c.AllowInsecure && len(c.Providers)+len(c.Secrets) == 0 {
		return ""
	}
	return fmt.Sprintf("%t\x00%s\x00%s", c.AllowInsecure, strings.Join(c.Providers, "\x01"), strings.Join(c.Secrets, "\x01"))
}

// sources turns a policy's words into places that credentials come from.
func (o online) sources(credentials policy.Credentials) ([]registry.Source, error) {
	var sources []registry.Source
	for _, name := range credentials.Secrets {
		source, err := o.secrets.pullSecret(name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	for _, name := range credentials.Providers {
		source, err := provider(name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func dockerConfiguration() registry.Source {
	return registry.Source{Name: "the docker configuration", Keychain: authn.DefaultKeychain}
}

// session is a registry client whose costs are counted.
type session struct {
	*registry.Client
	meter *registry.Meter
	scope string
}

// Scope implements gate.Session.
func (s session) Scope() string { return s.scope }

// Cost implements gate.Session.
func (s session) Cost() gate.Cost {
	return costOf(s.meter)
}

func costOf(meter *registry.Meter) gate.Cost {
	cost := gate.Cost{Requests: meter.Requests(), CountedPulls: meter.Pulls(), Bytes: meter.Bytes(), RateLimitRemaining: -1}
	if left, ok := meter.Remaining(); ok {
		cost.RateLimitRemaining = left
	}
	return cost
}

// offline opens sessions with an OCI layout, which needs no credentials.
type offline struct{ layout *registry.Layout }

// Open implements gate.Registries.
func (o offline) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return layoutSession{o.layout}, nil
}

// layoutSession costs nothing.
type layoutSession struct{ *registry.Layout }

// Scope implements gate.Session.
func (layoutSession) Scope() string { return "" }

// Cost implements gate.Session.
func (layoutSession) Cost() gate.Cost { return gate.Cost{RateLimitRemaining: -1} }

func joinWords(words []string) string {
	return strings.Join(slices.Sorted(slices.Values(words)), ", ")
}
