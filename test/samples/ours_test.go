package samples

import "fmt"

// The workflow that releases, and one of another project.
const (
	release     = "https://forge.example/app/.ci/release.yml@refs/tags/v1"
	foreign     = "https://forge.example/other/.ci/release.yml@refs/tags/v1"
	mainRelease = "https://forge.example/app/.ci/release.yml@refs/heads/main"
)

// ours are the policies in testdata.
func ours() []sample {
	return []sample{
		{file: "cluster-policy.yaml", trials: released()},
		{file: "image-validating-policy.yaml", trials: reviewed()},
	}
}

func released() []trial {
	const provenance = slsa1
	built := func(id string) proof {
		return attested(workflow(release), provenance, fmt.Sprintf(`{"buildDefinition":{"buildType":"https://build.example"},"runDetails":{"builder":{"id":%q}}}`, id))
	}
	const scan = "application/vnd.scan.v1"
	const clean, critical = `{"findings":[{"severity":"low"}]}`, `{"findings":[{"severity":"low"},{"severity":"critical"}]}`
	var (
		key      = signed(us).annotated("stage=prod")
		flow     = signed(workflow(release))
		vaulted  = signed(who{vault: signer})
		builds   = built("https://builder.example/1")
		scanned  = attached(us, scan, clean)
		unsigned = attached(nobody, scan, critical)
	)
	return (&trials{repository: "app/web", object: pod}).
		accept("signed by the key and the workflow", key, flow, builds, scanned).
		accept("signed by the key and the vault, in bundles", key.bundled(), vaulted.bundled(), builds.bundled(), scanned).
		accept("signed by all, with evidence by another key", key, flow, vaulted, signed(strangers), builds, scanned, unsigned).
		refuse("not signed", "unsigned", builds, scanned).
		refuse("signed by the key alone", "too-few-signers", key, builds, scanned).
		refuse("signed by the key for another stage, and the workflow", "too-few-signers", signed(us).annotated("stage=test"), flow, builds, scanned).
		refuse("signed by the key and a workflow of another project", "too-few-signers", key, signed(workflow(foreign)), builds, scanned).
		refuse("signed by the key and another key of the vault", "too-few-signers", key, signed(who{vault: stranger}), builds, scanned).
		refuse("signed by the key and the workflow at another issuer", "too-few-signers", key, signed(who{name: release, issuer: machines}), builds, scanned).
		refuse("signed by the key and the workflow, which no log has", "too-few-signers", key, flow.withoutLog(), builds, scanned).
		refuse("without provenance", "no-attestation", key, flow, scanned).
		refuse("built elsewhere", "condition-failed", key, flow, built("https://elsewhere.example/1"), scanned).
		refuse("with a critical finding", "condition-failed", key, flow, builds, attached(us, scan, critical)).
		refuse("scanned by another key", "untrusted-chain", key, flow, builds, attached(strangers, scan, clean)).
		refuse("with a scan that is not signed", "no-attestation", key, flow, builds, attached(nobody, scan, clean)).
		add(trial{reason: "not signed, and left out", repository: "app/tools", answer: allow, code: "skipped"}).
		add(trial{reason: "not signed, and of no application", repository: "lib/app", answer: unchecked, code: "no-policy"}).list
}

func reviewed() []trial {
	approved := func(by who, approvals int) proof {
		return attested(by, "https://review.example/v1", fmt.Sprintf(`{"approvals":%d}`, approvals))
	}
	contents := func(by who, name string) proof {
		return attached(by, sbom, fmt.Sprintf(`{"bomFormat":"CycloneDX","components":[{"name":"libc"},{"name":%q}]}`, name))
	}
	by := workflow(mainRelease)
	key := signed(us).annotated("stage=prod").withoutLog().withStamp()
	review, bill := approved(by, 2), contents(us, "zlib")
	return (&trials{repository: "app/web", object: pod}).
		accept("signed by the key", key, review, bill).
		accept("signed by the vault", signed(who{vault: signer}), review, bill).
		accept("signed by the workflow, in bundles", signed(by).bundled(), review.bundled(), bill).
		accept("reviewed twice", signed(by), approved(by, 1), review, bill).
		refuse("not signed", "unsigned", review, bill).saying("nobody released the image").
		refuse("signed by the key for another stage", "wrong-annotation", key.annotated("stage=test"), review, bill).
		refuse("signed by the key, and never stamped", "no-timestamp", signed(us).annotated("stage=prod"), review, bill).
		refuse("signed by another identity", "wrong-identity", signed(strangers).annotated("stage=prod").withStamp(), review, bill).also("wrong-key").
		refuse("signed by another workflow", "wrong-identity", signed(workflow(foreign)), review, bill).also("wrong-key").
		refuse("signed by the workflow at another issuer", "wrong-identity", signed(who{name: mainRelease, issuer: machines}), review, bill).also("wrong-key").
		refuse("signed by the workflow, and in no log", "no-log-entry", signed(by).withoutLog(), review, bill).also("wrong-key").
		refuse("not reviewed", "no-attestation", signed(by), bill).saying("nobody reviewed the image").
		refuse("reviewed by another identity", "wrong-identity", signed(by), approved(workflow(foreign), 2), bill).saying("nobody reviewed the image").
		refuse("approved by one", "condition-failed", signed(by), approved(by, 1), bill).saying("fewer than two approved").
		refuse("without a bill of materials", "no-attestation", signed(by), review).saying("nobody knows what is in the image").
		refuse("with a bill of materials by another key", "untrusted-chain", signed(by), review, contents(strangers, "zlib")).
		refuse("with the wrong component", "condition-failed", signed(by), review, contents(us, "left-pad")).saying("left-pad is in the image").
		of(plainPod).leave("not signed, and not of production").list
}
