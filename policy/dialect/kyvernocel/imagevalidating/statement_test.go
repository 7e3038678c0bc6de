package imagevalidating_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

const scanType = "https://example.com/scan/v1"

func TestStatements(t *testing.T) {
	h := newEnv(t)
	scan := func(level string, age int) map[string]any { return map[string]any{"level": level, "age": age} }
	good, bad := h.signed(t, "good"), h.signed(t, "bad")
	h.attest(t, good, h.key, scanType, scan("low", 1))
	h.attest(t, bad, h.key, scanType, scan("high", 1))
	foreign := h.signed(t, "foreign")
	h.attest(t, foreign, h.stranger, scanType, scan("low", 1))
	stale := h.signed(t, "stale")
	h.attest(t, stale, h.key, scanType, scan("high", 9))
	h.attest(t, stale, h.key, scanType, scan("low", 2))
	h.attest(t, stale, h.stranger, scanType, scan("high", 0))
	mixed := h.signed(t, "mixed")
	h.attest(t, mixed, h.key, scanType, scan("high", 1))
	h.attest(t, mixed, h.key, scanType, scan("low", 9))
	liar := h.signed(t, "liar")
	h.attest(t, liar, h.key, scanType, scan("high", 1))
	h.attest(t, liar, h.stranger, scanType, scan("low", 1))
	other := h.signed(t, "other")
	h.attest(t, other, h.key, "https://example.com/other/v1", scan("low", 1))
	none := h.signed(t, "none", h.key)
	each := h.signed(t, "each")
	h.attest(t, each, h.key, scanType, scan("low", 1))
	h.attest(t, each, h.stranger, scanType, scan("low", 2))
	h.attest(t, each, h.stranger, scanType, scan("high", 0))
	differ := h.signed(t, "differ")
	h.attest(t, differ, h.key, scanType, scan("low", 1))
	h.attest(t, differ, h.stranger, scanType, scan("high", 0))
	const byBoth = "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours, attestors.theirs]) == 2)"
	const proved = "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours]) > 0)"
	const low = " && images.containers.all(i, extractPayload(i, attestations.scan).predicate.level == 'low')"
	const young = " && images.containers.all(i, extractPayload(i, attestations.scan).predicate.age < 5)"
	for _, c := range []struct {
		reason, expression string
		images             []string
		answer             gate.Result
		word               string
	}{
		{"proved", proved, []string{good.Name}, gate.Allow, ""},
		{"not there", proved, []string{none.Name}, gate.Deny, "no-attestation"},
		{"of another type", proved, []string{other.Name}, gate.Deny, "no-attestation"},
		{"signed by another key", proved, []string{foreign.Name}, gate.Deny, "wrong-key"},
		{"and meets the condition", proved + low, []string{good.Name}, gate.Allow, ""},
		{"and does not", proved + low, []string{bad.Name}, gate.Deny, "condition-failed"},
		{"one of two does not", proved + low, []string{good.Name, bad.Name}, gate.Deny, "condition-failed"},
		{"stale and foreign statements neither help nor harm", proved + low, []string{stale.Name}, gate.Allow, ""},
		{"on two images with several each", proved + low + young, []string{stale.Name, good.Name}, gate.Allow, ""},
		{"two statements do not make one", proved + low + young, []string{mixed.Name}, gate.Deny, "condition-failed"},
		{"a statement by another key does not count as the signer's", proved + low, []string{liar.Name}, gate.Deny, "condition-failed"},
		{"it was not verified before", "images.containers.all(i, extractPayload(i, attestations.scan).predicate.level == 'low')", []string{good.Name}, gate.Error, "is not verified"},
		{"the statement's own fields", proved + " && images.containers.all(i, extractPayload(i, attestations.scan).predicateType == '" + scanType + "' && extractPayload(i, attestations.scan).subject.size() == 1)", []string{good.Name}, gate.Allow, ""},
		{"a field that is not there", proved + " && images.containers.all(i, extractPayload(i, attestations.scan).predicate.missing == 1)", []string{good.Name}, gate.Error, "no such key"},
		{"either of two signers", "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours, attestors.theirs]) > 0)" + low, []string{liar.Name}, gate.Allow, ""},
		{"both sign, and each statement agrees", byBoth + low, []string{each.Name}, gate.Allow, ""},
		{"on two images", byBoth + low, []string{each.Name, each.Name}, gate.Allow, ""},
		{"both sign, and one disagrees", byBoth + low, []string{differ.Name}, gate.Deny, "condition-failed"},
		{"a literal name", "images.containers.all(i, verifyAttestationSignatures(i, 'scan', [attestors.ours]) > 0)", []string{good.Name}, gate.Allow, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, pod(t, c.images...), with(c.expression)), c.reason, c.answer, c.word)
		})
	}
}

