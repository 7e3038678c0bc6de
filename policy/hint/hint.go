// Package hint provides the recommended next steps of reasons: one for each reason code, and those for
// one cause of a code. Registry errors and findings about mirrors have hints of their own, in
// packages registry and image/mirror.
package hint

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Of returns the hint for a reason code; empty for a code in favour of an image.
func Of[C ~string](code C) string { return byCode[string(code)] }

// agreeing are the codes in favour of an image, or of an image that no policy matches.
func agreeing() []string {
	return []string{"verified", "pinned", "skipped", "excepted", "override-allowed", "unchanged", "mirrored", "no-policy"}
}

// Codes returns all reason codes, in the order of the alphabet.
func Codes() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(byCode)), agreeing()...)))
}

// Hints for one cause, in place of the code's.
const (
	FewerImages       = "retry, name fewer images together, or allow more time (--timeout)"
	SmallerObject     = "make the object smaller, or ask the author of the policy"
	FewerStale        = "remove stale attestations from the registry"
	ReadStatement     = "read the statement with: cosign download attestation IMAGE@DIGEST"
	ReadDocument      = "read the document: oras discover IMAGE@DIGEST lists it, oras pull downloads it by its digest"
	NameAttestors     = "name attestors, or say required: false if only the digest matters"
	ChangeDocument    = "change the document as the rule requires"
	CorrectExpression = "correct the policy's expression"
	SignManifest      = "sign the manifest with a key or identity that the policy names, and apply the signed one"
	ApplySigned       = "apply the signed manifest as it is, sign it again, or let the policy ignore the field (ignoreFields)"
	CorrectMutation   = "correct the mutation rules that match it, or write the object as they would leave it"

	NameDigest       = "name the image by digest"
	CreateWithDigest = "create the object anew, with the image by digest"
	NoVerifyDigest   = "name the image by digest, or set verifyDigest: false"
	PinByWebhook     = "check that the mutating webhook configuration is there and matches the object, or name the image by digest"
	DigestIfPersists = "retry; if it persists, name the image by digest"
	DigestOrRetry    = "name the image by digest, or retry when the registry answers"

	MirrorSelectors = "retry; if it persists, check the mirror's selectors"
	FewerSources    = "let fewer registries share a target, as by {host} in its location"
	MirrorByWebhook = "check that the mutating webhook configuration is there and matches the object"
	MirrorOutdated  = "bring the mirror up to date, or name the image by digest"
	PullSecret      = "create the Secret in the namespace, or give it to the service account"
	ConfineOverride = "retry, name the image by digest, or confine the override to namespaces"
)

// ForGateway returns a hint with the settings of the gateway and the fields of policies in place of the
// flags of the command line, which have no meaning to the reader of a denial.
func ForGateway(text string) string {
	if !strings.Contains(text, "--") {
		return text
	}
	return settings.Replace(hostFlag.ReplaceAllString(text, "registries.hosts[$1].plainHTTP in the gateway's settings"))
}

// hostFlag is the flag of a registry without TLS.
var hostFlag = regexp.MustCompile(`--plain-http (\S+)`)

// settings has the flags of hints as hints write them. Of two that begin alike the first one counts.
var settings = strings.NewReplacer(
	"--registry-ca", "registries.caFile in the gateway's settings",
	"--timeout", "timeoutSeconds of the policy or the webhook",
	"--trusted-root, --certificate-chain, or in the policy", "trust.trustedRoot in the gateway's settings, or in the policy",
	"--trusted-root", "trust.trustedRoot in the gateway's settings",
	"--insecure-ignore-tlog, or rekor.ignoreTlog in a policy", "rekor.ignoreTlog in the policy",
	"--rekor-key, or rekor.pubkey in a policy", "rekor.pubkey in the policy",
	"--insecure-ignore-sct, or ctlog.ignoreSCT in a policy", "ctlog.ignoreSCT in the policy",
	"trust.retiredKeys, --retired-key or --signed-not-after", "trust.retiredKeys in the gateway's settings",
)

// Write recommends a reference in place of the written one.
func Write(ref string) string { return "write " + ref }

// WaitUntil recommends to wait for the age of an image.
func WaitUntil(at time.Time) string {
	return "wait until " + at.UTC().Format(time.RFC3339) + ", or allow an urgent fix for a time with an ImageOverride, which has a reason and an end"
}

// ExplainMirror recommends the command that explains why an image is not redirected.
func ExplainMirror(ref string) string {
	return "run \"quaymaster mirror " + ref + "\" for what each target answers"
}

// RemoveOverride recommends how to end an override.
func RemoveOverride(name string) string {
	return "ask the author of the override; it expires, or is removed with: kubectl delete imageoverride " + name
}

