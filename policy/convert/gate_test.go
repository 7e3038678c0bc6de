package convert_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

// env is a gate with real parts: a registry on loopback, real signers, the
// product's client and verifiers.
type env struct {
	*gatetest.Yard
	key, stranger    *verifytest.Signer
	notary, other    *verifytest.Notary
	builder, visitor *verifytest.Notary // sign with certificates of their own
	ours, theirs     *verifytest.Signer // keyless
	client           *registry.Client
	prover           gate.Prover
}

type prover struct {
	*trust.Snapshot
	verify.ByFormat
}

type session struct{ *registry.Client }

func (session) Scope() string   { return "" }
func (session) Cost() gate.Cost { return gate.Cost{RateLimitRemaining: -1} }

// Open implements gate.Registries.
func (h *env) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return session{h.client}, nil
}

func newEnv(t testing.TB) *env {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	sigstore := testkit.Must(verifytest.New(verifytest.Options{}))(t)
	key := func() *verifytest.Signer { return testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t) }
	notary := func(name string, alone bool) *verifytest.Notary {
		return testkit.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: name, SelfSigned: alone}))(t)
	}
	keyless := func(subject string) *verifytest.Signer {
		return testkit.Must(sigstore.Keyless(verifytest.Identity{Issuer: "https://issuer.example.com", Email: subject}))(t)
	}
	h := &env{
		Yard: gatetest.New(server, sigstore), key: key(), stranger: key(),
		notary: notary("notary", false), other: notary("other", false), builder: notary("builder", true), visitor: notary("visitor", true),
		ours: keyless("dev@example.com"), theirs: keyless("eve@example.com"),
		client: testkit.Must(registry.New(registry.Config{}))(t),
	}
	t.Cleanup(h.client.Close)
	snapshot := testkit.Must(trust.New(trust.Options{TrustedRoot: sigstore.TrustedRoot()}))(t).Snapshot()
	h.prover = prover{Snapshot: snapshot, ByFormat: verify.ByFormat{
		attest.Cosign: cosign.New(snapshot), attest.Bundle: bundle.New(snapshot), attest.Notation: testkit.Must(notation.New(notation.Options{}))(t),
	}}
	return h
}

// files are what policies may name; NAME in a policy is a file's JSON text, and
// base64:NAME its bytes in base64.
func (h *env) files() map[string][]byte {
	return map[string][]byte{
		"KEY": h.key.PublicPEM(), "STRANGER": h.stranger.PublicPEM(), "NOTARY": h.notary.RootPEM(), "OTHER": h.other.RootPEM(),
		"BUILDER": h.builder.RootPEM(), "VISITOR": h.visitor.RootPEM(), "FULCIO": h.Sigstore.CA.ChainPEM(), "REKOR": h.Sigstore.Rekor.PublicPEM(),
	}
}

func (h *env) fill(text string) string {
	text = strings.ReplaceAll(text, "HOST", h.Registry.Host())
	for name, data := range h.files() {
		quoted, _ := json.Marshal(string(data)) // of text: does not fail
		text = strings.NewReplacer("base64:"+name, base64.StdEncoding.EncodeToString(data), "'"+name+"'", string(quoted)).Replace(text)
	}
	return text
}

// gate converts a policy, compiles the output, and makes a gate of it.
func (h *env) gate(t testing.TB, text string) *gate.Gate {
	t.Helper()
	root := fstest.MapFS{}
	for name, data := range h.files() {
		root["keys/"+name] = &fstest.MapFile{Data: data}
		root["truststore/x509/ca/"+name+"/cert.pem"] = &fstest.MapFile{Data: data}
	}
	out, err := convert.Convert([]byte(h.fill(text)), convert.Options{Files: root, DropSignedIdentity: true})
	if err != nil {
		t.Fatal(err)
	}
	set := testkit.Must(set.New(compile(t, out)...))(t)
	return testkit.Must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: h.prover}}))(t)
}

// compile compiles every document that was written.
func compile(t testing.TB, out []byte) []*policy.Policy {
	t.Helper()
	compiler := imagevalidating.New(imagevalidating.Options{Options: kyvernocel.Options{Now: time.Now, Random: rand.Reader}})
	var list []*policy.Policy
	for _, document := range bytes.Split(out, []byte("\n---\n"))[1:] {
		list = append(list, testkit.Must(compiler.Compile(document, "converted.yaml"))(t))
	}
	return list
}

