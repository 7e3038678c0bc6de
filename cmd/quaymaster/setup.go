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
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
	"github.com/quaymaster/quaymaster/workload"
)

// setupFlags say what the gate rests on: policies, trust, mirrors and registries.
type setupFlags struct {
	policies, resources []string
	mirrors             []string
	trustedRoot         string
	refreshTrust        bool
	ociLayout           string
	offline             bool
	registryCA          string
	plainHTTP           []string
	timeout             time.Duration
}

func (f *setupFlags) register(cmd *cobra.Command) {
	f.registerOnline(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.ociLayout, "oci-layout", "", "OCI image layout `folder` or archive to read in place of registries")
	flags.BoolVar(&f.offline, "offline", false, "open no connection; needs --oci-layout")
}

// registerOnline registers what concerns registries alone.
func (f *setupFlags) registerOnline(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.policies, "policy", "p", nil, "policy `file` or folder; may be repeated")
	flags.StringArrayVar(&f.resources, "resource", nil, "`file` of ConfigMaps, Secrets and Namespaces that policies look up")
	flags.StringVar(&f.trustedRoot, "trusted-root", "", "trusted_root.json `file` in place of the public-good instance's")
	flags.BoolVar(&f.refreshTrust, "refresh-trust", false, "ask the public-good TUF repository for a newer trusted root first")
	flags.StringArrayVar(&f.mirrors, "mirrors", nil, "`file` or folder of RegistryMirrors, or of what is read as one; may be repeated")
	flags.StringVar(&f.registryCA, "registry-ca", "", "PEM `file` of certificate authorities to trust for registries beside the system's")
	flags.StringArrayVar(&f.plainHTTP, "plain-http", nil, "`host[:port]` of a registry to ask without TLS; loopback hosts always are")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "time for the whole run")
}

// wired is an engine, and what was read to make it.
type wired struct {
	gate      *gate.Gate
	mirrors   *mirror.Set // nil without --mirrors
	resources *engine.Resources
}

// wire makes the engine as the flags say, for the requests that it will get.
func (f *setupFlags) wire(ctx context.Context, t terminal, authorities *authorityFlags, requests []gate.Request) (*wired, error) {
	if f.timeout <= 0 {
		return nil, fmt.Errorf("--timeout %s: want more than nothing", f.timeout)
	}
	if f.offline && f.ociLayout == "" {
		return nil, errors.New("--offline opens no connection, so the images must come from --oci-layout")
	}
	store, secrets, err := f.trust(ctx)
	if err != nil {
		return nil, err
	}
	set, images, err := f.policySet(ctx, t, authorities, secrets)
	if err != nil {
		return nil, err
	}
	sources, err := f.registries(secrets, requests)
	if err != nil {
		return nil, err
	}
	images.Use(sources)
	prover, err := engine.NewProver(store.Snapshot())
	if err != nil {
		return nil, err
	}
	mirrors, options, err := f.redirects()
	if err != nil {
		return nil, err
	}
	engine, err := gate.New(gate.Config{
		Registries: sources,
		State:      gate.Fixed{Policies: set, Prover: prover, Mirrors: mirrors},
	}, append(options, gate.WithTimeout(f.timeout))...)
	return &wired{gate: engine, mirrors: mirrors, resources: secrets}, err
}

// redirects reads the mirrors. Nobody can ask a target where images come from a
// layout; there, mirrors only add the names that copies are judged by.
func (f *setupFlags) redirects() (*mirror.Set, []gate.Option, error) {
	mirrors, err := loadMirrors(f.mirrors)
	if err != nil || mirrors == nil || f.ociLayout != "" {
		return mirrors, nil, err
	}
	chooser, err := redirect.New()
	if err != nil {
		return nil, nil, err
	}
	return mirrors, []gate.Option{gate.WithMirrors(chooser, nil)}, nil
}

