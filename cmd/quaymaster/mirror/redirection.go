package mirror

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/report/redirection"
)

// look prepares the evaluation. With policies, it runs the whole evaluation.
func (f *mirrorFlags) look(ctx context.Context, t command.Terminal, mirrors *mirror.Set, requests []gate.Request) (*redirection.Reporter, error) {
	if f.setup.Timeout <= 0 {
		return nil, fmt.Errorf("--timeout %s must be positive", f.setup.Timeout)
	}
	if len(f.setup.Policies) > 0 || f.elsewhere() {
		return f.judge(ctx, t, requests)
	}
	resources, err := setup.LoadResources(t, f.setup.Resources)
	if err != nil {
		return nil, err
	}
	resources.DescribeNamespaces(requests)
	if f.offline {
		return &redirection.Reporter{Mirrors: mirrors}, nil
	}
	sources, err := f.setup.Registries(t, resources, requests)
	if err != nil {
		return nil, err
	}
	chooser, err := redirect.New()
	return &redirection.Reporter{Mirrors: mirrors, Registries: sources, Chooser: chooser}, err
}

// judge evaluates all requests by the gate.
func (f *mirrorFlags) judge(ctx context.Context, t command.Terminal, requests []gate.Request) (*redirection.Reporter, error) {
	authorities := authority.OfKeys(nil, false)
	if err := f.setup.UnpackBundle(authorities); err != nil {
		return nil, err
	}
	wired, err := f.setup.NewEngine(ctx, t, authorities, requests)
	if err != nil {
		return nil, err
	}
	if wired.Mirrors == nil {
		wired.From.Close()
		return nil, errors.New("there is no mapping in it, so that no image is redirected")
	}
	return &redirection.Reporter{Mirrors: wired.Mirrors, Outcomes: wired.DecideAll(ctx, requests, nil)}, nil
}
