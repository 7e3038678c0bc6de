package verifyimages_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
	"sigs.k8s.io/yaml"
)

const (
	kms    = "entries: [{keys: {kms: 'awskms:///alias/a'}}]"
	signed = "attestors: [{" + kms + "}]"
)

// entryOf compiles an entry of a policy, of a namespace if it has one.
func entryOf(t *testing.T, namespace, text string) (*verifyimages.Entry, error) {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	var raw any
	if err := yaml.Unmarshal([]byte("{"+text+"}"), &raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return verifyimages.Compile(verifyimages.Options{Engine: engine, Namespace: namespace, Known: []string{"x"}}, raw, "rule", "verifyImages[0]")
}

// checkOf returns what a good entry asks of an image.
func checkOf(t *testing.T, text string, data verifyimages.Lazy) policy.Check {
	t.Helper()
	e, err := entryOf(t, "", text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	checks, err := e.Checks(images(), policy.Enforce, data)
	if err != nil || len(checks) != 1 {
		t.Fatalf("%s: %d checks, %v", text, len(checks), err)
	}
	return checks[0]
}

func images() []policy.Image { return []policy.Image{{Ref: image.MustParse("ghcr.io/org/app:v1")}} }

func given(data variable.Context) verifyimages.Lazy {
	return func() (variable.Context, error) { return data, nil }
}

var errNoContext = errors.New("the context cannot be had")

func without() (variable.Context, error) { return nil, errNoContext }

// nested is a set of attestors within so many others.
func nested(depth int) string {
	return strings.Repeat("entries: [{attestor: {", depth) + kms + strings.Repeat("}}]", depth)
}

// TestCompile: the fields that an entry may have, and may not have.
func TestCompile(t *testing.T) {
	const every = "imageReferences: ['*'], "
	attested := func(text string) string {
		return every + "attestations: [{type: a, attestors: [{" + kms + "}], " + text + "}]"
	}
	twoNamed := func(first, second string) string {
		return attested("name: " + first + "}, {type: a, attestors: [{" + kms + "}], name: " + second)
	}
	entry := func(text string) string { return every + "attestors: [{entries: [{" + text + "}]}]" }
	notary := func(text string) string { return "type: Notary, " + entry(text) }
	audit := every + signed + ", failureAction: Audit, "
	for _, c := range []struct{ reason, text, want string }{
		{"one type, written in both fields", attested("predicateType: a"), ""},
		{"two types", attested("predicateType: b"), "attestations[0].predicateType: \"b\" contradicts"},
		{"names", twoNamed("x", "z"), ""},
		{"no names", twoNamed("''", "''"), ""},
		{"a name twice", twoNamed("x", "x"), "attestations[1].name: \"x\" is taken"},
		{"a statement that calls itself the request", twoNamed("x", "request"), "attestations[1].name: \"request\" is taken"},

		{"sets as deep as may be", every + "attestors: [{" + nested(10) + "}]", ""},
		{"sets deeper than may be", every + "attestors: [{" + nested(11) + "}]", "nested more than 10 deep"},
		{"annotations of a set", entry("annotations: {a: b}, attestor: {" + kms + "}"), "belong to the entries"},
		{"an algorithm of a set", entry("signatureAlgorithm: sha256, attestor: {" + kms + "}"), "belong to the entries"},
		{"annotations of a signer", entry("annotations: {a: b}, keys: {kms: 'awskms:///alias/a'}"), ""},

		{"a certificate for Notary", notary("certificates: {cert: CERTIFICATE}"), ""},
		{"a key for Notary", notary("keys: {kms: 'awskms:///alias/a'}"), "signers of the type Notary are certificates"},
		{"an identity for Notary", notary("keyless: {issuer: a, subject: b}"), "signers of the type Notary are certificates"},
		{"a log for Notary", notary("certificates: {cert: CERTIFICATE, rekor: {}}"), "remove them"},
		{"timestamps for Notary", notary("certificates: {cert: CERTIFICATE, ctlog: {}}"), "remove them"},

		{"an algorithm", entry("signatureAlgorithm: sha384, certificates: {cert: CERTIFICATE}"), ""},
		{"an algorithm that is too weak", entry("signatureAlgorithm: sha1, certificates: {cert: CERTIFICATE}"), "entries[0].signatureAlgorithm: unknown algorithm"},
		{"an algorithm twice", entry("signatureAlgorithm: sha384, keys: {kms: 'awskms:///alias/a', signatureAlgorithm: sha384}"), ""},
		{"a chain alone", entry("certificates: {certChain: CERTIFICATE}"), ""},
		{"a chain that is none", entry("certificates: {certChain: x}"), "certChain: want a PEM block"},

		{"the log's key", entry("keys: {kms: 'awskms:///alias/a', rekor: {pubkey: KEY}}"), ""},
		{"the log's key, which is none", entry("keys: {kms: 'awskms:///alias/a', rekor: {pubkey: x}}"), "rekor.pubkey: want"},
		{"the log's key, which is none, for an identity", entry("keyless: {issuer: a, subject: b, rekor: {pubkey: x}}"), "rekor.pubkey: want"},
		{"a clock's chain, which is none", entry("keyless: {issuer: a, subject: b, ctlog: {tsaCertChain: x}}"), "ctlog.tsaCertChain: want"},
		{"a key of a KMS among public keys", entry("keys: {publicKeys: 'awskms:///alias/a'}"), ""},
		{"a key in a secret", entry("keys: {publicKeys: 'k8s://a/b'}"), ""},
		{"a key in a secret without a namespace", entry("keys: {publicKeys: 'k8s:///b'}"), "want k8s://namespace/name"},
		{"a key in a secret without a name", entry("keys: {publicKeys: 'k8s://a/'}"), "want k8s://namespace/name"},
		{"a key in a secret with a name of two parts", entry("keys: {publicKeys: 'k8s://a/b/c'}"), "want k8s://namespace/name"},
		{"a secret without a name", entry("keys: {secret: {namespace: a}}"), "want a name and a namespace"},
		{"any value of an extension", entry("keyless: {issuer: a, subject: b, additionalExtensions: {githubWorkflowRef: '*'}}"), ""},
		{"no value of an extension", entry("keyless: {issuer: a, subject: b, additionalExtensions: {githubWorkflowRef: ''}}"), "is empty: write *"},

		{"a secret of a namespace", every + signed + ", imageRegistryCredentials: {secrets: [a/b]}", ""},
		{"a secret of a namespace without a name", every + signed + ", imageRegistryCredentials: {secrets: ['', a/]}", "secrets[1]: \"a/\": want name"},
		{"a secret of no namespace", every + signed + ", imageRegistryCredentials: {secrets: [/b]}", "secrets[0]: \"/b\": want name"},

		{"an audit that changes nothing", audit + "mutateDigest: false", ""},
		{"an audit that changes images", audit + "mutateDigest: true", "mutateDigest: must be false"},
		{"a deny without conditions", attested("name: x") + ", validate: {deny: {}}", "validate.deny.conditions: is missing"},

		{"a deny of a statement", attested("name: x") + ", validate: {deny: {conditions: {any: [{key: '{{ x.score }}', operator: Equals, value: 7}]}}}", ""},
		{"a deny of a text", attested("name: x") + ", validate: {deny: {conditions: {any: [{key: x.score, operator: Equals, value: a}]}}}", "validate.deny.conditions: a condition without a variable has the same result for every statement: write the key x.score as {{ x.score }}"},
		{"conditions of a statement", attested("name: x, conditions: [{all: [{key: '{{ score }}', operator: NotEquals, value: a}]}]"), ""},
		{"conditions of a text", attested("name: x, conditions: [{all: [{key: scanner.score, operator: NotEquals, value: a}]}]"), "attestations[0].conditions: a condition without a variable has the same result for every statement"},

		{"an old key", every + "key: 'awskms:///alias/a'", ""},
		{"an old key and a subject", every + "key: 'awskms:///alias/a', subject: b", "want one kind of signer"},
		{"an old key and roots", every + "key: 'awskms:///alias/a', roots: CERTIFICATE", "want one kind of signer"},
		{"an old key and extensions", every + "key: 'awskms:///alias/a', additionalExtensions: {githubWorkflowRef: b}", "want one kind of signer"},
	} {
		text := strings.NewReplacer("CERTIFICATE", quoted(t, "CERTIFICATE"), "KEY", quoted(t, "PUBLIC KEY")).Replace(c.text)
		_, err := entryOf(t, "", text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.reason, err, c.want)
		}
	}
}

// quoted is a PEM block of a type, as a scalar of YAML: a key, or a self-signed
// certificate.
func quoted(t *testing.T, kind string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if kind == "CERTIFICATE" {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
		der, err = x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return `"` + strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})), "\n", `\n`) + `"`
}

