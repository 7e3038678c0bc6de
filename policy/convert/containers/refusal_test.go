package containers_test

import (
	"strings"
	"testing"

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
)

// TestRefused converts each base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	for base, rows := range map[string][]converttest.Exchange{
		containersBase: {
			{`"default": [{"type": "reject"}], `, ``, "default: is missing"}, {`"docker"`, `"atomic"`, "transports.atomic"},
			{`"sigstoreSigned"`, `"signedBy"`, "transports.docker.a.io[0].type: signedBy"}, {`"sigstoreSigned"`, `"hope"`, `transports.docker.a.io[0].type: "hope"`},
			{`"type": "reject"`, `"type": "reject", "keyPath": "x"`, "default[0]: reject has other fields"},
			{`"a.io"`, `"a.io/x*"`, "transports.docker.a.io/x*: is no scope"}, {`"a.io"`, `"*.a.io:5000"`, "is no scope"}, {`"a.io"`, `"a.io/X"`, "is no scope"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/none.pub"`, "transports.docker.a.io[0].keyPath: names the file /etc/pki/none.pub, which cannot be read"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/fulcio.pem"`, `transports.docker.a.io[0].keyPath: a PEM block is of type "CERTIFICATE"`},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyData": "???"`, "transports.docker.a.io[0].keyData: no base64"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/one.pub", "keyData": "${base64:one.pub}"`, "transports.docker.a.io[0].keyData: stands beside"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPaths": ["/etc/pki/one.pub", "/etc/pki/none"]`, "transports.docker.a.io[0].keyPaths[1]"},
			{`"keyPath": "/etc/pki/one.pub"`, `"pki": {}`, "transports.docker.a.io[0].pki"},
			{`, "keyPath": "/etc/pki/one.pub"`, ``, "transports.docker.a.io[0]: is not exactly one of keys and fulcio"},
			{`"keyPath": "/etc/pki/one.pub"`, `"fulcio": {"caPath": "/etc/pki/fulcio.pem", "oidcIssuer": "a", "subjectEmail": "b"}`, "transports.docker.a.io[0].rekorPublicKeyPath: is missing"},
			{`"keyPath": "/etc/pki/one.pub"`, `"rekorPublicKeyPath": "/etc/pki/rekor.pub", "fulcio": {"caPath": "/etc/pki/fulcio.pem", "oidcIssuer": "a"}`, "transports.docker.a.io[0].fulcio: has no subject"},
			{`"keyPath": "/etc/pki/one.pub"`, `"rekorPublicKeyPath": "/etc/pki/rekor.pub", "fulcio": {"oidcIssuer": "a", "subjectEmail": "b"}`, "transports.docker.a.io[0].fulcio.caPath"},
			{`"keyPath"`, `"keypath"`, "transports.docker.a.io[0].keypath: unknown field"},
			{`[{"type": "sigstoreSigned", "keyPath": "/etc/pki/one.pub"}]`, `[]`, "transports.docker.a.io: is empty"},
		},
		openshiftBase: {
			{"openshift.io/v1", "openshift.io/v2", "apiVersion"}, {"ClusterImagePolicy", "ImageContentPolicy", "kind"}, {"{name: a}", "{}", "metadata.name"},
			{"{name: a}", "{name: a, namespace: b}", "metadata.namespace"}, {"[a.io]", "[]", "spec.scopes: is empty"}, {"[a.io]", `["*"]`, "spec.scopes[0]"},
			{"PublicKey", "Hope", "spec.policy.rootOfTrust.policyType"}, {"{keyData:", "{keyring: x, keyData:", "spec.policy.rootOfTrust.publicKey.keyring: unknown field"},
			{"policyType: PublicKey, publicKey: {keyData: \"${base64:one.pub}\"}", "policyType: PKI, pki: {}", "spec.policy.rootOfTrust.pki"},
			{`publicKey: {keyData: "${base64:one.pub}"}`, "pki: {}, publicKey: {keyData: x}", "spec.policy.rootOfTrust: is not exactly one"},
			{"${base64:one.pub}", "${base64:fulcio.pem}", "spec.policy.rootOfTrust.publicKey.keyData"},
			{openshiftBase, openshiftBase + "---\n" + strings.Replace(openshiftBase, "ClusterImagePolicy\nmetadata: {name: a}", "ImagePolicy\nmetadata: {name: b, namespace: c}", 1), "document 2: spec.scopes[0]: \"a.io\" lies within the scope of a ClusterImagePolicy"},
		},
	} {
		if err := converttest.Refused(base, rows); err != nil {
			t.Error(err)
		}
	}
}

// TestAskedFor has what is carried only if somebody asks for it.
func TestAskedFor(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		options      convert.Options
		problem      string
	}{
		{"a file without a folder", containersBase, convert.Options{DropSignedIdentity: true}, "transports.docker.a.io[0].keyPath: names the file /etc/pki/one.pub: give --root"},
		{"an identity that is compared by default", containersBase, convert.Options{Files: converttest.Files()}, "transports.docker.a.io[0].signedIdentity: is left out, and so is matchRepoDigestOrExact"},
		{"an identity that is said", strings.Replace(containersBase, `"keyPath"`, `"signedIdentity": {"type": "matchExact"}, "keyPath"`, 1), convert.Options{Files: converttest.Files()}, `transports.docker.a.io[0].signedIdentity: is "matchExact"`},
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
