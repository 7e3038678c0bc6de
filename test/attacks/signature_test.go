package attacks

import (
	"crypto"
	"encoding/json"
	"strings"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// code makes a code of the gate of one of verify's.
func code(c verify.Code) policy.Code { return policy.Code(c) }

// judged signs images in two ways below a policy: the first must run, and the second must
// not, for one of the codes.
func judged(policy string, good, bad func(s *scene, image gatetest.Image) error, codes ...policy.Code) func(*scene) {
	return func(s *scene) {
		s.t.Helper()
		honest, forged := s.built("honest"), s.built("forged")
		s.check(good(s, honest), bad(s, forged))
		s.policies(policy)
		s.runs(honest.Name, honest)
		s.refused(forged.Name, codes...)
	}
}

// signs signs in one of cosign's formats.
func signsLegacy(claim func(s *scene) verifytest.Claim) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error { return s.SignLegacy(image, claim(s), nil) }
}

func signsBundle(claim func(s *scene) verifytest.Claim) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error { return s.SignBundle(image, claim(s), nil) }
}

func ours(s *scene) verifytest.Claim   { return by(s.key) }
func theirs(s *scene) verifytest.Claim { return by(s.stranger) }

// spoilt signs other bytes than those that are shown.
func spoilt(s *scene) verifytest.Claim {
	claim := by(s.key)
	claim.WrongSignature = true
	return claim
}

// moved puts a genuine signature of another image beside this one.
func moved(s *scene, image gatetest.Image) error {
	claim := by(s.key)
	claim.Image = &verifytest.SimpleSigning{Reference: s.Registry.Host() + "/" + image.Repository, Digest: s.built("of-" + image.Repository).Manifest.Digest}
	layer, err := s.Sigstore.Layer(claim)
	if err != nil {
		return err
	}
	return s.PutLegacy(image, ".sig", layer)
}

func movedBundle(s *scene, image gatetest.Image) error {
	claim := by(s.key)
	claim.Statement = verifytest.CosignSignature(s.built("of-"+image.Repository).Manifest.Digest, nil)
	content, err := s.Sigstore.Bundle(claim)
	if err != nil {
		return err
	}
	return s.PutBundle(image, content, verifytest.CosignSignPredicateType)
}

// edited changes a bundle of ours after it was signed.
func edited(change func(bundle object)) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		claim := by(s.key)
		claim.Statement = verifytest.CosignSignature(image.Manifest.Digest, nil)
		content, err := s.Sigstore.Bundle(claim)
		if err != nil {
			return err
		}
		var bundle object
		if err := json.Unmarshal(content, &bundle); err != nil {
			return err
		}
		change(bundle)
		return s.PutBundle(image, testkit.Must(json.Marshal(bundle))(s.t), verifytest.CosignSignPredicateType)
	}
}

// otherwise has the policy's own key sign in another way than its kind is used: a signature
// of one scheme is not valid in another.
func otherwise(of, how verifytest.KeyOptions, signs func(claim func(*scene) verifytest.Claim) func(*scene, gatetest.Image) error) func(*scene) {
	return func(s *scene) {
		key := testkit.Must(verifytest.KeySigner(of))(s.t)
		other := testkit.Must(key.Otherwise(how))(s.t)
		with := func(signer *verifytest.Signer) func(*scene) verifytest.Claim {
			return func(*scene) verifytest.Claim { return by(signer) }
		}
		s.words = map[string][]byte{"KEY": key.PublicPEM()}
		judged(signedBy(ofKey), signs(with(key)), signs(with(other)), code(verify.BadSignature), code(verify.WrongKey))(s)
	}
}

// algorithms signs by another kind of key or another scheme than the policy's key has.
func algorithms(right, wrong verifytest.KeyOptions) func(*scene) {
	return func(s *scene) {
		signer, other := testkit.Must(verifytest.KeySigner(right))(s.t), testkit.Must(verifytest.KeySigner(wrong))(s.t)
		honest, forged := s.built("honest"), s.built("forged")
		s.check(s.SignLegacy(honest, by(signer), nil), s.SignLegacy(forged, by(other), nil))
		s.words = map[string][]byte{"KEY": signer.PublicPEM()}
		s.policies(signedBy(ofKey))
		s.runs(honest.Name, honest)
		s.refused(forged.Name, code(verify.WrongKey), code(verify.BadSignature))
	}
}

