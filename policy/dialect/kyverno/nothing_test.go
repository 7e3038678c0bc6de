package kyverno_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// A policy that would load and protect nothing, or less than it seems to, is
// refused; beside it is what differs in that one thing and loads.
func TestPoliciesThatProtectNothing(t *testing.T) {
	const entry, rule = "spec.rules[0].verifyImages[0]", "spec.rules[0]"
	const kinds, references = "kinds: [Pod]", `imageReferences: ["*"]`
	const attestors = "      attestors:\n      - entries:\n        - keyless:\n            issuer: https://issuer.example\n            subject: ann@example.com\n"
	attestation := func(conditions string) string {
		return "      attestations: [{type: a, " + conditions + "attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]}]\n"
	}
	deny := func(conditions string) string {
		return "      validate: {deny: {conditions: " + conditions + "}}\n" + strings.Replace(attestation(""), "{type", "{name: scan, type", 1)
	}
	const one = "{key: '{{ request.operation }}', operator: Equals, value: CREATE}"
	overrides := func(text string) string {
		return "  validationFailureActionOverrides: [" + text + "]\n  rules:"
	}
	skip := func(text string) string { return references + "\n      skipImageReferences: ['" + text + "']" }
	tests := []struct{ old, good, bad, path, want string }{
		{attestors, "      required: false\n", "", entry, "say required: false if only the digest matters, or name attestors"},
		{attestors, "      required: false\n", "      required: true\n", entry, "requires a verification"},
		{attestors, attestation(""), "      attestations: []\n", entry, "requires a verification"},
		{attestors, attestation(""), attestation("") + "      attestors: []\n", entry + ".attestors", "is empty"},
		{attestors, "      required: false\n", "      required: false\n      attestors: []\n", entry + ".attestors", "is empty"},
		{attestors, attestors, "      attestors: []\n", entry + ".attestors", "is empty"},
		{attestors, attestors, "      attestors:\n", entry + ".attestors", "is empty"},

		{attestors, attestation("conditions: [" + one + "], "), attestation("conditions: {}, "), entry + ".attestations[0].conditions", "is empty"},
		{attestors, attestation(""), attestation("conditions: null, "), entry + ".attestations[0].conditions", "is empty"},
		{attestors, attestation("conditions: {any: [" + one + "]}, "), attestation("conditions: [], "), entry + ".attestations[0].conditions", "is empty"},
		{attestors, attestation("conditions: [{any: [" + one + "]}], "), attestation("conditions: [{any: null}], "), entry + ".attestations[0].conditions[0].any", "is empty"},
		{attestors, attestation("conditions: [{all: [" + one + "]}], "), attestation("conditions: [{all: []}], "), entry + ".attestations[0].conditions[0].all", "is empty"},
		{attestors, attestation("conditions: {all: [" + one + "]}, "), attestation("conditions: {all: [" + one + "], any: []}, "), entry + ".attestations[0].conditions.any", "is empty"},
		{attestors, deny("{any: [" + one + "]}"), deny("{any: []}"), entry + ".validate.deny.conditions.any", "is empty"},
		{"    verifyImages:", "    preconditions: {any: [" + one + "]}\n    verifyImages:", "    preconditions: {any: []}\n    verifyImages:", rule + ".preconditions.any", "apply to nothing"},

		{attestors, attestation("conditions: [{all: [{key: '{{ verdict }}', operator: NotEquals, value: FAIL}]}], "), attestation("conditions: [{all: [{key: verdict, operator: NotEquals, value: FAIL}]}], "), entry + ".attestations[0].conditions", "write the key verdict as {{ verdict }}"},
		{attestors, attestation("conditions: {any: [{key: verdict, operator: Equals, value: '{{ result }}'}]}, "), attestation("conditions: {any: [{key: verdict, operator: Equals, value: result}]}, "), entry + ".attestations[0].conditions", "the same result for every statement"},
		{attestors, deny("[{any: [{key: '{{ scan.verdict }}', operator: Equals, value: FAIL}]}]"), deny("[{any: [{key: verdict, operator: Equals, value: FAIL}]}]"), entry + ".validate.deny.conditions", "the same result for every statement"},

		{"    verifyImages:", "    verifyImages:", "    verifyImage:", rule + ".verifyImage", "did you mean verifyImages?"},
		{"    verifyImages:", "    verifyImages:", "    verifyImage:", rule, "none of verifyImages, validate, mutate and generate"},
		{"    verifyImages:", "    verifyImages:", "    verifyimages:", rule + ".verifyimages", "did you mean verifyImages?"},
		{"    verifyImages:\n", "    verifyImages:\n", "    verifyImages: null\n    verify:\n", rule + ".verify", "unknown field"},
		{minimal[strings.Index(minimal, "    verifyImages:"):], "    validate: {deny: {}}\n", "    verifyImages:\n", rule + ".verifyImages", "want 1 to"},
		{minimal[strings.Index(minimal, "    verifyImages:"):], "    validate: {deny: {}}\n    reportProperties: {}\n", "    validate: {deny: {}}\n    verifyImage: []\n", rule + ".verifyImage", "did you mean verifyImages?"},

		{kinds, "kinds: [Pod]", "kinds: [Pods]", rule + ".match.any[0].resources.kinds[0]", "write Pod"},
		{kinds, "kinds: [Pod]", "kinds: [POD]", rule + ".match.any[0].resources.kinds[0]", "write Pod"},
		{kinds, "kinds: [v1/Pod]", "kinds: [v1/pods]", rule + ".match.any[0].resources.kinds[0]", "write Pod"},
		{kinds, "kinds: [Pod, StatefulSet]", "kinds: [Pod, Statefulset]", rule + ".match.any[0].resources.kinds[1]", "write StatefulSet"},
		{kinds, "kinds: [batch/v1/CronJob]", "kinds: [batch/v1/CronJobs]", rule + ".match.any[0].resources.kinds[0]", "write CronJob"},
		{kinds, "kinds: [PodGroup]", "kinds: [PODS]", rule + ".match.any[0].resources.kinds[0]", "write Pod"},

		{references, "imageReferences: ['ghcr.io/org/*']", "imageReferences: ['https://ghcr.io/org/*']", entry + ".imageReferences[0]", "leave out the scheme"},
		{references, "imageReferences: ['ghcr.io/*', 'quay.io/*']", "imageReferences: ['{ghcr.io,quay.io}/*']", entry + ".imageReferences[0]", "a pattern for each"},
		{references, "imageReferences: ['ghcr.io/*', 'quay.io/*']", "imageReferences: ['ghcr.io/*, quay.io/*']", entry + ".imageReferences[0]", "a pattern for each"},
		{references, "imageReferences: ['ghcr.io/org/*']", "imageReferences: ['^ghcr.io/org/*']", entry + ".imageReferences[0]", "no regular expressions"},
		{references, "imageReferences: ['ghcr.io/org/*']", "imageReferences: ['ghcr.io/[a-z]*']", entry + ".imageReferences[0]", "no repository has"},
		{references, "imageReferences: ['ghcr.io/org/app*']", "imageReferences: ['ghcr.io/Org/app*']", entry + ".imageReferences[0]", "lower case"},
		{references, "imageReferences: ['GHCR.io/org/app']", "imageReferences: ['GHCR.io/org/App']", entry + ".imageReferences[0]", "lower case"},
		{references, "imageReferences: ['ghcr.io/org/app@sha256:ab*']", "imageReferences: ['ghcr.io/org/app@sha256:AB*']", entry + ".imageReferences[0]", "lower case"},
		{references, "imageReferences: ['*docker.io/*']", "imageReferences: ['*index.docker.io/*']", entry + ".imageReferences[0]", "docker.io/"},
		{references, "imageReferences: ['*.example.com/*']", "imageReferences: ['*.example.com:443/*']", entry + ".imageReferences[0]", "without :443"},
		{references, "imageReferences: ['ghcr.io/org/*']", "imageReferences: ['ghcr.io/org/']", entry + ".imageReferences[0]", "write *"},
		{references, "imageReferences: ['ghcr.io/org/*']", "imageReferences: ['ghcr.io//org/*']", entry + ".imageReferences[0]", "is empty"},
		{references, "imageReferences: ['ghcr.io/org/app:v1']", "imageReferences: ['ghcr.io/org/app:v1!']", entry + ".imageReferences[0]", "no tag or digest has"},
		{references, skip("ghcr.io/org/*"), skip("https://ghcr.io/org/*"), entry + ".skipImageReferences[0]", "leave out the scheme"},
		{references, skip("ghcr.io/org/app:*"), skip("ghcr.io/org/app"), entry + ".skipImageReferences[0]", "write ghcr.io/org/app:*"},
		{references, skip("ghcr.io/org/*"), skip(" "), entry + ".skipImageReferences[0]", "is empty"},
		{references, skip("ghcr.io/*"), skip("*"), entry + ".skipImageReferences", "verify nothing"},
		{references, "imageReferences: ['ghcr.io/org/*']\n      skipImageReferences: ['ghcr.io/org/base*']", "imageReferences: ['ghcr.io/org/*']\n      skipImageReferences: ['quay.io/*', 'ghcr.io/*']", entry + ".skipImageReferences", "verify nothing"},
		{references, "imageReferences: ['ghcr.io/*', 'quay.io/*']\n      skipImageReferences: ['ghcr.io/*']", "imageReferences: ['ghcr.io/*', 'quay.io/*']\n      skipImageReferences: ['ghcr.io/*', 'quay.io/*']", entry + ".skipImageReferences", "verify nothing"},
		{references, "imageReferences: ['ghcr.io/app:v1']\n      skipImageReferences: ['ghcr.io/app:*']", "imageReferences: ['ghcr.io/app:v1']\n      skipImageReferences: ['ghcr.io/app*']", entry + ".skipImageReferences", "verify nothing"},
		{references, "imageReferences: ['ghcr.io/a*']\n      skipImageReferences: ['ghcr.io/??*']", "imageReferences: ['ghcr.io/a*']\n      skipImageReferences: ['ghcr.io/a*']", entry + ".skipImageReferences", "verify nothing"},

		{"  rules:", overrides("{action: Audit, namespaces: [a]}"), overrides("{action: Audit, namespaces: []}"), "spec.validationFailureActionOverrides[0].namespaces", "is missing or empty"},
		{"  rules:", overrides("{action: Audit, namespaces: ['*']}"), overrides("{action: Audit, namespaces: null}"), "spec.validationFailureActionOverrides[0].namespaces", "is missing or empty"},
		{"  rules:", overrides("{action: Audit, namespaceSelector: {matchLabels: {a: b}}}"), overrides("{action: Audit}"), "spec.validationFailureActionOverrides[0].namespaces", "is missing or empty"},
		{"  rules:", overrides("{action: Audit, namespaceSelector: {matchLabels: {a: b}}}"), overrides("{action: Audit, namespaces: [], namespaceSelector: {matchLabels: {a: b}}}"), "spec.validationFailureActionOverrides[0].namespaces", "is empty"},
	}
	for _, test := range tests {
		if !strings.Contains(minimal, test.old) {
			t.Fatalf("%q is not in the policy", test.old)
		}
		if _, err := newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, test.old, test.good, 1)), "good.yaml"); err != nil {
			t.Errorf("%s\n%v", test.good, err)
		}
		_, err := newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, test.old, test.bad, 1)), "bad.yaml")
		if err == nil || !strings.Contains(err.Error(), test.path+": ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n%v\nwant %s: %s", test.bad, err, test.path, test.want)
		}
	}
}

