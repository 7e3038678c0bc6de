// Package setup reads the inputs of verdicts that flags name (policies, trust, mirrors and
// registries; from files, a bundle or a cluster), and makes an engine with them.
package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/certpool"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain/provider"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

// Flags name the gate's inputs: policies, trust, mirrors and registries.
type Flags struct {
	Policies, Resources []string
	Mirrors             []string
	TrustedRoot         string
	RefreshTrust        bool
	retired             []string
	Layouts             []string
	Offline             bool
	RegistryCA          string
	PlainHTTP           []string
	Timeout             time.Duration

	Bundle  bundleFlags
	Cluster ClusterFlags
	assumed assumptions
	// Evaluated are the kinds that definitions among the evaluated objects define, which the command
	// sets: hints, since the author of the objects does not choose what policies match.
	Evaluated []constraint.Resource
}

// assumptions are what policies read of a request, and is not in files of objects.
type assumptions struct {
	effective string // the policies' time
	userInfo  string // the file of the requesting user
}

// Register adds all flags to a command.
func (f *Flags) Register(cmd *cobra.Command) {
	f.RegisterOnline(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Layouts, "oci-layout", nil, "OCI layout, cosign save `folder` or docker save archive, or REPOSITORY=PATH; may be repeated")
	flags.BoolVar(&f.Offline, "offline", false, "open no connection; needs --oci-layout")
	f.Bundle.Register(cmd)
	f.Cluster.RegisterOptional(cmd)
	flags.StringVar(&f.assumed.effective, "effective-time", "", "evaluate policies, exceptions and overrides at this `time` (RFC 3339, not in the past), not signatures")
	flags.StringVar(&f.assumed.userInfo, "userinfo", "", "`file` with the requesting user; without it, rules match every user")
}

// RegisterOnline registers the flags about registries.
func (f *Flags) RegisterOnline(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.Policies, "policy", "p", nil, "policy `file` or folder; may be repeated")
	usage.CompleteFiles(cmd, "policy", usage.Documents()...)
	flags.StringArrayVar(&f.Resources, "resource", nil, "`file` of ConfigMaps, Secrets and Namespaces for policies' look-ups, and of CustomResourceDefinitions")
	flags.StringVar(&f.TrustedRoot, "trusted-root", "", "trusted_root.json `file` (default: the public-good instance's)")
	flags.BoolVar(&f.RefreshTrust, "refresh-trust", false, "refresh the trusted root from the public-good TUF repository first")
	flags.StringArrayVar(&f.retired, "retired-key", nil, "reject later signatures by the public key with this `SHA256=TIME` (RFC 3339); may be repeated")
	flags.StringArrayVar(&f.Mirrors, "mirrors", nil, "`file` or folder of RegistryMirrors or equivalent documents; may be repeated")
	flags.StringVar(&f.RegistryCA, "registry-ca", "", "PEM `file` of certificate authorities for registries and keys by URL, beside the system's")
	flags.StringArrayVar(&f.PlainHTTP, "plain-http", nil, "`host[:port]` of a registry without TLS; loopback hosts are always included")
	flags.DurationVar(&f.Timeout, "timeout", 30*time.Second, "time for the whole run")
}

// Engine is an engine with its inputs.
type Engine struct {
	Gate      *gate.Gate
	Mirrors   *mirror.Set // nil without --mirrors
	Resources *engine.Resources

	idle *gate.Gate // evaluates the flags' policy alone, for objects that the webhook excludes
	From *Inputs
	user *policy.User // nil: no user was given
}

// DecideAll evaluates requests as at admission if the gateway's settings are known, else as
// files.
func (w *Engine) DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome {
	defer w.From.Close()
	w.Resources.DescribeNamespaces(requests)
	for i := range requests {
		if w.user != nil {
			requests[i].Subject.User = *w.user
		}
		w.From.describe(ctx, &requests[i])
	}
	var asked []gate.Request
	for _, request := range requests {
		if !w.From.excludes(&request) {
			asked = append(asked, request)
		}
	}
	answers := w.Gate.DecideAll(ctx, asked, progress)
	outcomes := make([]gate.Outcome, len(requests))
	for i, request := range requests {
		if w.From.excludes(&request) {
			outcomes[i] = w.idle.Decide(ctx, request)
			continue
		}
		outcomes[i], answers = answers[0], answers[1:]
	}
	return outcomes
}

// NewEngine makes the engine from the flags, for the given requests.
func (f *Flags) NewEngine(ctx context.Context, t command.Terminal, authorities *authority.Flags, requests []gate.Request) (*Engine, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	clock, err := f.clock()
	if err != nil {
		return nil, err
	}
	user, err := f.user()
	if err != nil {
		return nil, err
	}
	from, err := f.Read(ctx, t, authorities, clock)
	if err != nil {
		return nil, err
	}
	made, err := f.build(t, from, clock, requests)
	if err != nil {
		from.Close()
		return nil, err
	}
	made.user = user
	if user == nil && from.asksUser {
		t.Warn("policies read the requesting user, and none is given: rules for users match every user, exclusions of users match none, and expressions read an empty user; with quaymaster verify, set --userinfo FILE")
	}
	return made, nil
}

