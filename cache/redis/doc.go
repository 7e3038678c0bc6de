// Package redis answers: did any replica find this out a moment ago, even one
// that is gone?
//
// It is a memory that replicas share, in a Redis or Valkey server (RESP2 and
// RESP3, Redis 6.0 and later, any Valkey), by github.com/redis/rueidis. It holds
// facts and never secrets. Its loss, slowness or restart costs time and never an
// answer: a Recall is bounded, a server that failed rests for a while, a Keep never
// waits.
//
// The server is not trusted. A name in it is an HMAC-SHA256 (RFC 2104) of the key,
// and a value is sealed with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03)
// together with the key, the time of writing and the time of its end; the keys of
// both are derived (HKDF, RFC 5869) from one that only the replicas have. Who can
// read or write the server learns neither which images run nor who signed them,
// and cannot forge an entry, move it to another key, or make it last: what does
// not open is as if it were not there, and is counted. What remains to such a
// person is to delete entries, and to put back one that has not ended yet. Every
// reply is bounded before it is read, and nothing in it can end this process.
//
// It asks for one server: a single one, or what stands in front of several. The
// addresses that a cluster or a sentinel would redirect to are not followed.
package redis
