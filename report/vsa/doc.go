// Package vsa writes verification summaries, with which other verifiers can rely on a verdict
// without verifying the image themselves.
//
// The format is the SLSA verification summary (VSA, predicate type
// https://slsa.dev/verification_summary/v1, SLSA v1.1) in in-toto statements v1, one for each
// image, signed as Sigstore bundles v0.3 with a DSSE envelope.
//
// A summary is conservative. It passes if at least one policy requires verification and all such
// policies are satisfied, including audited ones. It fails if one of them is not. Left lists the
// images without a summary: those that could not be verified, that an exception or an override
// decided, that no policy matches, or that have no digest. The verified level is that of the
// provenance which a requirement verified (package requirements), else SLSA_BUILD_LEVEL_UNEVALUATED,
// or FAILED.
//
// The resource is the image's own name, never a mirror's, as oci://registry/path without tag and
// digest: the digest is the statement's subject. An image from a mirror has the mirror's name in
// an extension field, named by a URI as the specification requires.
package vsa
