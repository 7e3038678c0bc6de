package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/suite/given"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

// setupFlags name the gate's inputs: policies, trust, mirrors and registries.
type setupFlags struct {
	policies, resources []string
	mirrors             []string
	trustedRoot         string
	refreshTrust        bool
	retired             []string
	layouts             []string
	offline             bool
	registryCA          string
	plainHTTP           []string
	timeout             time.Duration

	bundle  bundleFlags
	cluster clusterFlags
	// effective is the policies' time; userInfo is the file of the requesting user.
	effective, userInfo string
}

func (f *setupFlags) register(cmd *cobra.Command) {
	f.registerOnline(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.layouts, "oci-layout", nil, "OCI layout, cosign save `folder` or docker save archive, or REPOSITORY=PATH; may be repeated")
	flags.BoolVar(&f.offline, "offline", false, "open no connection; needs --oci-layout")
	f.bundle.register(cmd)
	f.cluster.register(cmd)
	flags.StringVar(&f.effective, "effective-time", "", "evaluate policies, exceptions and overrides at this `time` (RFC 3339, not in the past), not signatures")
	flags.StringVar(&f.userInfo, "userinfo", "", "`file` with the requesting user, for policies that read it (as in quaymaster apply)")
}

// registerOnline registers the flags about registries.
func (f *setupFlags) registerOnline(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.policies, "policy", "p", nil, "policy `file` or folder; may be repeated")
	flags.StringArrayVar(&f.resources, "resource", nil, "`file` of ConfigMaps, Secrets and Namespaces for policies' look-ups")
	flags.StringVar(&f.trustedRoot, "trusted-root", "", "trusted_root.json `file` (default: the public-good instance's)")
	flags.BoolVar(&f.refreshTrust, "refresh-trust", false, "refresh the trusted root from the public-good TUF repository first")
	flags.StringArrayVar(&f.retired, "retired-key", nil, "reject later signatures by the public key with this `SHA256=TIME` (RFC 3339); may be repeated")
	flags.StringArrayVar(&f.mirrors, "mirrors", nil, "`file` or folder of RegistryMirrors or equivalent documents; may be repeated")
	flags.StringVar(&f.registryCA, "registry-ca", "", "PEM `file` of certificate authorities for registries, in addition to the system's")
	flags.StringArrayVar(&f.plainHTTP, "plain-http", nil, "`host[:port]` of a registry without TLS; loopback hosts are always included")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "time for the whole run")
}

// wired is an engine with its inputs.
type wired struct {
	gate      *gate.Gate
	mirrors   *mirror.Set // nil without --mirrors
	resources *engine.Resources

	idle *gate.Gate // evaluates the flags' policy alone, for objects that the webhook excludes
	from *foundation
	user *policy.User // nil: no user was given
}

// decideAll evaluates requests as at admission if the gateway's settings are known, else as
// files.
func (w *wired) decideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome {
	defer w.from.close()
	w.resources.DescribeNamespaces(requests)
	for i := range requests {
		if w.user != nil {
			requests[i].Subject.User = *w.user
		}
		w.from.describe(ctx, &requests[i])
	}
	var asked []gate.Request
	for _, request := range requests {
		if !w.from.excludes(&request) {
			asked = append(asked, request)
		}
	}
	answers := w.gate.DecideAll(ctx, asked, progress)
	outcomes := make([]gate.Outcome, len(requests))
	for i, request := range requests {
		if w.from.excludes(&request) {
			outcomes[i] = w.idle.Decide(ctx, request)
			continue
		}
		outcomes[i], answers = answers[0], answers[1:]
	}
	return outcomes
}

// wire makes the engine from the flags, for the given requests.
func (f *setupFlags) wire(ctx context.Context, t command.Terminal, authorities *authority.Flags, requests []gate.Request) (*wired, error) {
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
	from, err := f.found(ctx, t, authorities, clock)
	if err != nil {
		return nil, err
	}
	made, err := f.build(t, from, clock, requests)
	if err != nil {
		from.close()
		return nil, err
	}
	made.user = user
	if user == nil && from.asksUser {
		t.Warn("policies ask who makes a request, and nobody is said to: rules about users are judged as of nobody; say who with --userinfo FILE")
	}
	return made, nil
}

