// Package peers answers: did another replica prove this a moment ago?
//
// The API server's two calls about one pod may reach two replicas, and a rollout
// reaches all of them at once. A Client asks the other replicas for facts before
// the registry is asked for evidence; a Door answers them. Only proved facts
// travel: never "none found", and never where a tag points.
//
// By the same protocol, at a door of its own, a replica shows what its dashboard would
// show (View), to one that has found out who asks there.
//
// The protocol is one POST of JSON over TLS. Request and answer carry an
// HMAC-SHA256 (RFC 2104, FIPS 180-4) under a key that only the replicas have; the
// answer's covers the request's nonce. A question's MAC is over a short header that
// has the body's hash, so that of a stranger's no body is read. Who can reach the
// network, or the door, and lacks the key can neither forge nor replay a fact, nor read
// one.
package peers
