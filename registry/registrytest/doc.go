// Package registrytest answers: how does a client behave towards a registry
// that is slow, broken or hostile?
//
// It is a registry in memory that is honest by default, so that crane, cosign,
// notation and go-containerregistry can push to it and pull from it, and that
// misbehaves on demand by a table of faults. It logs every request with the
// headers it saw and counts requests, counted pulls and serial round trips.
// It follows the OCI Distribution Specification 1.1 (push, pull, tags,
// referrers) and the token specification of the distribution project.
//
// Everything is kept in memory and forgotten at the end. It is for tests and
// demonstrations; it is no registry to store images in.
package registrytest