// TestCompileWithVariables: what a variable will fill in is looked at when it has, and all
// else when the policy is loaded.
func TestCompileWithVariables(t *testing.T) {
	const every = "imageReferences: ['*'], "
	entry := func(text string) string { return every + "attestors: [{entries: [{" + text + "}]}]" }
	for _, c := range []struct {
		reason, namespace, text string
		loads                   string // the error when it is loaded
		x                       string // the value of the variable
		fills                   string // the error when it is filled in
	}{
		{"a repository", "", every + signed + ", repository: '{{ x }}'", "", "ghcr.io/org/sigs", ""},
		{"a repository that is none", "", every + signed + ", repository: '{{ x }}'", "", "a b", "repository: "},
		{"a repository that is a variable still", "", every + signed + ", repository: 'ghcr.io/{{ x }}'", "", "{{ z }}", "repository: "},
		{"a provider", "", every + signed + ", imageRegistryCredentials: {providers: ['{{ x }}']}", "", "amazon", ""},
		{"a provider that is none", "", every + signed + ", imageRegistryCredentials: {providers: ['{{ x }}']}", "", "ibm", "unknown provider"},
		{"a provider that is none, beside a variable", "", "imageReferences: ['{{ x }}'], " + signed + ", imageRegistryCredentials: {providers: [ibm]}", "unknown provider", "", ""},
		{"a secret of the policy's namespace", "team", every + signed + ", imageRegistryCredentials: {secrets: ['{{ x }}/pull']}", "", "team", ""},
		{"a secret of another namespace", "team", every + signed + ", imageRegistryCredentials: {secrets: ['{{ x }}/pull']}", "", "other", "use a ClusterPolicy"},
		{"an algorithm", "", entry("keys: {kms: 'awskms:///alias/a', signatureAlgorithm: '{{ x }}'}"), "", "sha512", ""},
		{"an algorithm that is too weak", "", entry("keys: {kms: 'awskms:///alias/a', signatureAlgorithm: '{{ x }}'}"), "", "md5", "unknown algorithm"},
		{"a key of a KMS", "", entry("keys: {kms: '{{ x }}'}"), "", "awskms:///alias/a", ""},
		{"a key of no KMS", "", entry("keys: {kms: '{{ x }}'}"), "", "file:///a", "want awskms"},
		{"an expression", "", entry("keyless: {issuerRegExp: '{{ x }}', subject: b}"), "", "a+", ""},
		{"an expression that is one when it is filled in", "", entry(`keyless: {issuerRegExp: "{{ replace_all(x, '(', '') }}", subject: b}`), "", "a(", ""},
		{"an expression that is none", "", entry("keyless: {issuerRegExp: '{{ x }}', subject: b}"), "", "(", "issuerRegExp: "},
		{"an expression that is large when it is filled in", "", entry("keyless: {subjectRegExp: '{{ x }}', issuer: b}"), "", strings.Repeat("a{1000}", 4), "subjectRegExp: the expression compiles to"},
		{"as large an expression as may be", "", entry("keyless: {subjectRegExp: '{{ x }}', issuer: b}"), "", "a{300}", ""},
		{"a large expression", "", entry("keyless: {subjectRegExp: '" + strings.Repeat("a{1000}", 4) + "', issuer: b}"), "subjectRegExp: the expression compiles to", "", ""},
		{"as many keys as are counted", "", every + "attestors: [{count: 2, entries: [{keys: {publicKeys: '{{ x }}'}}, {keys: {kms: 'awskms:///alias/a'}}]}]", "", "awskms:///alias/b", ""},
		{"fewer keys than are counted", "", every + "attestors: [{count: 3, entries: [{keys: {publicKeys: '{{ x }}'}}, {keys: {kms: 'awskms:///alias/a'}}]}]", "", "awskms:///alias/b", "can never be met"},
		{"fewer keys than are counted, beside a variable", "", "imageReferences: ['{{ x }}'], attestors: [{count: 2, " + kms + "}]", "can never be met", "", ""},
	} {
		e, err := entryOf(t, c.namespace, c.text)
		if c.loads == "" && err != nil || c.loads != "" && (err == nil || !strings.Contains(err.Error(), c.loads)) {
			t.Errorf("%s: loaded with %v, want %q", c.reason, err, c.loads)
		}
		if err != nil {
			continue
		}
		checks, err := e.Checks(images(), policy.Enforce, given(variable.Context{"x": c.x}))
		if c.fills == "" && (err != nil || len(checks) != 1) || c.fills != "" && (err == nil || !strings.Contains(err.Error(), c.fills)) {
			t.Errorf("%s: filled in with %v, want %q", c.reason, err, c.fills)
		}
	}
}

