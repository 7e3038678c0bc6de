// Package vsa answers: what may others believe of a verdict, without proving the image
// themselves?
//
// It writes SLSA verification summaries (VSA, predicate type
// https://slsa.dev/verification_summary/v1, SLSA v1.1) in in-toto statements v1, one for
// each image, and signs them as Sigstore bundles v0.3 with a DSSE envelope.
//
// A summary says no more than is known. It passes if at least one policy asked for proof
// and all who asked are satisfied, also those under audit. It fails if one is not. There
// is none where somebody could not look, where an exception or an override decided, where
// no policy speaks of the image, and of an image without a digest: Left says so. The
// verified level is SLSA_BUILD_LEVEL_UNEVALUATED, as policies do not say which level of
// the build track they ask for, or FAILED.
//
// The resource is the image's own name, never a mirror's, as oci://registry/path without
// tag and digest: the digest is the statement's subject. Where the image was read from a
// mirror, an extension field, named by a URI as the specification asks, has the name
// there.
package vsa
