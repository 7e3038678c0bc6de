package manifests_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/signedmanifest"
	"github.com/quaymaster/quaymaster/policy/signedmanifest/manifesttest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// compile compiles validate.manifests with KEY replaced by a public key.
func compile(t *testing.T, namespace, text string) (*manifests.Rule, error) {
	t.Helper()
	return compileWith(t, nil, namespace, text)
}

func compileWith(t *testing.T, signatures manifests.Signatures, namespace, text string) (*manifests.Rule, error) {
	t.Helper()
	key := verifytest.Must(json.Marshal(string(verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})).PublicPEM())))
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "KEY", string(key))))
	if err != nil {
		t.Fatal(err)
	}
	var doc manifests.Document
	if err := document.Decode(raw, &doc, "m"); err != nil {
		return nil, err
	}
	return manifests.Compile(manifests.Options{Namespace: namespace, Signatures: signatures}, &doc, "m")
}

func TestCompile(t *testing.T) {
	const (
		by    = "attestors: [{entries: [{keys: {publicKeys: KEY}}]}]"
		other = "attestors: [{entries: [{keys: {publicKeys: 'k8s://other/key'}}]}]"
	)
	for _, c := range []struct{ reason, text, namespace, want string }{
		{"a key", "{" + by + "}", "", ""},
		{"every field", "{" + by + ", annotationDomain: example.com, repository: 'registry.example/a:1', dryRun: {enable: true, namespace: dry}, ignoreFields: [{fields: [spec.replicas], objects: [{kind: Deployment, name: 'a*'}]}]}", "", ""},
		{"a Secret's key", "{" + other + "}", "", ""},
		{"a Secret's key of another namespace", "{" + other + "}", "shop", "m.attestors[0].entries[0].keys.publicKeys: a Policy in namespace shop"},
		{"no attestors", "{attestors: []}", "", "m.attestors: is empty"},
		{"no entries", "{attestors: [{entries: []}]}", "", "m.attestors[0].entries: is empty"},
		{"a count that cannot be met", "{attestors: [{count: 2, entries: [{keys: {publicKeys: KEY}}]}]}", "", "m.attestors[0].count"},
		{"no key", "{attestors: [{entries: [{keys: {publicKeys: x}}]}]}", "", "m.attestors[0].entries[0].keys.publicKeys"},
		{"a key of PGP", "{attestors: [{entries: [{keys: {publicKeys: '-----BEGIN PGP PUBLIC KEY BLOCK-----'}}]}]}", "", "m.attestors[0].entries[0].keys.publicKeys"},
		{"an open identity", "{attestors: [{entries: [{keyless: {issuer: a}}]}]}", "", "m.attestors[0].entries[0].keyless.subject: is missing"},
		{"a misspelt field", "{" + by + ", ignoreField: []}", "", "m.ignoreField: unknown field"},
		{"a misspelt field below", "{" + by + ", dryRun: {enabled: true}}", "", "m.dryRun.enabled: unknown field"},
		{"a variable", "{" + by + ", repository: '{{ request.object.metadata.name }}'}", "", "m: has a variable"},
		{"spec whole", "{" + by + ", ignoreFields: [{fields: [spec.replicas]}, {fields: [a.b, spec]}]}", "", `m.ignoreFields[1].fields[1]: "spec" covers spec whole`},
		{"everything", "{" + by + ", ignoreFields: [{fields: ['*']}]}", "", `m.ignoreFields[0].fields[0]: "*" covers`},
		{"no fields", "{" + by + ", ignoreFields: [{objects: [{kind: Pod}]}]}", "", "m.ignoreFields[0].fields: is empty"},
		{"no domain", "{" + by + ", annotationDomain: 'a/b'}", "", "m.annotationDomain"},
		{"no namespace", "{" + by + ", dryRun: {namespace: 'a/b'}}", "", "m.dryRun.namespace"},
		{"a dry run in another namespace", "{" + by + ", dryRun: {enable: true, namespace: other}}", "shop", "m.dryRun.namespace: a Policy in namespace shop"},
		{"no repository", "{" + by + ", repository: 'a b'}", "", "m.repository"},
		{"several repositories", "{" + by + ", repository: 'a,b'}", "", "m.repository"},
		{"no repository of an attestor", "{attestors: [{entries: [{keys: {publicKeys: KEY}, repository: 'a b'}]}]}", "", "m.attestors[0].entries[0].repository"},
		{"annotations of a nested set", "{attestors: [{entries: [{annotations: {a: b}, attestor: {entries: [{keys: {publicKeys: KEY}}]}}]}]}", "", "m.attestors[0].entries[0]: annotations"},
		{"sets nested too deep", "{attestors: [{entries: [" + strings.Repeat("{attestor: {entries: [", 12) + "{keys: {publicKeys: KEY}}" + strings.Repeat("]}}", 12) + "]}]}", "", "nested more than"},
	} {
		_, err := compile(t, c.namespace, c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

// TestWithoutSignatures: where nothing can be verified, no object is what was signed.
func TestWithoutSignatures(t *testing.T) {
	rule, err := compile(t, "", "{attestors: [{entries: [{keys: {publicKeys: KEY}}]}]}")
	if err != nil {
		t.Fatal(err)
	}
	subject := &policy.Subject{Operation: "CREATE", Object: policy.ContentOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap"})}
	if result, reasons := rule.Check(t.Context(), subject); result != policy.Indeterminate || len(reasons) != 1 || reasons[0].Code != policy.CannotProve {
		t.Errorf("%s, %v", result, reasons)
	}
	subject.Object = policy.ContentOf(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": 1.0}}})
	if result, _ := rule.Check(t.Context(), subject); result != policy.Fail {
		t.Errorf("an annotation that is no text: %s", result)
	}
}

// counted counts how often evidence is read.
type counted struct {
	manifests.Signatures
	calls, authorities int
}

func (c *counted) Blob(_ context.Context, _ []byte, _ []signedmanifest.Signature, authorities []verify.Authority) []policy.Answer {
	c.calls++
	c.authorities += len(authorities)
	return make([]policy.Answer, len(authorities))
}

// TestEvidenceIsReadOnce: the author of an object writes the evidence, and the policy has several attestors.
func TestEvidenceIsReadOnce(t *testing.T) {
	signatures := &counted{}
	rule, err := compileWith(t, signatures, "", "{attestors: [{entries: [{keys: {publicKeys: KEY}}, {keys: {publicKeys: KEY}}]}, {entries: [{keys: {publicKeys: KEY}}]}]}")
	if err != nil {
		t.Fatal(err)
	}
	annotations := map[string]any{}
	signer := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	for name, value := range verifytest.Must(manifesttest.Annotations(verifytest.Must(verifytest.New(verifytest.Options{})), verifytest.Claim{Signer: signer, Artifact: []byte("a"), NoLog: true})) {
		annotations["cosign.sigstore.dev/"+name] = value
	}
	subject := &policy.Subject{Operation: "CREATE", Object: policy.ContentOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"annotations": annotations}})}
	if result, reasons := rule.Check(t.Context(), subject); result != policy.Fail {
		t.Errorf("%s, %v", result, reasons)
	}
	if signatures.calls != 1 || signatures.authorities != 3 {
		t.Errorf("%d calls for %d authorities, want one for three", signatures.calls, signatures.authorities)
	}
}
