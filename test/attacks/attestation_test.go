package attacks

import (
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// codesOf makes codes of the gate of verify's.
func codesOf(codes []verify.Code) (all []policy.Code) {
	for _, c := range codes {
		all = append(all, code(c))
	}
	return all
}

// states attests a clean scan, with a change to the statement.
func states(change func(s *scene, of *verifytest.Statement)) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		claim := by(s.key)
		claim.Statement = verifytest.Attestation(image.Manifest.Digest, scanType, clean())
		if change != nil {
			change(s, claim.Statement)
		}
		content, err := s.Sigstore.Bundle(claim)
		if err != nil {
			return err
		}
		return s.PutBundle(image, content, scanType)
	}
}

// about replaces the subjects of a statement.
func about(digests ...string) func(*scene, *verifytest.Statement) {
	return func(_ *scene, of *verifytest.Statement) {
		of.Subjects = nil
		for _, d := range digests {
			of.Subjects = append(of.Subjects, verifytest.Subject{Name: "shop/forged", Digest: d})
		}
	}
}

// raw puts a bare envelope beside the image, as some build services do.
func raw(signer func(*scene) *verifytest.Signer, change func(*verifytest.Claim)) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		claim := by(signer(s))
		claim.Statement = verifytest.Attestation(image.Manifest.Digest, scanType, clean())
		if change != nil {
			change(&claim)
		}
		envelope, err := s.Sigstore.Envelope(claim)
		if err != nil {
			return err
		}
		s.refer(image.Manifest, image.Repository, "application/vnd.in-toto+json", "application/vnd.in-toto+json", envelope)
		return nil
	}
}

// scored is a policy that no finding has a score of 7 or more.
const scored = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: images}\nspec:\n  validationFailureAction: Enforce\n" +
	"  rules:\n  - name: images\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    verifyImages:\n" +
	"    - {imageReferences: ['HOST/shop/*'], attestations: [{type: SCAN, attestors: [{entries: [" + ofKey + "]}], " +
	"conditions: [{all: [{key: '{{ findings[?score >= `7.0`] | length(@) }}', operator: Equals, value: 0}]}]}]}\n"

// scores attests a finding with a score.
func scores(score any) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		return s.AttestBundle(image, by(s.key), scanType, object{"findings": []any{object{"id": "A", "score": score}}})
	}
}

// saidInTurn attests verdicts of the right key, each logged a minute after the one before.
func saidInTurn(verdicts ...string) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		at := time.Now().Add(-time.Hour)
		for _, verdict := range verdicts {
			at = at.Add(time.Minute)
			if err := s.AttestBundle(image, verifytest.Claim{Signer: s.key, Time: at}, scanType, object{"verdict": verdict}); err != nil {
				return err
			}
		}
		return nil
	}
}

