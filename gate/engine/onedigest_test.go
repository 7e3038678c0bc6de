package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

// turning is a registry in which a tag moves at each request.
type turning struct {
	archive
	tags *[]image.Digest
}

// Open implements gate.Registries.
func (t *turning) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return t, nil
}

// Scope implements gate.Session.
func (*turning) Scope() string { return "" }

// Cost implements gate.Session.
func (*turning) Cost() gate.Cost { return gate.Cost{} }

// Describe implements gate.Session.
func (*turning) Describe(_ context.Context, pinned image.Pinned) (image.Pinned, error) {
	return pinned, nil
}

// Resolve implements gate.Session.
func (t *turning) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	tags := *t.tags
	if len(tags) > 1 {
		*t.tags = tags[1:]
	}
	return ref.Pin(image.Descriptor{MediaType: image.MediaTypeManifest, Digest: tags[0]})
}

// Manifest implements gate.Session: no tag holds evidence.
func (t *turning) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	if _, err := image.ParseDigest(reference); err != nil {
		return image.Descriptor{}, nil, &image.Error{Kind: image.NotFound, Op: "read manifest", On: reference}
	}
	return t.archive.Manifest(ctx, repository, reference)
}

// Referrers implements gate.Session.
func (*turning) Referrers(context.Context, image.Repository, image.Digest, []string) ([]image.Descriptor, error) {
	return nil, nil
}

const signedRoot = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed-root}
spec:
  validationFailureAction: Enforce
  webhookConfiguration: {failurePolicy: Fail}
  rules:
  - name: root-is-signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    context:
    - name: user
      imageRegistry: {reference: "{{ request.object.spec.containers[0].image }}", jmesPath: configData.config.User}
    preconditions: {all: [{key: "{{ user }}", operator: Equals, value: "0"}]}
    verifyImages:
    - imageReferences: ["*"]
      attestors: [{entries: [{keys: {publicKeys: "%s", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]
  - name: pinned
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages: [{imageReferences: ["*"], required: false}]
`

// TestOneDigestOfARequest: the image that is pinned is the one of which a rule read the user, so that no
// unsigned image runs as root.
func TestOneDigestOfARequest(t *testing.T) {
	key, err := verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		users  []string // of the images to which the tag resolves, one after another
		want   gate.Result
	}{
		{"a tag that stays", []string{"1"}, gate.Allow},
		{"a tag that stays at root", []string{"0"}, gate.Deny},
		{"a tag that moves to root", []string{"1", "0"}, gate.Allow},
		{"a tag that moves from root", []string{"0", "1"}, gate.Deny},
	} {
		registry := &turning{archive: archive{found: map[image.Digest][]byte{}}, tags: &[]image.Digest{}}
		for _, user := range c.users {
			configured := registry.add(fmt.Sprintf(`{"config":{"User":%q}}`, user))
			*registry.tags = append(*registry.tags, registry.add(fmt.Sprintf(`{"config":{"digest":%q,"size":1}}`, configured)))
		}
		first := (*registry.tags)[0]
		outcome := gateOf(t, fmt.Sprintf(signedRoot, strings.ReplaceAll(string(key.PublicPEM()), "\n", "\\n")), registry).Decide(t.Context(), gate.Request{Object: read(t, pod)[0]})
		if outcome.Result != c.want {
			t.Errorf("%s: %s, want %s: %v", c.reason, outcome.Result, c.want, outcome.Reasons)
		}
		for _, verdict := range outcome.Verdicts {
			if got := verdict.Pinned.Digest(); got != first {
				t.Errorf("%s: %s is pinned, %s was read", c.reason, got, first)
			}
		}
	}
}

// gateOf returns a gate with the policies of a text.
func gateOf(t *testing.T, policies string, registries gate.Registries) *gate.Gate {
	t.Helper()
	resources := engine.NewResources()
	compiled, err := engine.CompileDocuments(read(t, policies), resources, true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	compiled.Images.Use(gate.Config{Registries: registries})
	set, err := compiled.Set()
	if err != nil {
		t.Fatal(err)
	}
	store, err := trust.New(trust.Options{Secrets: resources})
	if err != nil {
		t.Fatal(err)
	}
	prover, err := engine.NewProver(store.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Registries: registries, State: gate.Fixed{Policies: set, Prover: prover}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func read(t *testing.T, text string) []workload.Object {
	t.Helper()
	objects, err := workload.Read(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
