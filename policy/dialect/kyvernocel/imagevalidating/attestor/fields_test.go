package attestor_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
)

// fieldsOf lists the fields of a type by their paths in a document.
func fieldsOf(t reflect.Type, path string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return fieldsOf(t.Elem(), path)
	case reflect.Slice:
		return fieldsOf(t.Elem(), path+"[]")
	case reflect.Struct:
		var list []string
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			list = append(list, fieldsOf(t.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
		return list
	}
	return []string{path}
}

// meaning is everything that others can see of an attestor.
func meaning(t *testing.T, text string, l language) (string, error) {
	t.Helper()
	repositories := attestor.NewRepositories()
	o := l.options()
	o.Roots = repositories
	list, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, text)}, o)
	if err != nil {
		return "", err
	}
	a := list[0]
	for _, wanted := range repositories.Wanted() {
		if err := repositories.Answer(wanted.TUF, root); err != nil {
			t.Fatal(err)
		}
	}
	in := l.about(map[string]any{"key": string(keyA), "certificate": string(certificateA), "root": string(root), "who": "ann"}, "registry.example/app")
	authorities, err := a.Authorities(t.Context(), in)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	secrets, err := a.Secrets("shop")
	if err != nil {
		t.Fatal(err)
	}
	seen, err := json.Marshal(struct {
		Name        string
		Notary      bool
		Sources     []attest.Source
		Secrets     []string
		TUF         *attestor.TUF
		Authorities any
	}{a.Name, a.Notary, a.Sources, secrets, a.TUF, authorities})
	if err != nil {
		t.Fatal(err)
	}
	for _, authority := range authorities { // JSON has no references of keys
		if authority.Key != nil {
			seen = append(seen, authority.Key.Ref...)
		}
	}
	return string(seen), nil
}

