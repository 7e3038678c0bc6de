package sigstore_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/verify"
)

// keylessHead is an authority that lacks what comes after identities.
const keylessHead = "  authorities: [{keyless: {url: 'https://fulcio.sigstore.dev', identities: [{issuer: 'https://issuer.example', subject: ann@example.com}]"

// authorityOf returns the one authority of a policy.
func authorityOf(t *testing.T, options sigstore.Options, authorities string) verify.Authority {
	t.Helper()
	check := only(t, compile(t, options, head+authorities))
	questions := check.Questions()
	if len(questions) != 1 {
		t.Fatalf("%d questions", len(questions))
	}
	return *questions[0].Authority
}

// TestTerms: what each field asks.
func TestTerms(t *testing.T) {
	for _, c := range []struct {
		authorities string
		holds       func(verify.Authority) bool
		reason      string
	}{
		{"  authorities: [{key: {data: $KEY}}]\n", func(a verify.Authority) bool { return a.Log.Ignore && a.Formats == nil && a.Key.Hash == "" }, "a key without ctlog asks no log (import trap)"},
		{"  authorities: [{key: {data: $KEY}, ctlog: {}}]\n", func(a verify.Authority) bool { return a.Log.Ignore }, "an empty ctlog names none (import trap)"},
		{"  authorities: [{key: {data: $KEY}, ctlog: {url: 'https://rekor.sigstore.dev'}}]\n", func(a verify.Authority) bool { return !a.Log.Ignore && a.Log.URL == "" }, "the public log is any of the root's"},
		{"  authorities: [{key: {data: $KEY}, ctlog: {url: 'https://rekor.example'}}]\n", func(a verify.Authority) bool { return !a.Log.Ignore && a.Log.URL == "https://rekor.example" }, "a log is that one"},
		{"  authorities: [{key: {data: $KEY}, ctlog: {url: 'https://rekor.example'}, rfc3161timestamp: {}}]\n", func(a verify.Authority) bool { return !a.Log.Ignore && a.Timestamp.Required }, "a timestamp beside a log: both"},
		{"  authorities: [{key: {data: $KEY}, rfc3161timestamp: {}}]\n", func(a verify.Authority) bool { return a.Log.Ignore && a.Timestamp.Required }, "a timestamp beside a key"},
		{"  authorities: [{key: {data: $KEY, hashAlgorithm: sha512}}]\n", func(a verify.Authority) bool { return a.Key.Hash == "sha512" }, "the algorithm"},
		{"  authorities: [{key: {kms: 'awskms:///alias/a'}}]\n", func(a verify.Authority) bool { return a.Key.Ref == "awskms:///alias/a" }, "a key in a KMS"},
		{"  authorities: [{key: {secretRef: {name: keys}}}]\n", func(a verify.Authority) bool { return a.Key.Ref == "k8s://cosign-system/keys" }, "a key in a Secret"},
		{"  authorities: [{key: {secretRef: {name: keys, namespace: cosign-system}}}]\n", func(a verify.Authority) bool { return a.Key.Ref == "k8s://cosign-system/keys" }, "in the controller's namespace"},
		{"  authorities: [{key: {data: $KEY}, signatureFormat: legacy}]\n", func(a verify.Authority) bool { return reflect.DeepEqual(a.Formats, []attest.Format{attest.Cosign}) }, "legacy signatures"},
		{"  authorities: [{key: {data: $KEY}, signatureFormat: bundle}]\n", func(a verify.Authority) bool { return reflect.DeepEqual(a.Formats, []attest.Format{attest.Bundle}) }, "bundles, also of a key (policy-controller#1958)"},
		{keylessHead + "}}]\n", func(a verify.Authority) bool { return !a.Log.Ignore && !a.Keyless.CT.Ignore && !a.Timestamp.Required }, "keyless wants a trusted time though ctlog is absent (import trap)"},
		{keylessHead + "}, ctlog: {}}]\n", func(a verify.Authority) bool { return !a.Log.Ignore }, "nor does an empty ctlog switch it off"},
		{keylessHead + "}, rfc3161timestamp: {}}]\n", func(a verify.Authority) bool { return a.Log.Ignore && a.Timestamp.Required }, "a timestamp in the log's place"},
		{keylessHead + ", insecureIgnoreSCT: true}}]\n", func(a verify.Authority) bool { return a.Keyless.CT.Ignore }, "no certificate timestamp"},
		{keylessHead + "}}]\n", func(a verify.Authority) bool {
			return a.Keyless.Identities[0].Match("https://issuer.example", []string{"ann@example.com"}) && !a.Keyless.Identities[0].Match("https://issuer.example", []string{"bob@example.com"})
		}, "the identity"},
		{strings.Replace(keylessHead, "subject: ann@example.com", "subject: '*@example.com'", 1) + "}}]\n", func(a verify.Authority) bool {
			return !a.Keyless.Identities[0].Match("https://issuer.example", []string{"ann@example.com"})
		}, "an exact identity has no wildcards"},
		{strings.Replace(keylessHead, "subject: ann@example.com", "subjectRegExp: 'https://github.com/org/.*'", 1) + "}}]\n", func(a verify.Authority) bool {
			i := a.Keyless.Identities[0]
			return i.Match("https://issuer.example", []string{"https://github.com/org/app"}) && !i.Match("https://issuer.example", []string{"https://evil.example/https://github.com/org/app"})
		}, "an expression is compared with the whole text (import trap)"},
		{strings.Replace(keylessHead, "issuer: 'https://issuer.example'", "issuerRegExp: 'https://issuer.example'", 1) + "}}]\n", func(a verify.Authority) bool {
			return !a.Keyless.Identities[0].Match("https://issuer.example.evil.example", []string{"ann@example.com"})
		}, "so is one for the issuer"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if a := authorityOf(t, sigstore.Options{}, c.authorities); !c.holds(a) {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestSource(t *testing.T) {
	p := compile(t, sigstore.Options{}, head+"  authorities: [{key: {data: $KEY}, source: [{oci: signatures.example/org, tagPrefix: pre-, signaturePullSecrets: [{name: pull}]}]}]\n")
	check := only(t, p)
	repository, err := image.ParseRepository("signatures.example/org")
	if err != nil {
		t.Fatal(err)
	}
	want := []attest.Source{{Repository: repository, TagPrefix: "pre-"}}
	if got := check.Questions()[0].Sources; !reflect.DeepEqual(got, want) {
		t.Errorf("sources %+v", got)
	}
	if got := check.Credentials.Secrets; !reflect.DeepEqual(got, []string{"prod/pull"}) {
		t.Errorf("secrets %v: want those of the object's namespace", got)
	}
	for written, want := range map[string][]attest.Source{
		"tagPrefix: pre-":                      {{TagPrefix: "pre-"}},
		"signaturePullSecrets: [{name: pull}]": nil,
	} {
		beside := only(t, compile(t, sigstore.Options{}, head+"  authorities: [{key: {data: $KEY}, source: [{"+written+"}]}]\n"))
		if got := beside.Questions()[0].Sources; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v; want %+v, beside the image", written, got, want)
		}
	}
	if made := plan(t, pod(""), "ghcr.io/org/app:v1", p); len(made.Results) != 1 || made.Results[0].Err == nil {
		t.Errorf("in no namespace: %+v", made)
	}
}

// TestKeysOfOneText: several keys in one text are a choice.
func TestKeysOfOneText(t *testing.T) {
	var text strings.Builder
	for range 2 {
		text.WriteString(strings.Trim(newKey(t), `"`))
	}
	check := only(t, compile(t, sigstore.Options{}, head+`  authorities: [{key: {data: "`+text.String()+`"}}]`))
	if r := check.Requirements[0]; len(r.Members) != 2 || r.Threshold != 1 {
		t.Errorf("%d of %d", r.Threshold, len(r.Members))
	}
}

// TestPredicateTypes: short names and URIs (import trap).
func TestPredicateTypes(t *testing.T) {
	for written, want := range map[string]string{
		"custom":         "https://cosign.sigstore.dev/attestation/v1",
		"slsaprovenance": "https://slsa.dev/provenance/v0.2",
		"spdx":           "https://spdx.dev/Document", "spdxjson": "https://spdx.dev/Document",
		"cyclonedx": "https://cyclonedx.org/bom", "link": "https://in-toto.io/Link/v1",
		"vuln":                           "https://cosign.sigstore.dev/attestation/vuln/v1",
		"https://slsa.dev/provenance/v1": "https://slsa.dev/provenance/v1",
	} {
		check := only(t, compile(t, sigstore.Options{}, head+"  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: '"+written+"'}]}]\n"))
		if got := check.Attestations[0]; got.PredicateType != want || got.Name != "a" || got.Path != "authorities[0].attestations[0]" {
			t.Errorf("%s: %+v", written, got)
		}
	}
}

// TestRefuses: an error with its path for each mistake, and for each field that
// cannot be honoured.
func TestRefuses(t *testing.T) {
	const attested = "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln"
	for _, c := range []struct{ spec, path, want, reason string }{
		{"  authorities: []\n", "spec.authorities", "1 to 200", "no authority"},
		{"", "spec.authorities", "1 to 200", "no authorities"},
		{"  authorities: [{}]\n", "spec.authorities[0]", "found 0", "an empty authority"},
		{"  authorities: [{rfc3161timestamp: {}}]\n", "spec.authorities[0]", "found 0", "a timestamp alone"},
		{"  authorities: [{key: {data: $KEY}, static: {action: pass}}]\n", "spec.authorities[0]", "found 2", "two kinds"},
		{"  authorities: [{static: {action: allow}}]\n", "spec.authorities[0].static.action", "want pass or fail", "another action"},
		{"  authorities: [{static: {}}]\n", "spec.authorities[0].static.action", "want pass or fail", "no action"},
		{"  authorities: [{static: {action: pass}, source: [{oci: a.example/b}]}]\n", "spec.authorities[0].source", "nothing", "static and a source"},
		{"  authorities: [{static: {action: pass}, ctlog: {}}]\n", "spec.authorities[0].ctlog", "nothing", "static and a log"},
		{"  authorities: [{static: {action: pass}, attestations: [{name: a, predicateType: vuln}]}]\n", "spec.authorities[0].attestations", "nothing", "static and attestations"},
		{"  authorities: [{name: a, key: {data: $KEY}}, {name: a, key: {data: $KEY}}]\n", "spec.authorities[1].name", "earlier", "one name twice"},
		{"  authorities: [{key: {}}]\n", "spec.authorities[0].key", "found 0", "no key"},
		{"  authorities: [{key: {data: $KEY, kms: 'awskms:///alias/a'}}]\n", "spec.authorities[0].key", "found 2", "two keys"},
		{"  authorities: [{key: {data: nonsense}}]\n", "spec.authorities[0].key.data", "PEM", "no PEM"},
		{"  authorities: [{key: {data: $KEY, hashAlgorithm: md5}}]\n", "spec.authorities[0].key.hashAlgorithm", "sha256", "another algorithm"},
		{"  authorities: [{key: {kms: 'file:///key'}}]\n", "spec.authorities[0].key.kms", "awskms", "another KMS"},
		{"  authorities: [{key: {secretRef: {name: keys, namespace: team}}}]\n", "spec.authorities[0].key.secretRef.namespace", "cosign-system", "a Secret elsewhere (import trap)"},
		{"  authorities: [{key: {secretRef: {}}}]\n", "spec.authorities[0].key.secretRef.name", "empty", "a Secret without a name"},
		{"  authorities: [{key: {data: $KEY}, signatureFormat: v3}]\n", "spec.authorities[0].signatureFormat", "legacy or bundle", "another format"},
		{"  authorities: [{key: {data: $KEY}, ctlog: {url: rekor}}]\n", "spec.authorities[0].ctlog.url", "https://", "no URL"},
		{"  authorities: [{key: {data: $KEY}, source: [{oci: a.example/b}, {oci: a.example/c}]}]\n", "spec.authorities[0].source", "found 2", "two sources (import trap)"},
		{"  authorities: [{key: {data: $KEY}, source: [{}]}]\n", "spec.authorities[0].source[0]", "empty", "a source without fields"},
		{"  authorities: [{key: {data: $KEY}, source: [{oci: 'a.example/b:tag'}]}]\n", "spec.authorities[0].source[0].oci", "repository", "a tag is no place"},
		{"  authorities: [{key: {data: $KEY}, source: [{oci: a.example/b, tagPrefix: 'a/b'}]}]\n", "spec.authorities[0].source[0].tagPrefix", "tag", "no beginning of a tag"},
		{"  authorities: [{key: {data: $KEY}, source: [{oci: a.example/b, signaturePullSecrets: [{name: ''}]}]}]\n", "spec.authorities[0].source[0].signaturePullSecrets[0].name", "Secret", "a secret without a name"},
		{"  authorities: [{keyless: {url: 'https://fulcio.example'}}]\n", "spec.authorities[0].keyless.identities", "any certificate", "keyless without an identity (import trap)"},
		{strings.Replace(keylessHead, "issuer: 'https://issuer.example', ", "", 1) + "}}]\n", "spec.authorities[0].keyless.identities[0].issuer", "missing", "half an identity"},
		{strings.Replace(keylessHead, ", subject: ann@example.com", "", 1) + "}}]\n", "spec.authorities[0].keyless.identities[0].subject", "missing", "the other half"},
		{strings.Replace(keylessHead, "subject: ann", "subjectRegExp: '.*', subject: ann", 1) + "}}]\n", "spec.authorities[0].keyless.identities[0].subject", "cannot be combined", "a text and an expression"},
		{strings.Replace(keylessHead, "subject: ann@example.com", "subjectRegExp: '('", 1) + "}}]\n", "spec.authorities[0].keyless.identities[0].subjectRegExp", "missing closing", "no expression"},
		{strings.Replace(keylessHead, "subject: ann@example.com", "subjectRegExp: '"+strings.Repeat("a{1000}", 4)+"'", 1) + "}}]\n", "spec.authorities[0].keyless.identities[0].subjectRegExp", "more than the bound", "an expression that takes much memory"},
		{strings.Replace(keylessHead, "issuer: 'https://issuer.example'", "issuerRegExp: '"+strings.Repeat("a{1000}", 4)+"'", 1) + "}}]\n", "spec.authorities[0].keyless.identities[0].issuerRegExp", "more than the bound", "an issuer's expression that takes much memory"},
		{strings.Replace(keylessHead, "subject: ann@example.com", "subjectRegexp: '.*'", 1) + "}}]\n", "spec.authorities[0].keyless.identities[0].subjectRegexp", "unknown field", "a field in another case (CVE-2025-29778)"},
		{keylessHead + ", ca-cert: {data: x}}}]\n", "spec.authorities[0].keyless.ca-cert", "cannot be combined with url", "a certificate beside the URL"},
		{strings.Replace(keylessHead, "url: 'https://fulcio.sigstore.dev'", "ca-cert: {secretRef: {name: a}}", 1) + "}}]\n", "spec.authorities[0].keyless.ca-cert.secretRef", "not read here", "a certificate in a Secret that is not read"},
		{strings.Replace(keylessHead, "url: 'https://fulcio.sigstore.dev'", "ca-cert: {kms: 'awskms:///alias/a'}", 1) + "}}]\n", "spec.authorities[0].keyless.ca-cert.kms", "no KMS", "a certificate in a KMS"},
		{strings.Replace(keylessHead, "https://fulcio.sigstore.dev", "fulcio", 1) + "}}]\n", "spec.authorities[0].keyless.url", "https://", "no URL of Fulcio"},
		{keylessHead + ", trustRootRef: a}, ctlog: {trustRootRef: b}, signatureFormat: bundle}]\n", "spec.authorities[0].ctlog.trustRootRef", "one root", "a bundle of two roots (import trap)"},
		{keylessHead + ", trustRootRef: a}, rfc3161timestamp: {trustRootRef: b}, signatureFormat: bundle}]\n", "spec.authorities[0].rfc3161timestamp.trustRootRef", "one root", "a bundle with another root's timestamp (import trap)"},
		{attested[:strings.Index(attested, "name: a, ")] + "predicateType: vuln}]}]\n", "spec.authorities[0].attestations[0].name", "empty", "an attestation without a name"},
		{attested + "}, {name: a, predicateType: spdx}]}]\n", "spec.authorities[0].attestations[1].name", "earlier", "one name twice"},
		{strings.Replace(attested, "vuln", "''", 1) + "}]}]\n", "spec.authorities[0].attestations[0].predicateType", "empty", "no type"},
		{strings.Replace(attested, "vuln", "sbom", 1) + "}]}]\n", "spec.authorities[0].attestations[0].predicateType", "neither", "an unknown short name"},
		{attested + ", policy: {type: cel, data: 'true'}}]}]\n", "spec.authorities[0].attestations[0].policy.type", "cue or rego", "another language"},
		{attested + ", policy: {type: cue}}]}]\n", "spec.authorities[0].attestations[0].policy", "want one of", "an empty policy"},
		{attested + ", policy: {type: cue, data: 'predicate: {'}}]}]\n", "spec.authorities[0].attestations[0].policy.data", "expected", "CUE that does not compile"},
		{attested + ", policy: {type: rego, data: 'package sigstore'}}]}]\n", "spec.authorities[0].attestations[0].policy.data", "isCompliant", "Rego without an answer"},
		{attested + ", policy: {type: rego, data: \"package sigstore\\nisCompliant { time.now_ns() > 0 }\"}}]}]\n", "spec.authorities[0].attestations[0].policy.data", "time.now_ns", "Rego that needs a clock that is not available"},
		{attested + ", policy: {type: cue, remote: {url: 'https://example.com/p', sha256sum: $SUM}}}]}]\n", "spec.authorities[0].attestations[0].policy.remote", "not fetched", "a policy from the network without fetching"},
		{attested + ", policy: {type: cue, remote: {url: 'https://example.com/p', sha256sum: abc}}}]}]\n", "spec.authorities[0].attestations[0].policy.remote.sha256sum", "64 hexadecimal", "a policy from the network of half a sum"},
		{attested + ", policy: {type: cue, remote: {url: 'https://example.com/p'}}}]}]\n", "spec.authorities[0].attestations[0].policy.remote.sha256sum", "64 hexadecimal", "a policy from the network of any content"},
		{attested + ", policy: {type: cue, remote: {url: 'http://example.com/p', sha256sum: $SUM}}}]}]\n", "spec.authorities[0].attestations[0].policy.remote.url", "want https", "a policy over plain HTTP, which an on-path attacker can change"},
		{attested + ", policy: {type: cue, data: 'predicate: a: 1', remote: {url: 'https://example.com/p', sha256sum: $SUM}}}]}]\n", "spec.authorities[0].attestations[0].policy", "found 2", "a policy here and there"},
		{attested + ", policy: {type: cue, configMapRef: {name: a}}}]}]\n", "spec.authorities[0].attestations[0].policy.configMapRef", "a name and a key", "a ConfigMap without a key"},
		{attested + ", policy: {type: cue, data: 'a: 1', configMapRef: {name: a, key: b}}}]}]\n", "spec.authorities[0].attestations[0].policy", "want one of", "two texts"},
		{attested + ", policy: {type: cue, data: 'a: 1', fetchConfigFile: true}}]}]\n", "spec.authorities[0].attestations[0].policy.fetchConfigFile", "spec.policy", "a field of the other policy"},
		{attested + ", policy: {type: cue, url: 'https://example.com/p'}}]}]\n", "spec.authorities[0].attestations[0].policy.url", "write remote", "an address of earlier versions"},
		{"  policy: {type: rego, url: 'https://example.com', data: 'isCompliant := true'}\n  authorities: [{static: {action: pass}}]\n", "spec.policy.url", "write remote", "an overall policy at an address of earlier versions, and its text"},
		{"  policy: {type: cue, remote: {url: 'https://example.com', sha256sum: $SUM}}\n  authorities: [{static: {action: pass}}]\n", "spec.policy.remote", "not fetched", "an overall policy from the network without fetching"},
		{"  policy: {type: cue, configMapRef: {name: a}}\n  authorities: [{static: {action: pass}}]\n", "spec.policy.configMapRef", "a name and a key", "an overall policy in a ConfigMap without a key"},
		{"  policy: {type: cue, data: 'config: _'}\n  authorities: [{static: {action: pass}}]\n", "spec.policy.data", "config is not available", "a policy over a configuration that is not fetched"},
		{"  policy: {type: cue}\n  authorities: [{static: {action: pass}}]\n", "spec.policy", "found 0", "an empty overall policy"},
		{"  policy: {type: cue, data: 'typemeta: kind: \"Pod\"'}\n  authorities: [{static: {action: pass}}]\n", "spec.policy.data", "typemeta is not available", "a policy over data that is not included"},
		{"  policy: {type: cue, data: 'authorityMatch: a: _'}\n  authorities: [{static: {action: pass}}]\n", "spec.policy.data", "misspelt", "a policy over misspelt data"},
		{"  policy: {type: rego, data: \"package sigstore\\nisCompliant { not input.authorityMatch.a }\"}\n  authorities: [{static: {action: pass}}]\n", "spec.policy.data", "there is no input.authorityMatch", "a policy over misspelt data, in Rego"},
		{"  policy: {type: cel, data: 'true'}\n  authorities: [{static: {action: pass}}]\n", "spec.policy.type", "cue or rego", "an overall policy in another language"},
		{"  mode: audit\n  authorities: [{key: {data: $KEY}}]\n", "spec.mode", "enforce or warn", "another mode"},
		{"  match: [{version: v1}]\n  authorities: [{key: {data: $KEY}}]\n", "spec.match[0].resource", "missing", "a match without a resource"},
		{"  match: [{resource: replicationcontrollers, version: v1}]\n  authorities: [{key: {data: $KEY}}]\n", "spec.match[0].resource", "unknown", "another resource"},
		{"  match: [{resource: deployments, version: v1}]\n  authorities: [{key: {data: $KEY}}]\n", "spec.match[0].group", "apps", "another group"},
		{"  match: [{resource: pods}]\n  authorities: [{key: {data: $KEY}}]\n", "spec.match[0].version", "v1 or *", "no version"},
		{"  match: [{resource: pods, version: v1, selector: {matchExpressions: [{key: a, operator: Is}]}}]\n  authorities: [{key: {data: $KEY}}]\n", "spec.match[0].selector.matchExpressions[0].operator", "unknown", "another operator"},
		{"  match: [{resource: pods, version: v1, selector: {matchExpressions: [{key: a, operator: In}]}}]\n  authorities: [{key: {data: $KEY}}]\n", "spec.match[0].selector.matchExpressions[0].values", "want values", "in nothing"},
		{"  authority: []\n  authorities: [{key: {data: $KEY}}]\n", "spec.authority", "unknown field", "an unknown field"},
		{"  authorities: [{key: {data: $KEY, data: x}}]\n", "", "already set", "a field twice"},
		{"  authorities: {key: 1}\n", "spec.authorities", "want a list", "another form"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			text := head + c.spec
			if c.reason == "a field twice" {
				text = strings.Replace(text, "data: x", "data: y", 1)
			}
			text = strings.ReplaceAll(text, "$SUM", strings.Repeat("ab", 32))
			_, err := sigstore.New(sigstore.Options{}).Compile([]byte(fill(t, text)), "test.yaml")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v; want %q", err, c.want)
			}
			if field, ok := errors.AsType[*sigstore.FieldError](err); c.path != "" && (!ok || !strings.Contains(err.Error(), c.path+": ")) {
				t.Errorf("path %v in %v; want %s", field, err, c.path)
			}
		})
	}
}

func TestDocuments(t *testing.T) {
	good := fill(t, head+signedByKey)
	for _, c := range []struct{ before, after, want, reason string }{
		{"v1beta1", "v1alpha1", "", "the older version"},
		{"v1beta1", "v1", "is no ClusterImagePolicy", "an unknown version"},
		{"policy.sigstore.dev", "config.openshift.io", "is no ClusterImagePolicy", "OpenShift's kind of that name"},
		{"name: signed", "name: ''", "metadata.name: is empty", "no name"},
		{"metadata: {", "status: {conditions: []}\nmetadata: {", "", "a status"},
		{"apiVersion", "apiversion", "unknown field", "another case"},
		{"kind:", "x: {", "yaml", "no YAML"},
	} {
		_, err := sigstore.New(sigstore.Options{}).Compile([]byte(strings.Replace(good, c.before, c.after, 1)), "test.yaml")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
		}
	}
	if _, err := sigstore.New(sigstore.Options{}).Compile(make([]byte, 4<<20), "large"); err == nil || !strings.Contains(err.Error(), "exceeds the bound") {
		t.Errorf("large: %v", err)
	}
	var dialect sigstore.Policies
	if !dialect.Recognises("policy.sigstore.dev/v1beta1", "ClusterImagePolicy") || dialect.Recognises("config.openshift.io/v1", "ClusterImagePolicy") ||
		dialect.Recognises("policy.sigstore.dev/v1alpha1", "TrustRoot") || !trustroot.Recognises("policy.sigstore.dev/v1alpha1", "TrustRoot") {
		t.Error("a document is taken for another")
	}
	for _, field := range sigstore.Ignored() {
		if field.Path == "" || field.Reason == "" {
			t.Errorf("%+v", field)
		}
	}
}