// pod is a request for a pod in the namespace shop.
func pod(t testing.TB, images ...string) gate.Request {
	t.Helper()
	var containers []any
	for i, image := range images {
		containers = append(containers, map[string]any{"name": "c" + string(rune('a'+i)), "image": image})
	}
	return request(t, map[string]any{"containers": containers})
}

func request(t testing.TB, spec map[string]any) gate.Request {
	t.Helper()
	raw := testkit.Must(json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "test", "namespace": "shop"}, "spec": spec,
	}))(t)
	return gate.Request{
		Object:  testkit.Must(workload.Parse(raw))(t),
		Subject: policy.Subject{NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"policy.sigstore.dev/include": "true"}}},
	}
}

// reasonsOf returns all reasons and errors of an outcome.
func reasonsOf(out gate.Outcome) string {
	var all []string
	for _, v := range out.Verdicts {
		for _, d := range v.Decisions {
			for _, r := range d.Reasons {
				all = append(all, string(r.Code)+": "+r.Message)
			}
		}
	}
	for _, r := range out.Rules {
		if r.Err != nil {
			all = append(all, "rule-error: "+r.Err.Error())
		}
		for _, reason := range r.Ruling.Reasons {
			all = append(all, reason.Message)
		}
	}
	return strings.Join(all, " | ")
}

// TestGoldenCompiles hands what every format writes to the dialect.
func TestGoldenCompiles(t *testing.T) {
	goldens, err := filepath.Glob("*/testdata/*.golden.yaml")
	if err != nil || len(goldens) < len(convert.Formats()) {
		t.Fatalf("%d golden files for %d formats: %v", len(goldens), len(convert.Formats()), err)
	}
	for _, golden := range goldens {
		if strings.HasPrefix(golden, "native/") || strings.HasPrefix(golden, "cel/") || strings.HasPrefix(golden, "suites/") {
			continue // policies of other kinds, and suites, which these packages read
		}
		if list := compile(t, testkit.Must(os.ReadFile(golden))(t)); len(list) == 0 {
			t.Errorf("%s: nothing was written", golden)
		}
	}
}

