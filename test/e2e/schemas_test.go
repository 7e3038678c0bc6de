package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// key is a public key for documents that are only written.
const key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEIt8js/nat6f8YPkrb3+MRymqOdSj\nF9AiZ9vbnNNn3Y0BqB6oOt0sMLcNyQMOb3Q2+23VIS3RHX9nhJrEC58CQw==\n-----END PUBLIC KEY-----\n"

// documents has a valid document of each kind, with objects at many levels.
func documents() map[string]string {
	quoted := fmt.Sprintf("%q", key)
	return map[string]string{
		"kyverno.io/v1 clusterpolicies": `
kind: ClusterPolicy
spec:
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod], namespaces: [nowhere]}}]}
      exclude: {any: [{subjects: [{kind: User, name: anna}]}]}
      preconditions: {all: [{key: "{{ request.operation }}", operator: Equals, value: CREATE}]}
      verifyImages:
        - imageReferences: ["reg.corp/*"]
          attestors: [{entries: [{keys: {publicKeys: ` + quoted + `, rekor: {ignoreTlog: true}}}]}]
    - name: labelled
      match: {any: [{resources: {kinds: [ConfigMap], namespaces: [nowhere]}}]}
      validate: {message: never, deny: {conditions: {any: [{key: a, operator: Equals, value: b}]}}}
`,
		"kyverno.io/v1 policies": `
kind: Policy
metadata: {namespace: default}
spec:
  rules:
    - name: steps
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {foreach: [{list: request.object.data, deny: {conditions: {all: [{key: a, operator: Equals, value: b}]}}}]}
`,
		"kyverno.io/v2 policyexceptions": `
kind: PolicyException
metadata: {namespace: default}
spec:
  exceptions: [{policyName: p, ruleNames: [r]}]
  match: {any: [{resources: {kinds: [Pod], names: [a]}}]}
`,
		"kyverno.io/v2beta1 globalcontextentries": `
kind: GlobalContextEntry
spec: {kubernetesResource: {version: v1, resource: namespaces}}
`,
		"policies.kyverno.io/v1 validatingpolicies": `
kind: ValidatingPolicy
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}
  matchConditions: [{name: nowhere, expression: "request.namespace == 'nowhere'"}]
  variables: [{name: a, expression: "1"}]
  validations: [{expression: "variables.a == 1", message: one}]
`,
		"policies.kyverno.io/v1 mutatingpolicies": `
kind: MutatingPolicy
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}
  matchConditions: [{name: nowhere, expression: "request.namespace == 'nowhere'"}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: Object.metadata.labels{a: 'b'}}}"}}]
`,
		"policies.kyverno.io/v1 imagevalidatingpolicies": `
kind: ImageValidatingPolicy
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  matchConditions: [{name: nowhere, expression: "request.namespace == 'nowhere'"}]
  matchImageReferences: [{glob: "reg.corp/*"}]
  attestors: [{name: release, cosign: {key: {data: ` + quoted + `}, ctlog: {insecureIgnoreTlog: true}}}]
  validations: [{expression: "images.containers.map(i, verifyImageSignatures(i, [attestors.release])).all(n, n > 0)", message: unsigned}]
`,
		"policy.sigstore.dev/v1beta1 clusterimagepolicies": `
kind: ClusterImagePolicy
spec:
  images: [{glob: "reg.corp/**"}]
  match: [{resource: pods, version: v1}]
  authorities: [{name: release, key: {data: ` + quoted + `}, source: [{oci: reg.corp/signatures}], attestations: [{name: sbom, predicateType: spdxjson}]}]
`,
		"quaymaster.dev/v1alpha1 registrymirrors": `
kind: RegistryMirror
spec: {mirrors: [{sources: [docker.io], targets: [{location: mirror.corp/hub}], namespaceSelector: {matchLabels: {a: b}}, excludeOwners: [{kind: Cluster}]}]}
`,
		"quaymaster.dev/v1alpha1 imageoverrides": `
kind: ImageOverride
spec: {effect: Deny, reason: withdrawn, expires: "2099-01-01T00:00:00Z", match: {repositories: [reg.corp/bad], signers: [{issuer: a, subject: b}]}}
`,
	}
}

// TestUnknownFields: the API server keeps a field that no schema knows, at each level, and the
// gateway refuses the document and names the field; without it the document is accepted.
func TestUnknownFields(t *testing.T) {
	c := gateway.Configuration{}
	c.Exceptions.Namespaces = []string{"default"}
	s := guard(t, "unknown-fields", c)
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	eventually(t, func(ctx context.Context) error { // until the API server calls the gateway
		broken := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "quaymaster.dev/v1alpha1", "kind": "RegistryMirror", "metadata": map[string]any{"name": "unknown-fields"},
			"spec": map[string]any{"noSuchField": "x", "mirrors": []any{map[string]any{"sources": []any{"docker.io"}, "targets": []any{map[string]any{"location": "a.corp"}}}}},
		}}
		_, err := client.Resource(schema.GroupVersionResource{Group: "quaymaster.dev", Version: "v1alpha1", Resource: "registrymirrors"}).Create(ctx, broken, meta.CreateOptions{DryRun: []string{meta.DryRunAll}, FieldValidation: meta.FieldValidationIgnore})
		if err == nil {
			return errors.New("the webhook of documents is not in force")
		}
		return nil
	})
	for kind, text := range documents() {
		t.Run(kind, func(t *testing.T) {
			version, plural, _ := strings.Cut(kind, " ")
			parsed, err := schema.ParseGroupVersion(version)
			must(t, err)
			create := func(document map[string]any) error {
				object := &unstructured.Unstructured{Object: document}
				var to dynamic.ResourceInterface = client.Resource(parsed.WithResource(plural))
				if object.GetNamespace() != "" {
					to = client.Resource(parsed.WithResource(plural)).Namespace(object.GetNamespace())
				}
				_, err := to.Create(t.Context(), object, meta.CreateOptions{DryRun: []string{meta.DryRunAll}, FieldValidation: meta.FieldValidationIgnore})
				return err
			}
			read := func() map[string]any {
				document := map[string]any{}
				must(t, yaml.Unmarshal([]byte(text), &document))
				document["apiVersion"] = version
				(&unstructured.Unstructured{Object: document}).SetName("unknown-fields")
				return document
			}
			if err := create(read()); err != nil {
				t.Fatalf("the document itself is refused: %v", err)
			}
			levels := len(objects(read()["spec"]))
			for i := range levels {
				document := read()
				level := objects(document["spec"])[i]
				level["noSuchField"] = "x"
				if err := create(document); err == nil || !strings.Contains(err.Error(), "noSuchField") {
					t.Errorf("level %d of %d: an unknown field next to %v is accepted, or not named: %v", i, levels, level, err)
				}
			}
		})
	}
}

// objects returns an object and those below it, in the order of their names. Labels have no
// unknown fields.
func objects(value any) []map[string]any {
	var all []map[string]any
	switch value := value.(type) {
	case map[string]any:
		all = append(all, value)
		var names []string
		for name := range value {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if name != "matchLabels" {
				all = append(all, objects(value[name])...)
			}
		}
	case []any:
		for _, item := range value {
			all = append(all, objects(item)...)
		}
	}
	return all
}
