package containers_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// The smallest policies that are carried, in which a row exchanges one thing.
const (
	containersBase = `{"default": [{"type": "reject"}], "transports": {"docker": {"a.io": [{"type": "sigstoreSigned", "keyPath": "/etc/pki/one.pub"}]}}}`
	openshiftBase  = `apiVersion: config.openshift.io/v1
kind: ClusterImagePolicy
metadata: {name: a}
spec: {scopes: [a.io], policy: {rootOfTrust: {policyType: PublicKey, publicKey: {keyData: "${base64:one.pub}"}}}}
`
	openshiftTeam = `apiVersion: config.openshift.io/v1
kind: ImagePolicy
metadata: {name: b, namespace: c}
spec: {scopes: [a.io], policy: {rootOfTrust: {policyType: PublicKey, publicKey: {keyData: "${base64:two.pub}"}}}}
`
	openshiftPublicKey = `policyType: PublicKey, publicKey: {keyData: "${base64:one.pub}"}`
	openshiftFulcio    = `policyType: FulcioCAWithRekor, fulcioCAWithRekor: {fulcioCAData: "${base64:fulcio.pem}", rekorKeyData: "${base64:rekor.pub}", fulcioSubject: {oidcIssuer: a, signedEmail: b}}`
)

// TestRefused converts each base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	for base, rows := range map[string][]converttest.Exchange{
		containersBase: {
			{`"default": [{"type": "reject"}], `, ``, "default: is missing"}, {`"docker"`, `"atomic"`, "transports.atomic"},
			{`"sigstoreSigned"`, `"signedBy"`, "transports.docker.a.io[0].type: signedBy"}, {`"sigstoreSigned"`, `"hope"`, `transports.docker.a.io[0].type: "hope"`},
			{`"type": "reject"`, `"type": "reject", "keyPath": "x"`, "default[0]: reject has other fields"},
			{`"a.io"`, `"a.io/x*"`, "transports.docker.a.io/x*: is no scope"}, {`"a.io"`, `"*.a.io:5000"`, "is no scope"}, {`"a.io"`, `"a.io/X"`, "is no scope"},
			{`"a.io"`, `"registry-1.docker.io"`, `transports.docker.registry-1.docker.io: "registry-1.docker.io" matches nothing here`}, {`"a.io"`, `"registry.hub.docker.com/acme:v1"`, "matches nothing here"},
			{`"a.io"`, `"*.docker.io"`, "matches nothing here"}, {`"a.io"`, `"*.docker.com"`, "matches nothing here"}, {`"a.io"`, `"a.io:443"`, "matches nothing here"}, {`"a.io"`, `"a..io"`, "matches nothing here"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/none.pub"`, "transports.docker.a.io[0].keyPath: names the file /etc/pki/none.pub, which cannot be read"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/fulcio.pem"`, `transports.docker.a.io[0].keyPath: a PEM block is of type "CERTIFICATE"`},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyData": "???"`, "transports.docker.a.io[0].keyData: no base64"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/one.pub", "keyData": "${base64:one.pub}"`, "transports.docker.a.io[0].keyData: is combined with"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPaths": ["/etc/pki/one.pub", "/etc/pki/none"]`, "transports.docker.a.io[0].keyPaths[1]"},
			{`"keyPath": "/etc/pki/one.pub"`, `"pki": {}`, "transports.docker.a.io[0].pki"},
			{`, "keyPath": "/etc/pki/one.pub"`, ``, "transports.docker.a.io[0]: is not exactly one of keys and fulcio"},
			{`"keyPath": "/etc/pki/one.pub"`, `"fulcio": {"caPath": "/etc/pki/fulcio.pem", "oidcIssuer": "a", "subjectEmail": "b"}`, "transports.docker.a.io[0].rekorPublicKeyPath: is missing"},
			{`"keyPath": "/etc/pki/one.pub"`, `"rekorPublicKeyPath": "/etc/pki/rekor.pub", "fulcio": {"caPath": "/etc/pki/fulcio.pem", "oidcIssuer": "a"}`, "transports.docker.a.io[0].fulcio: has no subject"},
			{`"keyPath": "/etc/pki/one.pub"`, `"rekorPublicKeyPath": "/etc/pki/rekor.pub", "fulcio": {"oidcIssuer": "a", "subjectEmail": "b"}`, "transports.docker.a.io[0].fulcio.caPath"},
			{`"keyPath"`, `"keypath"`, "transports.docker.a.io[0].keypath: unknown field"},
			{`[{"type": "sigstoreSigned", "keyPath": "/etc/pki/one.pub"}]`, `[]`, "transports.docker.a.io: is empty"},
			{`"docker": {`, `"docker": {` + scopes(200), "transports.docker: 201 scopes"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyData": "` + twoKeys(t) + `"`, "transports.docker.a.io[0].keyData: 2 keys in one"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPaths": ["/etc/pki/none"]`, "transports.docker.a.io[0].keyPaths: names the file"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/one.pub", "signedIdentity": "matchExact"`, "transports.docker.a.io[0].signedIdentity: is no object"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/one.pub", "pki": {}`, "transports.docker.a.io[0].pki"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/one.pub", "rekorPublicKeyPath": "/etc/pki/none"`, "transports.docker.a.io[0].rekorPublicKeyPath: names the file"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/one.pub", "rekorPublicKeyPath": "/etc/pki/rekor.pub", "fulcio": {"caPath": "/etc/pki/fulcio.pem", "oidcIssuer": "a", "subjectEmail": "b"}`, "transports.docker.a.io[0]: is not exactly one of keys and fulcio"},
			{containersBase, containersBase + "\n---\n" + containersBase, "2 documents"},
		},
		openshiftBase: {
			{"openshift.io/v1", "openshift.io/v2", "apiVersion"}, {"ClusterImagePolicy", "ImageContentPolicy", "kind"}, {"{name: a}", "{}", "metadata.name"},
			{"{name: a}", "{name: a, namespace: b}", "metadata.namespace"}, {"[a.io]", "[]", "spec.scopes: is empty"}, {"[a.io]", `["*"]`, "spec.scopes[0]"},
			{"PublicKey", "Hope", "spec.policy.rootOfTrust.policyType"}, {"{keyData:", "{keyring: x, keyData:", "spec.policy.rootOfTrust.publicKey.keyring: unknown field"},
			{"policyType: PublicKey, publicKey: {keyData: \"${base64:one.pub}\"}", "policyType: PKI, pki: {}", "spec.policy.rootOfTrust.pki"},
			{`publicKey: {keyData: "${base64:one.pub}"}`, "pki: {}, publicKey: {keyData: x}", "spec.policy.rootOfTrust: is not exactly one"},
			{"${base64:one.pub}", "${base64:fulcio.pem}", "spec.policy.rootOfTrust.publicKey.keyData"},
			{"${base64:one.pub}", twoKeys(t), "spec.policy.rootOfTrust.publicKey.keyData: 2 keys"}, {"{keyData:", "{rekorKeyData: x, keyData:", "spec.policy.rootOfTrust.publicKey.rekorKeyData"},
			{"policyType: PublicKey", "policyType: FulcioCAWithRekor", "spec.policy.rootOfTrust.policyType"}, {openshiftPublicKey, strings.Replace(openshiftFulcio, "FulcioCAWithRekor", "PublicKey", 1), "spec.policy.rootOfTrust.policyType"},
			{openshiftPublicKey, strings.Replace(openshiftFulcio, ", signedEmail: b", "", 1), "spec.policy.rootOfTrust.fulcioCAWithRekor.fulcioSubject: has no subject"},
			{openshiftPublicKey, strings.Replace(openshiftFulcio, "${base64:rekor.pub}", "", 1), "spec.policy.rootOfTrust.fulcioCAWithRekor.rekorKeyData"},
			{openshiftPublicKey, strings.Replace(openshiftFulcio, "${base64:fulcio.pem}", "", 1), "spec.policy.rootOfTrust.fulcioCAWithRekor.fulcioCAData"},
			{openshiftPublicKey, "policyType: PublicKey", "spec.policy.rootOfTrust: is not exactly one"}, {"ClusterImagePolicy", "ImagePolicy", "metadata.namespace"}, {"[a.io]", `[""]`, "spec.scopes[0]"},
			{"[a.io]", "[a.io, " + strings.Repeat("b.io, ", 199) + "b.io]", "201 scopes"}, {"spec: {", "more: 1\nspec: {", "more: unknown field"}, {"policy: {", "policy: {signedIdentity: x, ", "spec.policy.signedIdentity: is no object"},
			{openshiftBase, openshiftBase + "---\n" + strings.Replace(openshiftTeam, "[a.io]", "[a.io/x]", 1), "document 2: spec.scopes[0]: \"a.io/x\" lies within the scope of a ClusterImagePolicy"},
			{openshiftBase, openshiftBase + "---\n" + strings.Replace(openshiftBase, "ClusterImagePolicy\nmetadata: {name: a}", "ImagePolicy\nmetadata: {name: b, namespace: c}", 1), "document 2: spec.scopes[0]: \"a.io\" lies within the scope of a ClusterImagePolicy"},
		},
	} {
		if err := converttest.Refused(base, rows); err != nil {
			t.Error(err)
		}
	}
}

// TestAllProblems reports all problems, and none that merely follows from another.
func TestAllProblems(t *testing.T) {
	const signed = `[{"type": "sigstoreSigned", "keyPath": "/etc/pki/one.pub"}]`
	other := strings.Replace(openshiftBase, "{name: a}", "{name: b}", 1)
	for _, row := range []struct {
		reason, text string
		parts        []string
	}{
		{"several documents", containersBase + "\n---\n" + containersBase, []string{"2 documents"}},
		{"what cannot be read", strings.Replace(containersBase, `[{"type": "reject"}]`, "1", 1), []string{"default: want a list"}},
		{"a requirement that cannot be read", strings.Replace(containersBase, `"sigstoreSigned"`, "1", 1), []string{"transports.docker.a.io[0].type: want a string"}},
		{"a requirement, and the next", strings.Replace(containersBase, signed, `[{"type": 1}, {"type": "hope"}]`, 1), []string{"transports.docker.a.io[0].type: want a string", `transports.docker.a.io[1].type: "hope"`}},
		{"OpenShift's that cannot be read", strings.Replace(openshiftBase, "ClusterImagePolicy", "[x]", 1), []string{"kind: want a string"}},
		{"one of several documents", strings.Replace(openshiftBase, "ClusterImagePolicy", "Other", 1) + "---\n" + strings.Replace(other, "[a.io]", `["*"]`, 1), []string{`document 1: kind: "Other"`, "document 2: spec.scopes[0]"}},
	} {
		if err := converttest.ExpectRefusal(row.text, row.parts...); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

// TestAccepted converts each base with one thing exchanged, and finds it in the
// output.
func TestAccepted(t *testing.T) {
	const signed, key = `[{"type": "sigstoreSigned", "keyPath": "/etc/pki/one.pub"}]`, `"keyPath": "/etc/pki/one.pub"`
	const fulcio = `"rekorPublicKeyPath": "/etc/pki/rekor.pub", "fulcio": {"caData": "${base64:fulcio.pem}", "oidcIssuer": "a", "subjectEmail": "b"}`
	const rejected = `rejects images of the scope "a.io"`
	for base, rows := range map[string][]converttest.Exchange{
		containersBase: {
			{"", "", "name: containers-default\n"}, {`"reject"`, `"insecureAcceptAnything"`, "without: containers-default"}, {"", "", "insecureIgnoreTlog: true"}, {"", "", "without: insecureIgnoreSCT"},
			{signed, `[{"type": "reject"}]`, rejected}, {signed, `[{"type": "reject"}, {"type": "insecureAcceptAnything"}]`, rejected}, {signed, `[{"type": "insecureAcceptAnything"}, {"type": "reject"}]`, rejected},
			{signed, `[{"type": "insecureAcceptAnything"}]`, "without: containers-a-io"}, {"[" + signed[1:], `[{"type": "insecureAcceptAnything"}, ` + signed[1:], "verifyImageSignatures(image, [attestors.key_1]) >= 1"},
			{"[" + signed[1:], `[{"type": "reject"}, ` + signed[1:], rejected}, {"[" + signed[1:], `[{"type": "reject"}, ` + signed[1:], "without: verifyImageSignatures"},
			{`"a.io"`, `""`, "name: containers-default\n"}, {`"a.io"`, `""`, "without: containers-default-2"}, {`"a.io"`, `""`, "The images that no scope matches."},
			{`"docker": {`, `"docker": {` + scopes(199), "name: containers-a-io-198\n"}, {`"docker": {`, `"dir": {}, "docker": {`, "transports.dir."},
			{key, `"keyPaths": ["/etc/pki/one.pub", "/etc/pki/two.pub"]`, "[attestors.key_1, attestors.key_2]) >= 1"}, {key, `"keyData": "${base64:one.pub}"`, "[attestors.key_1]) >= 1"}, {key, `"keyDatas": ["${base64:one.pub}", "${base64:two.pub}"]`, "[attestors.key_1, attestors.key_2]) >= 1"},
			{key, key + `, "rekorPublicKeyPath": "/etc/pki/rekor.pub"`, "rekorPubKey:"}, {key, key + `, "rekorPublicKeyPath": "/etc/pki/rekor.pub"`, "without: insecureIgnore"},
			{key, fulcio, "insecureIgnoreSCT: true"}, {key, fulcio, "without: insecureIgnoreTlog"}, {key, fulcio, "subject: b"}, {key, strings.Replace(fulcio, "${base64:fulcio.pem}", twoRoots(t), 1), "subject: b"}, {key, `"signedIdentity": {"type": "matchExact"}, ` + key, `is "matchExact"`},
		},
		openshiftBase: {
			{"", "", "kind: ImageValidatingPolicy"}, {"", "", "insecureIgnoreTlog: true"}, {"", "", "without: Here both must allow"}, {"openshift.io/v1", "openshift.io/v1alpha1", "name: a\n"},
			{openshiftBase, openshiftTeam, "kind: NamespacedImageValidatingPolicy\nmetadata:\n  name: b\n  namespace: c\n"}, {openshiftBase, openshiftTeam, "Here both must allow"},
			{"[a.io]", "[" + strings.Repeat("b.io, ", 199) + "b.io]", "name: a\n"}, {"{keyData:", "{rekorKeyData: \"${base64:rekor.pub}\", keyData:", "rekorPubKey:"}, {"{keyData:", "{rekorKeyData: \"${base64:rekor.pub}\", keyData:", "without: insecureIgnore"},
			{openshiftPublicKey, openshiftFulcio, "insecureIgnoreSCT: true"}, {openshiftPublicKey, openshiftFulcio, "subject: b"}, {openshiftPublicKey, openshiftFulcio, "without: insecureIgnoreTlog"},
			{openshiftBase, strings.Replace(openshiftBase, "[a.io]", "[a.io/x]", 1) + "---\n" + openshiftTeam, `!name.matches(r'^a\.io/x[/:@]')`},
			{openshiftBase, strings.Replace(openshiftTeam, "[a.io]", "[a.io/x]", 1) + "---\n" + openshiftTeam, `!name.matches(r'^a\.io/x[/:@]')`},
			{openshiftBase, strings.NewReplacer("[a.io]", "[a.io/x]", "namespace: c", "namespace: d").Replace(openshiftTeam) + "---\n" + openshiftTeam, `without: !name.matches`},
		},
	} {
		if err := converttest.Accepted(base, rows); err != nil {
			t.Error(err)
		}
	}
}

// scopes are as many as asked for, all of which are rejected.
func scopes(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `"a.io/%d": [{"type": "reject"}], `, i)
	}
	return out.String()
}

// twoKeys are two keys in one text, in base64.
func twoKeys(t *testing.T) string {
	t.Helper()
	return joined(t, "one.pub", "two.pub")
}

// twoRoots are certificates in the same way, which several may be.
func twoRoots(t *testing.T) string {
	t.Helper()
	return joined(t, "fulcio.pem", "fulcio.pem")
}

func joined(t *testing.T, names ...string) string {
	t.Helper()
	var both []byte
	for _, name := range names {
		both = append(both, testkit.Must(fs.ReadFile(converttest.Files(), "etc/pki/"+name))(t)...)
	}
	return base64.StdEncoding.EncodeToString(both)
}

// TestAskedFor lists the fields that are converted only on request.
func TestAskedFor(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		options      convert.Options
		problem      string
	}{
		{"a file without a folder", containersBase, convert.Options{DropSignedIdentity: true}, "transports.docker.a.io[0].keyPath: names the file /etc/pki/one.pub: give --root"},
		{"an identity that is compared by default", containersBase, convert.Options{Files: converttest.Files()}, "transports.docker.a.io[0].signedIdentity: is left out, and so is matchRepoDigestOrExact"},
		{"an explicit identity", strings.Replace(containersBase, `"keyPath"`, `"signedIdentity": {"type": "matchExact"}, "keyPath"`, 1), convert.Options{Files: converttest.Files()}, `transports.docker.a.io[0].signedIdentity: is "matchExact"`},
		{"OpenShift's identity", openshiftBase, convert.Options{}, "spec.policy.signedIdentity"},
	} {
		text, err := converttest.Fill(row.text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = convert.Convert(text, row.options); err == nil || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: want %q, got %v", row.reason, row.problem, err)
		}
	}
}