// TestChecksWithoutContext: values of a missing context are not made up.
func TestChecksWithoutContext(t *testing.T) {
	plain, err := entryOf(t, "", "imageReferences: ['*'], "+signed)
	if err != nil {
		t.Fatal(err)
	}
	if checks, err := plain.Checks(images(), policy.Enforce, without); err != nil || len(checks) != 1 {
		t.Errorf("an entry that asks nothing: %d checks, %v", len(checks), err)
	}
	unchanged := images()
	unchanged[0].Unchanged = true
	if checks, err := plain.Checks(unchanged, policy.Enforce, without); err != nil || len(checks) != 0 {
		t.Errorf("an image that an update does not change: %d checks, %v", len(checks), err)
	}
	asking, err := entryOf(t, "", `imageReferences: ["{{ to_lower('GHCR.io') }}/*"], `+signed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := asking.Checks(images(), policy.Enforce, without); !errors.Is(err, errNoContext) {
		t.Errorf("an expression: %v", err)
	}
	list, err := entryOf(t, "", "imageReferences: ['*'], repository: '{{ x }}', "+signed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := list.Checks(images(), policy.Enforce, given(variable.Context{"x": []any{"ghcr.io/org/sigs"}})); err == nil {
		t.Error("a list in place of a repository was taken for none")
	}
}

// TestConditions: a predicate that cannot be judged agrees with nothing, and one that is
// to be denied is denied.
func TestConditions(t *testing.T) {
	const asked = "imageReferences: ['*'], attestations: [{name: sbom, type: a, attestors: [{" + kms + "}]"
	always := "{all: [{key: \"{{ to_string('a') }}\", operator: Equals, value: a}]}"
	never := strings.Replace(always, "value: a", "value: b", 1)
	agrees, disagrees := asked+", conditions: ["+always+"]}]", asked+", conditions: ["+never+"]}]"
	denies, allows := asked+"}], validate: {deny: {conditions: "+always+"}}", asked+"}], validate: {deny: {conditions: "+never+"}}"
	object, context := map[string]any{}, given(variable.Context{})
	for _, c := range []struct {
		reason, text string
		context      verifyimages.Lazy
		predicate    any
		holds, errs  bool
	}{
		{"a predicate that agrees", agrees, context, object, true, false},
		{"one that does not", disagrees, context, object, false, false},
		{"one that is no object", agrees, context, []any{}, false, true},
		{"one without a context", agrees, without, object, false, true},
		{"nothing is denied", allows, context, object, false, false},
		{"something is", denies, context, object, true, false},
		{"what has no names is denied", allows, context, []any{}, true, true},
		{"what has no context is denied", allows, without, object, true, true},
	} {
		e, err := entryOf(t, "", c.text)
		if err != nil {
			t.Fatal(err)
		}
		if !e.Asks() {
			t.Errorf("%s: the entry asks nothing of a context", c.reason)
		}
		check := checkOf(t, c.text, c.context)
		condition := check.Deny
		if condition == nil {
			condition = check.Attestations[0].Condition
		}
		holds, _, err := condition.Holds(c.predicate)
		if holds != c.holds || (err != nil) != c.errs {
			t.Errorf("%s: holds %t, %v", c.reason, holds, err)
		}
	}
}

// TestWithoutCache: useCache: false is for every signer, also in a set within a set.
func TestWithoutCache(t *testing.T) {
	for useCache, want := range map[string]bool{"true": false, "false": true} {
		check := checkOf(t, "imageReferences: ['*'], useCache: "+useCache+", attestors: [{"+nested(2)+"}]", without)
		set := check.Requirements[0]
		for set.Members[0].Set != nil {
			set = *set.Members[0].Set
		}
		if got := set.Members[0].Authority.MaxAge < 0; got != want {
			t.Errorf("useCache %s: it is not cached: %t", useCache, got)
		}
	}
}