// build makes the engine from its inputs.
func (f *setupFlags) build(t command.Terminal, from *foundation, clock func() time.Time, requests []gate.Request) (*wired, error) {
	sources, err := f.registries(t, from.known, requests)
	if err != nil {
		return nil, err
	}
	from.images.Use(sources)
	prover, err := engine.NewProver(from.store.Snapshot())
	if err != nil {
		return nil, err
	}
	options, err := f.redirects(from)
	if err != nil {
		return nil, err
	}
	options = append(options, gate.WithTimeout(f.timeout), gate.WithClock(clock))
	made := &wired{mirrors: from.mirrors, resources: from.known, from: from}
	made.gate, err = gate.New(gate.Config{
		Registries: sources, State: gate.Fixed{Policies: from.set, Prover: prover, Mirrors: from.mirrors},
	}, options...)
	if err != nil {
		return nil, err
	}
	var flags []*policy.Policy
	if from.flags != nil {
		flags = append(flags, from.flags)
	}
	own, err := set.New(flags...)
	if err != nil {
		return nil, err
	}
	made.idle, err = gate.New(gate.Config{Registries: sources, State: gate.Fixed{Policies: own, Prover: prover}}, gate.WithTimeout(f.timeout))
	return made, err
}

// check refuses conflicting flags.
func (f *setupFlags) check() error {
	switch {
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %s: want more than nothing", f.timeout)
	case f.offline && len(f.layouts) == 0:
		return errors.New("--offline opens no connection, so the images must come from --oci-layout")
	}
	if err := f.bundle.check(f); err != nil {
		return err
	}
	return f.cluster.check(f)
}

// user reads the requesting user; nil for none.
func (f *setupFlags) user() (*policy.User, error) {
	if f.userInfo == "" {
		return nil, nil
	}
	user, err := given.LoadUser(f.userInfo)
	if err != nil {
		return nil, fmt.Errorf("--userinfo: %w", err)
	}
	return &user, nil
}

// redirects enables requests to the targets of mirrors. Images of a layout send no requests;
// there, mirrors only add the names that copies are evaluated by.
func (f *setupFlags) redirects(from *foundation) ([]gate.Option, error) {
	if from.mirrors == nil || len(f.layouts) > 0 {
		return nil, nil
	}
	chooser, err := redirect.New()
	if err != nil {
		return nil, err
	}
	return []gate.Option{gate.WithMirrors(chooser, from.pulls)}, nil
}

// trust opens the trust store. It fetches nothing unless --refresh-trust is set.
func (f *setupFlags) trust(ctx context.Context) (*trust.Store, *engine.Resources, error) {
	known, err := loadResources(f.resources)
	if err != nil {
		return nil, nil, err
	}
	root, err := command.OptionalFile("--trusted-root", f.trustedRoot)
	if err != nil {
		return nil, nil, err
	}
	store, err := f.trustStore(ctx, root, known, nil)
	return store, known, err
}

// trustStore opens the trust store with the given root, or the public-good instance's. Retired
// keys of the gateway's settings are added to those of --retired-key.
func (f *setupFlags) trustStore(ctx context.Context, root []byte, secrets trust.Secrets, retired []trust.Retired) (*trust.Store, error) {
	own, err := retiredKeys(f.retired)
	if err != nil {
		return nil, err
	}
	options := trust.Options{Secrets: secrets, TrustedRoot: root, Retired: slices.Concat(retired, own)}
	if !f.offline {
		options.KMS = kms.Providers{}
	}
	if f.refreshTrust {
		if f.offline || root != nil {
			return nil, errors.New("--refresh-trust contradicts --offline and --trusted-root")
		}
		options.TUF = &trust.TUF{Client: &http.Client{Timeout: f.timeout, Transport: engine.GuardedTransport()}, CachePath: tufCache()}
	}
	store, err := trust.New(options)
	if err != nil {
		return nil, err
	}
	if root != nil {
		if err := store.Snapshot().Check(); err != nil {
			return nil, fmt.Errorf("the trusted root: %w", err)
		}
	}
	if f.refreshTrust {
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

func tufCache() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "quaymaster", "tuf")
}

// registries returns the source of images and evidence.
func (f *setupFlags) registries(t command.Terminal, secrets *engine.Resources, requests []gate.Request) (gate.Registries, error) {
	if len(f.layouts) > 0 {
		if len(f.plainHTTP) > 0 || f.registryCA != "" {
			return nil, errors.New("--plain-http and --registry-ca are about registries, and --oci-layout asks none")
		}
		return openLayouts(t, f.layouts, requests)
	}
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	return online{client: client, insecure: client.Insecure(), secrets: secrets}, nil
}

// client makes a registry client with the caller's credentials.
func (f *setupFlags) client() (*registry.Client, error) {
	config := registry.Config{
		PlainHTTP:   f.plainHTTP,
		Credentials: []registry.Source{engine.DockerConfiguration()},
	}
	if f.registryCA != "" {
		pool, err := certificatePool(f.registryCA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	return registry.New(config, registry.WithProxy(http.ProxyFromEnvironment))
}

func certificatePool(path string) (*x509.CertPool, error) {
	pem, err := command.OptionalFile("--registry-ca", path)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--registry-ca %s: no PEM certificate in it", path)
	}
	return pool, nil
}
