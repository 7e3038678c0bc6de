package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// env is a registry with signers, and the files that a user would have.
type env struct {
	*gatetest.Yard
	key, stranger *verifytest.Signer
	folder        string
}

func newEnv(t *testing.T, options registrytest.Options) *env {
	t.Helper()
	server := registrytest.Start(options)
	t.Cleanup(server.Close)
	sigstore := verifytest.Must(verifytest.New(verifytest.Options{}))
	h := &env{
		Yard: gatetest.New(server, sigstore), folder: t.TempDir(),
		key:      verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})),
		stranger: verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})),
	}
	h.file(t, "key.pub", string(h.key.PublicPEM()))
	h.file(t, "trusted_root.json", string(sigstore.TrustedRoot()))
	return h
}

// file writes a file into the folder, and returns its path.
func (h *env) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(h.folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (h *env) path(name string) string { return filepath.Join(h.folder, name) }

// quaymaster runs a command line.
func quaymaster(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, command.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }})
	return code, out.String(), errs.String()
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestExitStatus(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	byKey := verifytest.Claim{Signer: h.key, NoLog: true}
	signed, unsigned, foreign := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2"), h.Build("foreign", "v1", "3")
	ok(t, h.SignLegacy(signed, byKey, nil))
	ok(t, h.SignBundle(foreign, verifytest.Claim{Signer: h.stranger, NoLog: true}, nil))
	closed := registrytest.Start(registrytest.Options{})
	nowhere := closed.Host() + "/app:v1"
	closed.Close()
	key := []string{"verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog"}
	empty := t.TempDir()
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		{"signed", append(key, signed.Name), command.ExitAllowed, "1 allowed"},
		{"unsigned", append(key, unsigned.Name), command.ExitDenied, "no signature found"},
		{"signed by another key", append(key, foreign.Name), command.ExitDenied, "another key"},
		{"registry down", append(key, nowhere), command.ExitError, "could not be verified"},
		{"denied outweighs error", append(key, nowhere, unsigned.Name), command.ExitDenied, "1 denied"},
		{"no such image", append(key, h.Registry.Host()+"/none:v1"), command.ExitError, "could not be verified"},
		{"the log is on unless switched off", []string{"verify", "--key", h.path("key.pub"), "--trusted-root", h.path("trusted_root.json"), signed.Name}, command.ExitDenied, "transparency log"},
		{"nothing to verify", []string{"verify", "--key", h.path("key.pub")}, command.ExitUsage, "nothing to verify"},
		{"a manifest without an object", append(key, "-f", h.file(t, "zero.yaml", "")), command.ExitUsage, "zero.yaml: no objects in it"},
		{"no key or policy", []string{"verify", signed.Name}, command.ExitUsage, "no policy or signer given: set --policy, --bundle, --from-cluster, --key, "},
		{"an identity without an issuer", []string{"verify", "--certificate-identity", "x", signed.Name}, command.ExitUsage, "--certificate-oidc-issuer"},
		{"a missing key file", []string{"verify", "--key", "no-such-file", signed.Name}, command.ExitUsage, "no-such-file"},
		{"a key file that is no key", []string{"verify", "--key", h.path("trusted_root.json"), signed.Name}, command.ExitUsage, "trusted_root.json"},
		{"a certificate file that is none", []string{"verify", "--notation-cert", h.path("key.pub"), signed.Name}, command.ExitUsage, "--notation-cert"},
		{"a log key that is none", append(key, "--rekor-key", h.path("trusted_root.json"), signed.Name), command.ExitUsage, "trusted_root.json: PEM: there is text that is no PEM block; want \"-----BEGIN PUBLIC KEY-----\""},
		{"a chain that is none", []string{"verify", "--certificate-chain", h.path("key.pub"), signed.Name}, command.ExitUsage, "--certificate-chain"},
		{"a missing manifest", append(key, "-f", "no-such-file"), command.ExitUsage, "no-such-file"},
		{"an unknown flag", append(key, "--no-such-flag", signed.Name), command.ExitUsage, "no-such-flag"},
		{"an unknown output", append(key, "-o", "xml", signed.Name), command.ExitUsage, "sarif, junit, markdown"},
		{"offline without a layout", append(key, "--offline", signed.Name), command.ExitUsage, "--oci-layout"},
		{"a malformed reference", append(key, "registry.test/app@sha256:../../x"), command.ExitUsage, "sha256"},
		{"flags that would be ignored", []string{"verify", "--signed-not-before", "2030-01-01T00:00:00Z", "--policy", "x", signed.Name}, command.ExitUsage, "--signed-not-before"},
		{"an identity from a variable that is unset", []string{"verify", "--certificate-chain", h.path("key.pub"), "--certificate-identity", "", signed.Name}, command.ExitUsage, "is empty; a variable"},
		{"an annotation with two values", append(key, "-a", "team=web", "-a", "team=prod", signed.Name), command.ExitUsage, "cannot be both"},
		{"a log key for notation", []string{"verify", "--notation-cert", "x", "--rekor-key", h.path("key.pub"), signed.Name}, command.ExitUsage, "--rekor-key has no effect"},
		{"a digest for notation", []string{"verify", "--notation-cert", "x", "--signature-digest-algorithm", "sha512", signed.Name}, command.ExitUsage, "no effect with"},
		{"signers of two kinds", append(key, "--notation-cert", h.path("key.pub"), signed.Name), command.ExitUsage, "one kind"},
		{"a type of attestation that is none", append(key, "--attestation", "slsaprovenence", signed.Name), command.ExitUsage, "slsaprovenance"},
		{"a folder without policies", []string{"verify", "--policy", empty, signed.Name}, command.ExitUsage, "--policy " + empty + ": no .yaml, .yml or .json file in it"},
		{"standard input for policies", []string{"verify", "--policy", "-", signed.Name}, command.ExitUsage, "standard input"},
		{"two outputs in one place", append(key, "-o", "json", "-o", "text", signed.Name), command.ExitUsage, "mixed"},
		{"an annotation that is there not", append(key, "-a", "team=web", signed.Name), command.ExitDenied, "annotation"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			code, out, errs := quaymaster(t, c.args...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit status %d, want %d; want %q in:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}

func TestManifests(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2")
	ok(t, h.SignBundle(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	workload := func(image string) string {
		return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      initContainers: [{name: init, image: %q}]
      containers: [{name: web, image: %q}]
`, signed.Name, image)
	}
	good := h.file(t, "good.yaml", workload(signed.Name)+"---\n"+workload(signed.Name))
	bad := h.file(t, "bad.yaml", workload(signed.Name)+"---\n"+workload(unsigned.Name))
	key := []string{"verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", "-f"}
	if code, out, errs := quaymaster(t, append(key, good)...); code != command.ExitAllowed {
		t.Errorf("exit status %d for signed images:\n%s%s", code, out, errs)
	}
	if code, out, errs := quaymaster(t, append(key, bad)...); code != command.ExitDenied || !strings.Contains(out, "unsigned") {
		t.Errorf("exit status %d for an unsigned image:\n%s%s", code, out, errs)
	}
}

func TestJSONIsWrittenOnFailureToo(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	unsigned := h.Build("unsigned", "v1", "2")
	code, out, errs := quaymaster(t, "verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", "-o", "json="+h.path("out.json"), "-o", "text", unsigned.Name)
	if code != command.ExitDenied || !strings.Contains(out, "denied") {
		t.Fatalf("exit status %d:\n%s%s", code, out, errs)
	}
	content, err := os.ReadFile(h.path("out.json"))
	ok(t, err)
	var list struct {
		APIVersion, Kind string
		Items            []struct{ Result string }
	}
	ok(t, json.Unmarshal(content, &list))
	if list.Kind != "VerdictList" || len(list.Items) != 1 || list.Items[0].Result != "deny" {
		t.Errorf("%+v", list)
	}
}

func TestKeyless(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "1")
	signer, err := h.Sigstore.Keyless(verifytest.Identity{URI: "https://github.com/org/app/.github/workflows/build.yaml@refs/heads/main", Issuer: "https://token.actions.githubusercontent.com"})
	ok(t, err)
	ok(t, h.SignBundle(image, verifytest.Claim{Signer: signer}, nil))
	base := []string{"verify", "--trusted-root", h.path("trusted_root.json"), "--certificate-oidc-issuer", "https://token.actions.githubusercontent.com"}
	for _, c := range []struct {
		reason, expression string
		code               int
	}{
		{"the whole subject", `https://github\.com/org/app/.*`, command.ExitAllowed},
		{"a part of the subject is not the subject", `github\.com/org/app`, command.ExitDenied},
		{"another organisation", `https://github\.com/evil/.*`, command.ExitDenied},
	} {
		if code, out, errs := quaymaster(t, append(base, "--certificate-identity-regexp", c.expression, image.Name)...); code != c.code {
			t.Errorf("%s: exit status %d, want %d:\n%s%s", c.reason, code, c.code, out, errs)
		}
	}
	if code, _, _ := quaymaster(t, "verify", "--certificate-oidc-issuer", "https://token.actions.githubusercontent.com", "--certificate-identity-regexp", ".*", image.Name); code != command.ExitDenied {
		t.Errorf("the public-good root believes a throw-away Sigstore: exit status %d", code)
	}
}

// TestWrongArguments: an error about arguments names the command, and suggests a fix.
func TestWrongArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		"aply":            `unknown command "aply": did you mean apply?; see: quaymaster --help`,
		"nothing":         `unknown command "nothing"; see: quaymaster --help`,
		"log verfy":       `unknown command "verfy": did you mean verify?; see: quaymaster log --help`,
		"verify --keys x": "unknown flag --keys: did you mean --key?; see: quaymaster verify --help",
		"verify -z":       "unknown flag -z; see: quaymaster verify --help",
		"serve foo":       `quaymaster serve takes no arguments, found "foo"`,
		"version foo":     `quaymaster version takes no arguments, found "foo"`,
		"scan foo":        `quaymaster scan takes no arguments, found "foo"`,
		"help foo":        `unknown command "foo"; see: quaymaster --help`,
		"help verify foo": `quaymaster verify takes no arguments, found "foo"`,
		"completion foo":  `unknown command "foo"; see: quaymaster completion --help`,
		"apply":           "name a policy: quaymaster apply POLICY... -r RESOURCE...",
		"test":            "name a folder of suites: quaymaster test PATH...",
		"convert":         "name a policy: quaymaster convert FILE",
		"convert a b":     "quaymaster convert takes 1 argument, found 2: quaymaster convert FILE",
		"log verify":      "name a decision log: quaymaster log verify FILE|DIR...",
		"log show":        "name a decision log: quaymaster log show DIR",
		"bundle show":     "name a bundle: quaymaster bundle show FILE",
	} {
		code, out, errs := quaymaster(t, strings.Fields(arguments)...)
		if code != command.ExitUsage || !strings.HasPrefix(errs, "quaymaster: "+want) || out != "" {
			t.Errorf("%s: exit status %d, want %q in:\n%s%s", arguments, code, want, out, errs)
		}
	}
	for _, arguments := range []string{"help", "help verify", "help log show", "completion"} {
		if code, out, errs := quaymaster(t, strings.Fields(arguments)...); code != 0 || !strings.Contains(out, "Usage:") {
			t.Errorf("%s: exit status %d\n%s%s", arguments, code, out, errs)
		}
	}
}

func TestExplainAndVersion(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "1")
	code, out, errs := quaymaster(t, "explain", "--key", h.path("key.pub"), "--insecure-ignore-tlog", image.Name)
	if code != command.ExitDenied || !strings.Contains(out, image.Manifest.Digest[:40]) {
		t.Errorf("exit status %d:\n%s%s", code, out, errs)
	}
	if code, out, _ := quaymaster(t, "version"); code != 0 || !strings.HasPrefix(out, "quaymaster ") {
		t.Errorf("exit status %d: %s", code, out)
	}
	if code, out, _ := quaymaster(t, "completion", "bash"); code != 0 || !strings.Contains(out, "bash") {
		t.Errorf("completion: exit status %d", code)
	}
}

func TestDemo(t *testing.T) {
	code, out, errs := quaymaster(t, "demo")
	if code != 0 || !strings.Contains(out, "5 allowed, 4 denied, 1 could not be verified") || !strings.Contains(out, "To try the commands above, use: quaymaster demo --keep") ||
		!strings.Contains(out, "redirected to") || !strings.Contains(out, "not redirected (RegistryMirror/demo[0])") || !strings.Contains(out, "5 admitted, 5 refused") {
		t.Errorf("exit status %d:\n%s%s", code, out, errs)
	}
}

const byNamespace = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: by-namespace}
spec:
  validationFailureAction: Enforce
  rules:
    - name: team-blue
      match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {team: blue}}}}]}
      verifyImages:
        - imageReferences: ["*"]
          attestors: [{entries: [{keys: {secret: {name: key, namespace: shop}, rekor: {ignoreTlog: true}}}]}]