func TestMisspeltFields(t *testing.T) {
	tests := []struct{ old, new, want, reason string }{
		{"spec:", "spce: {}\nspec:", "spce: unknown field: did you mean spec?", "two letters swapped"},
		{"  rules:", "  validationFailureActon: Enforce\n  rules:", "spec.validationFailureActon: unknown field: did you mean validationFailureAction?", "a letter is missing"},
		{"kinds: [Pod]", "kind: [Pod]", "resources.kind: unknown field: did you mean kinds?", "in an embedded struct, in a list"},
		{"      attestors:", "      attestor: []\n      attestors:", "verifyImages[0].attestor: unknown field: did you mean attestors?", "in an entry"},
		{"            issuer:", "            rekor: {ignoreTLog: true}\n            issuer:", "keyless.rekor.ignoreTLog: unknown field: did you mean ignoreTlog?", "the case"},
	}
	for _, test := range tests {
		_, err := newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, test.old, test.new, 1)), "test")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v: %s", test.new, err, test.reason)
		}
	}
	_, err := newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, "  rules:", "  colour: red\n  rules:", 1)), "test")
	if err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("nothing is near: %v", err)
	}
}

// How many entries there are is not known where one of them is faulty.
func TestFaultsDoNotFollowOneAnother(t *testing.T) {
	const sound = "        - keyless:\n            issuer: https://issuer.example\n            subject: ann@example.com\n"
	_, err := newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, sound, "        - keys: {}\n", 1)), "test")
	if err == nil || strings.Contains(err.Error(), "never be met") || !strings.Contains(err.Error(), "want one of publicKeys") {
		t.Errorf("a faulty entry: %v", err)
	}
	_, err = newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, "      - entries:", "      - count: 2\n        entries:", 1)), "test")
	if err == nil || !strings.Contains(err.Error(), "2 of 1 entries can never be met") {
		t.Errorf("sound entries: %v", err)
	}
}

