// Package peers shares verified facts between replicas.
//
// The API server's two calls for one pod may reach two replicas, and a rollout reaches all of them
// at once. A Client requests facts from the other replicas before the registry is queried for
// evidence; a Handler serves them. Only verified facts are shared, never missing evidence and never
// the digest of a tag.
//
// A second endpoint of the same protocol serves a replica's dashboard data (View) to another
// replica, which has authorised the user.
//
// The protocol is a POST of JSON over TLS. Requests and responses carry an HMAC-SHA256 (RFC 2104,
// FIPS 180-4) under a key that only the replicas have. The response's MAC covers the request's
// nonce. The request's MAC covers a short header with the body's hash, so that unauthenticated
// bodies are never read. Without the key, an attacker on the network can neither forge, replay nor
// read facts.
package peers
