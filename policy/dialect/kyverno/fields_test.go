package kyverno_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/verify"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// load compiles a policy of testdata, with the ConfigMaps that it names.
func load(t *testing.T, name string) *policy.Policy {
	t.Helper()
	lookup := configMaps{"trust/keys": {"prod-eu": read(t, "k1.pem") + read(t, "k2.pem")}}
	compiled, err := newCompiler(t, lookup).Compile([]byte(read(t, name)), name)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func pod(namespace string) *policy.Subject {
	return &policy.Subject{
		Object:  policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "web", "labels": map[string]any{"owner": "ann"}}, "spec": map[string]any{}}),
		Version: "v1", Kind: "Pod", Namespace: namespace, Name: "web", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}, Operation: "CREATE",
	}
}

func container(ref string) policy.Image {
	return policy.Image{Container: "web", Role: "container", Pointer: "/spec/containers/0/image", Ref: image.MustParse(ref)}
}

func ruleOf(t *testing.T, p *policy.Policy, name string) policy.Rule {
	t.Helper()
	for _, r := range p.Rules {
		if r.Name() == name {
			return r
		}
	}
	t.Fatalf("there is no rule %s", name)
	return nil
}

// only returns the one check of a rule for an image.
func only(t *testing.T, r policy.Rule, s *policy.Subject, ref string) policy.Check {
	t.Helper()
	plan, err := r.Plan(t.Context(), s, []policy.Image{container(ref)})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Checks) != 1 {
		t.Fatalf("got %d checks (%s)", len(plan.Checks), plan.Skip)
	}
	if err := plan.Checks[0].Validate(); err != nil {
		t.Fatal(err)
	}
	return plan.Checks[0]
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func TestEveryField(t *testing.T) {
	p := load(t, "every-field.yaml")
	equal(t, "identity", p.ID(), "ClusterPolicy/every-field")
	equal(t, "title", []string{p.Title, p.Category, p.Severity}, []string{"Every field", "Supply chain", "high"})
	equal(t, "failurePolicy: the webhook's wins", p.FailOpen, false)
	equal(t, "an entry enforces", p.AuditOnly, false)
	equal(t, "other rules", []string{p.Validations[0].Name(), p.Validations[1].Name(), p.Validations[2].Name()}, []string{"labelled", "autogen-labelled", "autogen-cronjob-labelled"})
	equal(t, "hash", len(p.Hash), 64)

	check := only(t, ruleOf(t, p, "signed"), pod("prod-eu"), "docker.io/org/app:v1")
	equal(t, "entry", check.Entry, "verifyImages[0]")
	equal(t, "failureAction", check.Action, policy.Enforce)
	equal(t, "digests", []bool{check.MutateDigest, check.VerifyDigest, check.Required}, []bool{true, false, false})
	equal(t, "platforms", check.Platforms, policy.PlatformEach)
	equal(t, "credentials", check.Credentials, policy.Credentials{
		AllowInsecure: true, Providers: []string{"default", "amazon", "azure", "google", "github"}, Secrets: []string{"kyverno/pull", "other/pull"},
	})
	signatures, err := image.ParseRepository("ghcr.io/org/signatures")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "repository", check.Sources, []attest.Source{{Repository: signatures}})
	equal(t, "attestors", len(check.Requirements), 2)
}