// Whatever comes of a reference by putting a star for a part of it loads and
// matches that reference: no pattern that can match is refused.
func TestPatternsThatMatchLoad(t *testing.T) {
	for _, ref := range []string{
		"ghcr.io/org/app:1-RC.x_Y", "localhost:5000/a/b_c:V1", "docker.io/library/nginx@sha256:" + strings.Repeat("ab", 32),
		"[2001:db8::1]:5000/org/app:Latest",
	} {
		for from := range len(ref) {
			for to := from + 1; to <= len(ref); to += 1 + len(ref)/12 {
				pattern := ref[:from] + "*" + ref[to:]
				p, err := newCompiler(t, nil).Compile([]byte(strings.Replace(minimal, `["*"]`, "['"+pattern+"']", 1)), "test")
				if err != nil {
					t.Errorf("%s: %v", pattern, err)
					continue
				}
				plan, err := ruleOf(t, p, "signed").Plan(t.Context(), pod("a"), []policy.Image{container(ref)})
				if err != nil || len(plan.Checks) != 1 {
					t.Errorf("%s and %s: %d checks, %v", pattern, ref, len(plan.Checks), err)
				}
			}
		}
	}
}

// TestOneRuleThatMatchesNothing: it makes the whole document an error, since the objects that it was
// meant for are not known; without it the other rule holds.
func TestOneRuleThatMatchesNothing(t *testing.T) {
	document := func(kinds string) []byte {
		return []byte("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: two}\nspec:\n  rules:\n" +
			"  - name: lives\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    validate: {pattern: {metadata: {labels: {team: '?*'}}}}\n" +
			"  - name: other\n    match: {any: [{resources: {kinds: " + kinds + ", namespaces: [shop]}}]}\n    validate: {pattern: {metadata: {labels: {team: '?*'}}}}\n")
	}
	compiler := newCompiler(t, nil)
	if _, err := compiler.Compile(document("[Service]"), "test.yaml"); err != nil {
		t.Errorf("both rules can match: %v", err)
	}
	_, err := compiler.Compile(document("[StorageClass]"), "test.yaml")
	if err == nil || !strings.Contains(err.Error(), "spec.rules[1].match.any[0].resources.namespaces: ") {
		t.Errorf("one rule can match nothing: %v", err)
	}
}