// build makes the engine from its inputs.
func (f *Flags) build(t command.Terminal, from *Inputs, clock func() time.Time, requests []gate.Request) (*Engine, error) {
	sources, err := f.Registries(t, from.Known, requests)
	if err != nil {
		return nil, err
	}
	prover, err := engine.NewProver(from.Store.Snapshot())
	if err != nil {
		return nil, err
	}
	options, err := f.Redirects(from)
	if err != nil {
		return nil, err
	}
	options = append(options, gate.WithTimeout(f.Timeout), gate.WithClock(clock))
	made := &Engine{Mirrors: from.Mirrors, Resources: from.Known, From: from}
	config := gate.Config{Registries: sources, State: gate.Fixed{Policies: from.Set, Prover: prover, Mirrors: from.Mirrors}}
	from.Images.Use(config)
	made.Gate, err = gate.New(config, options...)
	if err != nil {
		return nil, err
	}
	own, err := set.New(from.flags...)
	if err != nil {
		return nil, err
	}
	made.idle, err = gate.New(gate.Config{Registries: sources, State: gate.Fixed{Policies: own, Prover: prover}}, gate.WithTimeout(f.Timeout))
	return made, err
}

// check refuses conflicting flags.
func (f *Flags) check() error {
	switch {
	case f.Timeout <= 0:
		return fmt.Errorf("--timeout %s must be positive", f.Timeout)
	case f.Offline && len(f.Layouts) == 0:
		return errors.New("--offline opens no connection, so the images must come from --oci-layout")
	}
	if err := f.Bundle.check(f); err != nil {
		return err
	}
	return f.Cluster.check(f)
}

// user reads the requesting user; nil for none.
func (f *Flags) user() (*policy.User, error) {
	if f.assumed.userInfo == "" {
		return nil, nil
	}
	user, err := fixtures.LoadUser(f.assumed.userInfo, nil)
	if err != nil {
		return nil, fmt.Errorf("--userinfo: %w", err)
	}
	return &user, nil
}

// Redirects enables requests to the targets of mirrors. Images of a layout send no requests;
// there, mirrors only add the names that copies are evaluated by.
func (f *Flags) Redirects(from *Inputs) ([]gate.Option, error) {
	if from.Mirrors == nil || len(f.Layouts) > 0 {
		return nil, nil
	}
	chooser, err := redirect.New()
	if err != nil {
		return nil, err
	}
	return []gate.Option{gate.WithMirrors(chooser, from.pulls)}, nil
}

// TrustStore opens the trust store. It fetches nothing unless --refresh-trust is set.
func (f *Flags) TrustStore(ctx context.Context) (*trust.Store, error) {
	root, err := command.OptionalFile("--trusted-root", f.TrustedRoot)
	if err != nil {
		return nil, err
	}
	return f.trustStore(ctx, root, engine.NewResources(), config.Trust{})
}

// trustStore opens the trust store with the given root, or the public-good instance's. Retired
// keys of the gateway's settings are added to those of --retired-key, and its retired identities.
func (f *Flags) trustStore(ctx context.Context, root []byte, secrets trust.Secrets, settings config.Trust) (*trust.Store, error) {
	own, err := retiredKeys(f.retired)
	if err != nil {
		return nil, err
	}
	options := trust.Options{Secrets: secrets, TrustedRoot: root, Retired: slices.Concat(settings.Retired(), own), RetiredIdentities: settings.Identities()}
	if !f.Offline {
		options.KMS = kms.Providers{}
	}
	if f.RefreshTrust {
		if f.Offline || root != nil {
			return nil, errors.New("--refresh-trust contradicts --offline and --trusted-root")
		}
		options.TUF = &trust.TUF{Client: &http.Client{Timeout: f.Timeout, Transport: engine.GuardedTransport()}, CachePath: TUFCache()}
	}
	store, err := trust.New(options)
	if err != nil {
		return nil, err
	}
	if root != nil {
		if err := store.Snapshot().Check(); err != nil {
			if f.TrustedRoot != "" {
				return nil, fmt.Errorf("--trusted-root %s: %w", f.TrustedRoot, err)
			}
			return nil, fmt.Errorf("the trusted root: %w", err)
		}
	}
	if f.RefreshTrust {
		if err := store.RefreshOnce(ctx); err != nil {
			return nil, err
		}
	}
	return store, nil
}

// retiredKeys parses the values of --retired-key.
func retiredKeys(texts []string) ([]trust.Retired, error) {
	var list []trust.Retired
	for _, text := range texts {
		fingerprint, end, _ := strings.Cut(text, "=")
		at, err := time.Parse(time.RFC3339, end)
		if err != nil {
			return nil, fmt.Errorf("--retired-key %q: want SHA256=TIME, with a time such as 2026-03-01T12:00:00Z", text)
		}
		list = append(list, trust.Retired{Fingerprint: fingerprint, NotAfter: at})
	}
	return list, nil
}

// TUFCache returns the folder of cached TUF repositories; "" where the user has no cache folder.
func TUFCache() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "quaymaster", "tuf")
}

// Registries returns the source of images and evidence.
func (f *Flags) Registries(t command.Terminal, secrets *engine.Resources, requests []gate.Request) (gate.Registries, error) {
	if len(f.Layouts) > 0 {
		if len(f.PlainHTTP) > 0 || f.RegistryCA != "" {
			return nil, errors.New("--plain-http and --registry-ca are about registries, and --oci-layout asks none")
		}
		return openLayouts(t, f.Layouts, requests)
	}
	client, err := f.Client()
	if err != nil {
		return nil, err
	}
	return engine.NewClientRegistries(client, secrets, t.Env), nil
}

// Client makes a registry client with the caller's credentials.
func (f *Flags) Client() (*registry.Client, error) {
	config := registry.Config{
		PlainHTTP:   f.PlainHTTP,
		Credentials: []registry.Source{provider.DockerConfiguration()},
	}
	if f.RegistryCA != "" {
		pool, err := certpool.Read(f.RegistryCA, true)
		if err != nil {
			return nil, fmt.Errorf("--registry-ca: %w", err)
		}
		config.RootCAs = pool
	}
	return registry.New(config, registry.WithProxy(http.ProxyFromEnvironment))
}
