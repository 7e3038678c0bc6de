// Package sigstore answers: what does a ClusterImagePolicy of Sigstore's
// policy-controller ask of the images of an object?
//
// It compiles documents of policy.sigstore.dev/v1beta1 and v1alpha1 into package
// policy's form: of the authorities of a policy any suffices, of policies that name
// an image all must hold. What a check can say, a check says; where authorities want
// different things, or spec.policy speaks of what they proved, a policy.Judge asks
// each by a check of its own, and then that policy. Every field is honoured, refused
// with its path, or on the list of Ignored. TrustRoot documents (v1alpha1) are
// package trustroot's, whose Roots a policy asks by name for each request, so that a
// changed root takes effect with the next one.
//
// Where policy-controller is known to be unsafe, the safe side is taken:
// identities are compared whole and never left half open, keyless signatures
// always want a trusted time, and no image escapes a glob by how its name is
// spelt. Nothing here opens a connection.
package sigstore
