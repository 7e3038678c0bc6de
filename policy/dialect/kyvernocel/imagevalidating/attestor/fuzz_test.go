package attestor_test

import (
	"testing"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
)

// FuzzCompile: for any document and expressions the attestor is refused, cannot be
// evaluated, or yields authorities that can be verified.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		"cosign: {key: {data: $KEY, hashAlgorithm: sha512}, annotations: {a: b}}", "cosign: {key: {expression: object.a}, trustedRoot: {expression: object.a}}",
		"cosign: {key: {kms: 'awskms:///alias/a'}, source: {repository: a.example/b, tagPrefix: c, PullSecrets: [{name: d}]}}",
		"cosign: {keyless: {identities: [{issuer: a, subjectRegExp: b}, {issuerRegExp: c, subjectExpression: image}], roots: $CERTIFICATE, additionalExtensions: {issuer: d}}}",
		"cosign: {certificate: {cert: {value: $CERTIFICATE}, certChain: {expression: object.a}}, ctlog: {url: 'https://a.example', rekorPubKey: $KEY, ctLogPubKey: $KEY, tsaCertChain: $CERTIFICATE}}",
		"cosign: {key: {data: $KEY}, tuf: {mirror: 'https://a.example', root: {data: eyJzaWduZWQiOnsiX3R5cGUiOiJyb290In19}}, trustedRoot: {value: $ROOT}}",
		"notary: {certs: {value: $CERTIFICATE}, tsaCerts: {expression: object.a}}",
	} {
		f.Add(fill(text), "text")
		f.Add(fill(text), string(keyA))
		f.Add(fill(text), string(certificateA))
	}
	l := newLanguage(f)
	f.Fuzz(func(t *testing.T, text, value string) {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil || len(text) > 64<<10 {
			return
		}
		var doc v1alpha1.Attestor
		if strict, err := kjson.UnmarshalStrict(data, &doc); err != nil || len(strict) > 0 {
			return
		}
		doc.Name = "who"
		list, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{doc}, l.options())
		if err != nil {
			if list != nil {
				t.Error("refused, and compiled")
			}
			return
		}
		authorities, err := list[0].Authorities(t.Context(), l.about(map[string]any{"a": value}, value))
		if (err == nil) != (len(authorities) > 0) {
			t.Fatalf("%d authorities and %v", len(authorities), err)
		}
		for _, a := range authorities {
			if err := a.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}
