package samples

import (
	"fmt"
	"testing"
	"time"
)

// Predicate types and artifact types that the policies ask for.
const (
	slsa02    = "slsaprovenance"  // cosign's name of https://slsa.dev/provenance/v0.2
	slsa1     = "slsaprovenance1" // of https://slsa.dev/provenance/v1
	cyclonedx = "https://cyclonedx.org/schema"
	sbom      = "sbom/cyclone-dx"
	trivy     = "trivy/vulnerability"
	vex       = "vex/cyclone-dx"
)

// theirs are the policies of other projects. Exchanged in all of them:
// registries, keys, certificates, issuers. Their transparency log,
// https://rekor.sigstore.dev or none named, means any that is trusted.
func theirs() []sample {
	return append(clusterPolicies(), imageValidatingPolicies()...)
}

// keyed are the trials of a policy that believes a key and wants a log entry.
func keyed(repository, object string) *trials {
	return (&trials{repository: repository, object: object}).
		accept("signed", signed(us)).named().
		accept("signed with a bundle", signed(us).bundled()).
		refuse("not signed", "unsigned").named().
		refuse("signed by another identity", "wrong-key", signed(strangers)).
		refuse("signed, and in no log", "no-log-entry", signed(us).withoutLog())
}

// unlogged are those of one that wants no log entry.
func unlogged(r *trials) *trials {
	return r.
		accept("signed, and in no log", signed(us).withoutLog()).named().
		accept("signed, and in a log", signed(us)).
		refuse("not signed", "unsigned").named().
		refuse("signed by another identity", "wrong-key", signed(strangers).withoutLog())
}

func clusterPolicies() []sample {
	return []sample{
		{file: "require-vulnerability-scan.yaml", trials: scans()},
		{file: "verify-flux-images.yaml", trials: flux()},
		{file: "verify-image-cve-2022-42889.yaml", trials: commonsText()},
		// The key in Google's service is one in a vault, which cosign signs with and
		// quaymaster asks.
		{file: "verify-image-gcpkms.yaml", trials: (&trials{repository: "kyverno/test-verify-image", object: pod, audit: true}).
			accept("signed by the vault", signed(who{vault: signer})).
			refuse("not signed", "unsigned").
			refuse("signed by another key of the vault", "wrong-key", signed(who{vault: stranger})).list},
		{file: "verify-image-slsa.yaml", trials: provenance()},
		{file: "verify-image-with-multi-keys.yaml", beside: keysOfNamespaces, trials: (&trials{repository: "myorg/myimage", object: pod}).
			accept("signed by both", signed(us), signed(who{key: second})).
			refuse("not signed", "unsigned").
			refuse("signed by one of both", "too-few-signers", signed(us)).
			refuse("signed by one of both and another key", "too-few-signers", signed(us), signed(strangers)).list},
		{file: "verify-image-with-multi-keys.yaml", with: "without its ConfigMap", trials: (&trials{repository: "myorg/myimage", object: pod}).
			add(trial{reason: "signed by both", proofs: []proof{signed(us), signed(who{key: second})}, answer: unable, code: "policy-error"}).list},
		{file: "verify-image.yaml", trials: keyed("kyverno/test-verify-image", pod).list},
		{file: "verify-sbom-cyclonedx.yaml", trials: sboms()},
		{file: "verify-tekton-taskrun-signatures.yaml", trials: audited(keyed("tekton/bundle", taskRun))},

		{file: "conformance/imageExtractors-complex.yaml", trials: keyed("tekton/step", task).list},
		{file: "conformance/keyed-basic.yaml", trials: unlogged(&trials{repository: "kyverno/test-verify-image", object: pod}).list},
		{file: "conformance/keyed-secret.yaml", beside: keySecret, trials: unlogged(&trials{repository: "kyverno/test-verify-image", object: pod}).list},
		{file: "conformance/keyed-secret.yaml", with: "without its Secret", trials: (&trials{repository: "kyverno/test-verify-image", object: pod}).
			add(trial{reason: "signed, and in no log", proofs: []proof{signed(us).withoutLog()}, answer: unable, code: "cannot-prove"}).list},
		{file: "conformance/keyed-tsa.yaml", trials: (&trials{repository: "kyverno/test-verify-image", object: pod}).
			accept("signed, with a timestamp", signed(us).withStamp()).
			refuse("not signed", "unsigned").
			refuse("signed, with a timestamp, by another key", "wrong-key", signed(strangers).withStamp()).
			refuse("signed, without a timestamp", "no-timestamp", signed(us)).list},
		{file: "conformance/keyless-attestations-multiple-subjects-1.yaml", trials: subjects().list},
		{file: "conformance/keyless-attestations-multiple-subjects-counts-1.yaml", trials: subjects().
			accept("attested by the second of the two", attested(workflow(zulu), slsa02, builder(generator))).list},
		{file: "conformance/multiple-image-verification-attestations-trivy-vex-pass.yaml", trials: vulnerabilities()},
		{file: "conformance/mutateDigest-noverifyDigest-norequired.yaml", trials: (&trials{repository: "kyverno/test-verify-image", object: pod}).
			add(trial{reason: "pushed, unsigned", answer: allow, code: "pinned", pin: true}).
			add(trial{reason: "never pushed", answer: unable, code: "image-not-found", absent: true}).list},
		{file: "conformance/notary-image-verification.yaml", trials: notarial(&trials{repository: "kyverno/test-verify-image", object: pod}).list},
		{file: "conformance/sigstore-attestation-verification-test.yaml", trials: bundles()},
		{file: "conformance/skip-image-reference.yaml", trials: notarial(&trials{repository: "elsewhere/app", object: pod}).
			add(trial{reason: "not signed, and left out", repository: "kyverno/app", answer: allow, code: "skipped"}).list},
		{file: "conformance/verify-image-background-audit.yaml",
			trials: unlogged(&trials{repository: "kyverno/test-verify-image", object: pod, audit: true, unpinned: true}).list},
	}
}