// sources are policies that say the same in each format: images of HOST/shop are
// signed by KEY (or NOTARY); those of HOST/shop/free are free; where the format denies
// by default, all others are denied.
func sources() map[string]string {
	return map[string]string{
		"connaisseur": `
validators:
- {name: allow, type: static, approve: true}
- {name: default, type: cosign, trustRoots: [{name: default, key: 'KEY'}, {name: two, key: 'STRANGER'}]}
- {name: notary, type: notation, trustRoots: [{name: default, cert: 'NOTARY'}]}
policy:
- {pattern: "HOST/shop/*", with: {verifyInTransparencyLog: false}}
- {pattern: "HOST/shop/free*", validator: allow}
- {pattern: "HOST/shop/both*", with: {trustRoot: "*", verifyInTransparencyLog: false}}
- {pattern: "HOST/notary/*", validator: notary}`,
		"containers": `{"default": [{"type": "reject"}], "transports": {"docker": {
  "HOST/shop": [{"type": "sigstoreSigned", "keyPath": "/keys/KEY"}],
  "HOST/shop/free": [{"type": "insecureAcceptAnything"}],
  "HOST/shop/both": [{"type": "sigstoreSigned", "keyData": "base64:KEY"}, {"type": "sigstoreSigned", "keyPath": "/keys/STRANGER"}]}}}`,
		"openshift": `
{apiVersion: config.openshift.io/v1, kind: ClusterImagePolicy, metadata: {name: shop}, spec: {scopes: [HOST/shop], policy: {rootOfTrust: {policyType: PublicKey, publicKey: {keyData: "base64:KEY"}}}}}
---
{apiVersion: config.openshift.io/v1, kind: ClusterImagePolicy, metadata: {name: both}, spec: {scopes: [HOST/shop/both], policy: {rootOfTrust: {policyType: PublicKey, publicKey: {keyData: "base64:KEY"}}}}}
---
{apiVersion: config.openshift.io/v1, kind: ClusterImagePolicy, metadata: {name: both-too}, spec: {scopes: [HOST/shop/both], policy: {rootOfTrust: {policyType: PublicKey, publicKey: {keyData: "base64:STRANGER"}}}}}`,
		"notation": `{"version": "1.0", "trustPolicies": [
  {"name": "notary", "registryScopes": ["HOST/notary/app"], "signatureVerification": {"level": "strict"}, "trustStores": ["ca:NOTARY"], "trustedIdentities": ["*"]},
  {"name": "builder", "registryScopes": ["HOST/notary/builder"], "signatureVerification": {"level": "strict"}, "trustStores": ["ca:BUILDER", "ca:VISITOR"], "trustedIdentities": ["x509.subject: C=XX, CN=builder"]},
  {"name": "free", "registryScopes": ["HOST/shop/free"], "signatureVerification": {"level": "skip"}}]}`,
		"ratify-cosign": `
{apiVersion: config.ratify.deislabs.io/v1beta1, kind: KeyManagementProvider, metadata: {name: key}, spec: {type: inline, parameters: {contentType: key, value: 'KEY'}}}
---
{apiVersion: config.ratify.deislabs.io/v1beta1, kind: Verifier, metadata: {name: v}, spec: {name: cosign, parameters: {trustPolicies: [{name: shop, scopes: ["HOST/shop/*"], keys: [{provider: key}], tLogVerify: false}]}}}`,
		"ratify-notation": `
{apiVersion: config.ratify.deislabs.io/v1beta1, kind: KeyManagementProvider, metadata: {name: ca}, spec: {type: inline, parameters: {value: 'NOTARY'}}}
---
{apiVersion: config.ratify.deislabs.io/v1beta1, kind: Verifier, metadata: {name: v}, spec: {name: notation, parameters: {verificationCertStores: {ca: {certs: [ca]}},
  trustPolicyDoc: {version: "1.0", trustPolicies: [{name: shop, registryScopes: [HOST/notary/app], signatureVerification: {level: strict}, trustStores: ["ca:certs"], trustedIdentities: ["*"]}]}}}}`,
		"ratify-executor": `
{apiVersion: config.ratify.sh/v2alpha1, kind: Executor, metadata: {name: all}, spec: {scopes: [HOST], stores: [{type: registry-store}], verifiers: [
  {name: c1, type: cosign, parameters: {trustPolicies: [{keys: {inline: 'KEY'}, ignoreTLog: true}]}}, {name: n1, type: notation, parameters: {certificates: [{inline: 'NOTARY'}]}}],
  policyEnforcer: {type: threshold-policy, parameters: {policy: {threshold: 1, rules: [{verifierName: c1}, {verifierName: n1}]}}}}}
---
{apiVersion: config.ratify.sh/v2alpha1, kind: Executor, metadata: {name: both}, spec: {scopes: [HOST/shop/both], stores: [{type: registry-store}], verifiers: [
  {name: c1, type: cosign, parameters: {trustPolicies: [{keys: {inline: 'KEY'}, ignoreTLog: true}]}}, {name: c2, type: cosign, parameters: {trustPolicies: [{keys: {inline: 'STRANGER'}, ignoreTLog: true}]}}],
  policyEnforcer: {type: threshold-policy, parameters: {policy: {rules: [{verifierName: c1}, {verifierName: c2}]}}}}}`,
		"kyverno": `
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {validationFailureAction: Enforce, rules: [
  {name: shop, match: {any: [{resources: {kinds: [Pod], namespaces: ["sh*"]}}]}, verifyImages: [{imageReferences: ["HOST/shop/*"], skipImageReferences: ["HOST/shop/free*"],
    attestors: [{entries: [{keys: {publicKeys: 'KEY', rekor: {ignoreTlog: true, url: "https://rekor.sigstore.dev"}}}]}]}]},
  {name: both, match: {any: [{resources: {kinds: [Pod], namespaces: [shop]}}]}, verifyImages: [{imageReferences: ["HOST/shop/both*"],
    attestors: [{count: 2, entries: [{attestor: {count: 1, entries: [{keys: {publicKeys: 'KEY', rekor: {ignoreTlog: true, url: "https://rekor.sigstore.dev"}}}]}},
      {keys: {publicKeys: 'STRANGER', rekor: {ignoreTlog: true, url: "https://rekor.sigstore.dev"}}}]}]}]},
  {name: notary, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [{type: Notary, imageReferences: ["HOST/notary/*"], attestors: [{entries: [{certificates: {cert: 'NOTARY'}}]}]}]}]}}`,
		"fulcio": `{"default": [{"type": "reject"}], "transports": {"docker": {
  "HOST/shop": [{"type": "sigstoreSigned", "fulcio": {"caPath": "/keys/FULCIO", "oidcIssuer": "https://issuer.example.com", "subjectEmail": "dev@example.com"}, "rekorPublicKeyPath": "/keys/REKOR"}],
  "HOST/team": [{"type": "sigstoreSigned", "fulcio": {"caData": "base64:FULCIO", "oidcIssuer": "https://issuer.example.com", "subjectEmail": "dev@example.com"}, "rekorPublicKeyDatas": ["base64:KEY", "base64:REKOR"]}]}}}`,
		"openshift-fulcio": `
{apiVersion: config.openshift.io/v1, kind: ClusterImagePolicy, metadata: {name: shop}, spec: {scopes: [HOST], policy: {rootOfTrust: {policyType: FulcioCAWithRekor, fulcioCAWithRekor:
  {fulcioCAData: "base64:FULCIO", rekorKeyData: "base64:REKOR", fulcioSubject: {oidcIssuer: "https://issuer.example.com", signedEmail: dev@example.com}}}}}}`,
		"kyverno-statements": `
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {validationFailureAction: Enforce, rules: [
  {name: shop, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [{imageReferences: ["HOST/shop/*"],
    attestations: [{name: scan, type: "https://example.com/scan/v1", attestors: [{entries: [{keys: {publicKeys: 'KEY', rekor: {ignoreTlog: true, url: "https://rekor.sigstore.dev"}}}]}]}]}]}]}}`,
		"sigstore": `
{apiVersion: policy.sigstore.dev/v1beta1, kind: ClusterImagePolicy, metadata: {name: shop}, spec: {images: [{glob: "HOST/shop/*"}], authorities: [{key: {data: 'KEY'}}, {keyless: {identities: [{issuer: "https://issuer.example.com", subject: dev@example.com}]}}]}}
---
{apiVersion: policy.sigstore.dev/v1beta1, kind: ClusterImagePolicy, metadata: {name: both}, spec: {images: [{glob: "HOST/shop/both"}], authorities: [{key: {data: 'STRANGER'}}]}}`,
	}
}

