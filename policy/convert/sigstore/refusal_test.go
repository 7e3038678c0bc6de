package sigstore_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// The smallest policy that is carried, in which a row exchanges one thing.
const base = `apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: c}
spec:
  images: [{glob: "a.io/**"}]
  authorities: [{key: {data: ${one.pub}}}]
`

// TestRefused converts the base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	if err := converttest.Refused(base, []converttest.Exchange{
		{"kind: ClusterImagePolicy", "kind: TrustRoot", "kind"}, {"spec:", "spec:\n  mode: hope", "spec.mode"}, {"spec:", "spec:\n  policy: {type: cue}", "spec.policy: a policy in CUE or Rego"},
		{"spec:", "spec:\n  match: [{group: apps, version: v1, resource: deployments}]", "spec.match[0]"}, {"[{glob: \"a.io/**\"}]", "[]", "spec.images"}, {"a.io/**", "a.io/?", "spec.images[0].glob"},
		{"{data: ${one.pub}}", "{secretRef: {name: x}}", "spec.authorities[0].key.secretRef"}, {"{data: ${one.pub}}", "{kms: x}", "spec.authorities[0].key.kms"}, {"{data: ${one.pub}}", "{}", "spec.authorities[0].key: has 0"},
		{"{data: ${one.pub}}", "{data: ${one.pub}, hashAlgorithm: md5}", "spec.authorities[0].key.hashAlgorithm"},
		{"{key: ", "{ctlog: {trustRootRef: x}, key: ", "spec.authorities[0].ctlog.trustRootRef"}, {"{key: ", "{rfc3161timestamp: {trustRootRef: x}, key: ", "spec.authorities[0].rfc3161timestamp"},
		{"{key: ", "{source: [{oci: a}, {oci: b}], key: ", "spec.authorities[0].source"}, {"{key: ", "{attestations: [{name: a, predicateType: vuln, policy: {type: cue}}], key: ", "spec.authorities[0].attestations[0].policy"},
		{"{key: ", "{attestations: [{name: a, predicateType: x}], key: ", "spec.authorities[0].attestations[0].predicateType"},
		{"key: {data: ${one.pub}}", "keyless: {identities: []}", "spec.authorities[0].keyless.identities"}, {"key: {data: ${one.pub}}", "keyless: {trustRootRef: x}", "spec.authorities[0].keyless.trustRootRef"},
		{"key: {data: ${one.pub}}", "keyless: {ca-cert: {data: x}}", "spec.authorities[0].keyless.ca-cert"}, {"key: {data: ${one.pub}}", "keyless: {identities: [{issuer: a}]}", "spec.authorities[0].keyless.identities[0]"},
		{"key: {data: ${one.pub}}", "keyless: {identities: [{issuer: a, subject: 'b*'}]}", "spec.authorities[0].keyless.identities[0]: \"b*\" is compared letter by letter"},
		{"key: {data: ${one.pub}}", "static: {action: hope}", "spec.authorities[0].static.action"}, {"key: {data: ${one.pub}}", "name: x", "spec.authorities[0]: is not exactly one"},
	}); err != nil {
		t.Error(err)
	}
}

// Parts of the base that rows exchange.
const (
	key     = "key: {data: ${one.pub}}"
	globs   = `[{glob: "a.io/**"}]`
	keyless = "keyless: {identities: [{issuer: a, subject: b}]}"
	pass    = "static: {action: pass}"
	some    = "{version: v1, resource: pods, selector: {matchLabels: {a: b}}}"
)

