package report

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// hints are the fixes for reasons that do not contain one. Every code of a denial or an error has
// one.
var hints = map[policy.Code]string{
	policy.Unsigned:        "sign the image with a key or identity that the policy names. If it was signed, its tag may have moved since: cosign tree IMAGE lists what this digest has",
	policy.NoAttestation:   "attach the attestation in the build, signed by one of the policy's signers; cosign tree IMAGE lists the existing ones",
	policy.ConditionFailed: "compare the statement with the condition: rebuild the image so that it holds, or correct the policy",
	policy.Denied:          "read the policy's deny condition against the statements; a new build must not meet it",
	policy.Violated:        "change the object as the rule requires; quaymaster apply POLICY -r FILE shows every rule's result for a file",
	policy.MissingDigest:   "name the image by digest, or let the policy pin it (mutateDigest)",
	policy.NotPinned:       "name the image by digest, or let the policy pin it (mutateDigest)",
	policy.Unverified:      "let an expression of the policy verify the image, or say required: false",
	policy.TooFewSigners:   "let the missing signers sign the same digest; two signatures by one key count once",
	policy.ImageNotFound:   "check the name and the tag",
	policy.AccessRefused:   "log in to the registry, or give a pull secret that may read the repository",
	policy.Unavailable:     "retry; if it persists, check the registry and network connectivity",
	policy.TooMuch:         "remove needless evidence from the registry, or ask its publisher",
	policy.Contradiction:   "ask another registry; a proxy or the registry itself may be at fault",
	policy.PolicyError:     "correct the reported part of the policy; until then the policy protects nothing by itself",
	policy.CannotProve:     "check the keys and trusted roots that the policy names",
	policy.TimedOut:        "retry; if it persists, increase --timeout, or use a mirror closer to the cluster",
	policy.OverrideDenied:  "ask the author of the override that the message names; it expires, and until then another image is needed",
	policy.NotMirrored:     "quaymaster mirror IMAGE shows what each target answered; copy the image there by digest, or leave it",
	policy.NoMirror:        "copy the image to a target of the mapping by digest, or let the mapping fall back (otherwise: Source)",
	policy.MirrorDiffers:   "bring the mirror up to date, or name the image by digest; the digest that counts was used",
	policy.Stale:           "bring the registry back, or mirror the image; cached verifications are used for as long as the policy allows (quaymaster.dev/stale-if-error)",
	policy.NoPullSecret:    "create the Secret in the object's namespace, or take it from the mapping's pull secrets",
	policy.Internal:        "this is a defect of quaymaster: please report it with the output of quaymaster explain",
	policy.Malformed:       "write the image as [registry/]repository[:tag][@digest]",

	code(verify.WrongKey):           "sign the image with the policy's key; if the key was changed on purpose, change the policy",
	code(verify.WrongIdentity):      "let the identity that the policy names sign; if the found one is right and known to you, change the policy",
	code(verify.WrongExtension):     "build from the source that the policy names; a fork or another branch signs under its own name",
	code(verify.WrongAnnotation):    "sign again with the annotations that the policy asks for (cosign sign -a KEY=VALUE)",
	code(verify.WrongDigest):        "sign this digest; a signature was copied here from another image",
	code(verify.WrongPredicate):     "attest with the predicate type that the policy names",
	code(verify.WrongFormat):        "sign with a tool in a format that this authority supports (cosign for keys and identities, notation for its trust stores)",
	code(verify.BadSignature):       "sign again, and find out how the signed bytes or the signature were changed",
	code(verify.Malformed):          "remove the broken evidence and sign again",
	code(verify.UntrustedChain):     "give the certificate authority that issued the signer's certificate (--trusted-root, --certificate-chain, or in the policy), or sign with one that is trusted",
	code(verify.ExpiredCertificate): "sign again, with a timestamp or log entry from within the certificate's lifetime",
	code(verify.NoLogEntry):         "sign with a transparency log (cosign's default), or ask for none: --insecure-ignore-tlog, or rekor.ignoreTlog in a policy",
	code(verify.BadLogEntry):        "give the policy the public key of the log that was used, or sign with the log that it trusts",
	code(verify.NoSCT):              "sign with a certificate authority that logs its certificates, or let the policy ask for no timestamp of one",
	code(verify.BadSCT):             "give the policy the key of the certificate log that was used",
	code(verify.NoTimestamp):        "sign with a timestamp authority or a transparency log that provides the time",
	code(verify.BadTimestamp):       "give the policy the timestamp authority's certificates, or sign again with the one that it trusts",
	code(verify.OutsideValidity):    "sign again with an authority that is valid now; this one was retired",
	code(verify.Expired):            "signature expired; sign the image again",
	code(verify.Revoked):            "sign again with a certificate that is not revoked, and find out why this one was",
}

func code(c verify.Code) policy.Code { return policy.Code(c) }

// Hint returns the fix for a code; empty for a code in favour of an image.
func Hint(c policy.Code) string { return hints[c] }

// advised returns the reasons, each with its hint.
func advised(reasons []policy.Reason) []policy.Reason {
	if reasons == nil {
		return nil
	}
	out := make([]policy.Reason, len(reasons))
	for i, r := range reasons {
		if r.Hint == "" {
			r.Hint = hints[r.Code]
		}
		out[i] = r
	}
	return out
}

// CodePage returns the address of the documentation of a code, or of all codes for an unknown
// one.
func CodePage(c policy.Code) string {
	const page = "https://github.com/quaymaster/quaymaster/blob/main/docs/reason-codes.md"
	if c == "" || strings.Trim(string(c), "abcdefghijklmnopqrstuvwxyz-") != "" {
		return page
	}
	return page + "#" + string(c)
}