func signatureAttacks() []attack {
	return []attack{
		{
			"unsigned", "The image has no signature at all. It is denied, and a signed one runs.",
			"the least that a verifier must do", everywhere(),
			judged(signedBy(ofKey), signsLegacy(ours), func(*scene, gatetest.Image) error { return nil }, policy.Unsigned),
		},
		{
			"signed-by-a-stranger", "The image is signed with another key, and the signature is pushed to the expected tag. It is denied.",
			"kyverno 2739", everywhere(), judged(signedBy(ofKey), signsLegacy(ours), signsLegacy(theirs), code(verify.WrongKey)),
		},
		{
			"signature-of-other-bytes", "The signature is by the right key and of other bytes than the payload that is shown. It is denied.",
			"GHSA-8gw7-4j42-w388", everywhere(), judged(signedBy(ofKey), signsLegacy(ours), signsLegacy(spoilt), code(verify.BadSignature), code(verify.WrongKey)),
		},
		{
			"bundle-of-other-bytes", "The same in a bundle: the envelope's signature is of another statement. It is denied.",
			"GHSA-8gw7-4j42-w388", everywhere(), judged(signedBy(ofKey), signsBundle(ours), signsBundle(spoilt), code(verify.BadSignature), code(verify.WrongKey)),
		},
		{
			"signature-of-another-image", "A genuine signature of one image is copied to cosign's tag of another. It is denied: the signed payload names another digest.",
			"GHSA-xhg5-42rf-296r, CVE-2023-33959", everywhere(), judged(signedBy(ofKey), signsLegacy(ours), moved, code(verify.WrongDigest)),
		},
		{
			"bundle-of-another-image", "A genuine bundle of one image is attached to another as a referrer. It is denied.",
			"GHSA-xhg5-42rf-296r, CVE-2023-33959", everywhere(), judged(signedBy(ofKey), signsBundle(ours), movedBundle, code(verify.WrongDigest)),
		},
		{
			"envelope-without-signatures", "The envelope in the bundle has an empty list of signatures. It is denied: it is unsigned.",
			"policy-controller 1971", everywhere(), judged(signedBy(ofKey), signsBundle(ours), signsBundle(func(s *scene) verifytest.Claim {
				claim := by(s.key)
				claim.NoSignatures = true
				return claim
			})),
		},
		{
			"payload-type-changed", "The payload type of a signed envelope is changed afterwards, so that other software reads it differently. It is denied: the type is signed, too.",
			"policy-controller 1971, payload type confusion", everywhere(), judged(signedBy(ofKey), signsBundle(ours), edited(func(b object) {
				b["dsseEnvelope"].(object)["payloadType"] = "text/plain"
			})),
		},
		{
			"payload-type-of-its-own", "The key signs an envelope with a statement inside under a payload type that is not in-toto's. It is denied: a payload of another type is no statement.",
			"policy-controller 1971, payload type confusion", everywhere(),
			judged(signedBy(ofKey), signsBundle(ours), func(s *scene, image gatetest.Image) error {
				claim := by(s.key)
				claim.PayloadType = "application/vnd.other+json"
				claim.Payload = testkit.Must(json.Marshal(object{
					"_type": "https://in-toto.io/Statement/v1", "predicateType": verifytest.CosignSignPredicateType, "predicate": object{},
					"subject": []object{{"digest": object{"sha256": strings.TrimPrefix(image.Manifest.Digest, "sha256:")}}},
				}))(s.t)
				content, err := s.Sigstore.Bundle(claim)
				if err != nil {
					return err
				}
				return s.PutBundle(image, content, verifytest.CosignSignPredicateType)
			}),
		},
		{
			"bundle-with-a-foreign-hint", "A bundle signed with another key names our key in its hint. It is denied: the hint is a name, and the signature is checked with the policy's key.",
			"key and certificate confusion", everywhere(), judged(signedBy(ofKey), signsBundle(ours), func(s *scene, image gatetest.Image) error {
				liar := testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{Hint: s.key.Hint()}))(s.t)
				return s.SignBundle(image, by(liar), nil)
			}),
		},
		{
			"key-for-an-identity", "The policy wants an identity with a certificate, and the bundle comes with the hint of a bare key. It is denied.",
			"key and certificate confusion", everywhere(),
			judged(signedBy(ofPeople), signsBundle(released), signsBundle(func(s *scene) verifytest.Claim { return verifytest.Claim{Signer: s.stranger} })),
		},
		{
			"identity-for-a-key", "The policy wants a key, and the bundle comes with a certificate of the trusted authority. It is denied.",
			"key and certificate confusion", everywhere(), judged(signedBy(ofLogged), signsBundle(func(s *scene) verifytest.Claim { return verifytest.Claim{Signer: s.key} }), signsBundle(released)),
		},
		{
			"attestation-for-a-signature", "A statement by the right key, of any type, is attached, and no signature. It is denied: a scan result releases nothing.",
			"kyverno: any bundle of the identity counts as a signature", everywhere(),
			judged(signedBy(ofKey), signsBundle(ours), func(s *scene, image gatetest.Image) error {
				return s.AttestBundle(image, by(s.key), scanType, clean())
			}, policy.Unsigned),
		},
		{
			"one-signature-for-two", "Two signers of two are wanted, and one signs twice. It is denied: signers count, not signatures.",
			"kyverno: no rule about distinct signers", everywhere(),
			judged(images("attestors: [{count: 2, entries: ["+ofKey+", "+ofSecond+"]}]"), func(s *scene, image gatetest.Image) error {
				return first(s.SignLegacy(image, by(s.key), nil), s.SignLegacy(image, by(s.second), nil))
			}, func(s *scene, image gatetest.Image) error {
				return first(s.SignLegacy(image, by(s.key), nil), s.SignBundle(image, by(s.key), nil))
			}, policy.TooFewSigners),
		},
		{
			"one-key-listed-twice", "A policy wants two signatures and lists one key twice, in two spellings of its PEM. One signature by it is denied.",
			"kyverno: the same signature satisfies several entries", everywhere(), func(s *scene) {
				s.policies(images("attestors: [{count: 2, entries: [" + ofKey + ", " + ofKey + ", " + ofSecond + "]}]"))
				honest, forged := s.built("honest"), s.signed("forged")
				s.check(s.SignLegacy(honest, by(s.key), nil), s.SignLegacy(honest, by(s.second), nil))
				s.runs(honest.Name, honest)
				s.refused(forged.Name)
			},
		},
		{
			"annotations-of-two-signatures", "Two annotations are wanted, and each is in another signature by the right key. It is denied: one signature must carry both.",
			"kyverno: identity and annotations are checked over the set of signatures", everywhere(),
			judged(images("attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}, annotations: {env: prod, team: a}}]}]"),
				func(s *scene, image gatetest.Image) error {
					return s.SignLegacy(image, by(s.key), object{"env": "prod", "team": "a"})
				}, func(s *scene, image gatetest.Image) error {
					return first(s.SignLegacy(image, by(s.key), object{"env": "prod"}), s.SignLegacy(image, by(s.key), object{"team": "a"}))
				}, code(verify.WrongAnnotation)),
		},
		{
			"annotations-of-a-stranger", "The right key signs without the annotation, and another key with it. It is denied.",
			"kyverno: identity and annotations are checked over the set of signatures", everywhere(),
			judged(images("attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}, annotations: {env: prod}}]}]"),
				func(s *scene, image gatetest.Image) error {
					return s.SignLegacy(image, by(s.key), object{"env": "prod"})
				}, func(s *scene, image gatetest.Image) error {
					return first(s.SignLegacy(image, by(s.key), nil), s.SignLegacy(image, by(s.stranger), object{"env": "prod"}))
				}, code(verify.WrongAnnotation), code(verify.WrongKey)),
		},
		{
			"annotations-on-the-layer", "The annotation is next to the signature, in the unsigned manifest, and not in the signed payload. It is denied.",
			"kyverno: annotations that are not signed", everywhere(),
			judged(images("attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}, annotations: {env: prod}}]}]"),
				func(s *scene, image gatetest.Image) error {
					return s.SignLegacy(image, by(s.key), object{"env": "prod"})
				}, func(s *scene, image gatetest.Image) error {
					claim := by(s.key)
					claim.Image = &verifytest.SimpleSigning{Reference: image.Repository, Digest: image.Manifest.Digest}
					layer, err := s.Sigstore.Layer(claim)
					if err != nil {
						return err
					}
					layer.Annotations["env"] = "prod"
					return s.PutLegacy(image, ".sig", layer)
				}, code(verify.WrongAnnotation)),
		},
		{
			"second-entry-of-a-rule", "A rule has two entries for the same image, and it meets the first alone. It is denied: what one entry found does not answer for another.",
			"kyverno: the second entry finds the first one's cache", everywhere(),
			judged(images("attestors: [{entries: ["+ofKey+"]}]", "attestors: [{entries: ["+ofSecond+"]}]"), func(s *scene, image gatetest.Image) error {
				return first(s.SignLegacy(image, by(s.key), nil), s.SignLegacy(image, by(s.second), nil))
			}, signsLegacy(ours), code(verify.WrongKey)),
		},
		{
			"second-policy", "Two policies match the image, and it meets the first alone. It is denied.",
			"kyverno 16336: an annotation keyed by the image satisfied every policy", everywhere(), func(s *scene) {
				honest, forged := s.signed("honest"), s.signed("forged")
				s.check(s.SignLegacy(honest, by(s.second), nil))
				s.policies(signedBy(ofKey), strings.Replace(signedBy(ofSecond), "name: images", "name: second", 1))
				s.runs(honest.Name, honest)
				s.refused(forged.Name, code(verify.WrongKey))
			},
		},
		{
			"pkcs1-for-pss-key-swap", "The policy's key is RSA, and the signature is by an elliptic curve. It is denied, whatever the algorithms are called.",
			"algorithm confusion", everywhere(), algorithms(verifytest.KeyOptions{Algorithm: verifytest.RSA2048}, verifytest.KeyOptions{}),
		},
		{
			"ed25519-for-ecdsa", "The policy's key is of a curve, and the signature is Ed25519's. It is denied.",
			"algorithm confusion", everywhere(), algorithms(verifytest.KeyOptions{}, verifytest.KeyOptions{Algorithm: verifytest.Ed25519}),
		},
		{
			"pss-for-pkcs1", "The policy's own RSA key signs with PSS padding, where PKCS #1 v1.5 is meant. It is denied: one scheme is believed for a key.",
			"algorithm confusion", everywhere(), otherwise(verifytest.KeyOptions{Algorithm: verifytest.RSA2048}, verifytest.KeyOptions{PSS: true}, signsLegacy),
		},
		{
			"pss-for-pkcs1-in-bundle", "The same in a bundle. It is denied.",
			"algorithm confusion", everywhere(), otherwise(verifytest.KeyOptions{Algorithm: verifytest.RSA2048}, verifytest.KeyOptions{PSS: true}, signsBundle),
		},
		{
			"ed25519ph-for-ed25519", "The policy's own Ed25519 key signs a digest (Ed25519ph), where the message itself is meant. It is denied.",
			"algorithm confusion", everywhere(), otherwise(verifytest.KeyOptions{Algorithm: verifytest.Ed25519}, verifytest.KeyOptions{Prehash: true}, signsLegacy),
		},
		{
			"ed25519ph-for-ed25519-in-bundle", "The same in a bundle's envelope. It is denied.",
			"algorithm confusion", everywhere(), otherwise(verifytest.KeyOptions{Algorithm: verifytest.Ed25519}, verifytest.KeyOptions{Prehash: true}, signsBundle),
		},
		{
			"signature-by-sha1", "The policy's own key signs with SHA-1, of which two texts with one digest can be made. It is denied.",
			"weak digests", everywhere(), otherwise(verifytest.KeyOptions{}, verifytest.KeyOptions{Hash: crypto.SHA1}, signsLegacy),
		},
		{
			"signature-by-sha1-in-bundle", "The same in a bundle. It is denied.",
			"weak digests", everywhere(), otherwise(verifytest.KeyOptions{}, verifytest.KeyOptions{Hash: crypto.SHA1}, signsBundle),
		},
		{
			"rsa-signature-by-sha1", "The same by an RSA key. It is denied.",
			"weak digests", everywhere(), otherwise(verifytest.KeyOptions{Algorithm: verifytest.RSA2048}, verifytest.KeyOptions{Hash: crypto.SHA1}, signsLegacy),
		},
		{
			"larger-curve", "The policy's key is P-256, and the signature is by P-384. It is denied.",
			"algorithm confusion", everywhere(), algorithms(verifytest.KeyOptions{}, verifytest.KeyOptions{Algorithm: verifytest.ECDSAP384}),
		},
		{
			"weaker-hash", "The key signs a digest of another algorithm than the policy's. It is denied.",
			"algorithm confusion", everywhere(), func(s *scene) {
				key := testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(s.t)
				honest := s.built("honest")
				s.check(s.SignLegacy(honest, by(key), nil))
				s.words = map[string][]byte{"KEY": key.PublicPEM()}
				entry := func(hash string) string {
					return signedBy("{keys: {publicKeys: KEY, signatureAlgorithm: " + hash + ", rekor: {ignoreTlog: true}}}")
				}
				s.policies(entry("sha256"))
				s.runs(honest.Name, honest)
				s.policies(entry("sha512"))
				s.again(ample)
				s.refused(honest.Name, code(verify.BadSignature), code(verify.WrongKey))
			},
		},
		{
			"notation-of-a-stranger", "Another notary signs, with a chain of its own. It is denied.",
			"GHSA-57wx-m636-g3g8, CVE-2024-23332", everywhere(), judged(notarized(), notation(nil, ""), func(s *scene, image gatetest.Image) error {
				return s.SignNotation(image, s.other, verifytest.Notation{})
			}, code(verify.UntrustedChain)),
		},
		{
			"notation-of-other-bytes", "The notary's envelope shows other bytes than were signed. It is denied.",
			"GHSA-xhg5-42rf-296r", everywhere(), judged(notarized(), notation(nil, ""), notation(func(n *verifytest.Notation) { n.WrongSignature = true }, ""), code(verify.BadSignature)),
		},
		{
			"notation-payload-type", "The notary signs, under a content type that is not the Notary Project's. It is denied.",
			"GHSA-xhg5-42rf-296r", everywhere(), judged(notarized(), notation(nil, ""), notation(func(n *verifytest.Notation) { n.PayloadType = "application/json" }, "")),
		},
		{
			"notation-plugin", "The envelope requires, in a critical attribute, verification by a plugin. It is denied: a verifier without that plugin must not guess.",
			"the Notary Project's specification of signatures", everywhere(), judged(notarized(), notation(nil, ""), notation(func(n *verifytest.Notation) { n.Plugin = "com.example.plugin" }, "")),
		},
		{
			"notation-of-another-image", "A registry lists one image's notation signature among the referrers of another. It is denied: the payload names another digest.",
			"GHSA-xhg5-42rf-296r, CVE-2023-33959", everywhere(), judged(notarized(), notation(nil, ""), notation(nil, "another"), code(verify.WrongDigest)),
		},
		{
			"notation-without-algorithm", "The JWS has the algorithm none and an empty signature. It is denied.",
			"algorithm none in JWS", everywhere(), judged(notarized(), notation(nil, ""), unprotected),
		},
		{
			"cosign-for-notation", "The policy wants notation's signatures, and the image has cosign's. It is denied.",
			"kyverno: a type that is not looked at", everywhere(), judged(notarized(), notation(nil, ""), signsLegacy(ours)),
		},
		{
			"junk-before-the-signature", "A user with push access adds invalid evidence to the image. The genuine signature still counts, and invalid evidence alone is denied.",
			"kyverno: one signer that does not match aborts the check", everywhere(), judged(signedBy(ofKey), func(s *scene, image gatetest.Image) error {
				return first(junk(s, image), s.SignLegacy(image, by(s.stranger), nil), s.SignLegacy(image, by(s.key), nil))
			}, junk),
		},
	}
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// junk is content that a user with push access may push and no parser reads.
func junk(s *scene, image gatetest.Image) error {
	layer := &verifytest.Layer{
		MediaType: verifytest.SimpleSigningMediaType, Payload: []byte(`{"critical":`), Annotations: map[string]string{"dev.cosignproject.cosign/signature": "AAAA"},
	}
	return first(s.PutLegacy(image, ".sig", layer), s.PutBundle(image, []byte(`{"mediaType":`), verifytest.CosignSignPredicateType))
}

// notation signs as the notary, with a change; of is the content of another image that
// is signed in place of this one.
func notation(change func(*verifytest.Notation), of string) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		var how verifytest.Notation
		if change != nil {
			change(&how)
		}
		if of == "" {
			return s.SignNotation(image, s.notary, how)
		}
		other := s.built(of)
		return s.referNotation(image, s.envelope(other, how))
	}
}
