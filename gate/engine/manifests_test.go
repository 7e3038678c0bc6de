package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/signedmanifest/manifesttest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// manifestLab has signers of manifests, two of which policies trust, and a registry.
type manifestLab struct {
	*gatetest.Env
	first, second, stranger, build, fork *verifytest.Signer
	prover                               gate.Prover
	dryRuns                              *dryRuns
}

// dryRuns is an API server that makes objects of manifests.
type dryRuns struct {
	make  func(map[string]any) (map[string]any, error)
	calls []string
}

func (d *dryRuns) DryRunCreate(_ context.Context, resource policy.APIResource, namespace string, object map[string]any) (map[string]any, error) {
	metadata, _ := object["metadata"].(map[string]any)
	d.calls = append(d.calls, fmt.Sprintf("%s %s/%v", resource.Name, namespace, metadata["name"]))
	return d.make(object)
}

func newManifestLab(t *testing.T) *manifestLab {
	t.Helper()
	env, err := gatetest.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(env.Close)
	key := func() *verifytest.Signer { return verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})) }
	identity := func(uri string) *verifytest.Signer {
		return verifytest.Must(env.Sigstore.Keyless(verifytest.Identity{URI: uri, Issuer: "https://token.example"}))
	}
	store, err := trust.New(trust.Options{TrustedRoot: env.Sigstore.TrustedRoot()})
	if err != nil {
		t.Fatal(err)
	}
	prover, err := engine.NewProver(store.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	return &manifestLab{
		Env: env, first: key(), second: key(), stranger: key(), build: identity("https://git.example/app"), fork: identity("https://git.example/fork"),
		prover: prover, dryRuns: &dryRuns{make: func(map[string]any) (map[string]any, error) { return nil, errors.New("no dry run is expected") }},
	}
}

// gate returns a gate with one policy of the attestors and the further fields of validate.manifests.
func (l *manifestLab) gate(t *testing.T, attestors, more string) *gate.Gate {
	t.Helper()
	pem := func(s *verifytest.Signer) string { return string(verifytest.Must(json.Marshal(string(s.PublicPEM())))) }
	fill := strings.NewReplacer("FIRST", pem(l.first), "SECOND", pem(l.second), "HOST", l.Registry.Host(),
		"BUILD", "{keyless: {issuer: https://token.example, subject: https://git.example/app}}")
	text := fill.Replace(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  failurePolicy: Ignore
  background: false
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [ClusterRole, ConfigMap, Pod, Deployment, Service, Secret, Task]}}]}
    validate: {manifests: {attestors: ` + attestors + more + `}}
