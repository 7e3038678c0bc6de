package samples

import "testing"

func imageValidatingPolicies() []sample {
	const repository = "kyverno/test-verify-image"
	by := func(object string) *trials { return &trials{repository: repository, object: object, unpinned: true} }
	return []sample{
		{file: "verify-image-ivpol.yaml", trials: notarial(&trials{repository: repository, object: pod}).list},

		{file: "conformance/ivpol-exceptions-autogen.yaml", trials: documented(documented(documented(
			&trials{repository: repository, object: pod}).of(deployment)).of(cronJob)).list},
		{file: "conformance/ivpol-exceptions-autogen.yaml", with: "with an exception", beside: exception(anonym),
			trials: excepted(by(deployment)).list},
		{file: "conformance/ivpol-exceptions-regular.yaml", trials: documented(by(pod)).list},
		{file: "conformance/ivpol-exceptions-regular.yaml", with: "with an exception", beside: exception(anonym),
			trials: excepted(by(pod)).list},
		{file: "conformance/ivpol-exceptions-wrong-exception.yaml", beside: exception("another"), trials: documented(by(pod)).list},
		{file: "conformance/ivpol-match-conditions.yaml", trials: documented(by(pod)).of(plainPod).leave("not signed, and not of production").list},
		{file: "conformance/ivpol-mutate-then-validate.yaml", trials: (&trials{repository: repository, object: pod}).
			add(trial{reason: "pushed, unsigned", answer: allow, code: "pinned", pin: true}).
			add(trial{reason: "never pushed", answer: unable, code: "image-not-found", absent: true}).list},
		{file: "conformance/ivpol-report-admission.yaml", trials: reported()},
		{file: "conformance/ivpol-report-background.yaml", trials: reported()},
		{file: "conformance/ivpol-report-with-exception.yaml", trials: reported()},
		{file: "conformance/ivpol-report-with-exception.yaml", with: "with an exception", beside: exception(anonym),
			trials: excepted(&trials{repository: repository, object: deployment, audit: true, unpinned: true}).list},
		{file: "conformance/ivpol-validation-actions-audit.yaml", trials: documented(&trials{repository: repository, object: pod, audit: true, unpinned: true}).list},
		{file: "conformance/ivpol-validation-actions-deny.yaml", trials: documented(by(pod)).list},
		{file: "conformance/ivpol-validation-actions-none.yaml", trials: documented(by(pod)).list},
		{file: "conformance/ivpol-validation-actions-warn.yaml", trials: documented(&trials{repository: repository, object: pod, audit: true, unpinned: true}).list},
		{file: "conformance/ivpol-validation-rules-accept.yaml", trials: documented(by(pod)).list},
		{file: "conformance/ivpol-validation-rules-reject.yaml", trials: documented(by(pod)).list},
	}
}

// documented are the trials of a policy that wants a signed image and a signed
// bill of materials in CycloneDX' format.
func documented(r *trials) *trials {
	const (
		image       = "failed to verify image with notary cert"
		attestation = "failed to verify attestation with notary cer"
	)
	const cyclone, other = `{"bomFormat":"CycloneDX","components":[]}`, `{"bomFormat":"SPDX"}`
	return r.
		accept("signed, with a signed bill of materials", notarized(us), attached(us, sbom, cyclone)).named().
		refuse("not signed", "unsigned").saying(image).
		refuse("signed under another authority", "untrusted-chain", notarized(strangers), attached(us, sbom, cyclone)).saying(image).
		refuse("without a bill of materials", "no-attestation", notarized(us)).saying(attestation).
		refuse("with a bill of materials by another key", "untrusted-chain", notarized(us), attached(strangers, sbom, cyclone)).saying(attestation).
		refuse("with a bill of materials of another format", "condition-failed", notarized(us), attached(us, sbom, other)).
		saying("sbom is not a cyclone dx sbom")
}

// reported are the trials of a policy that looks at Deployments and reports.
func reported() []trial {
	r := (&trials{repository: "kyverno/test-verify-image", object: deployment, audit: true, unpinned: true}).
		accept("signed, of production", notarized(us)).
		refuse("not signed, of production", "unsigned").saying("failed to verify image with notary cert").
		refuse("signed under another authority", "untrusted-chain", notarized(strangers))
	return r.of(testDeployment).
		add(trial{reason: "signed, of another environment", proofs: []proof{notarized(us)}, answer: allow, code: "verified", warning: "denied-by-condition"}).
		saying("Deployment labels must be env=prod but found env=test").
		of(pod).leave("not signed, and no Deployment").list
}

// excepted are the trials of a policy from which an exception leaves a project
// out.
func excepted(r *trials) *trials {
	r.add(trial{reason: "not signed, and excepted", answer: allow, code: "excepted"})
	r.repository = "elsewhere/app"
	return r.refuse("not signed, and of another project", "unsigned")
}

// leave adds an image that the policy does not match.
func (r *trials) leave(reason string, proofs ...proof) *trials {
	return r.add(trial{reason: reason, proofs: proofs, answer: unchecked, code: "no-policy"})
}

// exception is a PolicyException for an image policy, and the images of one
// project.
func exception(policy string) func(testing.TB, *port) []map[string]any {
	return func(_ testing.TB, p *port) []map[string]any {
		return []map[string]any{{
			"apiVersion": "policies.kyverno.io/v1beta1", "kind": "PolicyException", "metadata": map[string]any{"name": "exception", "namespace": "default"},
			"spec": map[string]any{
				"policyRefs": []any{map[string]any{"name": policy, "kind": "ImageValidatingPolicy"}},
				"images":     []any{p.registry + "/kyverno/*"},
			},
		}}
	}
}