// TestRefusedParts exchanges more of the base.
func TestRefusedParts(t *testing.T) {
	two, err := converttest.Fill("${one.pub}${two.pub}")
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(string(two), `""`, "", 1)
	if err := converttest.Refused(base, []converttest.Exchange{
		{"v1beta1", "v1", "kind: policy.sigstore.dev/v1 ClusterImagePolicy"}, {"{name: c}", "{}", "metadata.name: is missing"}, {"spec:", "hope: 1\nspec:", "hope: unknown field"},
		{globs, "[" + strings.Repeat("{glob: a.io/x}, ", 200) + "{glob: a.io/x}]", "spec.images: 201 globs"}, {globs, `[{glob: ""}]`, "spec.images[0].glob"}, {globs, `[{glob: "a.io/**"}, {glob: "https://a.io/x"}]`, "spec.images[1].glob"},
		{"[{" + key + "}]", "[]", "spec.authorities: 0 authorities"}, {"authorities: [{", "authorities: [" + strings.Repeat("{static: {action: fail}}, ", 200) + "{", "spec.authorities: 201 authorities"}, {key, key + ", " + keyless, "spec.authorities[0]: is not exactly one"},
		{"spec:", "spec:\n  match: [{version: v1, resource: pods}, {version: v2, resource: pods}]", "spec.match[1]"}, {"spec:", "spec:\n  match: [{version: v1, resource: jobs}]", "spec.match[0]"}, {"spec:", "spec:\n  match: [{group: x, version: v1, resource: pods}]", "spec.match[0]"},
		{key, "key: {data: ${one.pub}, kms: 'awskms:///alias/x'}", "spec.authorities[0].key: has 2"}, {key, "key: {data: " + both + "}", "spec.authorities[0].key.data: 2 keys"}, {key, "key: {data: x}", "spec.authorities[0].key.data: no PEM"},
		{globs, `[{glob: "a.io/x@` + converttest.Digest + `"}]`, "spec.images[0].glob: \"a.io/x@" + converttest.Digest + "\" names a digest"}, {globs, `[{glob: "a.io/x:v1@*"}]`, "names a digest"}, {globs, `[{glob: "*.docker.io/x"}]`, "spec.images[0].glob: \"*.docker.io/x\" names Docker Hub by another name"},
		{"spec:", "spec:\n  match: [" + some + "]", "spec.images[0].glob: \"a.io/**\" is about pods of a selector alone"}, {"spec:\n  images: " + globs + "\n  authorities: [{" + key, "spec:\n  match: [" + some + "]\n  images: " + globs + "\n  authorities: [{" + pass, "is about pods of a selector alone"},
		{"spec:\n  images: " + globs + "\n  authorities: [{" + key, "spec:\n  match: [{group: apps, version: v1, resource: deployments}]\n  images: " + globs + "\n  authorities: [{" + pass, "spec.match[0]"},
		{"apiVersion: ", "apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: other}\nspec: {match: [" + some + "], images: [{glob: 'a.io/*'}], authorities: [{" + pass + "}]}\n---\napiVersion: ", "\"a.io/*\" is about pods of a selector alone"},
	}); err != nil {
		t.Error(err)
	}
}

