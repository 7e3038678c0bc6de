// Package gate answers: may this object run, and under which exact names?
//
// It is the journey that every door shares, written once: find the images, ask
// the policies what must be proved, resolve each reference once, find and prove
// the evidence, let the policies decide, and turn what could not be looked at
// into a yes or a no as the policy's failure setting says; nobody else does
// that. It knows no registry, no cryptography and no Kubernetes client; they
// are handed in.
//
// The rules of proof that it keeps: one resolution per reference and request,
// the pinned digest is the proved digest, one snapshot of policies and trust
// per request, facts are remembered and verdicts are not, and could-not-look is
// never remembered.
package gate
