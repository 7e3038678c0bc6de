// Package registrytest is a registry for tests that can be slow, broken or hostile.
//
// The registry is in memory and honest by default, so that crane, cosign, notation and
// go-containerregistry can push to it and pull from it, and it misbehaves on demand by a
// table of faults. It logs every request with its headers and counts requests, counted
// pulls and serial round trips. It follows the OCI Distribution Specification 1.1 (push,
// pull, tags, referrers) and the token specification of the distribution project.
//
// All content is kept in memory and lost at the end. It is for tests and demonstrations
// only.
package registrytest
