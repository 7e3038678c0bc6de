package kyverno_test

import (
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// The smallest policy that is carried, in which a row exchanges one thing.
const base = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["a.io/*"]
      attestors: [{entries: [{keys: {publicKeys: ${one.pub}}}]}]
`

// TestRefused converts the base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	if err := converttest.Refused(base, []converttest.Exchange{
		{"kyverno.io/v1", "kyverno.io/v2", "apiVersion"}, {"kind: ClusterPolicy", "kind: CleanupPolicy", "kind"}, {"{name: p}", "{}", "metadata.name"}, {"{name: p}", "{name: p, namespace: n}", "metadata.namespace: want a string"},
		{"spec:", "spec:\n  applyRules: One", "spec.applyRules"}, {"spec:", "spec:\n  validationFailureActionOverrides: [{action: Audit}]", "spec.validationFailureActionOverrides"},
		{"spec:", "spec:\n  emitWarning: true", "spec.emitWarning"}, {"spec:", "spec:\n  admission: false", "spec.admission"}, {"spec:", "spec:\n  validationFailureAction: Hope", "spec.validationFailureAction"},
		{"spec:", "spec:\n  failurePolicy: Hope", "spec.failurePolicy"}, {"spec:", "spec:\n  generateExisting: true", "spec.generateExisting: unknown field"},
		{"    verifyImages:", "    context: [{name: x}]\n    verifyImages:", "spec.rules[0].context"}, {"    verifyImages:", "    preconditions: {all: []}\n    verifyImages:", "spec.rules[0].preconditions"},
		{"    verifyImages:", "    imageExtractors: {Task: []}\n    verifyImages:", "spec.rules[0].imageExtractors"}, {"    verifyImages:", "    validate: {}\n    verifyImages:", "spec.rules[0].validate: has no equivalent"},
		{"{kinds: [Pod]}", "{kinds: [Deployment]}", "spec.rules[0].match.any[0].resources.kinds[0]"}, {"{kinds: [Pod]}", "{}", "spec.rules[0].match.any[0].resources.kinds: is missing"},
		{"{kinds: [Pod]}", "{kinds: [Pod], operations: [DELETE]}", "spec.rules[0].match.any[0].resources.operations[0]"}, {"{kinds: [Pod]}", "{kinds: [Pod], names: [x]}", "spec.rules[0].match.any[0].resources: selects names"},
		{"{kinds: [Pod]}", "{kinds: [Pod], selector: {matchLabels: {a: 'b*'}}}", "spec.rules[0].match.any[0].resources.selector.matchLabels[a]"},
		{"{resources: {kinds: [Pod]}}", "{roles: [x], resources: {kinds: [Pod]}}", "spec.rules[0].match.any[0]: selects subjects"},
		{"{any: [{resources: {kinds: [Pod]}}]}", "{all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod]}}]}", "spec.rules[0].match.all"},
		{"    verifyImages:", "    exclude: {any: [{resources: {kinds: [Pod], names: [x]}}]}\n    verifyImages:", "spec.rules[0].exclude.any[0].resources"},
		{"    verifyImages:", "    exclude: {any: [{subjects: [{kind: User, name: x}]}]}\n    verifyImages:", "spec.rules[0].exclude.any[0]: selects subjects"},
		{`"a.io/*"`, `"https://a.io/*"`, "spec.rules[0].verifyImages[0].imageReferences[0]"}, {`"a.io/*"`, `"[::1]:5000/*"`, "spec.rules[0].verifyImages[0].imageReferences[0]"}, {`imageReferences: ["a.io/*"]`, `image: "a.io/*"`, "spec.rules[0].verifyImages[0]: has image"},
		{"[{keys: {publicKeys: ${one.pub}}}]", "[{keys: {publicKeys: ${one.pub}}, annotations: {conditions: '{{ x }}'}}]", "spec.rules[0].verifyImages[0].attestors[0].entries[0].annotations.conditions"},
		{`imageReferences: ["a.io/*"]`, `imageReferences: ["{{ x }}"]`, "spec.rules[0].verifyImages[0].imageReferences[0]: \"{{ x }}\" has a variable"}, {`imageReferences: ["a.io/*"]`, `type: Hope`, "spec.rules[0].verifyImages[0].type"},
		{"      attestors:", "      validate: {deny: {}}\n      attestors:", "spec.rules[0].verifyImages[0].validate"}, {"      attestors:", "      failureAction: Hope\n      attestors:", "spec.rules[0].verifyImages[0].failureAction"},
		{"[{entries:", "[{count: 2, entries:", "spec.rules[0].verifyImages[0].attestors[0]: asks for 2 of 1"}, {"keys: {publicKeys: ${one.pub}}", "keys: {}", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keys"},
		{"publicKeys: ${one.pub}", "kms: vault", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keys.kms"}, {"publicKeys: ${one.pub}", "secret: {name: x}", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keys.secret"},
		{"publicKeys: ${one.pub}", "publicKeys: ${one.pub}, signatureAlgorithm: sha1", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keys.signatureAlgorithm"},
		{"keys: {publicKeys: ${one.pub}}", "keyless: {issuer: a}", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keyless: has no subject"},
		{"keys: {publicKeys: ${one.pub}}", "certificates: {cert: ${fulcio.pem}}, signatureAlgorithm: sha512", "spec.rules[0].verifyImages[0].attestors[0].entries[0].certificates"},
		{"      attestors: [{entries: [{keys: {publicKeys: ${one.pub}}}]}]\n", "", "spec.rules[0].verifyImages[0]: requires a verification"},
		{"    - imageReferences", "    - type: Notary\n      imageReferences", "spec.rules[0].verifyImages[0].attestors[0].entries[0]: is not a certificate alone"},
		{"      attestors:", "      attestations: [{type: a, conditions: [{all: []}], attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]}]\n      attestors:", "spec.rules[0].verifyImages[0].attestations[0].conditions"},
		{"      attestors:", "      attestations: [{type: a}]\n      attestors:", "spec.rules[0].verifyImages[0].attestations[0].attestors"},
	}); err != nil {
		t.Error(err)
	}
}

// Parts of the base that rows exchange.
const (
	key     = "{keys: {publicKeys: ${one.pub}}}"
	other   = "{keys: {publicKeys: ${two.pub}}}"
	kms     = "{keys: {kms: 'awskms:///alias/x'}}"
	exact   = "{keyless: {issuer: a, subject: b}}"
	members = "publicKeys: ${one.pub}"
	images  = `    - imageReferences: ["a.io/*"]` + "\n"
	signers = "      attestors: [{entries: [" + key + "]}]\n"
	place   = "spec.rules[0].verifyImages[0]"
	signer  = place + ".attestors[0].entries[0]"
	filter  = "spec.rules[0].match.any[0].resources"
)

// notary is the base with a type of its own, and with an entry of its own.
func notary(text, entry string) converttest.Exchange {
	return converttest.Exchange{images + signers, "    - type: Notary\n      imageReferences: [\"a.io/*\"]\n" + text + "      attestors: [{entries: [" + entry + "]}]\n"}
}

func with(e converttest.Exchange, said string) converttest.Exchange {
	e[2] = said
	return e
}

// nested is an entry within as many attestors.
func nested(depth int) string {
	return strings.Repeat("{attestor: {entries: [", depth) + key + strings.Repeat("]}}", depth)
}

// rules are as many as asked for.
func rules(n int) string {
	return strings.Repeat("  - {name: x, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [{imageReferences: [\"b.io/*\"], required: false}]}\n", n)
}

// TestRefusedPolicies has what a policy and its rules cannot say.
func TestRefusedPolicies(t *testing.T) {
	const verify = "    verifyImages:"
	exclude := func(text string) string { return "    exclude: " + text + "\n" + verify }
	if err := converttest.Refused(base, []converttest.Exchange{
		{"  rules:\n", "  rules:\n" + rules(200), "spec.rules: 201 rules"}, {base[strings.Index(base, "  rules:"):], "  rules: []\n", "spec.rules: 0 rules"},
		{base[strings.Index(base, verify):], "", "spec.rules[0].verifyImages: is missing"}, {verify, "    mutate: {}\n" + verify, "spec.rules[0].mutate"}, {verify, "    generate: {}\n" + verify, "spec.rules[0].generate"},
		{images, images + "      attestations: [{type: vuln, attestors: [{entries: [" + key + "]}]}]\n", ".type: \"vuln\" is compared letter by letter"},
		{"spec:", "spec:\n  webhookConfiguration: {failurePolicy: Hope}", "spec.failurePolicy"}, {images, images + "      key: x\n", place + ": has image"},
		{images, images + "      roots: x\n", place + ": has image"}, {images, images + "      subject: x\n", place + ": has image"}, {images, images + "      issuer: x\n", place + ": has image"},
		{images, images + "      additionalExtensions: {a: b}\n", place + ": has image"}, {images, images + "      annotations: {a: b}\n", place + ": has image"}, {images, images + "      hope: 1\n", place + ".hope: unknown field"},
		{`["a.io/*"]`, "[]", place + ".imageReferences: is missing"}, {images, images + "      skipImageReferences: ['https://a.io/x']\n", place + ".skipImageReferences[0]"},
		{images, images + "      attestations: [{type: a, conditions: [{all: [{key: '{{ x }}'}]}], attestors: [{entries: [" + key + "]}]}]\n", ".conditions: conditions in JMESPath"},
		{images, images + "      validate: {deny: {conditions: '{{ x }}'}}\n", place + ".validate: conditions in JMESPath"}, {key, "{keys: {" + members + "}, annotations: {validate: '{{ x }}'}}", signer + ".annotations.validate"},
		{"{any: [{resources: {kinds: [Pod]}}]}", "{any: [{resources: {kinds: [Pod]}}], all: [{resources: {kinds: [Pod]}}]}", "spec.rules[0].match.all"},
		{"{any: [{resources: {kinds: [Pod]}}]}", "{all: [{resources: {kinds: [Job]}}]}", "spec.rules[0].match.all[0].resources.kinds[0]"}, {"{any: [{resources: {kinds: [Pod]}}]}", "{resources: {kinds: [Job]}}", "spec.rules[0].match.resources.kinds[0]"},
		{"{kinds: [Pod]}", "{kinds: [Pod, Job]}", filter + ".kinds[1]"}, {"{kinds: [Pod]}", "{kinds: [Pod], operations: [UPDATE, CONNECT]}", filter + ".operations[1]"},
		{"{kinds: [Pod]}", "{kinds: [Pod], name: x}", filter + ": selects names"}, {"{kinds: [Pod]}", "{kinds: [Pod], annotations: {a: b}}", filter + ": selects names"},
		{"{resources: {kinds: [Pod]}}", "{clusterRoles: [x], resources: {kinds: [Pod]}}", "any[0]: selects subjects"}, {"{resources: {kinds: [Pod]}}", "{subjects: [{kind: User, name: x}], resources: {kinds: [Pod]}}", "any[0]: selects subjects"},
		{"{kinds: [Pod]}", "{kinds: [Pod], selector: {matchLabels: {'a?': b}}}", filter + ".selector.matchLabels[a?]"}, {"{kinds: [Pod]}", "{kinds: [Pod], namespaceSelector: {matchLabels: {a: 'b*'}}}", filter + ".namespaceSelector.matchLabels[a]"},
		{verify, exclude("{all: [{resources: {namespaces: [x]}}]}"), "spec.rules[0].exclude.all"}, {verify, exclude("{resources: {kinds: [Pod]}}"), "spec.rules[0].exclude.resources: excludes by"},
		{verify, exclude("{any: [{resources: {namespaces: [x], selector: {matchLabels: {a: b}}}}]}"), "exclude.any[0].resources: excludes by"}, {verify, exclude("{any: [{resources: {namespaces: [x], operations: [CREATE]}}]}"), "exclude.any[0].resources: excludes by"},
		{verify, exclude("{any: [{resources: {namespaces: [x], namespaceSelector: {matchLabels: {a: b}}}}]}"), "exclude.any[0].resources: excludes by"},
		{verify, exclude("{any: [{resources: {namespaces: [x]}}, {resources: {namespaces: [x], kinds: [Job]}}]}"), "exclude.any[1].resources: excludes by"},
		{verify, exclude("{any: [{roles: [x], resources: {namespaces: [x]}}]}"), "exclude.any[0]: selects subjects"},
	}); err != nil {
		t.Error(err)
	}
}

// TestRefusedSigners has what a signer and a statement cannot be.
func TestRefusedSigners(t *testing.T) {
	const statement = "      attestations: [{%, attestors: [{entries: [" + key + "]}]}]\n"
	stated := func(text string) string { return images + strings.Replace(statement, "%", text, 1) }
	rows := []converttest.Exchange{
		{"[{entries:", "[{count: 0, entries:", "asks for 0 of 1"}, {"[" + key + "]", "[]", "asks for 0 of 0"}, {key, nested(11), "nested more than 10 deep"},
		{"[{entries: [" + key, "[{count: 2, entries: [" + nested(1) + ", " + key, place + ".attestors[0]: asks for 2 different signers, and has one of them in several entries"}, {"[{entries: [" + key, "[{entries: [{attestor: {count: 1, entries: [" + other + ", " + key + "]}}, {attestor: {count: 1, entries: [" + key + "]}}", "one of them in several entries"},
		{"[{entries: [" + key, "[{entries: [{attestor: {entries: [" + exact + "]}}, " + exact, "one of them in several entries"}, {"[{entries: [" + key, "[{entries: [{attestor: {entries: [" + kms + "]}}, " + kms, "one of them in several entries"},
		{"[{entries: [" + key, "[{count: 3, entries: [" + nested(1) + ", " + key, "asks for 3 of 2"}, {key, "{}", signer + ": has 0 of keys"}, {key, "{keys: {" + members + "}, keyless: {issuer: a, subject: b}}", signer + ": has 2 of keys"},
		{members, "kms: 'awskms:///alias/x', " + members, signer + ".keys: has 2 of publicKeys"}, {members, "secret: {name: x, namespace: w}, " + members, signer + ".keys: has 2 of publicKeys"}, {members, "secret: {namespace: x}", signer + ".keys.secret"},
		{members, "publicKeys: 'k8s://x'", signer + ".keys.publicKeys"}, {members, "publicKeys: ' '", signer + ".keys.publicKeys: no PEM block"}, {key, "{keys: {" + members + "}, signatureAlgorithm: md5}", signer + ".keys.signatureAlgorithm"},
		{members, members + ", rekor: {pubkey: x}", signer + ".keys.rekor.pubkey"}, {members, members + ", ctlog: {pubkey: x}", signer + ".keys.ctlog.pubkey"}, {members, members + ", ctlog: {tsaCertChain: x}", signer + ".keys.ctlog.tsaCertChain"},
		{key, "{keyless: {issuer: 'a*', issuerRegExp: b, subject: c}}", signer + ".keyless: has a text and an expression"}, {key, "{keyless: {issuer: a, subject: b, subjectRegExp: c}}", signer + ".keyless: has a text and an expression"},
		{key, "{keyless: {issuer: a, subject: b, roots: x}}", signer + ".keyless.roots"}, {key, "{certificates: {}}", signer + ".certificates: is empty"}, {key, "{certificates: {cert: x}}", signer + ".certificates.cert"}, {key, "{certificates: {certChain: x}}", signer + ".certificates.certChain"},
		{images, stated("name: a"), place + ".attestations[0].type: is missing"}, {images, stated("type: a, predicateType: b"), place + ".attestations[0].predicateType: contradicts"},
		{images, stated("type: a, conditions: [{any: []}]"), place + ".attestations[0].conditions"}, with(notary("", "{certificates: {cert: ${fulcio.pem}, rekor: {url: x}}}"), signer+": is not a certificate alone"),
		with(notary("", "{certificates: {cert: ${fulcio.pem}, ctlog: {ignoreSCT: true}}}"), signer+": is not a certificate alone"), with(notary("", "{certificates: {cert: ${fulcio.pem}}, annotations: {a: b}}"), signer+": is not a certificate alone"),
		with(notary("", "{certificates: {cert: ${fulcio.pem}}, signatureAlgorithm: sha256}"), signer+": is not a certificate alone"), with(notary("", "{certificates: {cert: ${fulcio.pem}}, repository: x}"), signer+".repository"),
		with(notary("      repository: x\n", "{certificates: {cert: ${fulcio.pem}}}"), signer+".repository"), with(notary("", "{certificates: {}}"), signer+".certificates: is empty"),
	}
	for _, beside := range []string{key[1 : len(key)-1], "keyless: {issuer: a, subject: b}", "certificates: {cert: ${fulcio.pem}}", "annotations: {a: b}", "repository: a.io/x", "signatureAlgorithm: sha256"} {
		rows = append(rows, converttest.Exchange{key, "{" + beside + ", attestor: {entries: [" + key + "]}}", signer + ": has a nested attestor beside other fields"})
	}
	if err := converttest.Refused(base, rows); err != nil {
		t.Error(err)
	}
}

// TestAllProblems reports all problems, and none that merely follows from another.
func TestAllProblems(t *testing.T) {
	for _, row := range []struct {
		reason, found, instead string
		parts                  []string
	}{
		{"a document that cannot be read", base[strings.Index(base, "spec:"):], "spec: 1\n", []string{"spec: want an object"}},
		{"an entry that cannot be read, and the next", images, "    - {imageReferences: 1}\n    - imageReferences: [a.io/x]\n      type: Hope\n", []string{place + ".imageReferences: want a list", "verifyImages[1].type"}},
		{"a variable, which is no pattern", `"a.io/*"`, `"{{ x }}"`, []string{place + ".imageReferences[0]: \"{{ x }}\" has a variable"}},
		{"once, of two filters", base[strings.Index(base, "    match:"):strings.Index(base, "      attestors:")], "    match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: ['*/Pod']}}]}\n    verifyImages:\n    - imageReferences: ['https://a.io/*']\n", []string{place + ".imageReferences[0]"}},
		{"a key given twice, and nothing of either", members, "kms: x, publicKeys: x", []string{signer + ".keys: has 2 of publicKeys", "asks for 0 of 0"}},
	} {
		if !strings.Contains(base, row.found) {
			t.Errorf("%s: the base has no %q", row.reason, row.found)
		}
		if err := converttest.ExpectRefusal(strings.Replace(base, row.found, row.instead, 1), row.parts...); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

// TestAcceptedPolicies converts the base with one thing exchanged, and finds it in what
// is written.
func TestAcceptedPolicies(t *testing.T) {
	const verify, one = "    verifyImages:", "{any: [{resources: {kinds: [Pod]}}]}"
	exclude := func(text string) string { return "    exclude: " + text + "\n" + verify }
	if err := converttest.Accepted(base, []converttest.Exchange{
		{"", "", "kind: ImageValidatingPolicy\nmetadata:\n  name: p-r\nspec:\n  failurePolicy: Fail\n  validationActions:\n    - Audit\n"}, {"", "", "mutateDigest: true\n    verifyDigest: true\n    required: true\n"},
		{"", "", "without: credentials"}, {"", "", "without: matchConditions"}, {"", "", "without: Selector"}, {"", "", "- glob: a.io/*"}, {"", "", "without: reportProperties"}, {"", "", "without: cosignOCI11"}, {"", "", "types Cosign and SigstoreBundle"},
		{"kyverno.io/v1", "kyverno.io/v2beta1", "name: p-r\n"}, {"ClusterPolicy", "Policy", "name: p-r\n  namespace: default\n"}, {"ClusterPolicy\nmetadata: {name: p}", "Policy\nmetadata: {name: p, namespace: m}", "name: p-r\n  namespace: m\n"},
		{"spec:", "spec:\n  applyRules: All\n  admission: true", "name: p-r\n"}, {"spec:", "spec:\n  validationFailureAction: Enforce", "- Deny\n"}, {images, images + "      failureAction: enforce\n", "- Deny\n"},
		{"spec:", "spec:\n  failurePolicy: Ignore\n  webhookConfiguration: {}", "failurePolicy: Ignore\n"}, {"spec:", "spec:\n  failurePolicy: Ignore\n  webhookConfiguration: {failurePolicy: Fail}", "failurePolicy: Fail\n"},
		{"spec:", "spec:\n  webhookTimeoutSeconds: 7\n  webhookConfiguration: {}", "timeoutSeconds: 7\n"}, {"spec:", "spec:\n  webhookTimeoutSeconds: 7\n  webhookConfiguration: {timeoutSeconds: 8}", "timeoutSeconds: 8\n"},
		{"spec:", "spec:\n  webhookConfiguration: {matchConditions: [{name: x, expression: z}]}", "matchConditions:\n    - name: x\n      expression: z\n"}, {"spec:", "spec:\n  background: false", "enabled: false\n"},
		{"  rules:\n", "  rules:\n" + rules(199), "name: p-x-199\n"}, {verify, "    celPreconditions: [{name: x, expression: 'true'}]\n" + verify, "- name: x\n      expression: \"true\"\n"},
		{verify, "    reportProperties: {a: b}\n" + verify, "reportProperties and skipBackgroundRequests of spec.rules[0]"}, {verify, "    skipBackgroundRequests: false\n" + verify, "reportProperties and skipBackgroundRequests of spec.rules[0]"},
		{images, "    - {imageReferences: ['b.io/*'], required: false}\n" + images, "name: p-r-2\n"}, {"", "", "without: p-r-1"}, {images, images + "      mutateDigest: true\n      verifyDigest: true\n      required: true\n", "mutateDigest: true\n    verifyDigest: true\n    required: true\n"}, {images, images + "      mutateDigest: false\n", "mutateDigest: false\n    verifyDigest: true\n    required: true\n"},
		{images, images + "      verifyDigest: false\n", "verifyDigest: false\n    required: true\n"}, {signers, "      required: false\n", "expression: \"true\"\n"}, {images, images + "      required: false\n", "without: expression: \"true\""},
		{images, images + "      cosignOCI11: true\n", "cosignOCI11 and useCache"}, {images, images + "      useCache: true\n", "cosignOCI11 and useCache"}, {images, images + "      type: SigstoreBundle\n", "name: p-r\n"}, {images, images + "      type: Cosign\n", "name: p-r\n"},
		{images, images + "      imageRegistryCredentials: {secrets: [x]}\n", "credentials:\n    secrets:\n      - x\n"}, {images, images + "      skipImageReferences: ['a.io/b*']\n", `!name.matches(r'^a\.io/b.*$')`}, {images, images + "      skipImageReferences: ['a.io/b*']\n", "without: glob"},
		{one, "{all: [{resources: {kinds: [Pod]}}]}", "name: p-r\n"}, {one, "{resources: {kinds: [v1/Pod]}}", "name: p-r\n"}, {one, "{any: [{resources: {kinds: [Pod]}}, {resources: {kinds: ['*/Pod']}}]}", "name: p-r-2\n"},
		{"{kinds: [Pod]}", "{kinds: [Pod], operations: [UPDATE]}", "operations:\n          - UPDATE\n"}, {"{kinds: [Pod]}", "{kinds: [Pod], operations: [CREATE]}", "without: - UPDATE"}, {"", "", "- CREATE\n          - UPDATE\n"},
		{"{kinds: [Pod]}", "{kinds: [Pod], namespaces: [x, 'y?']}", "request.namespace.matches(r'^(x|y.)$')"}, {"{kinds: [Pod]}", "{kinds: [Pod], selector: {matchLabels: {a: b}}}", "objectSelector:\n      matchLabels:\n        a: b\n"},
		{"{kinds: [Pod]}", "{kinds: [Pod], namespaceSelector: {matchExpressions: [{key: a, operator: Exists}]}}", "namespaceSelector:\n      matchExpressions:\n        - key: a\n          operator: Exists\n"},
		{verify, exclude("{resources: {namespaces: ['x*']}}"), "- name: not-excluded-1\n      expression: '!request.namespace.matches(r''^(x.*)$'')'\n"}, {verify, exclude("{any: [{resources: {namespaces: [x], kinds: [Pod]}}, {resources: {namespaces: [z], kinds: ['*']}}]}"), "not-excluded-2"},
	}); err != nil {
		t.Error(err)
	}
}

// TestAcceptedSigners does the same with signers and statements.
func TestAcceptedSigners(t *testing.T) {
	const statement = "      attestations: [{%, attestors: [{entries: [" + key + "]}]}]\n"
	stated := func(text string) string { return images + strings.Replace(statement, "%", text, 1) }
	secret := "secret: {name: x, namespace: w}"
	if err := converttest.Accepted(base, []converttest.Exchange{
		{"", "", "verifyImageSignatures(image, [attestors.key]) >= 1"}, {"", "", "without: ctlog"}, {"", "", "without: source:"}, {"", "", "without: hashAlgorithm"}, {"", "", "without: attestations"}, {key, key + ", " + key, "[attestors.key, attestors.key_2]) >= 2"},
		{"[{entries: [" + key, "[{count: 1, entries: [" + key + ", " + key, "[attestors.key, attestors.key_2]) >= 1"}, {key, nested(10), "name: p-r\n"}, {"[{entries: [" + key, "[{count: 2, entries: [" + nested(1) + ", " + other, "].filter(met, met).size() >= 2"}, {"[{entries: [" + key, "[{count: 1, entries: [" + nested(1) + ", " + key, "].filter(met, met).size() >= 1"},
		{"[{entries: [" + key, "[{entries: [{attestor: {entries: [" + exact + "]}}, " + strings.Replace(exact, "subject: b", "subject: c", 1), "].filter(met, met).size() >= 2"}, {"[{entries: [" + key, "[{entries: [{attestor: {entries: [" + exact + "]}}, " + strings.Replace(exact, "subject: b", "subject: c", 1), "without: counts as several"},
		{"[{entries: [" + key, "[{entries: [{attestor: {entries: [" + exact + "]}}, " + strings.Replace(exact, "subject: b", "subjectRegExp: .*", 1), "counts as several"}, {"[{entries: [" + key, "[{entries: [{attestor: {entries: [" + exact + "]}}, " + key, "counts as several"}, {"[{entries: [" + key, "[{entries: [" + nested(1) + ", " + kms, "counts as several"},
		{members, "kms: 'awskms:///alias/x'", "kms: awskms:///alias/x\n"}, {members, secret, "kms: k8s://w/x\n"}, {members, "publicKeys: ' gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/x'", "kms: gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/x\n"}, {members, "publicKeys: 'k8s://w/x'", "kms: k8s://w/x\n"}, {members, members + ", signatureAlgorithm: sha512", "hashAlgorithm: sha512\n"},
		{key, "{keys: {" + members + ", signatureAlgorithm: sha224}, signatureAlgorithm: sha512}", "hashAlgorithm: sha224\n"}, {key, "{keys: {" + members + "}, signatureAlgorithm: sha384}", "hashAlgorithm: sha384\n"},
		{members, members + ", rekor: {url: 'https://x', ignoreTlog: true, pubkey: ${rekor.pub}}", "rekorPubKey:"}, {members, members + ", rekor: {ignoreTlog: true}", "insecureIgnoreTlog: true\n"}, {members, members + ", rekor: {}, ctlog: {}", "without: ctlog"},
		{members, members + ", ctlog: {ignoreSCT: true}", "insecureIgnoreSCT: true\n"}, {members, members + ", ctlog: {pubkey: ${ct.pub}}", "ctLogPubKey:"}, {members, members + ", ctlog: {tsaCertChain: ${fulcio.pem}}", "tsaCertChain:"},
		{key, "{keyless: {issuer: a, subject: b}}", "- issuer: a\n              subject: b\n"}, {key, "{keyless: {issuer: 'a*', subject: 'b?'}}", "issuerRegExp: ^(a.*)$\n              subjectRegExp: ^(b.)$\n"}, {key, "{keyless: {issuer: a, subject: b}}", "without: matched against the whole"},
		{key, "{keyless: {issuerRegExp: a, subjectRegExp: b}}", "matched against the whole"}, {key, "{keyless: {issuer: 'a*', subject: b}}", "without: matched against the whole"}, {key, "{keyless: {issuer: a, subject: b, roots: ${fulcio.pem}}}", "roots: |"}, {key, "{keyless: {issuer: a, subject: b}}", "without: roots"},
		{key, "{certificates: {cert: ${fulcio.pem}}, signatureAlgorithm: sha256}", "cert:\n"}, {key, "{certificates: {cert: ${fulcio.pem}}}", "without: certChain"}, {key, "{certificates: {certChain: ${fulcio.pem}}}", "certChain:\n"}, {key, "{certificates: {certChain: ${fulcio.pem}}}", "without: cert:"},
		{key, "{keys: {" + members + "}, repository: a.io/y}", "repository: a.io/y\n"}, {images, images + "      repository: a.io/z\n", "repository: a.io/z\n"}, {key, "{keys: {" + members + "}, annotations: {a: b}}", "annotations:\n          a: b\n"},
		{images, stated("type: a, predicateType: a"), "- name: attestation\n      intoto:\n        type: a\n"}, {images, stated("predicateType: a, name: s, conditions: []"), "verifyAttestationSignatures(image, attestations.s, [attestors.key_2]) >= 1"},
		with(notary("", "{certificates: {cert: ${fulcio.pem}}}"), "notary:\n"), with(notary("", "{certificates: {certChain: ${fulcio.pem}}}"), "verifyImageSignatures(image, [attestors.notary]) >= 1"), with(notary("", "{certificates: {cert: ${fulcio.pem}}}"), "without: types Cosign"),
		with(notary("      attestations: [{type: a/b, attestors: [{entries: [{certificates: {cert: ${fulcio.pem}}}]}]}]\n", "{certificates: {cert: ${fulcio.pem}}}"), "referrer:\n        type: a/b\n"),
	}); err != nil {
		t.Error(err)
	}
}

// TestSeveralSigners: entries that count to two have two signers. One that is there several times is refused.
func TestSeveralSigners(t *testing.T) {
	quoted := func(files ...string) string {
		var text []byte
		for _, name := range files {
			data, err := fs.ReadFile(converttest.Files(), name)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, data...)
		}
		return strconv.Quote(string(text))
	}
	const one, two, third = "truststore/x509/ca/signers/builder.pem", "truststore/x509/ca/signers/tester.pem", "etc/pki/fulcio.pem"
	cert := func(files ...string) string { return "cert: " + quoted(files...) }
	chain := func(files ...string) string { return "certChain: " + quoted(files...) }
	keys := func(files ...string) string { return "{keys: {publicKeys: " + quoted(files...) + "}}" }
	for _, row := range []struct {
		reason, first, second string
		isRefused, isCosign   bool
	}{
		{"one certificate", cert(one), cert(one), true, true},
		{"two certificates", cert(one), cert(two), false, true},
		{"two certificates of one authority", cert(one) + ", " + chain(third), cert(two) + ", " + chain(third), false, true},
		{"one authority", chain(one, third), chain(two, third), true, true},
		{"two authorities", chain(one), chain(two), false, true},
		{"a certificate, and its authority", cert(one) + ", " + chain(third), chain(third), true, true},
		{"a certificate, and another authority", cert(one) + ", " + chain(third), chain(two), false, true},
		{"a certificate that is an authority", cert(one), chain(one), true, true},
		{"an authority that is a certificate", chain(one), cert(one), true, true},
		{"one certificate for notation", cert(one), cert(one), true, false},
		{"one of several for notation", cert(one) + ", " + chain(third), chain(two, third), true, false},
		{"two for notation", cert(one), cert(two), false, false},
	} {
		kind := "Notary"
		if row.isCosign {
			kind = "Cosign"
		}
		entries := "[{attestor: {entries: [{certificates: {" + row.first + "}}]}}, {certificates: {" + row.second + "}}]"
		exchange := []converttest.Exchange{{images + signers, "    - type: " + kind + "\n      imageReferences: [\"a.io/*\"]\n      attestors: [{count: 2, entries: " + entries + "}]\n", "].filter(met, met).size() >= 2"}}
		check := converttest.Accepted
		if row.isRefused {
			exchange[0][2], check = place+".attestors[0]: asks for 2 different signers", converttest.Refused
		}
		if err := check(base, exchange); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
	const a, b = "etc/pki/one.pub", "etc/pki/two.pub"
	entries := func(list ...string) string { return "[{count: 2, entries: [" + strings.Join(list, ", ") }
	nestedOther := "{attestor: {entries: [{keys: {publicKeys: ${rekor.pub}}}]}}"
	if err := converttest.Refused(base, []converttest.Exchange{
		{"[{entries: [" + key, entries(nestedOther, keys(a, a)), "has one of them in several entries, or twice in one"},
		{"[{entries: [" + key, entries(nestedOther, keys(a), keys(a)), "has one of them in several entries, or twice in one"},
	}); err != nil {
		t.Error(err)
	}
	if err := converttest.Accepted(base, []converttest.Exchange{
		{"[{entries: [" + key, entries(nestedOther, keys(a, b)), "].filter(met, met).size() >= 2"},
		{"[{entries: [" + key, entries("{attestor: {count: 1, entries: ["+keys(a, a)+"]}}", keys(b)), "].filter(met, met).size() >= 2"},
	}); err != nil {
		t.Error(err)
	}
}
