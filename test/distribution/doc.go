// Package distribution asks: is what real signers leave in a real, private
// registry found and proved, with no more credentials than that takes?
//
// The registry is the distribution program, behind basic and behind token
// authentication (https://distribution.github.io/distribution/spec/auth/token).
// It has no referrers API, so clients keep the referrers tag of the OCI
// Distribution Specification 1.1. crane pushes; cosign 2 signs under its tag,
// cosign 3 with a bundle, and notation-go; then the real quaymaster is asked.
// All requests to the registry pass a gangway of ours that writes them down.
package distribution