`

// TestResources: the lookups of policies come from files, and a missing object is indeterminate,
// never "does not apply".
func TestResources(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	policies := h.file(t, "policy.yaml", byNamespace)
	namespace := func(name, team string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {team: %s}}\n---\n", name, team)
	}
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: shop}\nstringData:\n  cosign.pub: |\n    " +
		strings.ReplaceAll(strings.TrimSpace(string(h.key.PublicPEM())), "\n", "\n    ") + "\n"
	resources := h.file(t, "resources.yaml", namespace("blue", "blue")+namespace("red", "red")+secret)
	noSecret := h.file(t, "namespaces.yaml", namespace("blue", "blue"))
	for _, c := range []struct {
		reason, namespace, resources, image string
		code                                int
		says                                string
	}{
		{"selected and signed", "blue", resources, signed.Name, command.ExitAllowed, "1 allowed"},
		{"selected and unsigned", "blue", resources, unsigned.Name, command.ExitDenied, "no signature found"},
		{"another team", "red", resources, unsigned.Name, command.ExitAllowed, "no policy"},
		{"a namespace without an object", "green", resources, unsigned.Name, command.ExitError, "labels of the object's namespace"},
		{"another kind", "blue", h.file(t, "others.yaml", namespace("blue", "blue")+secret+"---\napiVersion: v1\nkind: Config\nmetadata: {name: a}\n"), signed.Name, command.ExitAllowed, "kind Config is not used for look-ups; want ConfigMap, Secret, Namespace or CustomResourceDefinition"},
		{"a Secret that is missing", "blue", noSecret, signed.Name, command.ExitError, "--resource"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			code, out, errs := quaymaster(t, "verify", "--policy", policies, "--resource", c.resources, "-n", c.namespace, c.image)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit status %d, want %d; want %q in:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}

// TestUnknownUser: without a user, a rule for users matches, and a warning reports it.
func TestUnknownUser(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	unsigned := h.Build("unsigned", "v1", "1")
	policy := h.file(t, "users.yaml", strings.Replace(strings.Replace(byNamespace, ", namespaceSelector: {matchLabels: {team: blue}}}", "}, subjects: [{kind: User, name: alice}]", 1),
		"spec:\n", "spec:\n  background: false\n", 1))
	bob := h.file(t, "bob.yaml", "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nmetadata: {name: bob}\nuserInfo: {username: bob}\n")
	const warning = "rules for users match every user"
	secret := h.file(t, "key.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: shop}\ndata: {cosign.pub: "+encode(h.key.PublicPEM())+"}\n")
	args := []string{"verify", "--policy", policy, "--resource", secret, unsigned.Name}
	if code, out, errs := quaymaster(t, args...); code != command.ExitDenied || !strings.Contains(errs, warning) {
		t.Errorf("exit status %d:\n%s%s", code, out, errs)
	}
	if code, out, errs := quaymaster(t, append(args, "--userinfo", bob)...); code != command.ExitAllowed || strings.Contains(errs, warning) {
		t.Errorf("with a user: exit status %d:\n%s%s", code, out, errs)
	}
}

func TestRequireMatch(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "1")
	policies := h.file(t, "policy.yaml", strings.ReplaceAll(byNamespace, `["*"]`, `["other.test/*"]`))
	resources := h.file(t, "ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: blue, labels: {team: blue}}\n")
	args := []string{"--policy", policies, "--resource", resources, "-n", "blue", image.Name}
	if code, out, errs := quaymaster(t, append([]string{"verify"}, args...)...); code != command.ExitAllowed {
		t.Errorf("exit status %d:\n%s%s", code, out, errs)
	}
	for _, verb := range []string{"verify", "explain"} {
		if code, _, errs := quaymaster(t, append([]string{verb, "--require-match"}, args...)...); code != command.ExitDenied || !strings.Contains(errs, "no policy matches 1") {
			t.Errorf("%s --require-match: exit status %d: %s", verb, code, errs)
		}
	}
}

// TestAllowInsecureRegistry: the policy's word gives up TLS for its own images.
func TestAllowInsecureRegistry(t *testing.T) {
	h := newEnv(t, registrytest.Options{TLS: true})
	signed, unsigned := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	policyOf := func(insecure bool) string {
		return h.file(t, fmt.Sprintf("insecure-%t.yaml", insecure), fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: insecure}
spec:
  validationFailureAction: Enforce
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: ["*"]
          imageRegistryCredentials: {allowInsecureRegistry: %t}
          attestors: [{entries: [{keys: {publicKeys: %q, rekor: {ignoreTlog: true}}}]}]
`, insecure, h.key.PublicPEM()))
	}
	for _, c := range []struct {
		reason   string
		insecure bool
		image    string
		code     int
	}{
		{"a certificate of an unknown authority", false, signed.Name, command.ExitError},
		{"the policy gives TLS up", true, signed.Name, command.ExitAllowed},
		{"and no more than TLS", true, unsigned.Name, command.ExitDenied},
	} {
		if code, out, errs := quaymaster(t, "verify", "--policy", policyOf(c.insecure), c.image); code != c.code {
			t.Errorf("%s: exit status %d, want %d:\n%s%s", c.reason, code, c.code, out, errs)
		}
	}
}
