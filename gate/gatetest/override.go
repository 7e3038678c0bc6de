package gatetest

import (
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/override"
	"github.com/quaymaster/quaymaster/policy/set"
)

// Overriding returns a gate of policies with one ImageOverride. The match is that of
// its spec, in JSON.
func (h *Env) Overriding(effect policy.OverrideEffect, match string, policies ...*policy.Policy) (*gate.Gate, error) {
	text := fmt.Sprintf(`{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "ImageOverride", "metadata": {"name": "bad-day"},
		"spec": {"effect": %q, "reason": "INC-7", "expires": %q, "match": %s}}`, effect, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), match)
	made, err := override.Overrides{}.Compile([]byte(text), "test.yaml")
	if err != nil {
		return nil, err
	}
	set, err := set.New(policies...)
	if err != nil {
		return nil, err
	}
	set, err = set.WithOverrides(made)
	if err != nil {
		return nil, err
	}
	return gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: h.Prover}})
}