// policySet compiles the policy files and the flags that mean a policy.
func (f *setupFlags) policySet(ctx context.Context, t terminal, authorities *authorityFlags, resources *engine.Resources) (*policy.Set, *engine.RuleImages, error) {
	loaded, err := loadPolicies(f.policies, resources, f.offline)
	if err != nil {
		return nil, nil, err
	}
	if len(f.policies) > 0 && len(loaded.policies)+len(loaded.overrides) == 0 {
		return nil, nil, fmt.Errorf("--policy %s: no policy in it", strings.Join(f.policies, ", "))
	}
	if f.offline && slices.ContainsFunc(authorities.keys, trust.IsLookup) {
		return nil, nil, errors.New("--offline opens no connection, and --key names a key management service")
	}
	fromFlags, err := authorities.policy()
	if err != nil {
		return nil, nil, err
	}
	if fromFlags != nil {
		loaded.policies = append(loaded.policies, fromFlags)
	}
	if len(loaded.policies) == 0 {
		return nil, nil, errors.New("what must be proved? give --policy, --key, --certificate-identity with --certificate-oidc-issuer, or --notation-cert")
	}
	reading, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	loaded.readRoots(reading, f.offline, t)
	set, err := loaded.set()
	return set, loaded.images, err
}

// trust opens the trust store. Nothing is fetched unless --refresh-trust asks.
func (f *setupFlags) trust(ctx context.Context) (*trust.Store, *engine.Resources, error) {
	known, err := loadResources(f.resources)
	if err != nil {
		return nil, nil, err
	}
	options := trust.Options{Secrets: known}
	if options.TrustedRoot, err = optionalFile("--trusted-root", f.trustedRoot); err != nil {
		return nil, nil, err
	}
	if !f.offline {
		options.KMS = kms.Providers{}
	}
	if f.refreshTrust {
		if f.offline || f.trustedRoot != "" {
			return nil, nil, errors.New("--refresh-trust contradicts --offline and --trusted-root")
		}
		options.TUF = &trust.TUF{Client: &http.Client{Timeout: f.timeout, Transport: engine.GuardedTransport()}, CachePath: tufCache()}
	}
	store, err := trust.New(options)
	if err != nil {
		return nil, nil, err
	}
	if f.trustedRoot != "" {
		if err := store.Snapshot().Check(); err != nil {
			return nil, nil, fmt.Errorf("--trusted-root %s: %w", f.trustedRoot, err)
		}
	}
	if f.refreshTrust {
		if err := store.RefreshOnce(ctx); err != nil {
			return nil, nil, err
		}
	}
	return store, known, nil
}

func tufCache() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "quaymaster", "tuf")
}

// registries returns where images and evidence are read.
func (f *setupFlags) registries(secrets *engine.Resources, requests []gate.Request) (gate.Registries, error) {
	if f.ociLayout != "" {
		if len(f.plainHTTP) > 0 || f.registryCA != "" {
			return nil, errors.New("--plain-http and --registry-ca are about registries, and --oci-layout asks none")
		}
		layout, err := registry.OpenLayout(f.ociLayout)
		if err != nil {
			return nil, fmt.Errorf("--oci-layout: %w", err)
		}
		if repositories(requests) > 1 {
			layout = layout.OnlyFullNames()
		}
		return offline{layout: layout}, nil
	}
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
	client, err := registry.New(config, registry.WithProxy(http.ProxyFromEnvironment))
	if err != nil {
		return nil, err
	}
	return online{client: client, insecure: client.Insecure(), secrets: secrets}, nil
}

// repositories counts the repositories whose images are asked for; several where
// nobody knows yet.
func repositories(requests []gate.Request) int {
	const unknown = 2 // of a document: policies say which images are in it
	seen := map[image.Repository]bool{}
	for _, request := range requests {
		if request.Object.IsDocument() {
			return unknown
		}
		uses, err := workload.Extract(request.Object)
		if err != nil {
			continue // the gate says so
		}
		for _, use := range uses {
			if ref, err := image.Parse(use.Image); err == nil {
				seen[ref.Repository()] = true
			}
		}
	}
	return len(seen)
}

func certificatePool(path string) (*x509.CertPool, error) {
	pem, err := optionalFile("--registry-ca", path)
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
