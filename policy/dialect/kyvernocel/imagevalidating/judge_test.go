package imagevalidating_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
)

// signedPolicy wants a signature by the key on every container.
const signedPolicy = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: signed}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  matchImageReferences:
  - glob: HOST/org/*
  attestors:
  - name: ours
    cosign: {key: {data: 'KEY'}, ctlog: {insecureIgnoreTlog: true}}
  - name: theirs
    cosign: {key: {data: 'STRANGER'}, ctlog: {insecureIgnoreTlog: true}}
  - name: notary
    notary: {certs: {value: 'NOTARY'}}
  attestations:
  - name: scan
    intoto: {type: https://example.com/scan/v1}
  - name: sbom
    referrer: {type: sbom/cyclone-dx}
  validations:
  - expression: VALIDATION
    message: the message
`

// with replaces the validation.
func with(expression string) string {
	return strings.Replace(signedPolicy, "expression: VALIDATION", "expression: |-\n      "+strings.ReplaceAll(expression, "\n", "\n      "), 1)
}

// TestWithoutSignature: an image that the validations need no signature of, and one that they do
// not ask about.
func TestWithoutSignature(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key), h.signed(t, "bad")
	const someSigned = "images.containers.exists(i, verifyImageSignatures(i, [attestors.ours]) > 0)"
	for _, c := range []struct {
		reason, expression string
		images             []string
		answer             gate.Result
		word               string
	}{
		{"another image is signed", someSigned, []string{bad.Name, good.Name}, gate.Allow, "no signature or attestation of it was needed for them to hold"},
		{"no image is signed", someSigned, []string{bad.Name}, gate.Deny, "unsigned"},
		{"the image itself is signed", someSigned, []string{good.Name}, gate.Allow, "signed by"},
		{"nothing about signatures", "images.containers.all(i, i.contains('bad'))", []string{bad.Name}, gate.Allow, "none of them is about a signature or an attestation of it"},
	} {
		text := edit(with(c.expression), "spec:\n", "spec:\n  validationConfigurations: {required: false}\n")
		expect(t, h.decide(t, pod(t, c.images...), text), c.reason, c.answer, c.word)
	}
}

const allSigned = "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"

func TestSignatures(t *testing.T) {
	h := newEnv(t)
	good, bad, foreign := h.signed(t, "good", h.key), h.signed(t, "bad"), h.signed(t, "foreign", h.stranger)
	both := h.signed(t, "both", h.key, h.stranger)
	notarized := h.signed(t, "notarized")
	h.notarize(t, notarized, h.notary)
	for _, c := range []struct {
		reason, expression string
		images             []string
		answer             gate.Result
		word               string
	}{
		{"signed", allSigned, []string{good.Name}, gate.Allow, ""},
		{"not signed", allSigned, []string{bad.Name}, gate.Deny, "unsigned"},
		{"signed by another identity", allSigned, []string{foreign.Name}, gate.Deny, "wrong-key"},
		{"one of two is not signed", allSigned, []string{good.Name, bad.Name}, gate.Deny, "unsigned"},
		{"a map, as Kyverno's samples write it", "images.containers.map(i, verifyImageSignatures(i, [attestors.ours])).all(e, e > 0)", []string{good.Name, both.Name}, gate.Allow, ""},
		{"and its twin", "images.containers.map(i, verifyImageSignatures(i, [attestors.ours])).all(e, e > 0)", []string{good.Name, foreign.Name}, gate.Deny, "wrong-key"},
		{"any of two", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.theirs]) > 0)", []string{good.Name, foreign.Name}, gate.Allow, ""},
		{"both of two", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.theirs]) == 2)", []string{both.Name}, gate.Allow, ""},
		{"one of both", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.theirs]) == 2)", []string{good.Name}, gate.Deny, "wrong-key"},
		{"one attestor named twice counts once", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.ours]) == 2)", []string{good.Name}, gate.Deny, "denied"},
		{"a notary", "images.containers.all(i, verifyImageSignatures(i, [attestors.notary]) > 0)", []string{notarized.Name}, gate.Allow, ""},
		{"no notary", "images.containers.all(i, verifyImageSignatures(i, [attestors.notary]) > 0)", []string{good.Name}, gate.Deny, "unsigned"},
		{"a count that always holds verifies nothing", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) >= 0)", []string{bad.Name}, gate.Deny, "unverified"},
		{"and its twin", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) >= 0)", []string{good.Name}, gate.Allow, ""},
		{"true proves nothing", "true", []string{good.Name}, gate.Deny, "unverified"},
		{"an empty list of attestors", "images.containers.all(i, verifyImageSignatures(i, []) == 0)", []string{good.Name}, gate.Deny, "unverified"},
		{"attestors that are computed", "images.containers.all(i, verifyImageSignatures(i, ['ou' + 'rs'].map(n, attestors[n])) > 0)", []string{good.Name}, gate.Allow, ""},
		{"and its twin", "images.containers.all(i, verifyImageSignatures(i, ['the' + 'irs'].map(n, attestors[n])) > 0)", []string{good.Name}, gate.Deny, "wrong-key"},
		{"the object's own text", "object.spec.containers.all(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)", []string{good.Name}, gate.Allow, ""},
		{"and its twin", "object.spec.containers.all(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)", []string{bad.Name}, gate.Deny, "unsigned"},
		{"another image than the object's", "verifyImageSignatures('HOST/org/good:2', [attestors.ours]) > 0", []string{bad.Name}, gate.Error, "policy-error"},
		{"an image that is not meant counts for nothing", "verifyImageSignatures('docker.io/library/other:1', [attestors.ours]) == 0", []string{good.Name}, gate.Error, "names no image of the object"},
		{"a fault of the expression", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0 && dyn(object.spec).nothing == 1)", []string{good.Name}, gate.Error, "policy-error"},
		{"by digest", allSigned, []string{good.ByDigest()}, gate.Allow, ""},
		{"pinned at admission", "images.containers.all(i, i.contains('@sha256:') && verifyImageSignatures(i, [attestors.ours]) > 0)", []string{good.Name}, gate.Allow, ""},
		{"and read in the object", "object.spec.containers.all(c, c.image.contains('@sha256:')) && " + allSigned, []string{good.Name}, gate.Allow, ""},
		{"data of the image", "images.containers.all(i, getImageData(i).config.architecture == 'amd64' && verifyImageSignatures(i, [attestors.ours]) > 0)", []string{good.Name}, gate.Allow, ""},
		{"and its twin", "images.containers.all(i, getImageData(i).config.architecture == 'other' && verifyImageSignatures(i, [attestors.ours]) > 0)", []string{good.Name}, gate.Deny, "the message"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, pod(t, c.images...), with(c.expression)), c.reason, c.answer, c.word)
		})
	}
}
