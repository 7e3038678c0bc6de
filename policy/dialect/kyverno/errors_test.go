package kyverno_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
)

// minimal is a policy that loads; the tests put one thing wrong into it.
const minimal = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: minimal
spec:
  rules:
  - name: signed
    match:
      any:
      - resources:
          kinds: [Pod]
    verifyImages:
    - imageReferences: ["*"]
      attestors:
      - entries:
        - keyless:
            issuer: https://issuer.example
            subject: ann@example.com
`

func TestMinimal(t *testing.T) {
	p, err := newCompiler(t, nil).Compile([]byte(minimal), "minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "audit is the default", p.AuditOnly, true)
	equal(t, "fail closed is the default", p.FailOpen, false)
	equal(t, "source", p.Source, "minimal.yaml")
}

func TestErrors(t *testing.T) {
	const entry, rule = "spec.rules[0].verifyImages[0]", "spec.rules[0]"
	signer := "            issuer: https://issuer.example\n            subject: ann@example.com\n"
	tests := []struct{ old, new, path, want, reason string }{
		{"apiVersion: kyverno.io/v1", "apiVersion: kyverno.io/v3", "", "no Kyverno policy", "another version"},
		{"kind: ClusterPolicy", "kind: CleanupPolicy", "", "no Kyverno policy", "another kind"},
		{"  name: minimal", "  labels: {}", "metadata.name", "empty", "no name"},
		{"  name: minimal", "  name: minimal\n  annotations: {a: 7}", "metadata", "want a string", "an annotation that is no text"},
		{"  - name: signed", "  - 7\n  - name: signed", rule, "rules[0]: ", "no rule"},
		{"  - name: signed", "  - name: [signed]", rule + ".name", "want a string", "a name that is no text"},
		{minimal[strings.Index(minimal, "  rules:"):], "  rules: []\n", "spec.rules", "is empty", "no rules"},
		{"spec:", "spce: {}\nspec:", "spce", "unknown field", "misspelt"},
		{"  rules:", "  failurePolicy: Sometimes\n  rules:", "spec.failurePolicy", "unknown value", "no such value"},
		{"  name: minimal", "  name: minimal\n  annotations: {quaymaster.dev/plattform: each}", "metadata.annotations[quaymaster.dev/plattform]", "did you mean quaymaster.dev/platforms?", "a misspelt annotation"},
		{"  rules:", "  rulez: []\n  rules:", "spec.rulez", "unknown field", "misspelt"},
		{"  rules:", "  applyRules: Two\n  rules:", "spec.applyRules", "unknown value", "no such value"},
		{"  rules:", "  admission: false\n  rules:", "spec.admission", "not supported", "it would mean something else"},
		{"  rules:", "  validationFailureAction: Block\n  rules:", "spec.validationFailureAction", "unknown action", "no such action"},
		{"  rules:", "  validationFailureActionOverrides: [{action: Warn}]\n  rules:", "spec.validationFailureActionOverrides[0].action", "unknown action", "no such action"},
		{"  rules:", "  webhookConfiguration: {matchConditions: [{name: a, expression: 'true'}]}\n  rules:", "spec.webhookConfiguration.matchConditions", "not supported", "CEL"},
		{"  rules:", "  background: maybe\n  rules:", "", "spec.background: want true or false", "a wrong type"},
		{"  name: minimal", "  name: minimal\n  annotations: {quaymaster.dev/platforms: some}", "metadata.annotations[quaymaster.dev/platforms]", "unknown value", "no such value"},
		{"  name: minimal", "  name: minimal\n  annotations: {pod-policies.kyverno.io/autogen-controllers: Knative}", "metadata.annotations[pod-policies.kyverno.io/autogen-controllers]", "unknown pod controller", "no such kind"},

		{"  - name: signed", "  - namme: signed", rule + ".name", "empty", "no name"},
		{"    verifyImages:", "    celPreconditions: [{name: a, expression: 'true'}]\n    verifyImages:", rule + ".celPreconditions", "not supported", "CEL"},
		{"    verifyImages:", "    preconditons: {}\n    verifyImages:", rule + ".preconditons", "unknown field", "misspelt"},
		{"    verifyImages:", "    validate: {message: x}\n    verifyImages:", rule, "one of verifyImages, validate", "two kinds in one rule"},
		{"    verifyImages:", "    mutate: {targets: []}\n    verifyImages:", rule, "one of verifyImages, validate", "a mutation, too"},
		{"    verifyImages:", "    generate: {kind: x}\n    verifyImages:", rule, "one of verifyImages, validate", "a generation, too"},
		{minimal[strings.Index(minimal, "    verifyImages:"):], "    validate: {deny: {}}\n    mutate: {patchStrategicMerge: {a: b}}\n", rule, "one of verifyImages, validate", "two kinds without images"},
		{minimal[strings.Index(minimal, "  - name: signed"):], "  - match: {any: [{resources: {kinds: [Pod]}}]}\n    validate: {deny: {}}\n", rule + ".name", "is empty", "no name of another rule"},
		{"    verifyImages:", "    preconditions: {all: [{key: a, operator: Is, value: b}]}\n    verifyImages:", rule + ".preconditions", `/all/0/operator: unknown operator "Is"`, "no such operator"},
		{"    verifyImages:", "    preconditions: {all: [{key: '{{ f(x) }}', operator: Equals, value: b}]}\n    verifyImages:", rule + ".preconditions", "/all/0/key", "no such function"},
		{"    verifyImages:", "    context: [{name: a, apiCall: {urlPath: x}}]\n    verifyImages:", rule + ".context[0].apiCall.urlPath", "not absolute", "no path of the API server"},
		{"    verifyImages:", "    context: [{name: a, imageRegistry: {}}]\n    verifyImages:", rule + ".context[0].imageRegistry.reference", "is empty", "no image"},
		{"    verifyImages:", "    context: [{name: a, globalReference: {}}]\n    verifyImages:", rule + ".context[0].globalReference.name", "is empty", "no entry"},
		{"    verifyImages:", "    context: [{name: request, variable: {value: x}}]\n    verifyImages:", rule + ".context[0].name", "cannot be the name", "it is taken"},
		{"    verifyImages:", "    context: [{name: a, variable: {jmesPath: 'a.'}}]\n    verifyImages:", rule + ".context[0].variable.jmesPath", "", "no expression"},
		{"    verifyImages:", "    context: [{name: a, variable: {}}]\n    verifyImages:", rule + ".context[0].variable", "want a value", "nothing in it"},
		{"    verifyImages:", "    imageExtractors: {Task: [{path: spec/image}]}\n    verifyImages:", rule + ".imageExtractors.Task[0].path", "from the object's root", "no pointer"},
		{"    verifyImages:", "    imageExtractors: {Task: [{path: /}]}\n    verifyImages:", rule + ".imageExtractors.Task[0].path", "names an empty field", "the object as a whole"},
		{"    verifyImages:", "    imageExtractors: {Task: [{path: /spec/image/}]}\n    verifyImages:", rule + ".imageExtractors.Task[0].path", "names an empty field", "a slash too many"},
		{"    verifyImages:", "    imageExtractors: {Task: [{path: /spec, jmesPath: 'x('}]}\n    verifyImages:", rule + ".imageExtractors.Task[0].jmesPath", "", "no expression"},
		{"          kinds: [Pod]", "          kinds: [a/b/c/d/e]", rule + ".match.any[0].resources.kinds[0]", "want [group/]", "no kind"},
		{"          kinds: [Pod]", "          kinds: [pods]", rule + ".match.any[0].resources.kinds[0]", "is no kind", "a resource"},
		{"          kinds: [Pod]", "          kinds: [.x]", rule + ".match.any[0].resources.kinds[0]", "", "no kind"},
		{"          kinds: [Pod]", "          kind: [Pod]", rule + ".match.any[0].resources.kind", "unknown field", "misspelt"},
		{"          kinds: [Pod]", "          operations: [PATCH]", rule + ".match.any[0].resources.operations[0]", "unknown operation", "no such operation"},
		{"          kinds: [Pod]", "          selector: {matchExpressions: [{key: a, operator: Is}]}", rule + ".match.any[0].resources.selector.matchExpressions[0].operator", "unknown operator", "no such operator"},
		{"      - resources:\n          kinds: [Pod]", "      - subjects: [{kind: Robot, name: x}]", rule + ".match.any[0].subjects[0].kind", "unknown kind", "no such kind"},
		{"      - resources:\n          kinds: [Pod]", "      - resources: {}", rule + ".match.any[0]", "match nothing", "an empty filter"},
		{"      any:\n      - resources:\n          kinds: [Pod]", "      any: []", rule + ".match", "match nothing", "an empty block"},
		{"      any:", "      all: [{resources: {kinds: [Pod]}}]\n      any:", rule + ".match", "want one of any, all", "both at once"},

		{`    - imageReferences: ["*"]`, `    - imageReferences: []`, entry + ".imageReferences", "empty", "no image"},
		{`    - imageReferences: ["*"]`, `    - imageReferences: [""]`, entry + ".imageReferences[0]", "empty", "no image"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      imageReference: x", entry + ".imageReference", "unknown field", "misspelt"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      imageReferences: ['*']", "", "already", "twice"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      type: GPG", entry + ".type", "unknown type", "no such type"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      failureAction: Warn", entry + ".failureAction", "unknown action", "no such action"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      failureAction: Audit", entry + ".mutateDigest", "must be false", "Kyverno's rule"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      repository: 'a b'", entry + ".repository", "", "no repository"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      imageRegistryCredentials: {providers: [ibm]}", entry + ".imageRegistryCredentials.providers[0]", "unknown provider", "no such provider"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      imageRegistryCredentials: {secrets: [a/b/c]}", entry + ".imageRegistryCredentials.secrets[0]", "want name", "no secret"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      annotations: {a: b}", entry + ".annotations", "belong to a signer", "whose?"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      key: x\n      issuer: z", entry + ".key", "one kind of signer", "two signers"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      validate: {message: x}", entry + ".validate.deny", "missing", "nothing to deny"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      validate: {deny: {conditions: {all: []}}}", entry + ".validate.deny", "there is none", "no attestation"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      attestations: [{type: a}]", entry + ".attestations[0].attestors", "missing", "any signer would"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      attestations: [{attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]}]", entry + ".attestations[0].type", "missing", "no type"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      attestations: [{type: a, predicateType: b, attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]}]", entry + ".attestations[0].predicateType", "contradicts", "two types"},
		{`    - imageReferences: ["*"]`, "    - imageReferences: ['*']\n      attestations: [{type: a, conditions: [{all: [{kye: 1}]}], attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]}]", entry + ".attestations[0].conditions", "/0/all/0/kye: unknown field", "misspelt"},

		{"      - entries:", "      - count: 2\n        entries:", entry + ".attestors[0].count", "can never be met", "two of one"},
		{"      - entries:", "      - count: 0\n        entries:", entry + ".attestors[0].count", "can never be met", "none of one"},
		{"      - entries:\n        - keyless:\n" + signer, "      - entries: []\n", entry + ".attestors[0].entries", "empty", "nobody"},
		{"        - keyless:\n", "        - repository: a b\n          keyless:\n", entry + ".attestors[0].entries[0].repository", "", "no repository"},
		{"        - keyless:\n" + signer, "        - annotations: {a: b}\n", entry + ".attestors[0].entries[0]", "want one of keys", "no signer"},
		{"        - keyless:\n" + signer, "        - keys: {}\n", entry + ".attestors[0].entries[0].keys", "want one of publicKeys", "no key"},
		{"        - keyless:\n" + signer, "        - keys: {publicKeys: x}\n", entry + ".attestors[0].entries[0].keys.publicKeys", "want PEM", "no key"},
		{"        - keyless:\n" + signer, "        - keys: {publicKeys: 'k8s://name'}\n", entry + ".attestors[0].entries[0].keys.publicKeys", "k8s://namespace/name", "no namespace"},
		{"        - keyless:\n" + signer, "        - keys: {kms: 'file:///key'}\n", entry + ".attestors[0].entries[0].keys.kms", "want awskms", "no service"},
		{"        - keyless:\n" + signer, "        - keys: {secret: {name: a}}\n", entry + ".attestors[0].entries[0].keys.secret", "a namespace", "no namespace"},
		{"        - keyless:\n" + signer, "        - keys: {kms: 'awskms:///alias/x', signatureAlgorithm: md5}\n", entry + ".attestors[0].entries[0].keys.signatureAlgorithm", "unknown algorithm", "too weak"},
		{"        - keyless:\n" + signer, "        - {keys: {kms: 'awskms:///alias/x', signatureAlgorithm: sha256}, signatureAlgorithm: sha512}\n", entry + ".attestors[0].entries[0].keys.signatureAlgorithm", "contradicts", "two algorithms"},
		{"        - keyless:\n" + signer, "        - certificates: {}\n", entry + ".attestors[0].entries[0].certificates", "want a cert", "no certificate"},
		{"        - keyless:\n" + signer, "        - certificates: {cert: 'k8s://a/b'}\n", entry + ".attestors[0].entries[0].certificates.cert", "want a PEM block", "no certificate"},
		{"        - keyless:\n" + signer, "        - {repository: a/b, attestor: {entries: [{keys: {kms: 'awskms:///alias/x'}}]}}\n", entry + ".attestors[0].entries[0]", "belong to the entries", "it would be lost"},
		{"        - keyless:\n" + signer, "        - attestor: {entries: [{keys: {}}]}\n", entry + ".attestors[0].entries[0].attestor.entries[0].keys", "want one of", "in a nested set"},
		{"            subject: ann@example.com\n", "", entry + ".attestors[0].entries[0].keyless.subject", "missing", "anybody"},
		{"            issuer: https://issuer.example\n", "", entry + ".attestors[0].entries[0].keyless.issuer", "missing", "any issuer"},
		{"            subject: ann@example.com\n", "            subject: a\n            subjectRegExp: b\n", entry + ".attestors[0].entries[0].keyless.subject", "one of them", "two at once"},
		{"            subject: ann@example.com\n", "            subjectRegExp: '('\n", entry + ".attestors[0].entries[0].keyless.subjectRegExp", "", "no expression"},
		{"            subject: ann@example.com\n", "            subject: a\n            additionalExtensions: {runner: x}\n", entry + ".attestors[0].entries[0].keyless.additionalExtensions[runner]", "no extension", "no such extension"},
		{"            subject: ann@example.com\n", "            subject: a\n            additionalExtensions: {1.3.6.1.4.1.57264.1.7: x}\n", entry + ".attestors[0].entries[0].keyless.additionalExtensions[1.3.6.1.4.1.57264.1.7]", "no extension", "a name and no extension"},
		{"            subject: ann@example.com\n", "            subject: a\n            roots: x\n", entry + ".attestors[0].entries[0].keyless.roots", "want a PEM block", "no certificate"},
		{"            subject: ann@example.com\n", "            subject: a\n            rekor: {ignoreTLog: true}\n", entry + ".attestors[0].entries[0].keyless.rekor.ignoreTLog", "unknown field", "the case differs"},
		{"            subject: ann@example.com\n", "            subject: '{{ a'\n", entry, "not closed", "a broken variable"},
	}
	for _, test := range tests {
		text := strings.Replace(minimal, test.old, test.new, 1)
		if text == minimal {
			t.Errorf("%q is not in the policy", test.old)
			continue
		}
		p, err := newCompiler(t, nil).Compile([]byte(text), "test.yaml")
		if err == nil {
			t.Errorf("%q loaded, with %d rules: %s", test.new, len(p.Rules), test.reason)
			continue
		}
		message := err.Error()
		if field := (*kyverno.FieldError)(nil); test.path != "" && !errors.As(err, &field) {
			t.Errorf("%q: %v is about no field", test.new, err)
		}
		if !strings.Contains(message, test.path) || !strings.Contains(message, test.want) || !strings.HasPrefix(message, "policy in test.yaml: ") {
			t.Errorf("%q: %v\nwant %s: %s (%s)", test.new, err, test.path, test.want, test.reason)
		}
	}
}

func TestPoliciesStayInTheirNamespace(t *testing.T) {
	text := strings.Replace(minimal, "kind: ClusterPolicy\nmetadata:\n  name: minimal", "kind: Policy\nmetadata:\n  name: minimal\n  namespace: team", 1)
	for _, test := range []struct{ old, good, bad string }{
		{"    verifyImages:", "    context: [{name: a, configMap: {name: x, namespace: team}}]\n    verifyImages:", "    context: [{name: a, configMap: {name: x, namespace: other}}]\n    verifyImages:"},
		{"    - imageReferences: [\"*\"]\n", "    - imageReferences: ['*']\n      imageRegistryCredentials: {secrets: [pull]}\n", "    - imageReferences: ['*']\n      imageRegistryCredentials: {secrets: [other/pull]}\n"},
		{"        - keyless:\n            issuer: https://issuer.example\n            subject: ann@example.com\n", "        - keys: {secret: {name: a, namespace: team}}\n", "        - keys: {secret: {name: a, namespace: other}}\n"},
		{"        - keyless:\n            issuer: https://issuer.example\n            subject: ann@example.com\n", "        - keys: {publicKeys: 'k8s://team/a'}\n", "        - keys: {publicKeys: 'k8s://other/a'}\n"},
	} {
		if _, err := newCompiler(t, nil).Compile([]byte(strings.Replace(text, test.old, test.good, 1)), "test"); err != nil {
			t.Errorf("%s: %v", test.good, err)
		}
		if _, err := newCompiler(t, nil).Compile([]byte(strings.Replace(text, test.old, test.bad, 1)), "test"); err == nil || !strings.Contains(err.Error(), "use a ClusterPolicy") {
			t.Errorf("%s: %v", test.bad, err)
		}
	}
}

func TestRulesOfOtherKinds(t *testing.T) {
	more := minimal + "  - name: other\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    validate: {deny: {}}\n"
	p, err := newCompiler(t, nil).Compile([]byte(more), "test")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "rules", []int{len(p.Rules), len(p.Validations)}, []int{3, 3})
	if _, err := newCompiler(t, nil).Compile([]byte(strings.Replace(more, "  rules:", "  applyRules: One\n  rules:", 1)), "test"); err == nil {
		t.Error("One of two rules, of which one is about images, cannot be honoured")
	}
	if _, err := newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, "  rules:", "  applyRules: One\n  rules:", 1)), "test"); err != nil {
		t.Errorf("One of one: %v", err)
	}
	if _, err := newCompiler(t, nil).Compile([]byte(strings.Replace(more, "name: other", "name: signed", 1)), "test"); err == nil {
		t.Error("two rules of one name")
	}
}

// TestBounds: the very last that is accepted, and one more.
func TestBounds(t *testing.T) {
	entry := minimal[strings.Index(minimal, "    - imageReferences:"):]
	rules := func(n int) string {
		var list strings.Builder
		for i := range n {
			fmt.Fprintf(&list, "  - {name: r%d, match: {any: [{resources: {kinds: [Task]}}]}, validate: {deny: {}}}\n", i)
		}
		return minimal[:strings.Index(minimal, "  - name:")] + list.String()
	}
	const mebi = 1 << 20
	for _, test := range []struct {
		most int
		text func(n int) string
		want string
	}{
		{200, func(n int) string { return minimal + strings.Repeat(entry, n-1) }, "want 1 to 200 entries, found 201"},
		{500, rules, "the number of rules exceeds"},
		{3 * mebi, func(n int) string { return minimal + strings.Repeat("#", n-len(minimal)) }, "exceeds"},
	} {
		if _, err := newCompiler(t, nil).Compile([]byte(test.text(test.most)), "test"); err != nil {
			t.Errorf("%d: %v", test.most, err)
		}
		if _, err := newCompiler(t, nil).Compile([]byte(test.text(test.most+1)), "test"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d: %v, want %s", test.most+1, err, test.want)
		}
	}
}

// TestOldForm: match without any and all is part of v1 alone.
func TestOldForm(t *testing.T) {
	const match, pods = "      any:\n      - resources:\n          kinds: [Pod]\n", "{any: [{resources: {namespaces: [a]}}]}"
	for _, test := range []struct {
		version, match string
		good           bool
		reason         string
	}{
		{"v1", "      resources: {kinds: [Pod]}\n", true, "the old form in v1"},
		{"v2beta1", match, true, "the new form"},
		{"v2beta1", match + "    exclude: " + pods + "\n", true, "the new form, with exclude"},
		{"v2beta1", "      resources: {kinds: [Pod]}\n", false, "the old form"},
		{"v2beta1", match + "    exclude: {resources: {namespaces: [a]}}\n", false, "the old form in exclude"},
	} {
		text := strings.NewReplacer("kyverno.io/v1", "kyverno.io/"+test.version, match, test.match).Replace(minimal)
		_, err := newCompiler(t, nil).Compile([]byte(text), "test")
		if (err == nil) != test.good || err != nil && !strings.Contains(err.Error(), "the old form without any and all") {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

func TestRecognises(t *testing.T) {
	for _, test := range []struct {
		apiVersion, kind  string
		policy, exception bool
	}{
		{"kyverno.io/v1", "ClusterPolicy", true, false},
		{"kyverno.io/v2beta1", "Policy", true, false},
		{"kyverno.io/v2", "PolicyException", false, true},
		{"kyverno.io/v2beta1", "PolicyException", false, true},
		{"kyverno.io/v1", "PolicyException", false, false},
		{"kyverno.io/v2", "ClusterPolicy", false, false},
		{"v1", "Policy", false, false},
	} {
		equal(t, test.apiVersion+" "+test.kind, []bool{
			kyverno.Policies{}.Recognises(test.apiVersion, test.kind), kyverno.Exceptions{}.Recognises(test.apiVersion, test.kind),
		}, []bool{test.policy, test.exception})
	}
	if _, err := kyverno.New(kyverno.Options{}); err == nil {
		t.Error("a compiler without an engine")
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(minimal)
	f.Add(strings.Replace(minimal, "ann@example.com", "'{{ request.namespace }}'", 1))
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = newCompiler(t, nil).Compile([]byte(text), "fuzz")
	})
}
