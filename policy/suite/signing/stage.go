package signing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/layout"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Config are a suite's images and keys.
type Config struct {
	Images []Image
	Keys   []Key
	// Folder is the base of relative paths.
	Folder string
	// TrustedRoot is the trusted root file for signatures in layouts; empty means the
	// public-good instance's.
	TrustedRoot string
}

// Stage holds the images of one suite. It implements gate.Registries.
type Stage struct {
	config   Config
	sigstore *verifytest.Sigstore
	yard     *gatetest.Yard
	server   *registrytest.Server
	client   *registry.Client
	places   map[image.Repository]image.Repository // the registry's repository of each repository
	layouts  *layout.Set                           // nil if images are built
	keys     map[string]*verifytest.Signer
	notaries map[string]*verifytest.Notary
	swaps    []swap
	root     []byte
}

// New builds and signs the images of a suite. The caller closes the stage.
func New(config Config) (*Stage, error) {
	s := &Stage{
		config: config, places: map[image.Repository]image.Repository{},
		keys: map[string]*verifytest.Signer{}, notaries: map[string]*verifytest.Notary{},
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	for _, step := range []func() error{s.openLayouts, s.open, s.makeKeys, s.build} {
		if err := step(); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Stage) check() error {
	if len(s.config.Images) > maxImages || len(s.config.Keys) > maxKeys {
		return fmt.Errorf("more than %d images or %d keys", maxImages, maxKeys)
	}
	built := 0
	for n, i := range s.config.Images {
		if err := i.check(); err != nil {
			return fmt.Errorf("images[%d]: %w", n, err)
		}
		if i.Layout == "" {
			built++
		}
	}
	switch {
	case built > 0 && built < len(s.config.Images):
		return errors.New("images: those of layouts rest on real keys, and those that are built on throw-away ones: make two suites")
	case built == 0 && len(s.config.Keys) > 0:
		return errors.New("keys: there is no image for them to sign")
	case built > 0 && s.config.TrustedRoot != "":
		return errors.New("trustedRoot: images that are built are signed under a Sigstore of the run's own")
	}
	return nil
}

// Close ends the registry and closes the layouts.
func (s *Stage) Close() {
	if s.layouts != nil {
		_ = s.layouts.Close() // it was only read
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
}

func (s *Stage) file(name string) string { return filepath.Join(s.config.Folder, name) }

func (s *Stage) openLayouts() error {
	var opened []*layout.Layout
	for n, i := range s.config.Images {
		if i.Layout == "" {
			continue
		}
		next, err := layout.Open(s.file(i.Layout))
		if err != nil {
			for _, one := range opened {
				_ = one.Close() // it was only read
			}
			return fmt.Errorf("images[%d]: layout: %w", n, err)
		}
		opened = append(opened, next)
	}
	if len(opened) > 0 {
		joined, err := layout.Join(opened...)
		if err != nil {
			return err
		}
		s.layouts = joined
		if len(opened) > 1 { // a tag alone does not identify the layout then
			s.layouts = joined.OnlyFullNames()
		}
	}
	if s.config.TrustedRoot == "" {
		return nil
	}
	root, err := os.ReadFile(s.file(s.config.TrustedRoot))
	if err != nil {
		return fmt.Errorf("trustedRoot: %w", err)
	}
	s.root = root
	return nil
}

// open starts the registry.
func (s *Stage) open() error {
	if s.layouts != nil {
		return nil
	}
	var err error
	s.sigstore, err = verifytest.New(verifytest.Options{Name: "suite"})
	if err != nil {
		return err
	}
	s.server, err = registrytest.Listen(registrytest.Options{})
	if err != nil {
		return err
	}
	s.client, err = registry.New(registry.Config{})
	if err != nil {
		return err
	}
	s.root, s.yard = s.sigstore.TrustedRoot(), gatetest.New(s.server, s.sigstore)
	return nil
}

func (s *Stage) makeKeys() error {
	for n, k := range s.config.Keys {
		if k.Name == "" || s.keys[k.Name] != nil {
			return fmt.Errorf("keys[%d].name: %q is empty or there twice", n, k.Name)
		}
		signer, err := verifytest.KeySigner(verifytest.KeyOptions{})
		if err != nil {
			return err
		}
		s.keys[k.Name] = signer
		if err := s.replace(n, k, signer.PublicPEM()); err != nil {
			return err
		}
		if s.replacesCertificate(n) { // also if it signs no image of the suite
			if _, err := s.notary(k.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// notary returns the notation signer of a name; its certificate replaces the key of that name.
func (s *Stage) notary(name string) (*verifytest.Notary, error) {
	if known := s.notaries[name]; known != nil {
		return known, nil
	}
	at := slices.IndexFunc(s.config.Keys, func(k Key) bool { return k.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("notary %q is not among the keys of the suite", name)
	}
	notary, err := verifytest.NewNotary(verifytest.NotaryOptions{Name: name})
	if err != nil {
		return nil, err
	}
	s.notaries[name] = notary
	return notary, s.replace(at, s.config.Keys[at], notary.RootPEM())
}

// build builds the images, and signs them.
func (s *Stage) build() error {
	for n, i := range s.config.Images {
		if i.Layout != "" {
			continue
		}
		if err := s.buildOne(i); err != nil {
			return fmt.Errorf("images[%d] %s: %w", n, i.Name, err)
		}
	}
	return nil
}

func (s *Stage) buildOne(i Image) error {
	ref, err := image.Parse(i.Name)
	if err != nil {
		return err
	}
	place, ok := s.places[ref.Repository()]
	if !ok {
		place, err = image.ParseRepository(fmt.Sprintf("%s/images/%d", s.server.Host(), len(s.places)))
		if err != nil {
			return err
		}
		s.places[ref.Repository()] = place
	}
	content := i.Content
	if content == "" {
		content = i.Name
	}
	built := s.yard.Build(place.Path(), ref.Tag(), content)
	for _, by := range i.Signers {
		if err := s.sign(built, by); err != nil {
			return err
		}
	}
	for _, a := range i.Attestations {
		signers := a.Signers
		if len(signers) == 0 {
			signers = i.Signers
		}
		if err := s.attest(built, a, signers); err != nil {
			return err
		}
	}
	return nil
}

// sign signs in each format that a policy may require.
func (s *Stage) sign(built gatetest.Image, by Signer) error {
	if by.Notary != "" {
		notary, err := s.notary(by.Notary)
		if err != nil {
			return err
		}
		return s.yard.SignNotation(built, notary, verifytest.Notation{})
	}
	claim, err := s.claim(by)
	if err != nil {
		return err
	}
	annotations := map[string]any{}
	for key, value := range by.Annotations {
		annotations[key] = value
	}
	if err := s.yard.SignLegacy(built, claim, annotations); err != nil {
		return err
	}
	return s.yard.SignBundle(built, claim, annotations)
}

func (s *Stage) claim(by Signer) (verifytest.Claim, error) {
	claim := verifytest.Claim{NoLog: by.NoLog}
	if by.Keyless == nil {
		claim.Signer = s.keys[by.Key]
		if claim.Signer == nil {
			return claim, fmt.Errorf("key %q is not among the keys of the suite", by.Key)
		}
		return claim, nil
	}
	id := verifytest.Identity{Issuer: by.Keyless.Issuer}
	if strings.Contains(by.Keyless.Subject, "://") {
		id.URI = by.Keyless.Subject
	} else {
		id.Email = by.Keyless.Subject
	}
	var err error
	claim.Signer, err = s.sigstore.Keyless(id)
	return claim, err
}

// attest makes one attestation, in both formats.
func (s *Stage) attest(built gatetest.Image, a Attestation, signers []Signer) error {
	text := []byte(a.Predicate)
	if a.PredicateFile != "" {
		var err error
		text, err = os.ReadFile(s.file(a.PredicateFile))
		if err != nil {
			return fmt.Errorf("predicateFile: %w", err)
		}
	}
	var predicate any
	if err := json.Unmarshal(text, &predicate); err != nil {
		return fmt.Errorf("predicate of %s: %w", a.Type, err)
	}
	uri := attest.PredicateURI(a.Type)
	for _, by := range signers {
		if by.Notary != "" {
			continue // of the image's own signers; notation signs no statements
		}
		claim, err := s.claim(by)
		if err != nil {
			return err
		}
		if err := s.yard.AttestLegacy(built, claim, uri, predicate); err != nil {
			return err
		}
		if err := s.yard.AttestBundle(built, claim, uri, predicate); err != nil {
			return err
		}
	}
	return nil
}

// Prover returns the verifiers with the trust of the run's signers. Secrets are the ones that
// policies name keys in.
func (s *Stage) Prover(secrets trust.Secrets) (gate.Prover, error) {
	store, err := trust.New(trust.Options{TrustedRoot: s.root, Secrets: secrets})
	if err != nil {
		return nil, err
	}
	return engine.NewProver(store.Snapshot())
}

// Open implements gate.Registries.
func (s *Stage) Open(ctx context.Context, access gate.Access, repository image.Repository) (gate.Session, error) {
	if s.layouts != nil {
		return engine.LayoutRegistries{Layouts: s.layouts}.Open(ctx, access, repository)
	}
	meter := &registry.Meter{}
	return session{stage: s, client: s.client.With(meter), meter: meter}, nil
}