// TestJudged signs images with real signers and asks the converted policies. Each
// row that is admitted has a twin that is denied, with one thing wrong.
func TestJudged(t *testing.T) {
	h := newEnv(t)
	keyed := func(signers ...*verifytest.Signer) func(gatetest.Image) error {
		return func(i gatetest.Image) error {
			for _, s := range signers {
				if err := h.SignLegacy(i, verifytest.Claim{Signer: s, NoLog: true}, nil); err != nil {
					return err
				}
			}
			return nil
		}
	}
	notarized := func(n *verifytest.Notary) func(gatetest.Image) error {
		return func(i gatetest.Image) error { return h.SignNotation(i, n, verifytest.Notation{}) }
	}
	keyless := func(s *verifytest.Signer) func(gatetest.Image) error {
		return func(i gatetest.Image) error { return h.SignLegacy(i, verifytest.Claim{Signer: s}, nil) }
	}
	stated := func(s *verifytest.Signer, kind string) func(gatetest.Image) error {
		return func(i gatetest.Image) error {
			return h.AttestLegacy(i, verifytest.Claim{Signer: s, NoLog: true}, kind, map[string]any{"ok": true})
		}
	}
	names := map[string]string{}
	for name, sign := range map[string]func(gatetest.Image) error{
		"shop/signed": keyed(h.key), "shop/unsigned": nil, "shop/foreign": keyed(h.stranger), "shop/free": nil, "other/app": keyed(h.key),
		"notary/app": notarized(h.notary), "notary/app:other": notarized(h.other), "notary/builder": notarized(h.builder), "notary/builder:visitor": notarized(h.visitor),
		"shop/keyless": keyless(h.ours), "shop/keyless:eve": keyless(h.theirs), "team/keyless": keyless(h.ours), "team/keyless:eve": keyless(h.theirs),
		"shop/both": keyed(h.key, h.stranger), "shop/both:one": keyed(h.key), "shop/both:two": keyed(h.stranger),
		"shop/stated": stated(h.key, "https://example.com/scan/v1"), "shop/stated:foreign": stated(h.stranger, "https://example.com/scan/v1"), "shop/stated:else": stated(h.key, "https://example.com/other/v1"),
	} {
		repository, tag, _ := strings.Cut(name, ":")
		if tag == "" {
			tag = "1"
		}
		built := h.Build(repository, tag, name)
		names[name] = built.Name
		if sign != nil {
			if err := sign(built); err != nil {
				t.Fatal(err)
			}
		}
	}
	const allow, deny, unchecked = gate.Allow, gate.Deny, gate.Unchecked
	for source, rows := range map[string]map[string]gate.Result{
		"connaisseur": {
			"shop/signed": allow, "shop/unsigned": deny, "shop/foreign": deny, "shop/free": unchecked, "other/app": deny,
			"shop/both": allow, "shop/both:one": deny, "shop/both:two": deny, "notary/app": allow, "notary/app:other": deny,
		},
		"containers": {
			"shop/signed": allow, "shop/unsigned": deny, "shop/foreign": deny, "shop/free": unchecked, "other/app": deny,
			"shop/both": allow, "shop/both:one": deny, "shop/both:two": deny,
		},
		"openshift": {
			"shop/signed": allow, "shop/unsigned": deny, "shop/foreign": deny, "other/app": unchecked,
			"shop/both": allow, "shop/both:one": deny, "shop/both:two": deny,
		},
		"notation": {
			"notary/app": allow, "notary/app:other": deny, "notary/builder": allow, "notary/builder:visitor": deny, "shop/free": unchecked, "shop/signed": deny,
		},
		"ratify-cosign":   {"shop/signed": allow, "shop/unsigned": deny, "shop/foreign": deny, "other/app": deny},
		"ratify-notation": {"notary/app": allow, "notary/app:other": deny, "shop/signed": deny},
		"ratify-executor": {
			"shop/signed": allow, "shop/unsigned": deny, "shop/foreign": deny, "notary/app": allow, "notary/app:other": deny,
			"shop/both": allow, "shop/both:one": deny, "shop/both:two": deny,
		},
		"kyverno": {
			"shop/signed": allow, "shop/unsigned": deny, "shop/foreign": deny, "shop/free": unchecked, "other/app": unchecked,
			"shop/both": allow, "shop/both:one": deny, "shop/both:two": deny, "notary/app": allow, "notary/app:other": deny,
		},
		"fulcio":           {"shop/keyless": allow, "shop/keyless:eve": deny, "shop/signed": deny, "team/keyless": allow, "team/keyless:eve": deny},
		"openshift-fulcio": {"shop/keyless": allow, "shop/keyless:eve": deny, "shop/signed": deny},
		"sigstore": {
			"shop/signed": allow, "shop/unsigned": deny, "shop/foreign": deny, "shop/keyless": allow, "shop/keyless:eve": deny, "other/app": deny,
			"shop/both": allow, "shop/both:one": deny, "shop/both:two": deny,
		},
		"kyverno-statements": {"shop/stated": allow, "shop/stated:foreign": deny, "shop/stated:else": deny, "shop/signed": deny},
	} {
		t.Run(source, func(t *testing.T) {
			g := h.gate(t, sources()[source])
			for name, want := range rows {
				if out := g.Decide(t.Context(), pod(t, names[name])); out.Result != want {
					t.Errorf("%s: %s, want %s: %s", name, out.Result, want, reasonsOf(out))
				}
				container := []any{map[string]any{"name": "c", "image": names[name]}}
				for place, spec := range map[string]map[string]any{
					"an init container":      {"containers": []any{}, "initContainers": container},
					"an ephemeral container": {"containers": []any{}, "ephemeralContainers": container},
					"a volume":               {"containers": []any{}, "volumes": []any{map[string]any{"name": "v", "image": map[string]any{"reference": names[name]}}}},
				} {
					if out := g.Decide(t.Context(), request(t, spec)); out.Result != want {
						t.Errorf("%s in %s: %s, want %s: %s", name, place, out.Result, want, reasonsOf(out))
					}
				}
			}
			for name, want := range rows { // one bad image among good ones
				for other, good := range rows {
					if good == allow && want == deny {
						if out := g.Decide(t.Context(), pod(t, names[other], names[name])); out.Result != deny {
							t.Errorf("%s beside %s: %s, want deny", name, other, out.Result)
						}
					}
				}
			}
		})
	}
}
