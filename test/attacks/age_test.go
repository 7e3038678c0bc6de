package attacks

import (
	"time"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// aged is an image policy with a validation about an image's time of signing, by attestors with and without log.
func aged(validation string) string {
	return `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: aged}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]
  matchImageReferences: [{glob: "HOST/shop/*"}]
  attestors:
  - name: builder
    cosign: {key: {data: KEY}}
  - name: unlogged
    cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}
  validations:
  - expression: >-
      images.containers.all(image, ` + validation + `)
    message: the age is wrong
`
}

// agedScan is a ClusterPolicy with a condition on the time of a scan.
func agedScan(attestor, condition string) string {
	return images("attestations: [{type: SCAN, attestors: [{entries: [" + attestor + "]}], conditions: [{all: [" + condition + "]}]}]")
}

// signedAgo signs, in cosign's legacy format, with an entry of some time ago.
func signedAgo(signer func(*scene) *verifytest.Signer, ago time.Duration) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		return s.SignLegacy(image, verifytest.Claim{Signer: signer(s), Time: time.Now().Add(-ago)}, map[string]any{"created": "2020-01-01T00:00:00Z"})
	}
}

// scannedAgo attests a scan that claims to be old.
func scannedAgo(claim verifytest.Claim) func(*scene, gatetest.Image) error {
	forged := object{"verdict": "clean", "scanFinishedOn": "2020-01-01T00:00:00Z", "signedAt": "2020-01-01T00:00:00Z",
		"quaymaster": object{"signedAt": "2020-01-01T00:00:00Z", "timeSource": "log"}}
	return func(s *scene, image gatetest.Image) error {
		claim.Signer = s.key
		return s.AttestLegacy(image, claim, scanType, forged)
	}
}

// both does two things to an image.
func both(first, second func(*scene, gatetest.Image) error) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		if err := first(s, image); err != nil {
			return err
		}
		return second(s, image)
	}
}

// ageAttacks are attacks on the time of signing, by which policies bound ages.
func ageAttacks() []attack {
	const (
		day     = 24 * time.Hour
		cool    = `time.now() - firstSignedAt(image, [attestors.builder]) >= duration("72h")`
		fresh   = `time.now() - lastSignedAt(image, [attestors.builder]) <= duration("72h")`
		untimed = `!(time.now() - firstSignedAt(image, [attestors.unlogged]) < duration("72h"))`
		coolDoc = `{key: "{{ time_since('', quaymaster.signedAt, '') }}", operator: GreaterThanOrEquals, value: 72h}`
		standIn = `{key: "{{ quaymaster.signedAt || '2020-01-01T00:00:00Z' }}", operator: NotEquals, value: ''}`
		forged  = "times that authors write"
	)
	key := func(s *scene) *verifytest.Signer { return s.key }
	second := func(s *scene) *verifytest.Signer { return s.second }
	logged := func(at ...time.Duration) func(*scene, gatetest.Image) error {
		return signsBundle(func(s *scene) verifytest.Claim {
			claim := verifytest.Claim{Signer: s.key}
			for _, ago := range at {
				claim.Records = append(claim.Records, verifytest.Record{Time: time.Now().Add(-ago)})
			}
			return claim
		})
	}
	stamped := func(tsa func(*scene) *verifytest.TSA) func(*scene, gatetest.Image) error {
		return signsBundle(func(s *scene) verifytest.Claim {
			return verifytest.Claim{
				Signer: s.key, Records: []verifytest.Record{{Time: time.Now().Add(-day)}}, Stamps: []verifytest.Stamp{{TSA: tsa(s), Time: time.Now().Add(-4 * day)}},
			}
		})
	}
	return []attack{
		{"backdated-signature", "A minimum age of three days is required. The image was signed yesterday, and its signature claims a creation years ago. It is denied.",
			forged, everywhere(), judged(aged(cool), signedAgo(key, 4*day), signedAgo(key, day), policy.Denied)},
		{"old-signature-of-another-signer", "The same, and another signer signed the image long ago. It is denied: each attestor counts by its own signatures.",
			"mixed signers", everywhere(), judged(aged(cool), both(signedAgo(key, 4*day), signedAgo(second, day)), both(signedAgo(key, day), signedAgo(second, 9*day)), policy.Denied)},
		{"signature-of-the-future", "The log's entry is of the day after tomorrow, by a clock that is wrong. A minimum age is not met by it.",
			"clock skew", everywhere(), judged(aged(cool), signedAgo(key, 4*day), signedAgo(key, -2*day), policy.Denied)},
		{"signature-that-was-never-logged", "The signature was never logged, and the policy denies young images by a negation. It is refused: no time is no old time.",
			"missing times", everywhere(), judged(aged(untimed+" || "+cool), signedAgo(key, 4*day), func(s *scene, image gatetest.Image) error {
				return s.SignLegacy(image, by(s.key), map[string]any{"created": "2020-01-01T00:00:00Z"})
			})},
		{"old-signature-logged-again", "A fresh signature is required. An old one is logged again today, next to its first entry. It is denied.",
			"entries that are made again", everywhere(), judged(aged(fresh), logged(day), logged(day, 4*day), policy.Denied)},
		{"foreign-timestamp-for-an-age", "A minimum age is required. A timestamp of an untrusted authority dates the signature back. It is denied.",
			"mixed timestamps", everywhere(), judged(aged(cool), stamped(func(s *scene) *verifytest.TSA { return s.sigstore.TSA }), stamped(func(s *scene) *verifytest.TSA { return s.foreign.TSA }))},
		{"time-in-a-statement", "A minimum age of a statement is required. Its predicate has the members of the policy's variable, with a time years ago. It is denied.",
			forged, everywhere(), judged(agedScan(ofLogged, coolDoc), scannedAgo(verifytest.Claim{Time: time.Now().Add(-4 * day)}), scannedAgo(verifytest.Claim{Time: time.Now().Add(-day)}), policy.ConditionFailed)},
		{"statement-without-a-time", "The statement was never logged, its predicate has such members, and the policy has a default for a missing time. It is refused.",
			"missing times", everywhere(), func(s *scene) {
				s.t.Helper()
				honest, bad := s.built("honest"), s.built("forged")
				s.check(scannedAgo(verifytest.Claim{Time: time.Now().Add(-4 * day)})(s, honest), scannedAgo(verifytest.Claim{NoLog: true})(s, bad))
				s.policies(agedScan(ofLogged, standIn))
				s.runs(honest.Name, honest)
				s.policies(agedScan(ofKey, standIn))
				s.refused(bad.Name, policy.NoVerifiedTime)
			}},
	}
}
