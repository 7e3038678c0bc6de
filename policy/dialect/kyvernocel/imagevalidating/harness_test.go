package imagevalidating_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
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
	key, stranger *verifytest.Signer
	notary, other *verifytest.Notary
	client        *registry.Client
	prover        gate.Prover
	compiler      *imagevalidating.Compiler
}

type prover struct {
	*trust.Snapshot
	verify.ByFormat
}

type session struct {
	*registry.Client
	meter *registry.Meter
}

func (session) Scope() string { return "" }

func (s session) Cost() gate.Cost {
	return gate.Cost{Requests: s.meter.Requests(), RateLimitRemaining: -1}
}

// Open implements gate.Registries.
func (h *env) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	meter := &registry.Meter{}
	return session{Client: h.client.With(meter), meter: meter}, nil
}

func newEnv(t testing.TB) *env {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	sigstore := testkit.Must(verifytest.New(verifytest.Options{}))(t)
	store := testkit.Must(trust.New(trust.Options{TrustedRoot: sigstore.TrustedRoot()}))(t)
	h := &env{
		Yard:     gatetest.New(server, sigstore),
		key:      testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t),
		stranger: testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t),
		notary:   testkit.Must(verifytest.NewNotary(verifytest.NotaryOptions{}))(t),
		other:    testkit.Must(verifytest.NewNotary(verifytest.NotaryOptions{}))(t),
		client:   testkit.Must(registry.New(registry.Config{}))(t),
		compiler: newCompiler(),
	}
	t.Cleanup(h.client.Close)
	snapshot := store.Snapshot()
	h.prover = prover{Snapshot: snapshot, ByFormat: verify.ByFormat{
		attest.Cosign: cosign.New(snapshot), attest.Bundle: bundle.New(snapshot), attest.Notation: testkit.Must(notation.New(notation.Options{}))(t),
	}}
	return h
}

func newCompiler() *imagevalidating.Compiler {
	return imagevalidating.New(imagevalidating.Options{Options: kyvernocel.Options{Now: time.Now, Random: rand.Reader}})
}

// fill puts the registry and the signers into a text: HOST, KEY, STRANGER, NOTARY and
// OTHER.
func (h *env) fill(text string) string {
	quoted := func(pem []byte) string {
		out, _ := json.Marshal(string(pem))
		return string(out)
	}
	return strings.NewReplacer("HOST", h.Registry.Host(), "'KEY'", quoted(h.key.PublicPEM()), "'STRANGER'", quoted(h.stranger.PublicPEM()),
		"'NOTARY'", quoted(h.notary.RootPEM()), "'OTHER'", quoted(h.other.RootPEM())).Replace(text)
}

func (h *env) policy(t testing.TB, text string) *policy.Policy {
	t.Helper()
	return testkit.Must(h.compiler.Compile([]byte(h.fill(text)), "test.yaml"))(t)
}

func (h *env) set(t testing.TB, texts ...string) *set.Set {
	t.Helper()
	var policies []*policy.Policy
	var exceptions []*policy.Exception
	for _, text := range texts {
		if strings.Contains(text, "kind: PolicyException") {
			exceptions = append(exceptions, testkit.Must(h.compiler.CompileException([]byte(h.fill(text)), "exception.yaml"))(t))
			continue
		}
		policies = append(policies, h.policy(t, text))
	}
	set := testkit.Must(set.New(policies...))(t)
	return testkit.Must(set.With(exceptions...))(t)
}

func (h *env) gate(t testing.TB, set *set.Set) *gate.Gate {
	t.Helper()
	return testkit.Must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: h.prover}}))(t)
}

// decide judges an object by policies and exceptions.
func (h *env) decide(t testing.TB, object gate.Request, texts ...string) gate.Outcome {
	t.Helper()
	return h.gate(t, h.set(t, texts...)).Decide(t.Context(), object)
}