// TestFields: every field of the library's types is carried, so that a document
// with it means something else than one without, or is refused by its path. A field
// that the library gains fails the test.
func TestFields(t *testing.T) {
	const some = "key: {data: $KEY}"
	ann := "{issuer: a, subject: b}"
	first := base64.StdEncoding.EncodeToString([]byte(`{"signed":{"_type":"root"}}`))
	rows := map[string][2]string{ // without, with; "" as the first: with is refused
		"name":                                          {"cosign: {" + some + "}", "name: other\ncosign: {" + some + "}"},
		"cosign.key.data":                               {"cosign: {" + some + "}", "cosign: {key: {data: $OTHER}}"},
		"cosign.key.kms":                                {"cosign: {" + some + "}", "cosign: {key: {kms: 'awskms:///alias/a'}}"},
		"cosign.key.hashAlgorithm":                      {"cosign: {" + some + "}", "cosign: {key: {data: $KEY, hashAlgorithm: sha512}}"},
		"cosign.key.expression":                         {"cosign: {key: {data: $OTHER}}", "cosign: {key: {expression: object.key}}"},
		"cosign.keyless.identities[].issuer":            {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [{issuer: c, subject: b}]}}"},
		"cosign.keyless.identities[].subject":           {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [{issuer: a, subject: c}]}}"},
		"cosign.keyless.identities[].issuerRegExp":      {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [{issuerRegExp: a, subject: b}]}}"},
		"cosign.keyless.identities[].subjectRegExp":     {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [{issuer: a, subjectRegExp: b}]}}"},
		"cosign.keyless.identities[].subjectExpression": {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [{issuer: a, subjectExpression: object.who}]}}"},
		"cosign.keyless.roots":                          {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [" + ann + "], roots: $CERTIFICATE}}"},
		"cosign.keyless.additionalExtensions":           {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [" + ann + "], additionalExtensions: {issuer: a}}}"},
		"cosign.certificate.cert.value":                 {"cosign: {certificate: {certChain: {value: $CERTIFICATE}}}", "cosign: {certificate: {certChain: {value: $CERTIFICATE}, cert: {value: $CERTIFICATE}}}"},
		"cosign.certificate.cert.expression":            {"cosign: {certificate: {certChain: {value: $CERTIFICATE}}}", "cosign: {certificate: {certChain: {value: $CERTIFICATE}, cert: {expression: object.certificate}}}"},
		"cosign.certificate.certChain.value":            {"cosign: {certificate: {cert: {value: $CERTIFICATE}}}", "cosign: {certificate: {cert: {value: $CERTIFICATE}, certChain: {value: $CERTIFICATE}}}"},
		"cosign.certificate.certChain.expression":       {"cosign: {certificate: {cert: {value: $CERTIFICATE}}}", "cosign: {certificate: {cert: {value: $CERTIFICATE}, certChain: {expression: object.certificate}}}"},
		"cosign.source.repository":                      {"cosign: {" + some + "}", "cosign: {" + some + ", source: {repository: registry.example/signatures}}"},
		"cosign.source.PullSecrets[].name":              {"cosign: {" + some + "}", "cosign: {" + some + ", source: {PullSecrets: [{name: a}]}}"},
		"cosign.source.tagPrefix":                       {"cosign: {" + some + "}", "cosign: {" + some + ", source: {tagPrefix: a-}}"},
		"cosign.ctlog.url":                              {"cosign: {" + some + "}", "cosign: {" + some + ", ctlog: {url: 'https://log.example'}}"},
		"cosign.ctlog.rekorPubKey":                      {"cosign: {" + some + "}", "cosign: {" + some + ", ctlog: {rekorPubKey: $KEY}}"},
		"cosign.ctlog.ctLogPubKey":                      {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [" + ann + "]}, ctlog: {ctLogPubKey: $KEY}}"},
		"cosign.ctlog.tsaCertChain":                     {"cosign: {" + some + "}", "cosign: {" + some + ", ctlog: {tsaCertChain: $CERTIFICATE}}"},
		"cosign.ctlog.insecureIgnoreTlog":               {"cosign: {" + some + "}", "cosign: {" + some + ", ctlog: {insecureIgnoreTlog: true}}"},
		"cosign.ctlog.insecureIgnoreSCT":                {"cosign: {keyless: {identities: [" + ann + "]}}", "cosign: {keyless: {identities: [" + ann + "]}, ctlog: {insecureIgnoreSCT: true}}"},
		"cosign.tuf.root.path":                          {"", "cosign: {" + some + ", tuf: {root: {path: /root.json}}}"},
		"cosign.tuf.root.data":                          {"cosign: {" + some + ", tuf: {mirror: 'https://tuf.example'}}", "cosign: {" + some + ", tuf: {mirror: 'https://tuf.example', root: {data: " + first + "}}}"},
		"cosign.tuf.mirror":                             {"cosign: {" + some + ", tuf: {}}", "cosign: {" + some + ", tuf: {mirror: 'https://tuf.example'}}"},
		"cosign.annotations":                            {"cosign: {" + some + "}", "cosign: {" + some + ", annotations: {a: b}}"},
		"cosign.trustedRoot.value":                      {"cosign: {" + some + "}", "cosign: {" + some + ", trustedRoot: {value: $ROOT}}"},
		"cosign.trustedRoot.expression":                 {"cosign: {" + some + "}", "cosign: {" + some + ", trustedRoot: {expression: object.root}}"},
		"notary.certs.value":                            {"notary: {certs: {value: $OTHERS}}", "notary: {certs: {value: $CERTIFICATE}}"},
		"notary.certs.expression":                       {"notary: {certs: {value: $OTHERS}}", "notary: {certs: {expression: object.certificate}}"},
		"notary.tsaCerts.value":                         {"notary: {certs: {value: $CERTIFICATE}}", "notary: {certs: {value: $CERTIFICATE}, tsaCerts: {value: $CERTIFICATE}}"},
		"notary.tsaCerts.expression":                    {"notary: {certs: {value: $CERTIFICATE}}", "notary: {certs: {value: $CERTIFICATE}, tsaCerts: {expression: object.certificate}}"},
	}
	l := newLanguage(t)
	fields := fieldsOf(reflect.TypeFor[v1alpha1.Attestor](), "")
	for _, field := range fields {
		row, ok := rows[field]
		if !ok {
			t.Errorf("the field %s is neither carried nor refused", field)
			continue
		}
		with, err := meaning(t, fill(row[1]), l)
		if row[0] == "" {
			if !says(err, "spec.attestors[0]."+field+": ") {
				t.Errorf("%s: got %v, want to be refused", field, err)
			}
			continue
		}
		without, missing := meaning(t, fill(row[0]), l)
		if err != nil || missing != nil || with == without {
			t.Errorf("%s changes nothing: %s (%v, %v)", field, with, err, missing)
		}
	}
	for field := range rows {
		if !slices.Contains(fields, field) {
			t.Errorf("the library has no field %s", field)
		}
	}
}

// TestAttestationFields does the same for attestations.
func TestAttestationFields(t *testing.T) {
	rows := map[string]v1alpha1.Attestation{
		"name":          {Name: "other", InToto: &v1alpha1.InToto{Type: "a:b"}},
		"intoto.type":   {Name: "what", InToto: &v1alpha1.InToto{Type: "a:c"}},
		"referrer.type": {Name: "what", Referrer: &v1alpha1.Referrer{Type: "a:b"}},
	}
	base, err := attestor.Attestations("spec.attestations", []v1alpha1.Attestation{{Name: "what", InToto: &v1alpha1.InToto{Type: "a:b"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fieldsOf(reflect.TypeFor[v1alpha1.Attestation](), "") {
		row, ok := rows[field]
		if !ok {
			t.Errorf("the field %s is neither carried nor refused", field)
			continue
		}
		got, err := attestor.Attestations("spec.attestations", []v1alpha1.Attestation{row})
		if err != nil || fmt.Sprint(got) == fmt.Sprint(base) {
			t.Errorf("%s changes nothing: %v (%v)", field, got, err)
		}
	}
}