`)
	images := &engine.RuleImages{}
	compilers, err := engine.NewCompilers(engine.CompilerOptions{
		ConfigMaps: engine.NewResources(), Secrets: engine.FileSecrets{Resources: engine.NewResources()}, Images: images, Manifests: manifests.Options{Signatures: images, DryRuns: l.dryRuns}, Offline: true, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	documents := engine.Documents{Compilers: compilers}
	for _, object := range read(t, text) {
		if err := documents.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	set, err := documents.Set()
	if err != nil {
		t.Fatal(err)
	}
	config := gate.Config{Registries: l.Env, State: gate.Fixed{Policies: set, Prover: l.prover}}
	images.Use(config)
	g, err := gate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// sign returns an object with the evidence of claims over one content. The first claim's content is
// the message.
func (l *manifestLab) sign(t *testing.T, object, content string, claims ...verifytest.Claim) string {
	t.Helper()
	annotations := map[string]string{}
	for n, claim := range claims {
		if claim.Artifact == nil {
			claim.Artifact = []byte(content)
		}
		suffix := ""
		if n > 0 {
			suffix = fmt.Sprintf("_%d", n)
		}
		for name, value := range verifytest.Must(manifesttest.Annotations(l.Sigstore, claim)) {
			if name != "message" {
				name += suffix
			} else if n > 0 {
				continue
			}
			annotations["cosign.sigstore.dev/"+name] = value
		}
	}
	return annotate(t, object, annotations)
}

// annotate adds annotations to an object in YAML.
func annotate(t *testing.T, text string, more map[string]string) string {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		t.Fatalf("no metadata in %s", text)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	for name, value := range more {
		annotations[name] = value
	}
	metadata["annotations"] = annotations
	return string(verifytest.Must(yaml.Marshal(object)))
}

// decideManifest returns the result for an object, and its reasons.
func decideManifest(t *testing.T, g *gate.Gate, text string, change func(*gate.Request)) (gate.Result, string) {
	t.Helper()
	request := gate.Request{Object: read(t, text)[0]}
	if change != nil {
		change(&request)
	}
	outcome := g.Decide(t.Context(), request)
	var reasons []string
	for _, r := range outcome.Reasons {
		reasons = append(reasons, string(r.Code)+": "+r.Message)
	}
	return outcome.Result, strings.Join(reasons, "\n")
}

const (
	plain    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop, labels: {app: a}}\ndata: {key: value}\n"
	oneKey   = "[{entries: [{keys: {publicKeys: FIRST}}]}]"
	bothKeys = "[{entries: [{keys: {publicKeys: FIRST}}, {keys: {publicKeys: SECOND}}]}]"
)

type manifestRow struct {
	reason, attestors, more, object string
	want                            gate.Result
	why                             string // part of the reasons
}

func (l *manifestLab) run(t *testing.T, rows []manifestRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			result, reasons := decideManifest(t, l.gate(t, row.attestors, row.more), row.object, nil)
			if result != row.want || !strings.Contains(reasons, row.why) {
				t.Errorf("%s, want %s because of %q:\n%s", result, row.want, row.why, reasons)
			}
		})
	}
}

func TestSignedManifest(t *testing.T) {
	l := newManifestLab(t)
	claim := func(by *verifytest.Signer) verifytest.Claim { return verifytest.Claim{Signer: by, NoLog: true} }
	signed := l.sign(t, plain, plain, claim(l.first))
	change := func(from, to string) string {
		changed := strings.Replace(signed, from, to, 1)
		if changed == signed {
			t.Fatalf("no %q in %s", from, signed)
		}
		return changed
	}
	several := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: shop}\n---\n" + plain
	l.run(t, []manifestRow{
		{"what was signed", oneKey, "", signed, gate.Allow, ""},
		{"no signature", oneKey, "", plain, gate.Deny, "unsigned: the object carries no signed manifest"},
		{"a message without a signature", oneKey, "", annotate(t, plain, map[string]string{"cosign.sigstore.dev/message": verifytest.Must(manifesttest.Annotations(l.Sigstore, verifytest.Claim{Signer: l.first, Artifact: []byte(plain), NoLog: true}))["message"]}), gate.Deny, "unsigned:"},
		{"another key", oneKey, "", l.sign(t, plain, plain, claim(l.stranger)), gate.Deny, "wrong-key: signed with another key"},
		{"a signature over other bytes", oneKey, "", l.sign(t, plain, plain, verifytest.Claim{Signer: l.first, NoLog: true, WrongSignature: true}), gate.Deny, "wrong-key:"},
		{"another value", oneKey, "", change("key: value", "key: other"), gate.Deny, `the object is not what was signed: data.key was signed as "value" and is "other"`},
		{"a value more", oneKey, "", change("key: value", "key: value\n  more: x"), gate.Deny, "data.more was not signed"},
		{"a value less", oneKey, "", change("    app: a\n", "    other: a\n"), gate.Deny, "metadata.labels.app was signed and is not there"},
		{"the signature of another object", oneKey, "", change("name: a", "name: b"), gate.Deny, "has no manifest of this object"},
		{"in another namespace", oneKey, "", change("namespace: shop", "namespace: prod"), gate.Deny, "has no manifest of this object"},
		{"in another namespace, ignored", oneKey, ", ignoreFields: [{fields: [metadata.namespace]}]", change("namespace: shop", "namespace: prod"), gate.Allow, ""},
		{"as another kind", oneKey, "", change("kind: ConfigMap", "kind: Secret"), gate.Deny, "has no manifest of this object"},
		{"an annotation more", oneKey, "", annotate(t, signed, map[string]string{"cosign.sigstore.dev/owner": "x"}), gate.Deny, "metadata.annotations.cosign.sigstore.dev/owner was not signed"},
		{"an ignored field", oneKey, ", ignoreFields: [{fields: [data.key], objects: [{kind: ConfigMap}]}]", change("key: value", "key: other"), gate.Allow, ""},
		{"ignored for another kind", oneKey, ", ignoreFields: [{fields: [data.key], objects: [{kind: Secret}]}]", change("key: value", "key: other"), gate.Deny, "data.key"},
		{"one of several manifests", oneKey, "", l.sign(t, plain, several, claim(l.first)), gate.Allow, ""},
		{"none of several", oneKey, "", l.sign(t, strings.Replace(plain, "key: value", "key: other", 1), several, claim(l.first)), gate.Deny, "data.key"},
		{"an archive", oneKey, "", l.sign(t, plain, archiveOf(t, "dir/a.yaml", plain), claim(l.first)), gate.Allow, ""},
		{"an archive without manifests", oneKey, "", l.sign(t, plain, archiveOf(t, "dir/a.txt", plain), claim(l.first)), gate.Deny, "has no manifest of this object"},
		{"a name twice", oneKey, "", l.sign(t, plain, strings.Replace(plain, "{key: value}", "{key: other, key: value}", 1), claim(l.first)), gate.Deny, "the signed content cannot be used"},
		{"no base64", oneKey, "", annotate(t, signed, map[string]string{"cosign.sigstore.dev/message": "?"}), gate.Deny, "malformed: the evidence cannot be read"},
		{"more than the bound", oneKey, "", l.sign(t, plain, plain+strings.Repeat("#\n", 1<<20), claim(l.first)), gate.Deny, "malformed: the evidence cannot be read: the signed content: the signed content is larger"},
		{"another domain", oneKey, ", annotationDomain: example.com", signed, gate.Deny, "unsigned:"},
		{"both keys", bothKeys, "", l.sign(t, plain, plain, claim(l.first), claim(l.second)), gate.Allow, ""},
		{"one of both keys", bothKeys, "", l.sign(t, plain, plain, claim(l.first), claim(l.stranger)), gate.Deny, "too-few-signers"},
		{"the same key twice", bothKeys, "", l.sign(t, plain, plain, claim(l.first), claim(l.first)), gate.Deny, "too-few-signers"},
		{"a key that the policy names twice", "[{entries: [{keys: {publicKeys: FIRST}}, {keys: {publicKeys: FIRST}}]}]", "", signed, gate.Deny, "too-few-signers"},
		{"a count of one", strings.Replace(bothKeys, "{entries", "{count: 1, entries", 1), "", l.sign(t, plain, plain, claim(l.stranger), claim(l.second)), gate.Allow, ""},
		{"two sets", "[{entries: [{keys: {publicKeys: FIRST}}]}, {entries: [{keys: {publicKeys: SECOND}}]}]", "", signed, gate.Deny, "wrong-key"},
		{"a nested set", "[{entries: [{attestor: {entries: [{keys: {publicKeys: FIRST}}]}}]}]", "", signed, gate.Allow, ""},
		{"a nested set of another key", "[{entries: [{attestor: {entries: [{keys: {publicKeys: SECOND}}]}}]}]", "", signed, gate.Deny, "wrong-key"},
		{"a log that is required", "[{entries: [{keys: {publicKeys: FIRST, rekor: {url: 'https://rekor.sigstore.dev'}}}]}]", "", signed, gate.Deny, "no-log-entry"},
		{"with a log entry", "[{entries: [{keys: {publicKeys: FIRST, rekor: {url: 'https://rekor.sigstore.dev'}}}]}]", "", l.sign(t, plain, plain, verifytest.Claim{Signer: l.first}), gate.Allow, ""},
		{"keyless", "[{entries: [BUILD]}]", "", l.sign(t, plain, plain, verifytest.Claim{Signer: l.build}), gate.Allow, ""},
		{"keyless of another identity", "[{entries: [BUILD]}]", "", l.sign(t, plain, plain, verifytest.Claim{Signer: l.fork}), gate.Deny, "wrong-identity"},
		{"keyless without a log entry", "[{entries: [BUILD]}]", "", l.sign(t, plain, plain, verifytest.Claim{Signer: l.build, NoLog: true}), gate.Deny, "no-log-entry"},
		{"keyless under another certificate", "[{entries: [BUILD]}]", "", l.sign(t, plain, plain, verifytest.Claim{Signer: l.fork, Shown: l.build}), gate.Deny, "bad-signature"},
		{"keyless, and a key signed", "[{entries: [BUILD]}]", "", signed, gate.Deny, "wrong-identity"},
		{"a key, and keyless signed", oneKey, "", l.sign(t, plain, plain, verifytest.Claim{Signer: l.build}), gate.Deny, "wrong-key"},
		{"a required annotation that is not signed", "[{entries: [{keys: {publicKeys: FIRST}, annotations: {team: a}}]}]", "", signed, gate.Deny, "lacks the annotation team"},
	})
}

func archiveOf(t *testing.T, name, content string) string {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	if err := errors.Join(files.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o600}), write(files, content), files.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func write(to interface{ Write([]byte) (int, error) }, content string) error {
	_, err := to.Write([]byte(content))
	return err
}

// bundle pushes an image with manifests.
func (l *manifestLab) bundle(tag, kind, content string, signers ...*verifytest.Signer) gatetest.Image {
	manifest := struct {
		SchemaVersion int                       `json:"schemaVersion"`
		MediaType     string                    `json:"mediaType"`
		Config        registrytest.Descriptor   `json:"config"`
		Layers        []registrytest.Descriptor `json:"layers"`
	}{2, ocispec.MediaTypeImageManifest, l.Registry.PutBlob("shop/deploy", ocispec.MediaTypeImageConfig, []byte("{}")),
		[]registrytest.Descriptor{l.Registry.PutBlob("shop/deploy", kind, []byte(content))}}
	image := gatetest.Image{Name: l.Registry.Host() + "/shop/deploy:" + tag, Repository: "shop/deploy"}
	image.Manifest = l.Registry.PutManifest("shop/deploy", tag, ocispec.MediaTypeImageManifest, verifytest.Must(json.Marshal(manifest)))
	for _, signer := range signers {
		if err := l.SignLegacy(image, verifytest.Claim{Signer: signer, NoLog: true}, nil); err != nil {
			panic(err)
		}
	}
	return image
}

func TestManifestsInAnImage(t *testing.T) {
	l := newManifestLab(t)
	const text = "text/plain"
	good := l.bundle("good", text, plain, l.first)
	stranger := l.bundle("stranger", text, plain+"# another\n", l.stranger)
	unsigned := l.bundle("unsigned", text, plain+"# unsigned\n")
	packed := l.bundle("packed", "application/x-gzip", archiveOf(t, "a.yml", plain), l.first)
	l.bundle("latest", text, plain+"# of both\n", l.first, l.second)
	running := l.bundle("running", ocispec.MediaTypeImageLayerGzip, archiveOf(t, "a.yaml", plain), l.first)
	named := func(image gatetest.Image) string {
		return annotate(t, plain, map[string]string{"cosign.sigstore.dev/resourceBundleRef": image.Name})
	}
	other := strings.Replace(named(good), "key: value", "key: other", 1)
	const repository = ", repository: HOST/shop/deploy"
	l.run(t, []manifestRow{
		{"an annotation names the image", oneKey, "", named(good), gate.Allow, ""},
		{"of another key", oneKey, "", named(stranger), gate.Deny, "wrong-key"},
		{"unsigned", oneKey, "", named(unsigned), gate.Deny, "unsigned"},
		{"another object", oneKey, "", other, gate.Deny, "data.key"},
		{"an archive", oneKey, "", named(packed), gate.Allow, ""},
		{"a signed image that runs", oneKey, "", named(running), gate.Deny, "has no manifest of this object"},
		{"the policy names the image", oneKey, repository + ":good", plain, gate.Allow, ""},
		{"the policy names an unsigned image", oneKey, repository + ":unsigned", plain, gate.Deny, "unsigned"},
		{"the annotation selects a tag of the policy's repository", oneKey, repository, named(good), gate.Allow, ""},
		{"the annotation names another repository", oneKey, ", repository: HOST/shop/other", named(good), gate.Deny, "the policy the repository"},
		{"a digest of the policy counts", oneKey, repository + "@" + unsigned.Manifest.Digest, named(good), gate.Deny, "unsigned"},
		{"an attestor's own repository", "[{entries: [{keys: {publicKeys: FIRST}, repository: 'HOST/shop/deploy:good'}]}]", ", repository: HOST/shop/other", plain, gate.Allow, ""},
		{"two attestors write the image differently", "[{entries: [{keys: {publicKeys: FIRST}, repository: HOST/shop/deploy}, {keys: {publicKeys: SECOND}, repository: 'HOST/shop/deploy:latest'}]}]",
			"", plain, gate.Allow, ""},
		{"two write it differently, and one has not signed", "[{entries: [{keys: {publicKeys: FIRST}, repository: HOST/shop/deploy}, {keys: {publicKeys: SECOND}, repository: 'HOST/shop/deploy:good'}]}]",
			"", plain, gate.Deny, "wrong-key"},
		{"the annotation names no image", oneKey, "", annotate(t, plain, map[string]string{"cosign.sigstore.dev/resourceBundleRef": "a,b"}), gate.Deny, "of which one is supported"},
		{"the author names a registry that does not answer, with failurePolicy Ignore", oneKey, "", annotate(t, plain, map[string]string{"cosign.sigstore.dev/resourceBundleRef": "127.0.0.1:1/a:1"}), gate.Error, "cannot-prove"},
		{"the author names a tag that is not there", oneKey, "", annotate(t, plain, map[string]string{"cosign.sigstore.dev/resourceBundleRef": l.Registry.Host() + "/shop/deploy:none"}), gate.Error, "cannot-prove"},
	})
}

// TestManifestNamespace: an object of a file is in the namespace that it is placed in, and a manifest has to name the
// same one if it names any.
func TestManifestNamespace(t *testing.T) {
	l := newManifestLab(t)
	bare := strings.Replace(plain, ", namespace: shop", "", 1)
	by := verifytest.Claim{Signer: l.first, NoLog: true}
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules: []\n"
	for _, row := range []struct {
		reason, object, namespace string
		want                      gate.Result
		why                       string
	}{
		{"the signed namespace", l.sign(t, bare, plain, by), "shop", gate.Allow, ""},
		{"another one", l.sign(t, bare, plain, by), "prod", gate.Deny, "has no manifest of this object, by its apiVersion, kind, namespace and name: v1 ConfigMap prod/a"},
		{"none", l.sign(t, bare, plain, by), "", gate.Deny, "v1 ConfigMap a"},
		{"the manifest names none", l.sign(t, bare, bare, by), "prod", gate.Allow, ""},
		{"both name one", l.sign(t, plain, plain, by), "shop", gate.Allow, ""},
		{"a kind without namespaces", l.sign(t, role, role, by), "", gate.Allow, ""},
	} {
		result, reasons := decideManifest(t, l.gate(t, oneKey, ""), row.object, func(r *gate.Request) { r.Object = stored.In(r.Object, row.namespace) })
		if result != row.want || !strings.Contains(reasons, row.why) {
			t.Errorf("%s: %s, want %s because of %q:\n%s", row.reason, result, row.want, row.why, reasons)
		}
	}
}

func TestManifestRequests(t *testing.T) {
	l := newManifestLab(t)
	signed := l.sign(t, plain, plain, verifytest.Claim{Signer: l.first, NoLog: true})
	changed := strings.Replace(signed, "key: value", "key: other", 1)
	g := l.gate(t, oneKey, "")
	as := func(operation string, old string, members map[string]any) func(*gate.Request) {
		return func(r *gate.Request) {
			r.Subject.Operation = operation
			if old != "" {
				r.Old = read(t, old)[0]
			}
			r.Subject.Request = policy.RequestOf(members)
		}
	}
	for _, c := range []struct {
		reason, object string
		change         func(*gate.Request)
		want           gate.Result
	}{
		{"an update to what was signed", signed, as("UPDATE", plain, nil), gate.Allow},
		{"an update of an unsigned object: it violated the rule before, too", changed, as("UPDATE", plain, nil), gate.Deny},
		{"an update without a change", changed, as("UPDATE", changed, nil), gate.Deny},
		{"a dry run changes nothing", changed, as("CREATE", "", map[string]any{"dryRun": true}), gate.Unchecked},
		{"no dry run", changed, as("CREATE", "", map[string]any{"dryRun": false}), gate.Deny},
	} {
		if got, reasons := decideManifest(t, g, c.object, c.change); got != c.want {
			t.Errorf("%s: %s, want %s: %s", c.reason, got, c.want, reasons)
		}
	}
	deletion := g.Decide(t.Context(), gate.Request{Old: read(t, changed)[0], Subject: policy.Subject{Operation: "DELETE", Kind: "ConfigMap", Version: "v1", Name: "a", Namespace: "shop"}})
	if deletion.Result != gate.Unchecked {
		t.Errorf("a deletion: %+v", deletion)
	}
}

// TestManifestNode: the author of a new pod cannot choose its node by writing a resourceVersion.
func TestManifestNode(t *testing.T) {
	l := newManifestLab(t)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec: {containers: [{name: c, image: 'i:1'}]}\n"
	signed := l.sign(t, pod, pod, verifytest.Claim{Signer: l.first, NoLog: true})
	bound := func(version string) string {
		return strings.NewReplacer("namespace: shop", "namespace: shop\n  resourceVersion: '"+version+"'", "\nspec:\n", "\nspec:\n  nodeName: n\n").Replace(signed)
	}
	g := l.gate(t, oneKey, "")
	request := func(operation string) func(*gate.Request) {
		return func(r *gate.Request) {
			r.Subject.Operation, r.Subject.Request = operation, policy.RequestFrom([]byte(`{"operation":"`+operation+`"}`))
			if operation == "UPDATE" {
				r.Old = read(t, bound("1"))[0]
			}
		}
	}
	for _, c := range []struct {
		reason, version string
		change          func(*gate.Request)
		want            gate.Result
	}{
		{"a new pod with version 0", "0", request("CREATE"), gate.Deny},
		{"a new pod with a version", "1", request("CREATE"), gate.Deny},
		{"an update of a bound pod", "1", request("UPDATE"), gate.Allow},
		{"a bound pod of a scan", "1", nil, gate.Allow},
		{"a file with version 0", "0", nil, gate.Deny},
	} {
		got, reasons := decideManifest(t, g, bound(c.version), c.change)
		if got != c.want || got == gate.Deny && !strings.Contains(reasons, "spec.nodeName was not signed") {
			t.Errorf("%s: %s, want %s: %s", c.reason, got, c.want, reasons)
		}
	}
}

// TestManifestOfNoNamespace: the API server clears the namespace that a manifest of a cluster-scoped object names.
func TestManifestOfNoNamespace(t *testing.T) {
	l := newManifestLab(t)
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, namespace: shop}\nrules: []\n"
	claim := verifytest.Claim{Signer: l.first, NoLog: true}
	without := func(text string) string { return strings.Replace(text, "  namespace: shop\n", "", 1) }
	cleared, moved := without(l.sign(t, role, role, claim)), without(l.sign(t, plain, plain, claim))
	whole := func(r *gate.Request) {
		r.Subject.Operation, r.Subject.Request = "CREATE", policy.RequestFrom([]byte(`{"operation":"CREATE"}`))
	}
	inShop := func(r *gate.Request) { whole(r); r.Subject.Namespace = "shop" }
	g := l.gate(t, oneKey, "")
	for _, c := range []struct {
		reason, object string
		change         func(*gate.Request)
		want           gate.Result
	}{
		{"a request for a cluster-scoped object", cleared, whole, gate.Allow},
		{"a file of a cluster-scoped object", cleared, nil, gate.Allow},
		{"with another name", strings.Replace(cleared, "name: a\n", "name: b\n", 1), whole, gate.Deny},
		{"a file of another object, which may be applied anywhere", moved, nil, gate.Deny},
		{"a request in a namespace", moved, inShop, gate.Deny},
	} {
		if got, reasons := decideManifest(t, g, c.object, c.change); got != c.want {
			t.Errorf("%s: %s, want %s: %s", c.reason, got, c.want, reasons)
		}
	}
}

// TestManifestDryRun: a dry run explains what other admission controllers add, and nothing else.
func TestManifestDryRun(t *testing.T) {
	l := newManifestLab(t)
	signed := l.sign(t, plain, plain, verifytest.Claim{Signer: l.first, NoLog: true})
	added := strings.Replace(signed, "key: value", "key: value\n  added: x", 1)
	adds := func(value string) func(map[string]any) (map[string]any, error) {
		return func(object map[string]any) (map[string]any, error) {
			made, err := workload.Parse(verifytest.Must(json.Marshal(object)))
			content := made.Content()
			data, _ := content["data"].(map[string]any)
			data["added"] = value
			return content, err
		}
	}
	fails := func(map[string]any) (map[string]any, error) { return nil, errors.New("forbidden") }
	resource := map[string]any{"resource": map[string]any{"group": "", "version": "v1", "resource": "configmaps"}}
	const enabled = ", dryRun: {enable: true, namespace: dry}"
	for _, c := range []struct {
		reason, more string
		make         func(map[string]any) (map[string]any, error)
		object       string
		request      map[string]any
		want         gate.Result
		calls        string
	}{
		{"explained by the dry run", enabled, adds("x"), added, resource, gate.Allow, "configmaps dry/a"},
		{"in Kyverno's namespace by default", ", dryRun: {enable: true}", adds("x"), added, resource, gate.Allow, "configmaps kyverno-dryrun/a"},
		{"another value", enabled, adds("y"), added, resource, gate.Deny, "configmaps dry/a"},
		{"what was signed needs none", enabled, fails, signed, resource, gate.Allow, ""},
		{"not enabled", "", adds("x"), added, resource, gate.Deny, ""},
		{"the dry run fails, with failurePolicy Ignore", enabled, fails, added, resource, gate.Error, "configmaps dry/a"},
		{"without a request of an API server", enabled, adds("x"), added, nil, gate.Deny, ""},
		{"no dry run for what nobody signed", enabled, adds("x"), plain, resource, gate.Deny, ""},
	} {
		l.dryRuns.make, l.dryRuns.calls = c.make, nil
		got, reasons := decideManifest(t, l.gate(t, oneKey, c.more), c.object, func(r *gate.Request) { r.Subject.Request = policy.RequestOf(c.request) })
		if got != c.want || strings.Join(l.dryRuns.calls, ",") != c.calls {
			t.Errorf("%s: %s after %v, want %s: %s", c.reason, got, l.dryRuns.calls, c.want, reasons)
		}
	}
}
