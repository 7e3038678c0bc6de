// Package redis implements a cache that replicas share, in a Redis or Valkey server (RESP2 and
// RESP3, Redis 6.0 and later, any Valkey), by github.com/redis/rueidis.
//
// It holds facts and never secrets. Loss, slowness or restart of the server cost time and never
// change a result: a Get is bounded, a failed server is not contacted for a while, a Keep
// never waits.
//
// The server is not trusted. An entry's name is an HMAC-SHA256 (RFC 2104) of the key. Its value
// is sealed with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) together with the key, the time
// of writing and the time of expiry. The keys of both are derived (HKDF, RFC 5869) from one that
// only the replicas have. An attacker with access to the server learns neither the running images
// nor their signers, and cannot forge an entry, move it to another key, or extend it: an entry
// that cannot be opened counts as absent, and is counted. Such an attacker can still delete
// entries, and restore one that has not expired yet. Every reply is bounded before it is parsed,
// and no reply can end this process.
//
// It uses one address: a single server, or a proxy for several. Redirects of a cluster or a
// sentinel are not followed.
package redis
