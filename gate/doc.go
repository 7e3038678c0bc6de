// Package gate decides whether an object may run, and pins its images to digests.
//
// It implements the evaluation that all endpoints share: find the images, collect the
// claims that policies require, resolve each reference once, find and verify the evidence,
// evaluate the policies, and map errors to an answer by the failure setting of each
// policy. No other package applies the failure setting. The package has no registry
// client, no cryptography and no Kubernetes client; callers inject them.
//
// Invariants: each request resolves a reference once; the pinned digest is the verified
// digest; one snapshot of policies and trust serves a request; verified facts are cached,
// verdicts are not; errors are never cached.
package gate