// signed builds an image and signs it by signers, or by none.
func (h *env) signed(t testing.TB, name string, by ...*verifytest.Signer) gatetest.Image {
	t.Helper()
	built := h.Build("org/"+name, "1", name)
	for _, signer := range by {
		if err := h.SignLegacy(built, verifytest.Claim{Signer: signer, NoLog: true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return built
}

// attest adds a statement to an image.
func (h *env) attest(t testing.TB, built gatetest.Image, by *verifytest.Signer, predicateType string, predicate any) {
	t.Helper()
	if err := h.AttestLegacy(built, verifytest.Claim{Signer: by, NoLog: true}, predicateType, predicate); err != nil {
		t.Fatal(err)
	}
}

// notarize signs as notation does.
func (h *env) notarize(t testing.TB, built gatetest.Image, by *verifytest.Notary) {
	t.Helper()
	if err := h.SignNotation(built, by, verifytest.Notation{}); err != nil {
		t.Fatal(err)
	}
}

// document attaches a document to an image, signed by a notary; unsigned if nil.
func (h *env) document(t testing.TB, built gatetest.Image, by *verifytest.Notary, artifactType, content string) {
	t.Helper()
	body := testkit.Must(json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "artifactType": artifactType,
		"config":  h.Registry.PutBlob(built.Repository, ocispec.MediaTypeEmptyJSON, []byte("{}")),
		"layers":  []any{h.Registry.PutBlob(built.Repository, "application/json", []byte(content))},
		"subject": map[string]any{"mediaType": built.Manifest.MediaType, "digest": built.Manifest.Digest, "size": built.Manifest.Size},
	}))(t)
	name := digest.FromBytes(body).String()
	h.Registry.PutManifest(built.Repository, name, ocispec.MediaTypeImageManifest, body)
	if by == nil {
		return
	}
	attached := gatetest.Image{Name: built.Name, Repository: built.Repository, Manifest: registrytest.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, Digest: name, Size: int64(len(body)),
	}}
	h.notarize(t, attached, by)
}

// object is a Kubernetes object of a kind with a pod specification.
type object struct {
	kind        string            // Pod if empty
	labels      map[string]string // of the pod
	own         map[string]string // of what makes it
	annotations map[string]string
	images      []string
	init        []string
	spec        map[string]any
}

func (o object) request(t testing.TB) gate.Request {
	t.Helper()
	containers := func(prefix string, images []string) []any {
		var list []any
		for i, image := range images {
			list = append(list, map[string]any{"name": fmt.Sprintf("%s%d", prefix, i), "image": image})
		}
		return list
	}
	spec := map[string]any{"containers": containers("c", o.images)}
	if len(o.init) > 0 {
		spec["initContainers"] = containers("i", o.init)
	}
	maps.Copy(spec, o.spec)
	meta := map[string]any{"name": "test", "namespace": "default"}
	labels := map[string]any{}
	for key, value := range o.labels {
		labels[key] = value
	}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}
	body := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
	switch o.kind {
	case "", "Pod":
		if len(labels) > 0 {
			meta["labels"] = labels
		}
	case "CronJob":
		body["apiVersion"], body["kind"] = "batch/v1", o.kind
		body["spec"] = map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
	default:
		body["apiVersion"], body["kind"] = "apps/v1", o.kind
		body["spec"] = map[string]any{"template": template}
	}
	if len(o.own) > 0 {
		meta["labels"] = o.own
	}
	if len(o.annotations) > 0 {
		meta["annotations"] = o.annotations
	}
	raw := testkit.Must(json.Marshal(body))(t)
	return gate.Request{Object: testkit.Must(workload.Parse(raw))(t)}
}

func pod(t testing.TB, images ...string) gate.Request {
	t.Helper()
	return object{images: images}.request(t)
}

// codes are the codes of everything that is held against an object, each once.
func codes(out gate.Outcome) []string {
	var all []string
	add := func(reasons []policy.Reason) {
		for _, r := range reasons {
			if !slices.Contains(all, string(r.Code)) {
				all = append(all, string(r.Code))
			}
		}
	}
	for _, v := range out.Verdicts {
		for _, d := range v.Decisions {
			if d.Result != policy.Pass {
				add(d.Reasons)
			}
		}
	}
	for _, r := range out.Rules {
		add(r.Ruling.Reasons)
		if r.Err != nil {
			all = append(all, "rule-error: "+r.Err.Error())
		}
	}
	return all
}

// expect wants an answer and, of a refusal, a code or a word.
func expect(t testing.TB, out gate.Outcome, reason string, answer gate.Result, word string) {
	t.Helper()
	text := strings.Join(codes(out), " ") + " " + words(out)
	if out.Result != answer || !strings.Contains(text, word) {
		t.Errorf("%s: %s, want %s with %q: %s", reason, out.Result, answer, word, text)
	}
}

func words(out gate.Outcome) string {
	var all []string
	for _, v := range out.Verdicts {
		for _, d := range v.Decisions {
			for _, r := range d.Reasons {
				all = append(all, r.Message)
			}
		}
	}
	for _, r := range out.Rules {
		for _, reason := range r.Ruling.Reasons {
			all = append(all, reason.Message)
		}
		if r.Skip != "" {
			all = append(all, "skip: "+r.Skip)
		}
	}
	return strings.Join(all, " | ")
}

func factsOf(signers ...string) []verify.Fact {
	var list []verify.Fact
	for _, s := range signers {
		list = append(list, verify.Fact{Signer: verify.Signer{KeyFingerprint: s}, Origin: attest.Origin{}})
	}
	return list
}
