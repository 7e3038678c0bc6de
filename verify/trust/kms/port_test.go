package kms_test

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	sigkms "github.com/sigstore/sigstore/pkg/signature/kms"
	"github.com/sigstore/sigstore/pkg/signature/options"
	"github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// port is a gate that has its keys in a key management service.
type port struct {
	*gatetest.Yard
	clock    *clock
	snapshot *trust.Snapshot
	store    *trust.Store
	client   *registry.Client
}

func newPort(t testing.TB, providers kms.Providers) *port {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	p := &port{Yard: gatetest.New(server, nil), clock: &clock{at: time.Now()}}
	var err error
	p.store, err = trust.New(trust.Options{KMS: providers, Now: p.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	p.snapshot = p.store.Snapshot()
	p.client, err = registry.New(registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.Close)
	return p
}

type prover struct {
	*trust.Snapshot
	verify.ByFormat
}

type session struct{ *registry.Client }

func (session) Cost() gate.Cost { return gate.Cost{} }

func (session) Scope() string { return "" }

// Open implements gate.Registries.
func (p *port) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return session{p.client}, nil
}

// rule asks every image for a signature of one authority.
type rule struct{ authority verify.Authority }

func (rule) Name() string                                  { return "rule" }
func (rule) Extractors(*policy.Subject) []policy.Extractor { return nil }

func (r rule) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	for _, image := range images {
		plan.Checks = append(plan.Checks, policy.Check{Entry: "verifyImages[0]", Image: image, Claims: policy.Claims{Requirements: []policy.Requirement{{
			Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: &r.authority}},
		}}}})
	}
	return plan, nil
}

func keyAt(uri string) verify.Authority {
	return verify.Authority{Name: "key", Key: &verify.Key{Ref: uri}, Log: verify.Log{Ignore: true}}
}

// decide judges an image under the key that the URI names, without memory of
// earlier judgements.
func (p *port) decide(t testing.TB, image gatetest.Image, uri string) (gate.Result, []policy.Reason) {
	t.Helper()
	set, err := set.New(&policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{rule{keyAt(uri)}}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Registries: p, State: gate.Fixed{Policies: set, Prover: prover{p.snapshot, verify.ByFormat{
		attest.Cosign: cosign.New(p.snapshot), attest.Bundle: bundle.New(p.snapshot),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := gate.ForImage(image.Name, "default")
	if err != nil {
		t.Fatal(err)
	}
	outcome := g.Decide(t.Context(), request)
	reasons := slices.Clone(outcome.Reasons)
	for _, verdict := range outcome.Verdicts {
		reasons = append(reasons, verdict.Reasons...)
	}
	return outcome.Result, reasons
}

// expect fails the test unless the image is judged so.
func (p *port) expect(t testing.TB, image gatetest.Image, uri string, answer gate.Result, code policy.Code) []policy.Reason {
	t.Helper()
	got, reasons := p.decide(t, image, uri)
	if got != answer || len(reasons) == 0 || reasons[0].Code != code {
		t.Fatalf("%s is judged %s %+v, want %s and %s first", image.Name, got, reasons, answer, code)
	}
	return reasons
}

// held signs with a key in a service, by the service's own protocol.
type held struct {
	sigkms.SignerVerifier
	public crypto.PublicKey
}

func hold(t testing.TB, uri string) *held {
	t.Helper()
	key, err := sigkms.Get(t.Context(), uri, crypto.SHA256)
	if err != nil {
		t.Fatalf("open %s: %v", uri, err)
	}
	public, err := key.PublicKey(options.WithContext(t.Context()))
	if err != nil {
		t.Fatalf("fetch the public key of %s: %v", uri, err)
	}
	return &held{key, public}
}

var _ sign.Keypair = (*held)(nil)

// The rest of what sigstore-go wants of a key, for ECDSA P-256.

func (h *held) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}
func (h *held) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}
func (h *held) GetHint() []byte                { return []byte("hint") }
func (h *held) GetKeyAlgorithm() string        { return "ECDSA" }
func (h *held) GetPublicKey() crypto.PublicKey { return h.public }
func (h *held) GetPublicKeyPem() (string, error) {
	text, err := cryptoutils.MarshalPublicKeyToPEM(h.public)
	return string(text), err
}

func (h *held) SignData(ctx context.Context, data []byte) (signature, digest []byte, err error) {
	signature, err = h.SignMessage(bytes.NewReader(data), options.WithContext(ctx))
	sum := crypto.SHA256.New()
	sum.Write(data)
	return signature, sum.Sum(nil), err
}

// signLegacy signs as "cosign sign --key URI" of cosign 2 does.
func (p *port) signLegacy(t testing.TB, image gatetest.Image, uri string) {
	t.Helper()
	digest, err := name.NewDigest(image.ByDigest())
	if err != nil {
		t.Fatal(err)
	}
	text, err := payload.Cosign{Image: digest}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	signature, _, err := hold(t, uri).SignData(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	layer := &verifytest.Layer{MediaType: verifytest.SimpleSigningMediaType, Payload: text, Annotations: map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature),
	}}
	if err := p.PutLegacy(image, ".sig", layer); err != nil {
		t.Fatal(err)
	}
}

// signBundle signs as "cosign sign --key URI" of cosign 3 does.
func (p *port) signBundle(t testing.TB, image gatetest.Image, uri string) {
	t.Helper()
	statement, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": verifytest.CosignSignPredicateType, "predicate": struct{}{},
		"subject": []any{map[string]any{"digest": map[string]string{"sha256": strings.TrimPrefix(image.Manifest.Digest, "sha256:")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	content := &sign.DSSEData{Data: statement, PayloadType: verifytest.IntotoPayloadType}
	made, err := sign.Bundle(content, hold(t, uri), sign.BundleOptions{Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.PutBundle(image, text, verifytest.CosignSignPredicateType); err != nil {
		t.Fatal(err)
	}
}