func attestationAttacks() []attack {
	const typed = "GHSA-vjxv-45g9-9296, CVE-2022-35929, GHSA-739f-hw6h-7wq8, CVE-2022-35930"
	policyOf := scanned(ofKey)
	honest := states(nil)
	digest := code(verify.WrongDigest)
	row := func(name, what, source string, bad func(*scene, gatetest.Image) error, codes ...policy.Code) attack {
		return attack{name, what, source, everywhere(), judged(policyOf, honest, bad, codes...)}
	}
	return []attack{
		row("attestation-of-another-type", "The right key attests, of another type than the required one. It is denied.", typed, func(s *scene, image gatetest.Image) error {
			return s.AttestBundle(image, by(s.key), sbomType, clean())
		}, policy.NoAttestation),
		{"legacy-attestation-of-another-type", "The same below cosign's tag. It is denied.", typed, everywhere(), judged(policyOf, func(s *scene, image gatetest.Image) error {
			return s.AttestLegacy(image, by(s.key), scanType, clean())
		}, func(s *scene, image gatetest.Image) error { return s.AttestLegacy(image, by(s.key), sbomType, clean()) }, policy.NoAttestation)},
		row("type-on-the-label", "The manifest's annotation names the required type, and the signed statement another. It is denied.", "GHSA-w6c6-c85g-mmv6, CVE-2026-39395", func(s *scene, image gatetest.Image) error {
			claim := by(s.key)
			claim.Statement = verifytest.Attestation(image.Manifest.Digest, sbomType, clean())
			content, err := s.Sigstore.Bundle(claim)
			if err != nil {
				return err
			}
			return s.PutBundle(image, content, scanType)
		}),
		row("malformed-statement", "The right key signs a statement that cannot be read. It is denied: an error is no pass.", "GHSA-w6c6-c85g-mmv6, CVE-2026-39395", func(s *scene, image gatetest.Image) error {
			claim := by(s.key)
			claim.Payload = []byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":7,"subject":"all"}`)
			content, err := s.Sigstore.Bundle(claim)
			if err != nil {
				return err
			}
			return s.PutBundle(image, content, scanType)
		}),
		row("attestation-by-a-stranger", "The required attestation is signed with another key. It is denied.", "kyverno 2739, 17125", func(s *scene, image gatetest.Image) error {
			return s.AttestBundle(image, by(s.stranger), scanType, clean())
		}, code(verify.WrongKey)),
		{"attestation-by-another-identity", "The required attestation is signed by another identity of the trusted authority. It is denied.", "kyverno 17125", everywhere(),
			judged(scanned(ofPeople), func(s *scene, image gatetest.Image) error {
				return s.AttestBundle(image, released(s), scanType, clean())
			}, func(s *scene, image gatetest.Image) error {
				stranger := s.person(func(id *verifytest.Identity) { id.URI = "https://evil.example/x" })
				return s.AttestBundle(image, verifytest.Claim{Signer: stranger}, scanType, clean())
			}, code(verify.WrongIdentity))},
		row("attestation-of-other-bytes", "The statement was changed after it was signed. It is denied.", "kyverno 2739", func(s *scene, image gatetest.Image) error {
			return s.AttestBundle(image, spoilt(s), scanType, clean())
		}, code(verify.BadSignature)),
		row("attestation-of-another-image", "A clean scan of another image is attached. It is denied.", "subjects of in-toto statements", states(about("sha256:"+strings.Repeat("a", 64))), digest),
		row("attestation-of-nothing", "The statement has no subjects. It is denied.", "subjects of in-toto statements", states(func(_ *scene, of *verifytest.Statement) {
			of.Subjects, of.NoSubjects = nil, true
		})),
		row("subject-by-a-weak-digest", "The statement names its subject by SHA-1 alone. It is denied.", "subjects of in-toto statements", states(about("sha1:"+strings.Repeat("a", 40)))),
		{"subject-among-too-many", "The statement is about 1,025 things, the image among them; and one of two is admitted.", "GHSA-cq38-jh5f-37mq, CVE-2024-45395", everywhere(), func(s *scene) {
			few, many := s.built("few"), s.built("many")
			crowd := func(image gatetest.Image, n int) func(*scene, *verifytest.Statement) {
				return func(_ *scene, of *verifytest.Statement) {
					for i := range n {
						of.Subjects = append(of.Subjects, verifytest.Subject{Digest: "sha256:" + strings.Repeat("b", 60) + string([]byte{'0' + byte(i/1000%10), '0' + byte(i/100%10), '0' + byte(i/10%10), '0' + byte(i%10)})})
					}
				}
			}
			s.check(states(crowd(few, 1))(s, few), states(crowd(many, 1024))(s, many))
			s.policies(policyOf)
			s.runs(few.Name, few)
			s.refused(many.Name)
		}},
		row("condition-that-fails", "The right key attests that the scan is dirty. It is denied.", "kyverno 17173: conditions skipped", func(s *scene, image gatetest.Image) error {
			return s.AttestBundle(image, by(s.key), scanType, object{"verdict": "dirty"})
		}, policy.ConditionFailed),
		{"score-without-an-order", "The scan writes a high score as text, which has no order with a number, so that a filter would drop it. It is denied; a low number is admitted.", "JMESPath: a comparison of other values than numbers is null", everywhere(),
			judged(scored, scores(1.5), scores("9.8"), policy.ConditionFailed)},
		{"score-that-is-null", "The scan has a null in place of a score, and a filter would drop it. It is denied; a low number is admitted.", "JMESPath: a comparison of other values than numbers is null", everywhere(),
			judged(scored, scores(1.5), scores(nil), policy.ConditionFailed)},
		row("condition-met-by-a-stranger", "The right key attests dirty, and another key clean. It is denied: only statements of the right key are read.", "kyverno 17130, 17164: payloads of others are read", func(s *scene, image gatetest.Image) error {
			return first(s.AttestBundle(image, by(s.key), scanType, object{"verdict": "dirty"}), s.AttestBundle(image, by(s.stranger), scanType, clean()))
		}, policy.ConditionFailed),
		{"stale-scan-beside-a-fresh-one", "A scan by another key and an old scan of the right key have findings, and a new one has none: a user with push access must not be able to block for ever. It is admitted; without the new one it is denied.",
			"kyverno: one signer that does not match aborts the check", everywhere(), judged(policyOf, func(s *scene, image gatetest.Image) error {
				return first(s.AttestBundle(image, by(s.stranger), scanType, object{"verdict": "dirty"}), s.AttestBundle(image, by(s.key), scanType, object{"verdict": "dirty"}),
					s.AttestBundle(image, by(s.key), scanType, clean()))
			}, func(s *scene, image gatetest.Image) error {
				return s.AttestBundle(image, by(s.key), scanType, object{"verdict": "dirty"})
			}, policy.ConditionFailed)},
		{"outdated-scan-beside-a-later-one", "The right key attests clean and later dirty, and a log has both times. It is denied: the outdated scan does not replace the current one. Dirty and later clean is admitted.",
			"kyverno: each statement must meet the conditions", everywhere(), judged(scanned("{keys: {publicKeys: KEY}}"), saidInTurn("dirty", "clean"), saidInTurn("clean", "dirty"), policy.ConditionFailed)},
		{"outdated-scan-of-an-index", "A tag's index is attested clean, and one of its platforms, which the reference names by digest beside the tag, dirty. It is denied; a platform without a statement is admitted.",
			"statements about another platform", everywhere(), func(s *scene) {
				quiet, dirty := s.Build("shop/both", "quiet", "quiet"), s.Build("shop/both", "dirty", "dirty")
				index := s.BuildIndex(quiet.Repository, "both", quiet, dirty)
				s.check(s.AttestBundle(index, by(s.key), scanType, clean()), s.AttestBundle(dirty, by(s.key), scanType, object{"verdict": "dirty"}))
				s.policies(policyOf)
				s.runs(index.Name+"@"+quiet.Manifest.Digest, quiet)
				s.refused(index.Name+"@"+dirty.Manifest.Digest, policy.ConditionFailed)
			}},
		row("bare-envelope-by-a-stranger", "A referrer of type in-toto is an envelope signed by a random key. It is denied.", "policy-controller 1971", raw(func(s *scene) *verifytest.Signer { return s.stranger }, nil)),
		row("bare-envelope-without-signatures", "The same, with an empty list of signatures. It is denied.", "policy-controller 1971", raw(func(s *scene) *verifytest.Signer { return s.key }, func(c *verifytest.Claim) { c.NoSignatures = true })),
		row("bare-envelope-of-another-image", "The same, by the right key and about another image. It is denied.", "policy-controller 1971", raw(func(s *scene) *verifytest.Signer { return s.key }, func(c *verifytest.Claim) {
			c.Statement.Subjects = []verifytest.Subject{{Digest: "sha256:" + strings.Repeat("c", 64)}}
		})),
		row("signature-for-an-attestation", "The image is signed and not attested. It is denied: a signature is no scan.", typed, signsBundle(ours), policy.NoAttestation),
		{"attestation-without-attestors", "A policy requires an attestation and names no signer. It cannot be evaluated, with any attestation; with a signer it can.",
			"kyverno 17125", everywhere(), func(s *scene) {
				image := s.built("honest")
				s.check(states(nil)(s, image))
				s.policies(policyOf)
				s.runs(image.Name, image)
				s.again(ample)
				s.broken = true
				s.policies(images("attestations: [{type: SCAN, conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: clean}]}]}]"))
				s.refused(image.Name)
			}},
	}
}