func TestKeys(t *testing.T) {
	check := only(t, ruleOf(t, load(t, "every-field.yaml"), "signed"), pod("prod-eu"), "ghcr.io/org/app:v1")
	set := check.Requirements[0]
	equal(t, "two keys, a KMS and a secret", []int{set.Threshold, len(set.Members)}, []int{2, 4})
	key1, key2 := read(t, "k1.pem"), read(t, "k2.pem")
	first := set.Members[0].Authority
	equal(t, "first key", *first.Key, verify.Key{Ref: key1, Hash: "sha512"})
	equal(t, "second key", *set.Members[1].Authority.Key, verify.Key{Ref: key2, Hash: "sha512"})
	equal(t, "names", []string{first.Name, set.Members[1].Authority.Name, set.Members[2].Authority.Name}, []string{
		"attestors[0].entries[0].keys.publicKeys[0]", "attestors[0].entries[0].keys.publicKeys[1]", "attestors[0].entries[1].keys",
	})
	equal(t, "rekor", first.Log, verify.Log{Ignore: true, Keys: []byte(key2), URL: "https://rekor.example"})
	equal(t, "tsaCertChain", first.Timestamp, verify.Timestamp{Required: true, Chain: []byte(read(t, "cert.pem"))})
	equal(t, "annotations", first.Annotations, map[string]string{"env": "prod"})
	equal(t, "useCache", first.MaxAge < 0, true)
	equal(t, "repository of the entry", set.Members[0].Sources[0].Repository.Path(), "org/more-signatures")
	kms := set.Members[2].Authority
	equal(t, "kms", *kms.Key, verify.Key{Ref: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k", Hash: "sha384"})
	equal(t, "without rekor a log entry is wanted", kms.Log, verify.Log{})
	equal(t, "without tsaCertChain no timestamp is", kms.Timestamp, verify.Timestamp{})
	equal(t, "secret", set.Members[3].Authority.Key.Ref, "k8s://trust/cosign")
}

func TestCertificatesAndKeyless(t *testing.T) {
	check := only(t, ruleOf(t, load(t, "every-field.yaml"), "signed"), pod("prod-eu"), "ghcr.io/org/app:v1")
	set := check.Requirements[1]
	certificate := []byte(read(t, "cert.pem"))
	equal(t, "all entries", []int{set.Threshold, len(set.Members)}, []int{2, 2})
	given := set.Members[0].Authority
	equal(t, "certificate", *given.Certificate, verify.Certificate{Leaf: certificate, Chain: certificate, CT: verify.CT{Ignore: true}})
	equal(t, "the public log's name means any log", given.Log, verify.Log{})
	nested := set.Members[1].Set
	equal(t, "nested", []any{nested.Name, nested.Threshold, len(nested.Members)}, []any{"attestors[1].entries[1].attestor", 1, 2})
	short := nested.Members[0].Authority.Keyless
	equal(t, "roots", short.Roots, certificate)
	equal(t, "SCT is checked", short.CT, verify.CT{})
	oids := map[string]string{}
	for _, e := range short.Extensions {
		oids[e.OID] = e.Value.String()
	}
	equal(t, "extensions", oids, map[string]string{
		"1.3.6.1.4.1.57264.1.2": "push", "1.3.6.1.4.1.57264.1.11": "github-hosted", "1.3.6.1.4.1.57264.1.16": "https://github.com/org",
	})
	const github = "https://token.actions.githubusercontent.com"
	for _, test := range []struct {
		member          int
		issuer, subject string
		want            bool
		reason          string
	}{
		{0, github, "https://github.com/org/app", true, "the expression matches"},
		{0, github, "https://github.com/org/", false, "one character is wanted"},
		{0, github, "https://evil.example/https://github.com/org/app", false, "the expression is anchored"},
		{0, github + ".evil.example", "https://github.com/org/app", false, "a plain issuer is exact"},
		{1, "https://login.example", "ann@example.com", true, "a wildcard"},
		{1, "https://login.example", "ann@example.org", false, "another domain"},
		{1, "http://login.example", "ann@example.com", false, "another scheme"},
	} {
		identity := nested.Members[test.member].Authority.Keyless.Identities[0]
		if got := identity.Match(test.issuer, []string{test.subject}); got != test.want {
			t.Errorf("%s of %s: %v: %s", test.subject, test.issuer, got, test.reason)
		}
	}
}

func TestAttestations(t *testing.T) {
	check := only(t, ruleOf(t, load(t, "every-field.yaml"), "signed"), pod("prod-eu"), "ghcr.io/org/app:v1")
	provenance, scan := check.Attestations[0], check.Attestations[1]
	equal(t, "type", provenance.PredicateType, "https://slsa.dev/provenance/v1")
	equal(t, "predicateType", scan.PredicateType, "https://cosign.sigstore.dev/attestation/vuln/v1")
	signers := provenance.Signers[0]
	equal(t, "keys from a ConfigMap are expanded too", []any{signers.Name, signers.Threshold, len(signers.Members)}, []any{"attestations[0].attestors[0]", 2, 2})
	equal(t, "k8s://", scan.Signers[0].Members[0].Authority.Key.Ref, "k8s://trust/scanner")

	good := map[string]any{"buildDefinition": map[string]any{"buildType": "https://ci.example/v1"}}
	if holds, why, err := provenance.Condition.Holds(good); !holds || err != nil {
		t.Errorf("a good predicate: %v, %s, %v", holds, why, err)
	}
	bad := map[string]any{"buildDefinition": map[string]any{"buildType": "https://laptop.example"}}
	if holds, why, err := provenance.Condition.Holds(bad); holds || err != nil || !strings.Contains(why, `found "https://laptop.example"`) {
		t.Errorf("a bad predicate: %v, %s, %v", holds, why, err)
	}
	for _, odd := range []any{map[string]any{}, []any{}, nil} {
		if holds, _, err := provenance.Condition.Holds(odd); holds || err == nil {
			t.Errorf("the predicate %v: %v, %v", odd, holds, err)
		}
	}
	equal(t, "no condition", scan.Condition, nil)
}

func TestDeny(t *testing.T) {
	check := only(t, ruleOf(t, load(t, "every-field.yaml"), "signed"), pod("prod-eu"), "ghcr.io/org/app:v1")
	equal(t, "message", check.DenyMessage, "ann: the scan is not of this build")
	run := func(id any) map[string]any {
		return map[string]any{"runDetails": map[string]any{"metadata": map[string]any{"invocationId": id}}}
	}
	if denied, _, err := check.Deny.Holds(map[string]any{"provenance": run("7"), "scan": map[string]any{"build": "7"}}); denied || err != nil {
		t.Errorf("the same build: %v, %v", denied, err)
	}
	denied, why, err := check.Deny.Holds(map[string]any{"provenance": run("7"), "scan": map[string]any{"build": "8"}})
	if !denied || err != nil || !strings.Contains(why, `found "8"`) {
		t.Errorf("another build: %v, %s, %v", denied, why, err)
	}
	if denied, _, err := check.Deny.Holds(map[string]any{"provenance": run("7")}); !denied || err == nil {
		t.Errorf("no scan: %v, %v", denied, err)
	}
}

func TestOldFieldsAndNotary(t *testing.T) {
	p := load(t, "old-and-notary.yaml")
	equal(t, "identity", p.ID(), "Policy/team/old")
	check := only(t, ruleOf(t, p, "by-key"), pod("team"), "ghcr.io/org/app:v1")
	equal(t, "validationFailureAction", check.Action, policy.Enforce)
	equal(t, "defaults", []bool{check.MutateDigest, check.VerifyDigest, check.Required}, []bool{true, true, true})
	key := check.Requirements[0].Members[0].Authority
	equal(t, "key", key.Key.Ref, read(t, "k1.pem"))
	equal(t, "annotations", key.Annotations, map[string]string{"env": "prod"})

	check = only(t, ruleOf(t, p, "attested"), pod("team"), "ghcr.io/org/app:v1")
	equal(t, "a signer beside attestations signs these", len(check.Requirements), 0)
	signer := check.Attestations[0].Signers[0].Members[0].Authority.Keyless
	equal(t, "roots", signer.Roots, []byte(read(t, "cert.pem")))
	equal(t, "subject", signer.Identities[0].Subject.String(), "https://github.com/org/*")
	equal(t, "extension", signer.Extensions[0].OID, "1.3.6.1.4.1.57264.1.6")

	check = only(t, ruleOf(t, p, "notary"), pod("team"), "nginx")
	certificate := []byte(read(t, "cert.pem"))
	equal(t, "notary", *check.Requirements[0].Members[0].Authority.Notation, verify.Notation{CA: certificate})
	equal(t, "artifact type", []any{check.Attestations[0].PredicateType, check.Attestations[0].Artifact}, []any{"sbom/cyclone-dx", true})
}

func TestExtractors(t *testing.T) {
	rule := ruleOf(t, load(t, "old-and-notary.yaml"), "notary")
	equal(t, "pods have the standard places", rule.Extractors(pod("team")), []policy.Extractor(nil))
	list := rule.Extractors(&policy.Subject{Kind: "Task"})
	if len(list) != 1 || list[0].Name != "steps" || list[0].Path != "/spec/steps/*" || list[0].Value != "image" || list[0].Key != "name" {
		t.Fatalf("got %+v", list)
	}
	if got, err := list[0].Transform("docker://nginx"); got != "nginx" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := list[0].Transform("docker://"); err == nil {
		t.Errorf("nothing is left, and that is %q", got)
	}
}

func TestIgnoredFieldsLoad(t *testing.T) {
	paths := map[string]bool{}
	for _, field := range kyverno.Ignored() {
		if field.Reason == "" || paths[field.Path] {
			t.Errorf("%s: twice, or without a reason", field.Path)
		}
		paths[field.Path] = true
		name := field.Path[strings.LastIndexByte(field.Path, '.')+1:]
		known := strings.Contains(read(t, "every-field.yaml"), name+":") || strings.Contains(moreIgnored, name)
		if !known {
			t.Errorf("%s is not tried", field.Path)
		}
	}
	text := strings.Replace(read(t, "every-field.yaml"), "spec:\n", "status: {ready: true}\nspec:\n  mutateExistingOnPolicyUpdate: false\n  generateExisting: false\n  generateExistingOnPolicyUpdate: false\n  useServerSideApply: false\n", 1)
	if _, err := newCompiler(t, nil).Compile([]byte(text), "test"); err != nil {
		t.Error(err)
	}
	about(t, nil, "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {cel: {generate: false, expressions: [{expression: 'true', reason: Forbidden}]}}}", "")
}

const moreIgnored = "status reason"