// audited are the trials of a policy that admits with a warning instead of a
// refusal.
func audited(r *trials) []trial {
	for i, one := range r.list {
		if one.refuses() {
			r.list[i].answer, r.list[i].code, r.list[i].warning = allow, "", one.code
		}
	}
	return r.list
}

// scan is cosign's vulnerability scan that ended some time ago.
func scan(ago time.Duration) string {
	at := time.Now().UTC().Add(-ago).Truncate(time.Hour).Format(time.RFC3339)
	return fmt.Sprintf(`{"invocation":{},"scanner":{"uri":"https://scanner.example"},"metadata":{"scanStartedOn":%[1]q,"scanFinishedOn":%[1]q}}`, at)
}

func scans() []trial {
	const day = 24 * time.Hour
	scanner := workflow("https://github.com/myorg/myrepo/.github/workflows/scan.yaml@refs/heads/main")
	return (&trials{repository: "myorg/myrepo", object: pod, audit: true}).
		accept("scanned two days ago", attested(scanner, "vuln", scan(2*day))).named().
		accept("scanned two days ago, in a bundle", attested(scanner, "vuln", scan(2*day)).bundled()).
		accept("scanned long ago and two days ago", attested(scanner, "vuln", scan(30*day)), attested(scanner, "vuln", scan(2*day))).
		refuse("scanned eight days ago", "condition-failed", attested(scanner, "vuln", scan(8*day))).
		refuse("never scanned", "no-attestation").
		refuse("scanned by another owner's workflow", "wrong-identity",
			attested(workflow("https://github.com/other/myrepo/.github/workflows/scan.yaml@refs/heads/main"), "vuln", scan(2*day))).
		refuse("scanned by that workflow at another issuer", "wrong-identity",
			attested(who{name: scanner.name, issuer: machines}, "vuln", scan(2*day))).list
}

func flux() []trial {
	const release = "/.github/workflows/release.yml@refs/tags/v1.0.0"
	return (&trials{repository: "fluxcd/source-controller", object: pod, audit: true, unpinned: true}).
		accept("signed by its workflow", signed(workflow("https://github.com/fluxcd/source-controller"+release))).
		refuse("not signed", "unsigned").
		refuse("signed by another owner's workflow", "wrong-identity", signed(workflow("https://github.com/other/source-controller"+release))).
		refuse("signed by its workflow, and in no log", "no-log-entry",
			signed(workflow("https://github.com/fluxcd/source-controller"+release)).withoutLog()).list
}

func commonsText() []trial {
	contains := func(name, version string) string {
		return fmt.Sprintf(`{"bomFormat":"CycloneDX","components":[{"name":"openssl","version":"1.8"},{"name":%q,"version":%q}]}`, name, version)
	}
	by := workflow("mysubject")
	return (&trials{repository: "myrepo/someimage", object: pod, audit: true}).
		accept("with a mended library", attested(by, cyclonedx, contains("commons-text", "1.10"))).
		accept("without the library", attested(by, cyclonedx, contains("commons-lang", "1.8"))).
		refuse("with the vulnerable library", "condition-failed", attested(by, cyclonedx, contains("commons-text", "1.8"))).
		refuse("without a bill of materials", "no-attestation").
		refuse("with a bill of materials by another identity", "wrong-identity",
			attested(workflow("yoursubject"), cyclonedx, contains("commons-text", "1.10"))).list
}

// generator is the workflow that writes provenance, at a branch or tag.
const generator = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_container_slsa3.yml@refs/heads/main"

// builder is a SLSA provenance, version 0.2, that names a builder.
func builder(id string) string {
	return fmt.Sprintf(`{"builder":{"id":%q},"buildType":"https://build.example"}`, id)
}