func TestReferrers(t *testing.T) {
	h := newEnv(t)
	made := func(name string, by func(image string)) string {
		built := h.signed(t, name)
		by(built.Name)
		return built.Name
	}
	image := h.signed(t, "good")
	h.notarize(t, image, h.notary)
	h.document(t, image, h.notary, "sbom/cyclone-dx", `{"bomFormat":"CycloneDX"}`)
	odd := h.signed(t, "odd")
	h.document(t, odd, h.notary, "sbom/cyclone-dx", `{"bomFormat":"other"}`)
	foreign := h.signed(t, "foreign")
	h.document(t, foreign, h.other, "sbom/cyclone-dx", `{"bomFormat":"CycloneDX"}`)
	unsigned := h.signed(t, "unsigned")
	h.document(t, unsigned, nil, "sbom/cyclone-dx", `{"bomFormat":"CycloneDX"}`)
	plain := made("plain", func(string) {})
	const proved = "images.containers.map(i, verifyAttestationSignatures(i, attestations.sbom, [attestors.notary])).all(e, e > 0)"
	const format = "images.containers.map(i, extractPayload(i, attestations.sbom).bomFormat == 'CycloneDX').all(e, e)"
	for _, c := range []struct {
		reason, image, expression string
		answer                    gate.Result
		word                      string
	}{
		{"signed", image.Name, proved + " && " + format, gate.Allow, ""},
		{"has another value", odd.Name, proved + " && " + format, gate.Deny, "condition-failed"},
		{"signed by another notary", foreign.Name, proved, gate.Deny, "untrusted"},
		{"not signed", unsigned.Name, proved, gate.Deny, "no-attestation"},
		{"not signed, and only read", unsigned.Name, format, gate.Error, "is not verified"},
		{"not there", plain, proved, gate.Deny, "no-attestation"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, pod(t, c.image), with(c.expression)), c.reason, c.answer, c.word)
		})
	}
	for image, want := range map[string]string{unsigned.Name: "a document of type sbom/cyclone-dx that is not signed", plain: ""} {
		out := h.decide(t, pod(t, image), with(proved))
		if said := out.Verdicts[0].Reasons[0]; said.Code != policy.NoAttestation || said.Found != want {
			t.Errorf("%s: %+v, want %q found", image, said, want)
		}
	}
}

// TestManyStatements: an attacker with push access cannot make the search endless.
func TestManyStatements(t *testing.T) {
	h := newEnv(t)
	var images []string
	for i := range 3 {
		built := h.signed(t, fmt.Sprintf("many%d", i))
		for n := range 20 {
			h.attest(t, built, h.key, scanType, map[string]any{"level": "high", "n": n})
		}
		images = append(images, built.Name)
	}
	const wants = "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours]) > 0 && extractPayload(i, attestations.scan).predicate.level == 'low')"
	expect(t, h.decide(t, pod(t, images...), with(wants)), "many", gate.Deny, "condition-failed")
	good := h.signed(t, "oneofmany")
	for n := range 20 {
		h.attest(t, good, h.key, scanType, map[string]any{"level": "high", "n": n})
	}
	h.attest(t, good, h.key, scanType, map[string]any{"level": "low"})
	expect(t, h.decide(t, pod(t, good.Name, good.Name), with(wants)), "the last one of many", gate.Allow, "")
}
