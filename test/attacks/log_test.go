package attacks

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// logged is a signature by the key with an entry, as it should be.
func logged(s *scene) verifytest.Claim { return verifytest.Claim{Signer: s.key} }

// ofForeign records in the foreign log.
func ofForeign(as func(s *scene) *verifytest.Log) func(*scene) verifytest.Claim {
	return func(s *scene) verifytest.Claim {
		record := verifytest.Record{Log: s.foreign.Rekor}
		if as != nil {
			record.As = as(s)
		}
		return verifytest.Claim{Signer: s.key, Records: []verifytest.Record{record}}
	}
}

func logAttacks() []attack {
	const (
		mismatch = "GHSA-whqx-f9j3-ch6m, CVE-2026-22703"
		unbound  = "GHSA-ccxc-vr6p-4858, CVE-2022-23649"
		invalid  = "GHSA-8gw7-4j42-w388, CVE-2022-36056"
	)
	bad, none := code(verify.BadLogEntry), code(verify.NoLogEntry)
	policy := signedBy(ofLogged)
	return []attack{
		{"no-log-entry", "The signature was never logged, though the policy wants that. It is denied.", "GHSA-8gw7-4j42-w388: an invalid entry taken for success", everywhere(),
			judged(policy, signsLegacy(logged), signsLegacy(ours), none)},
		{"no-log-entry-in-bundle", "The same in a bundle. It is denied.", "kyverno 17109", everywhere(), judged(policy, signsBundle(logged), signsBundle(ours), none)},
		{"entry-of-another-signature", "The signature travels with the genuine entry of another signature by the same key. It is denied.", unbound, everywhere(),
			judged(policy, signsLegacy(logged), crossed(func(s *scene, image gatetest.Image) verifytest.Claim {
				return verifytest.Claim{Signer: s.key} // a signature is never the same twice
			}), bad)},
		{"entry-of-another-image", "The signature travels with the genuine entry of the same key's signature of another image. It is denied.", mismatch, everywhere(),
			judged(policy, signsLegacy(logged), crossed(func(s *scene, _ gatetest.Image) verifytest.Claim {
				other := s.built("unrelated")
				return verifytest.Claim{Signer: s.key, Image: &verifytest.SimpleSigning{Reference: other.Repository, Digest: other.Manifest.Digest}}
			}), bad)},
		{"entry-with-another-payload", "The bundle has an entry that keeps a payload, and it is not the one that is signed. It is denied.", mismatch, everywhere(),
			judged(policy, signsBundle(recorded(verifytest.Record{Kind: "intoto", Payload: true})),
				signsBundle(recorded(verifytest.Record{Kind: "intoto", Payload: true, Fault: verifytest.OtherPayload})))},
		{"payload-of-another-signature-in-entry", "The bundle has the genuine entry of another signature by the same signer, with its payload. It is denied.", mismatch, everywhere(),
			judged(policy, signsBundle(recorded(verifytest.Record{Kind: "intoto", Payload: true})),
				signsBundle(recorded(verifytest.Record{Kind: "intoto", Payload: true, Fault: verifytest.OtherSignature})), bad)},
		{"entry-of-another-key", "The signature travels with the genuine entry of another key's signature of the same image. It is denied.", mismatch, everywhere(),
			judged(policy, signsLegacy(logged), crossed(func(s *scene, _ gatetest.Image) verifytest.Claim { return verifytest.Claim{Signer: s.second} }), bad)},
		{"entry-of-another-signature-in-bundle", "The bundle has the genuine entry of another signature by the same signer. It is denied.", mismatch, everywhere(),
			judged(policy, signsBundle(logged), signsBundle(faulty(verifytest.OtherSignature)), bad)},
		{"broken-promise", "The log's promise to include the entry is not signed by the log. It is denied.", invalid, everywhere(),
			judged(policy, signsLegacy(logged), signsLegacy(faulty(verifytest.WrongPromise)), bad)},
		{"broken-promise-in-bundle", "The same in a bundle. It is denied.", invalid, everywhere(), judged(policy, signsBundle(logged), signsBundle(faulty(verifytest.WrongPromise)), bad)},
		{"broken-proof", "One hash of the proof of inclusion is another. It is denied.", invalid, everywhere(), judged(policy, signsBundle(logged), signsBundle(faulty(verifytest.WrongProof)), bad)},
		{"broken-checkpoint", "The checkpoint that the proof leads to is not signed by the log. It is denied.", invalid, everywhere(),
			judged(policy, signsBundle(logged), signsBundle(faulty(verifytest.WrongCheckpoint)), bad)},
		{"checkpoint-of-an-earlier-tree", "The checkpoint is genuine, and of a tree that was smaller than the one of the proof. It is denied.", invalid, everywhere(),
			judged(policy, signsBundle(logged), signsBundle(faulty(verifytest.OldCheckpoint)), bad)},
		{"promise-without-proof", "A bundle of version 0.3, which has to have a proof, has a promise alone. It is denied.", "bundle v0.1 promise against v0.3 proof", everywhere(),
			judged(policy, signsBundle(logged), signsBundle(recorded(verifytest.Record{NoProof: true})))},
		{"neither-promise-nor-proof", "The entry has neither a promise nor an inclusion proof. It is denied.", invalid, everywhere(),
			judged(policy, signsBundle(logged), unvouched)},
		{"foreign-log", "The entry is genuine, and of an untrusted log. It is denied.", "foreign log entries", everywhere(),
			judged(policy, signsLegacy(logged), signsLegacy(ofForeign(nil)), bad)},
		{"foreign-log-in-bundle", "The same in a bundle. It is denied.", "foreign log entries", everywhere(), judged(policy, signsBundle(logged), signsBundle(ofForeign(nil)), bad)},
		{"foreign-log-under-our-name", "The entry of a foreign log states the ID of the trusted one. It is denied: the signature is not that log's.", "foreign log entries", everywhere(),
			judged(policy, signsLegacy(logged), signsLegacy(ofForeign(func(s *scene) *verifytest.Log { return s.sigstore.Rekor })), bad)},
		{"one-entry-twice", "A bundle has one entry twice, to pass for two. It is denied, or counts once.", "GHSA-9vcr-p3rj-q5q6, CVE-2026-49834", everywhere(),
			judged(policy, signsBundle(logged), signsBundle(faulty(verifytest.Repeated)))},
		{"entry-of-the-future", "A certificate's signature is logged at a time in the future. It is denied.", "future log entries", everywhere(),
			judged(signedBy(ofPeople), signsLegacy(released), signsLegacy(func(s *scene) verifytest.Claim {
				return verifytest.Claim{Signer: s.release, Records: []verifytest.Record{{Time: time.Now().Add(24 * time.Hour)}}}
			}))},
		{"entry-after-the-certificate", "The signature is logged an hour after its certificate ended, as with a stolen key. It is denied.", "GHSA-8gw7-4j42-w388: identity unchecked with a bundle", everywhere(),
			judged(signedBy(ofPeople), signsLegacy(released), signsLegacy(func(s *scene) verifytest.Claim {
				signer := s.person(func(id *verifytest.Identity) { id.NotBefore = ago(2 * time.Hour) })
				return verifytest.Claim{Signer: signer, Records: []verifytest.Record{{Time: ago(time.Hour)}}}
			}), code(verify.ExpiredCertificate))},
		{"entry-before-the-certificate", "The signature is logged before its certificate was issued. It is denied.", "timestamps outside validity", everywhere(),
			judged(signedBy(ofPeople), signsLegacy(released), signsLegacy(func(s *scene) verifytest.Claim {
				return verifytest.Claim{Signer: s.release, Records: []verifytest.Record{{Time: ago(time.Hour)}}}
			}), code(verify.ExpiredCertificate))},
		{"key-after-its-end", "The entry's log was trusted until last year, and the entry is of today. It is denied.", "GHSA-wqqc-jjcq-vfxm, CVE-2026-54787", everywhere(), func(s *scene) {
			honest := s.built("honest")
			s.check(s.SignLegacy(honest, logged(s), nil))
			s.policies(policy)
			s.runs(honest.Name, honest)
			s.again(ample)
			s.trusted = ended(s, s.trusted, ago(365*24*time.Hour))
			s.refused(honest.Name, bad)
		}},
		{"key-after-its-end-without-its-time", "The same of a log that gives no time of its own (Rekor v2): a timestamp authority dates the signature. It is denied.", "GHSA-wqqc-jjcq-vfxm, CVE-2026-54787", everywhere(), func(s *scene) {
			honest := s.built("honest")
			s.check(s.SignBundle(honest, verifytest.Claim{
				Signer: s.release, Records: []verifytest.Record{{Log: s.sigstore.Rekor2}}, Stamps: []verifytest.Stamp{{}},
			}, nil))
			s.policies(signedBy(ofPeople))
			s.runs(honest.Name, honest)
			s.again(ample)
			s.trusted = ended(s, s.trusted, ago(365*24*time.Hour))
			s.refused(honest.Name, bad)
		}},
		{"garbled-entry", "The annotation with the log entry is text that cannot be read. It is denied, and nothing ends.", invalid, everywhere(), judged(policy, signsLegacy(logged), func(s *scene, image gatetest.Image) error {
			claim := by(s.key)
			claim.Image = &verifytest.SimpleSigning{Reference: image.Repository, Digest: image.Manifest.Digest}
			layer, err := s.Sigstore.Layer(claim)
			if err != nil {
				return err
			}
			layer.Annotations["dev.sigstore.cosign/bundle"] = `{"SignedEntryTimestamp":"` + strings.Repeat("!", 100) + `","Payload":[]}`
			return s.PutLegacy(image, ".sig", layer)
		})},
	}
}

// ended returns a trusted root with logs that were trusted until a time.
func ended(s *scene, root []byte, end time.Time) []byte {
	var content object
	s.check(json.Unmarshal(root, &content))
	for _, log := range content["tlogs"].([]any) {
		key := log.(object)["publicKey"].(object)
		key["validFor"] = object{"start": end.Add(-24 * time.Hour).Format(time.RFC3339), "end": end.Format(time.RFC3339)}
	}
	return testkit.Must(json.Marshal(content))(s.t)
}

// unvouched takes everything out of a bundle's entry by which the log vouches for it.
func unvouched(s *scene, image gatetest.Image) error {
	claim := logged(s)
	claim.Statement = verifytest.CosignSignature(image.Manifest.Digest, nil)
	content := testkit.Must(s.Sigstore.Bundle(claim))(s.t)
	var bundle object
	s.check(json.Unmarshal(content, &bundle))
	for _, entry := range bundle["verificationMaterial"].(object)["tlogEntries"].([]any) {
		delete(entry.(object), "inclusionPromise")
		delete(entry.(object), "inclusionProof")
	}
	return s.PutBundle(image, testkit.Must(json.Marshal(bundle))(s.t), verifytest.CosignSignPredicateType)
}