// TestAllProblems reports all problems, and none that merely follows from another.
func TestAllProblems(t *testing.T) {
	head := base[:strings.Index(base, "spec:")]
	for _, row := range []struct {
		reason, text string
		parts        []string
	}{
		{"a document that cannot be read", head + "spec: 1\n", []string{"spec: want an object"}},
		{"no authorities, and no pods", strings.NewReplacer("[{"+key+"}]", "[]", "spec:", "spec:\n  match: [{version: v1, resource: jobs}]").Replace(base), []string{"spec.authorities: 0 authorities", "spec.match[0]"}},
	} {
		if err := converttest.ExpectRefusal(row.text, row.parts...); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

// TestAccepted converts the base with one thing exchanged, and finds it in the
// output.
func TestAccepted(t *testing.T) {
	const two = "attestations: [{name: x, predicateType: vuln}, {name: z, predicateType: 'https://z'}], "
	if err := converttest.Accepted(base, []converttest.Exchange{
		{"", "", "name: c\n"}, {"", "", "name: sigstore-unmatched\n"}, {"", "", "insecureIgnoreTlog: true\n"}, {"", "", "requires no log entry of a key"}, {"", "", "without: insecureIgnoreSCT"}, {"", "", "without: source:"}, {"", "", "without: - Warn"},
		{"", "", "[attestors.authority_0]) >= 1"}, {"", "", "policy.sigstore.dev/include: \"true\"\n"}, {"", "", "without: signatureFormat"}, {"", "", "without: attestations:"}, {"", "", "mutateDigest: true\n"}, {"v1beta1", "v1alpha1", "name: c\n"},
		{"spec:", "spec:\n  mode: warn", "- Warn\n"}, {"spec:", "spec:\n  mode: enforce", "without: - Warn"}, {globs, "[" + strings.Repeat("{glob: a.io/x}, ", 199) + "{glob: a.io/x}]", "name: c\n"}, {"authorities: [{", "authorities: [" + strings.Repeat("{static: {action: fail}}, ", 199) + "{", "[attestors.authority_199]) >= 1"},
		{"spec:", "spec:\n  match: [{version: v1, resource: pods}, {version: '*', resource: pods, selector: {matchLabels: {a: b}}}]", "objectSelector:\n      matchLabels:\n        a: b\n"}, {"spec:", "spec:\n  match: [{version: v1, resource: pods}, {version: '*', resource: pods}]", "name: c-2\n"},
		{"spec:", "spec:\n  match: [{version: v1, resource: pods, selector: {}}]", "name: c\n"}, {"apiVersion: ", "apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: other}\nspec: {match: [" + some + "], images: [{glob: 'a.io/**'}], authorities: [{static: {action: fail}}]}\n---\napiVersion: ", "objectSelector:\n      matchLabels:\n        a: b\n"},
		{"{key", "{ctlog: {}, key", "insecureIgnoreTlog: true\n"}, {"{key", "{ctlog: {}, key", "requires no log entry of a key"},
		{key, pass, "an authority passes without proof"}, {key, pass, "without: name: c\n"}, {"authorities: [{", "authorities: [{" + pass + "}, {", "without: name: c\n"}, {key, pass, `!name.matches(r'^a\.io/`},
		{key, "static: {action: fail}", "images.all(kind, images[kind].size() == 0)"}, {key, "static: {action: fail}", "mutateDigest: false\n"}, {"authorities: [{", "authorities: [{static: {action: fail}}, {", "[attestors.authority_1]) >= 1"},
		{"{key", "{name: who, key", "- name: who\n"}, {"{key", "{signatureFormat: bundle, key", "signatureFormat."}, {"{key", "{source: [{oci: b.io/y, tagPrefix: z}], key", "tagPrefix: z\n"},
		{"{key", "{ctlog: {url: 'https://log'}, key", "url: https://log\n"}, {"{key", "{ctlog: {url: 'https://log'}, key", "without: insecureIgnoreTlog"}, {"{key", "{ctlog: {url: 'https://log'}, key", "without: requires no log entry"},
		{"${one.pub}", "${one.pub}, hashAlgorithm: sha512", "hashAlgorithm: sha512\n"}, {"data: ${one.pub}", "kms: 'awskms:///alias/x'", "kms: awskms:///alias/x\n"}, {key, keyless, "- issuer: a\n              subject: b\n"}, {key, keyless, "without: ctlog"},
		{key, "keyless: {insecureIgnoreSCT: true, identities: [{issuer: a, subject: b}]}", "insecureIgnoreSCT: true\n"}, {key, "keyless: {url: 'https://x', identities: [{issuer: a, subject: b}]}", "nothing is asked of it: spec.authorities[0].keyless.url"}, {key, keyless, "without: nothing is asked of it"},
		{"{key", "{attestations: [{name: x, predicateType: vuln}], key", "verifyAttestationSignatures(image, attestations.x, [attestors.authority_0]) >= 1))"}, {"{key", "{attestations: [{name: x, predicateType: vuln}], key", "type: https://cosign.sigstore.dev/attestation/vuln/v1\n"}, {"{key", "{attestations: [{name: x, predicateType: vuln}], key", "without: (verifyAttestationSignatures"},
		{"{key", "{" + two + "key", "(verifyAttestationSignatures(image, attestations.x, [attestors.authority_0]) >= 1 && verifyAttestationSignatures(image, attestations.z, [attestors.authority_0]) >= 1)"}, {"{key", "{" + two + "key", "without: verifyImageSignatures"},
		{"authorities: [{", "authorities: [{" + two + keyless + "}, {", "verifyImageSignatures(image, [attestors.authority_1]) >= 1"},
	}); err != nil {
		t.Error(err)
	}
}

// TestGlobs has which images a glob takes.
func TestGlobs(t *testing.T) {
	m, err := converttest.NewMatcher()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		glob, image string
		takes       bool
		reason      string
	}{
		{"a.io/**", "a.io/x/y:1", true, "all below a registry"}, {"a.io/*", "a.io/x/y:1", false, "a star crosses no slash"}, {"a.io/*", "a.io/x:1", true, "one part"}, {"a.io/**", "b.io/a.io/x", false, "not in the middle"},
		{"nginx", "docker.io/library/nginx:1", true, "the hub's own"}, {"nginx", "a.io/nginx", false, "not another registry's"}, {"docker.io/nginx", "nginx", true, "without library"}, {"docker.io/library/nginx", "nginx", true, "with library"},
		{"docker.io/acme/x", "acme/x", true, "the hub's others"}, {"docker.io/library/nginx", "docker.io/other/nginx", false, "another namespace"}, {"acme/x", "docker.io/acme/x:1", true, "the hub by default"}, {"localhost/x", "docker.io/localhost/x", false, "localhost is a registry"},
		{"a.io/x:*", "a.io/x@" + converttest.Digest, true, "every tag means digests, too"}, {"a.io/x:*", "a.io/x:1", true, "every tag"}, {"a.io/x:v*", "a.io/x:v1", true, "some tags"}, {"a.io/x:v*", "a.io/x:w1", false, "others"}, {"a.io/x:v*", "a.io/x@" + converttest.Digest, false, "a digest has no tag"},
		{"a.io/x", "a.io/x:1", true, "any tag"}, {"a.io/x", "a.io/x/y", false, "nothing below"}, {"a.io/x", "a.io/xy", false, "nor beside"}, {"a.io/x*:*", "a.io/xy:1", true, "a star before every tag"},
		{"nginx:*", "nginx:1", true, "the hub's own by tag"}, {"nginx:*", "docker.io/library/nginx@" + converttest.Digest, true, "and by digest"}, {"nginx:*", "a.io/nginx:1", false, "not another registry's"}, {"nginx*", "nginx-x:1", true, "some of the hub's own"}, {"nginx:1", "library/nginx:1", true, "one tag"}, {"nginx:1", "nginx:2", false, "and no other"},
		{"*/nginx:1", "org/nginx:1", true, "a star for the first part of a name of the hub"}, {"*/nginx:1", "nginx:1", true, "or for the hub"}, {"*/nginx:1", "a.io/org/nginx:1", false, "and for no more"}, {"**/nginx", "org/nginx", true, "any number of parts"},
		{"*", "nginx", true, "the hub's own images"}, {"*", "acme/x", false, "and no others"}, {"*/*", "acme/x", true, "the hub's others"}, {"*/*", "a.io/x", false, "not those of registries"}, {"**", "a.io/x/y:1", true, "all"},
		{"*.io/nginx", "docker.io/library/nginx", true, "a star for the hub"}, {"*.io/nginx", "a.io/nginx", true, "or for another"}, {"*.io/nginx", "a.io/library/nginx", false, "library/ is a namespace there, as policy-controller compares it"}, {"*.io/nginx", "a.io/other/nginx", false, "with nothing between"},
		{"*.a.io/nginx", "r.a.io/nginx:1", true, "a star for a host that is not the hub"}, {"*.a.io/nginx", "r.a.io/library/nginx:1", false, "has no library/"}, {"*.a.io/nginx", "nginx:1", false, "nor the hub"}, {"d*/nginx", "nginx:1", true, "the hub by a part of its name"}, {"d*/nginx", "a.io/library/nginx", false, "and no other"},
		{"*/nginx", "a.io/library/nginx", false, "a star for a host, and no library/"}, {"*/nginx", "a.io/nginx", true, "a star for a host"}, {"**.io/nginx", "nginx:1", true, "two stars for the hub"}, {"**.io/nginx", "a.io/library/nginx", false, "and no library/ of another"}, {"*.io/*", "nginx", true, "a star for the hub, and one for its own"}, {"*.io/*", "a.io/library/nginx", false, "one part"},
		{"registry-*.docker.io/acme/*", "registry-1.docker.io/acme/x", true, "another name of the hub"}, {"registry-*.docker.io/acme/*", "acme/x", true, "the same image by its usual name"}, {"registry-*.docker.io/acme/*", "other/x", false, "and another namespace"},
		{"registry*/nginx", "nginx:1", true, "the hub by another name, without library/"}, {"registry*/nginx", "registry.example/library/nginx:1", false, "and no other"}, {"*.com/**", "acme/x", true, "the hub's name in another domain"},
		{"*.io/x/y", "docker.io/library/x/y", true, "library/ before two parts of the hub"}, {"*.io/x/y", "a.io/library/x/y", false, "and of no other"},
		{"index.docker.io/library/*", "nginx", true, "the hub as policy-controller writes it"}, {"index.docker.io/library/*", "acme/x", false, "another namespace"}, {"index.docker.io/x", "docker.io/x:1", true, "without library/"}, {"index.docker.io/acme/**", "acme/x/y@" + converttest.Digest, true, "below a namespace"}, {"index.docker.io/x", "index.docker.iox/x", false, "another registry"},
		{"a.io/x:**", "a.io/x@" + converttest.Digest, true, "every tag by two stars"}, {"a.io/x:**", "a.io/x:1", true, "any tag"}, {"a.io/x:**", "a.io/xy:1", false, "and no other name"}, {"a.io/x:v**", "a.io/x@" + converttest.Digest, false, "some tags by two stars"}, {"a.io/x:v**", "a.io/x:v1", true, "such a tag"}, {"a.io/x**:**", "a.io/x/y@" + converttest.Digest, true, "two stars before every tag"},
		{"nginx", "nginx:5000/evil:1", false, "a registry's port is no tag"}, {"nginx:*", "nginx:5000/evil:1", false, "nor every tag"}, {"nginx:**", "nginx:5000/evil:1", true, "two stars cross slashes"}, {"nginx:**", "nginx@" + converttest.Digest, true, "every digest of the hub's own"}, {"*x:*", "a.x:5000/evil:1", false, "nor after a star"}, {"**x:*", "x:5000/evil:1", false, "nor after two"}, {"**x:*", "x:5000/x:1", true, "a tag behind a port"},
	} {
		list, err := converttest.Policies(strings.Replace(filled(t), `"a.io/**"`, `"`+row.glob+`"`, 1), convert.Options{})
		if err != nil {
			t.Fatalf("%s: %v", row.glob, err)
		}
		if takes, err := m.Matches(list[0], row.image); err != nil || takes != row.takes {
			t.Errorf("%s: %s takes %s: %v, want %v: %v", row.reason, row.glob, row.image, takes, row.takes, err)
		}
	}
}

func filled(t *testing.T) string {
	t.Helper()
	text, err := converttest.Fill(base)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