// byCode has the hint of every code of a denial or an error, as docs/reason-codes.md explains it.
var byCode = map[string]string{
	"unsigned":             "sign the image with a key or identity that the policy names. If it was signed, its tag may have moved since: quaymaster tree IMAGE lists what this digest has",
	"no-attestation":       "attach the attestation in the build, signed by one of the policy's signers; quaymaster tree IMAGE lists the existing ones",
	"condition-failed":     "read the statement (cosign download attestation IMAGE@DIGEST) and rebuild the image so that the condition holds, or correct the policy",
	"denied-by-condition":  "read the policy's deny condition against the statements (cosign download attestation IMAGE@DIGEST); a new build must not meet it",
	"violated":             "change the object as the rule requires; quaymaster apply POLICY -r FILE shows every rule's result for a file",
	"missing-digest":       "name the image by digest, or let the policy pin it (mutateDigest)",
	"not-pinned":           "name the image by digest, or let the policy pin it (mutateDigest)",
	"unverified":           "let an expression of the policy verify the image (verifyImageSignatures), or set validationConfigurations.required: false",
	"too-young":            "wait until the image is old enough, or allow an urgent fix for a time with an ImageOverride, which has a reason and an end",
	"no-verified-time":     "sign with a transparency log or a timestamp authority that the policy accepts, and let a policy verify the image: its age counts from that",
	"wrong-builder":        "build with the builder that is required, or declare it with its signer (settings: builders); docs/slsa.md lists the known builders",
	"low-build-level":      "build with a builder of the required SLSA build level; docs/slsa.md lists the known builders with their levels",
	"wrong-source":         "build from the repository and the reference that are required; a fork or another branch is another source",
	"too-few-signers":      "let the missing signers sign the same digest (cosign sign IMAGE@DIGEST); two signatures by one key count once",
	"image-not-found":      "check the name and the tag; a private repository needs a login (docker login) or a pull secret (imagePullSecrets)",
	"access-refused":       "log in to the registry (docker login), or give a pull secret that may read the repository (imagePullSecrets)",
	"registry-unavailable": "retry; if it persists, check the registry and network connectivity",
	"bound-reached":        "remove needless evidence from the registry, or ask its publisher; quaymaster tree IMAGE lists it",
	"contradiction":        "push the image again, or use another registry (quaymaster mirror IMAGE shows its mirrors): the image, a proxy or the registry may be at fault",
	"policy-error":         "correct the reported part of the policy, or of the object if that lacks a field which the policy reads; until then the policy protects nothing by itself",
	"cannot-prove":         "check the keys and trusted roots that the policy or --trusted-root names",
	"timed-out":            "retry; if it persists, increase --timeout, or use a mirror closer to the cluster",
	"override-denied":      "ask the author of the override that the message names (kubectl get imageoverrides); it expires, and until then another image is needed",
	"not-mirrored":         "quaymaster mirror IMAGE shows what each target answered; copy the image there by digest, or leave it",
	"no-mirror":            "copy the image to a target of the mapping by digest, or let the mapping fall back (otherwise: Source)",
	"mirror-differs":       "bring the mirror up to date, or name the image by digest; the digest that counts was used",
	"stale":                "restore the registry, or mirror the image; cached verifications are used for as long as the policy allows (quaymaster.dev/stale-if-error)",
	"no-pull-secret":       "create the Secret in the object's namespace, or take it from the mapping's pull secrets (pullSecrets)",
	"internal-error":       "this is a defect of quaymaster: please report it with the output of quaymaster explain",
	"malformed-reference":  "write the image as [registry/]repository[:tag][@digest]",

	"wrong-key":           "sign the image with the policy's key (cosign sign --key); if the key was changed on purpose, change the policy",
	"wrong-identity":      "let the identity that the policy names sign; if the found one is right and known to you, change the policy",
	"wrong-extension":     "build from the source that the policy names; a fork or another branch signs under its own name",
	"wrong-annotation":    "sign again with the annotations that the policy asks for (cosign sign -a KEY=VALUE)",
	"wrong-digest":        "sign this digest (cosign sign IMAGE@DIGEST); a signature was copied here from another image",
	"wrong-predicate":     "attest with the predicate type that the policy names (cosign attest --type)",
	"wrong-format":        "sign with a tool in a format that this authority supports (cosign for keys and identities, notation for its trust stores)",
	"bad-signature":       "sign again, and find out how the signed bytes or the signature were changed",
	"malformed":           "remove the broken evidence (quaymaster tree IMAGE lists it) and sign again",
	"untrusted-chain":     "give the certificate authority that issued the signer's certificate (--trusted-root, --certificate-chain, or in the policy), or sign with one that is trusted",
	"expired-certificate": "sign again, with a timestamp or log entry from within the certificate's lifetime",
	"no-log-entry":        "sign with a transparency log (cosign's default), or ask for none: --insecure-ignore-tlog, or rekor.ignoreTlog in a policy",
	"bad-log-entry":       "give the policy the public key of the log that was used (--rekor-key, or rekor.pubkey in a policy), or sign with the log that it trusts",
	"no-sct":              "sign with a certificate authority that logs its certificates, or ask for no timestamp of one: --insecure-ignore-sct, or ctlog.ignoreSCT in a policy",
	"bad-sct":             "give the policy the key of the certificate log that was used (ctlog.pubkey)",
	"no-timestamp":        "sign with a timestamp authority or a transparency log that provides the time",
	"bad-timestamp":       "give the policy the timestamp authority's certificates (ctlog.tsaCertChain, or in the trusted root), or sign again with the one that it trusts",
	"outside-validity":    "sign again with an authority that is valid now; this one was retired (trust.retiredKeys, --retired-key or --signed-not-after)",
	"expired":             "signature expired; sign the image again",
	"too-old":             "sign, scan or attest again: the evidence is older than the requirement accepts",
	"revoked":             "sign again with a certificate that is not revoked, and find out why this one was",
}
