package gate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// namespace is where a pod's Secrets are, and why none can be had; its service accounts
// name the same ones.
type namespace struct {
	err   error
	names []string
}

func (n namespace) Secret(context.Context, string, string) (string, map[string][]byte, error) {
	return "", nil, n.err
}

func (n namespace) PullSecrets(context.Context, string, string) ([]string, error) {
	return n.names, nil
}

// chained opens sessions with the credentials of a workload.
type chained struct{ chain *keychain.Keychain }

func (c chained) Open(ctx context.Context, access gate.Access, repository image.Repository) (gate.Session, error) {
	client, _, err := c.chain.Open(ctx, keychain.Request{Namespace: access.Workload.Namespace, ServiceAccount: access.Workload.ServiceAccount}, repository)
	if err != nil {
		return nil, err
	}
	meter := &registry.Meter{}
	return session{Client: client.With(meter), meter: meter}, nil
}

// TestPullSecretsDoNotChooseTheFailureSetting: what a workload names for its pulls is no
// silence, and an API server that does not answer is.
func TestPullSecretsDoNotChooseTheFailureSetting(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	unsigned := h.Build("app", "v1", "unsigned")
	missing := &image.Error{Kind: image.NotFound, Op: "get", On: "secret"}
	for _, test := range []struct {
		reason  string
		secrets int
		err     error
		allowed bool
	}{
		{"as many Secrets as are looked up, and none is there", 20, missing, false},
		{"one more", 21, missing, false},
		{"a Secret that the gateway may not read", 1, &image.Error{Kind: image.Refused, Op: "get", On: "secret"}, false},
		{"no response", 1, errors.New("the API server is down"), true},
	} {
		team := namespace{err: test.err}
		for i := range test.secrets {
			team.names = append(team.names, fmt.Sprintf("s%d", i))
		}
		chain := must(keychain.New(keychain.Config{Registry: h.client, Secrets: team, Accounts: team}))(t)
		g := h.gateAt(t, chained{chain}, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{signedBy(h.key)}})
		outcome := decide(t, g, unsigned.Name)
		if (outcome.Result == gate.Allow) != test.allowed {
			t.Errorf("%s: %s: %+v", test.reason, outcome.Result, outcome.Verdicts)
		}
	}
}