func provenance() []trial {
	const released = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_container_slsa3.yml@refs/tags/v1.2.3"
	return (&trials{repository: "path/repo", object: pod, audit: true}).
		accept("built by the generator's release", attested(workflow(released), slsa02, builder(released))).
		refuse("built by a candidate of its release", "condition-failed", attested(workflow(released+"-rc.1"), slsa02, builder(released+"-rc.1"))).
		refuse("built by another builder, attested by the generator", "condition-failed", attested(workflow(released), slsa02, builder("https://builder.example"))).
		refuse("built by a branch of the generator", "wrong-identity", attested(workflow(generator), slsa02, builder(released))).
		refuse("without provenance", "no-attestation").list
}

func sboms() []trial {
	by := workflow("mysubject")
	return (&trials{repository: "path/repo", object: pod, audit: true}).
		accept("with a bill of materials", attested(by, cyclonedx, `{"Data":{"bomFormat":"CycloneDX"}}`)).
		refuse("with one of another format", "condition-failed", attested(by, cyclonedx, `{"Data":{"bomFormat":"SPDX"}}`)).
		refuse("with one by another identity", "wrong-identity", attested(workflow("yoursubject"), cyclonedx, `{"Data":{"bomFormat":"CycloneDX"}}`)).
		refuse("without one", "no-attestation").list
}

// zulu is the second workflow that one of the policies believes.
const zulu = "https://github.com/chipzoller/zulu/.github/workflows/vulnerability-scan.yaml@refs/heads/main"

func subjects() *trials {
	return (&trials{repository: "kyverno/zulu", object: pod}).
		accept("built by the generator", attested(workflow(generator), slsa02, builder(generator))).named().
		accept("built by the generator, in a bundle", attested(workflow(generator), slsa02, builder(generator)).bundled()).
		refuse("built by another builder, attested by the generator", "condition-failed", attested(workflow(generator), slsa02, builder("https://builder.example"))).
		refuse("built by the generator, attested by another identity", "wrong-identity",
			attested(workflow("https://github.com/other/generator/.github/workflows/x.yml@refs/heads/main"), slsa02, builder(generator))).
		refuse("without provenance", "no-attestation").
		refuse("signed by the generator, and without provenance", "no-attestation", signed(workflow(generator)))
}

func bundles() []trial {
	const build = "https://github.com/vishal-chdhry/artifact-attestation-example/.github/workflows/build-attested-image.yaml@refs/heads/main"
	built := func(kind string) string {
		return fmt.Sprintf(`{"buildDefinition":{"buildType":%q},"runDetails":{"builder":{"id":"https://builder.example"}}}`, kind)
	}
	const kind = "https://actions.github.io/buildtypes/workflow/v1"
	return (&trials{repository: "example/app", object: pod}).
		accept("built by a workflow", attested(workflow(build), slsa1, built(kind)).bundled()).
		refuse("built otherwise", "condition-failed", attested(workflow(build), slsa1, built("https://build.example")).bundled()).
		refuse("built by a workflow, attested by another", "wrong-identity", attested(workflow(generator), slsa1, built(kind)).bundled()).
		refuse("built by a workflow, and in no log", "no-log-entry", attested(workflow(build), slsa1, built(kind)).bundled().withoutLog()).
		refuse("without provenance", "no-attestation").list
}

// notarial are the trials of a policy that believes a certificate authority.
func notarial(r *trials) *trials {
	return r.
		accept("signed", notarized(us)).named().
		refuse("not signed", "unsigned").named().
		refuse("signed under another authority", "untrusted-chain", notarized(strangers))
}

func vulnerabilities() []trial {
	found := attached(us, trivy, `{"Vulnerabilities":[{"VulnerabilityID":"CVE-1"},{"VulnerabilityID":"CVE-2"}]}`)
	explained := attached(us, vex, `{"vulnerabilities":[{"id":"CVE-1"},{"id":"CVE-2"},{"id":"CVE-3"}]}`)
	return (&trials{repository: "kyverno/test-verify-image", object: pod}).
		accept("every vulnerability is explained", found, explained).
		refuse("one vulnerability is not explained", "denied-by-condition", found, attached(us, vex, `{"vulnerabilities":[{"id":"CVE-1"}]}`)).
		refuse("nothing is explained", "no-attestation", found).
		refuse("explained by another key", "untrusted-chain", found, attached(strangers, vex, `{"vulnerabilities":[{"id":"CVE-1"},{"id":"CVE-2"}]}`)).
		refuse("the explanation is not signed", "no-attestation", found, attached(nobody, vex, `{"vulnerabilities":[{"id":"CVE-1"},{"id":"CVE-2"}]}`)).list
}

// keysOfNamespaces is the ConfigMap of a policy that names keys by namespace.
func keysOfNamespaces(t testing.TB, p *port) []map[string]any {
	t.Helper()
	return []map[string]any{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "keys", "namespace": "default"},
		"data": map[string]any{"production": p.publicPEM(t, signer), "default": p.publicPEM(t, second)},
	}}
}

// keySecret is the Secret of a policy that has its key there.
func keySecret(t testing.TB, p *port) []map[string]any {
	t.Helper()
	return []map[string]any{{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "testsecret", "namespace": "test-verify-images"},
		"data": map[string]any{"cosign.pub": encode([]byte(p.publicPEM(t, signer)))},
	}}
}
