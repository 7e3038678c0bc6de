// Package image answers: which image is meant, and under which exact name?
//
// It is the vocabulary of every other package: a Ref is what somebody wrote,
// parsed and normalised; a Digest names bytes; a Pinned is a Ref that has a
// digest, and the only thing that verification accepts. The package also owns
// the words for failing to fetch (Kind, Error), so that "it is not there",
// "we may not see it", "nobody answered", "it was too much" and "it
// contradicts itself" are never confused on the way up.
//
// References follow the grammar of the OCI Distribution Specification 1.1 and
// the conventions of Docker's command line (docker.io, library/, latest).
// Digests follow the OCI Image Specification 1.1 (sha256 and sha512).
package image
